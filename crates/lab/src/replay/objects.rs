//! Slab objects of a copy, in a replay: got, awaited by whoever frees them, freed.

use std::cell::RefCell;
use std::collections::BTreeMap;

use mm::Addr;
use mm::slab::{CacheId, known};
use sim::WaitQueue;

use crate::recorded::{ObjectCache, ObjectId, Recorded};
use crate::stage::Stage;

/// An object of this pass that nobody has asked for yet.
const NOT_YET: u64 = u64::MAX;
/// An object that was asked for in vain.
const FAILED: u64 = u64::MAX - 1;
/// An object that was given back.
const GONE: u64 = u64::MAX - 2;

/// A copy's objects.
pub(super) struct Objects {
    /// Address of each object, or one of the markers.
    at: RefCell<Vec<u64>>,
    /// Who waits for an object that is still to be asked for.
    awaited: RefCell<BTreeMap<u32, WaitQueue>>,
}

impl Objects {
    pub(super) fn new(workload: &Recorded) -> Self {
        Self { at: RefCell::new(vec![NOT_YET; workload.objects as usize]), awaited: RefCell::default() }
    }

    /// Asks for an object of `cache`. One that cannot be had, as none of a cache that could not be made, is counted.
    pub(super) fn alloc(&self, stage: &Stage, object: ObjectId, cache: Option<CacheId>) {
        let got = cache.and_then(|cache| stage.mm.slabs().kmem_cache_alloc(cache).ok());
        let state = if let Some(Addr(at)) = got {
            stage.tally.did(1);
            at
        } else {
            stage.tally.could_not_get();
            FAILED
        };
        self.at.borrow_mut()[object.0 as usize] = state;
        if !self.awaited.borrow().is_empty() {
            let queue = self.awaited.borrow_mut().remove(&object.0);
            if let Some(queue) = queue {
                stage.machine().notify_all(&queue);
            }
        }
    }

    /// Gives an object back, once somebody has asked for it.
    pub(super) fn free(&self, stage: &Stage, object: ObjectId) {
        let state = || self.at.borrow()[object.0 as usize];
        if state() == NOT_YET {
            let queue = self.awaited.borrow_mut().entry(object.0).or_default().clone();
            stage.machine().wait_until(&queue, || state() != NOT_YET);
        }
        let at = std::mem::replace(&mut self.at.borrow_mut()[object.0 as usize], GONE);
        if at < GONE {
            stage.mm.slabs().kfree(Addr(at)).expect("the workload frees only what it holds");
            stage.tally.did(1);
        } else {
            stage.tally.had_nothing_to_give();
        }
    }

    /// Gives back what a pass left, before the next.
    pub(super) fn give_back_all(&self, stage: &Stage) {
        let count = self.at.borrow().len();
        for object in 0..count {
            let at = std::mem::replace(&mut self.at.borrow_mut()[object], NOT_YET);
            if at < GONE {
                stage.mm.slabs().kfree(Addr(at)).expect("an object that is held can be freed");
            }
        }
    }
}

/// Makes the workload's caches on `stage`; those for which there is no memory are not there.
pub(super) fn make_caches(stage: &Stage, workload: &Recorded) -> Vec<Option<CacheId>> {
    let make = |cache: &ObjectCache| match cache {
        ObjectCache::Kmalloc(class) => stage.mm.slabs().kmalloc_cache(*class).ok().map(mm::slab::Cache::id),
        ObjectCache::Named(spec) => {
            let mut spec = spec.clone();
            // Whether those that ask for sheaves get them is for the policy to say.
            let asked = known::ASKED_SHEAVES.iter().find(|asked| asked.cache == spec.name);
            spec.sheaf_capacity = asked.map(|asked| asked.capacity);
            spec.flags = spec.flags.with(known::bootstrap_flags(&spec.name));
            stage.mm.slabs().create_cache(spec).ok()
        }
    };
    workload.caches.iter().map(make).collect()
}
