//! Objects for workloads: what the memory manager's doors give, with failures counted.

use mm::slab::{CacheId, CacheSpec};

use crate::stage::Stage;

/// An object: where it begins.
pub(super) type Object = mm::ids::Addr;

/// A cache as `spec` has it.
///
/// # Errors
/// Why there cannot be such a cache.
pub(super) fn cache(stage: &Stage, spec: CacheSpec) -> Result<CacheId, String> {
    stage.mm.slabs().create_cache(spec).map_err(|error| format!("workload: {error}"))
}

/// An object; `None`, which is counted, if there is no memory for it.
#[inline]
pub(super) fn allocate(stage: &Stage, cache: CacheId) -> Option<Object> {
    let got = stage.mm.slabs().kmem_cache_alloc(cache).ok();
    if got.is_none() {
        stage.tally.could_not_get();
    }
    got
}

/// Puts `count` objects behind those in `objects`; `None`, which is counted, if memory ran out.
pub(super) fn allocate_bulk(
    stage: &Stage,
    cache: CacheId,
    count: u32,
    objects: &mut Vec<Object>,
) -> Option<()> {
    if count == 0 {
        return Some(());
    }
    let got = stage.mm.slabs().kmem_cache_alloc_bulk(cache, count, |object| objects.push(object)).ok();
    if got.is_none() {
        stage.tally.could_not_get();
    }
    got
}

#[inline]
pub(super) fn free(stage: &Stage, cache: CacheId, object: Object) {
    stage.mm.slabs().kmem_cache_free(cache, object).expect("a workload frees only what it holds");
}

/// Frees all of `objects` at once, and empties the row.
pub(super) fn free_bulk(stage: &Stage, cache: CacheId, objects: &mut Vec<Object>) {
    if !objects.is_empty() {
        stage.mm.slabs().kmem_cache_free_bulk(cache, objects).expect("a workload frees only what it holds");
        objects.clear();
    }
}

/// Frees an object by a callback of its own after a grace period.
#[inline]
pub(super) fn free_deferred(stage: &Stage, cache: CacheId, object: Object) {
    stage.mm.slabs().free_deferred(cache, object).expect("a workload frees only what it holds");
}

/// Frees an object after a grace period, together with others where the cache gathers them.
#[inline]
pub(super) fn kfree_rcu(stage: &Stage, cache: CacheId, object: Object) {
    stage.mm.slabs().kfree_rcu(cache, object).expect("a workload frees only what it holds");
}
