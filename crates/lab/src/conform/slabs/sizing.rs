//! The slab caches of a capture against those that mm computes from their stride, the number of CPUs and the version.

use mm::slab::kmalloc::{KmallocClass, KmallocKind};
use mm::slab::{CacheFlags, CacheSizing, CacheSpec, SlabSystem, known};
use mm::version::Version;
use mm::{Knobs, Policy};

use crate::conform::outcome::{CachesCompared, FileOutcome};
use crate::conform::read::capture::Capture;
use crate::conform::read::sections::FormatError;
use crate::conform::read::slab_cache::SlabCacheInfo;

/// The cache as it is asked of mm; what it asks for besides its size is known by its name.
fn spec(cache: &SlabCacheInfo, version: Version) -> CacheSpec {
    let mut spec = CacheSpec::new(&cache.name, cache.object_size).aligned(cache.align);
    spec.slab_size = Some(cache.slab_size);
    spec.sheaf_capacity = known::asked_sheaves(&cache.name, version);
    spec.with(known::bootstrap_flags(&cache.name))
}

/// The stride that mm computes. The kernel does not print whether the free pointer lies in the object: of both, the one that is
/// the kernel's, if any is.
fn stride(cache: &SlabCacheInfo) -> u32 {
    let inside = CacheSpec::new(&cache.name, cache.object_size).aligned(cache.align);
    let outside = inside.clone().with(CacheFlags::CONSTRUCTOR).stride();
    if outside == cache.slab_size { outside } else { inside.stride() }
}

/// Holds mm against the caches of a capture.
pub(in crate::conform) fn compare(
    capture: &Capture,
    policy: &Policy,
    outcome: &mut FileOutcome,
) -> Result<(), FormatError> {
    if capture.caches.is_empty() {
        outcome.notes.push("it says nothing of slab caches: none was compared".to_string());
        return Ok(());
    }
    let cpu_nodes = capture.nodes.iter().filter(|node| !node.cpus.is_empty()).count();
    let ground = SlabBasis {
        policy,
        version: capture.version()?,
        system: SlabSystem { cpus: capture.present_cpus, cpu_nodes: cpu_nodes as u32 },
    };
    let mut caches = CachesCompared::default();
    for cache in &capture.caches {
        let before = outcome.differences.len();
        compare_cache(&ground, cache, outcome)?;
        caches.compared += 1;
        caches.equal += u64::from(outcome.differences.len() == before);
    }
    outcome.caches = Some(caches);
    Ok(())
}

/// What mm computes with.
struct SlabBasis<'a> {
    policy: &'a Policy,
    version: Version,
    system: SlabSystem,
}

fn compare_cache(
    ground: &SlabBasis<'_>,
    cache: &SlabCacheInfo,
    outcome: &mut FileOutcome,
) -> Result<(), FormatError> {
    let spec = spec(cache, ground.version);
    spec.check().map_err(|error| FormatError::new(0, error.to_string()))?;
    let rules = ground.policy.rules();
    let sizing = CacheSizing::compute(rules, &Knobs::default(), ground.system, &spec);
    let mut figure = |name: &str, kernel: Option<u32>, freehold: u32| {
        if let Some(kernel) = kernel {
            outcome.compare(|| format!("cache {} {name}", cache.name), kernel, freehold);
        }
    };
    figure("slab_size", Some(cache.slab_size), stride(cache));
    figure("order", Some(cache.order), sizing.order.get().into());
    figure("objs_per_slab", Some(cache.objs_per_slab), sizing.objects);
    figure("cpu_partial", cache.cpu_partial, sizing.cpu_partial_objects);
    figure("min_partial", cache.min_partial, sizing.min_partial);
    figure("sheaf_capacity", cache.sheaf_capacity, sizing.sheaf_capacity);
    figure("remote_node_defrag_ratio", cache.remote_node_defrag_ratio, sizing.remote_node_defrag_ratio / 10);
    if let Some(class) = kmalloc_class(&cache.name) {
        let spec = class.spec(rules);
        figure("object_size", Some(cache.object_size), spec.object_size);
        figure("align", Some(cache.align), spec.align);
    }
    Ok(())
}

fn kmalloc_class(name: &str) -> Option<KmallocClass> {
    let mut classes = KmallocKind::ALL.into_iter().flat_map(KmallocClass::row);
    classes.find(|class| class.to_string() == name)
}
