//! Objects under stress: threads allocate from several caches, one by one and many at once, hand objects to each other,
//! free them, some after a grace period, while caches are made and shrunk and knobs are turned. Every byte of an object
//! carries its owner's stamp, which is looked at when it is freed; a deferred one says in which grace period, which is
//! looked at when its memory is handed out again. Between rounds, and in the end, every invariant is checked and every
//! object counted.

mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::{fmt, thread};

use mm::Knobs;
use mm::slab::{CacheFlags, CacheSpec};

use super::{Length, Stress, StressEnd};
use crate::host::Host;
use crate::objects::ObjectCache;
use crate::rng::Rng;
use worker::ObjectWorker;

/// Times that all threads stop and everything is checked.
const ROUNDS: u32 = 4;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ObjectTally {
    /// Objects allocated.
    pub allocated: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Objects handed to another thread.
    pub sent: u64,
    /// Objects freed after a grace period.
    pub deferred: u64,
    /// Objects whose stamps were looked at.
    pub checked: u64,
    /// Objects that had been deferred and came back into use.
    pub reused: u64,
    /// Caches made in mid-run.
    pub caches: u64,
    /// Times that a cache was shrunk, a knob turned, a grace period ended.
    pub disturbances: u64,
}

impl ObjectTally {
    fn add(&mut self, other: &Self) {
        self.allocated += other.allocated;
        self.failed += other.failed;
        self.sent += other.sent;
        self.deferred += other.deferred;
        self.checked += other.checked;
        self.reused += other.reused;
        self.caches += other.caches;
        self.disturbances += other.disturbances;
    }
}

impl fmt::Display for ObjectTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} objects allocated ({} requests failed), {} sent to other threads, {} deferred, {} looked at, {} seen again \
             after their grace period, {} caches made, {} disturbances",
            self.allocated,
            self.failed,
            self.sent,
            self.deferred,
            self.checked,
            self.reused,
            self.caches,
            self.disturbances
        )
    }
}

/// Counts grace periods on both sides of the allocator's own count.
#[derive(Debug, Default)]
struct GracePeriods {
    /// No fewer than have ended.
    most: AtomicU64,
    /// No more than have ended.
    least: AtomicU64,
}

impl GracePeriods {
    fn end(&self, host: &Host) {
        // The allocator's own counter carries this to whoever frees, and its locks to whoever allocates.
        self.most.fetch_add(1, Ordering::Relaxed);
        host.end_grace_period();
        // Release pairs with the acquire in `least`: an object that is deferred after that is queued in a later period.
        self.least.fetch_add(1, Ordering::Release);
    }

    fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    fn least(&self) -> u64 {
        self.least.load(Ordering::Acquire)
    }
}

/// Runs `stress` on objects.
///
/// # Errors
/// What was found wrong, in one line.
pub fn run(stress: &Stress) -> Result<ObjectTally, String> {
    let host = Host::with_topology(stress.topology.clone(), stress.policy.clone(), Knobs::default())
        .map_err(|error| error.to_string())?;
    let caches = caches(&host).map_err(|error| error.to_string())?;
    let grace = GracePeriods::default();
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..stress.threads.max(1)).map(|_| mpsc::channel()).unzip();
    let mut workers: Vec<ObjectWorker<'_>> = inboxes
        .into_iter()
        .zip(0..)
        .map(|(inbox, number)| {
            let rng = Rng::new(stress.seed, number);
            ObjectWorker::new(&host, &grace, caches.clone(), number, rng, senders.clone(), inbox)
        })
        .collect();
    for _ in 0..ROUNDS {
        run_round(&mut workers, stress.length)?;
        workers.iter_mut().for_each(ObjectWorker::empty_inbox);
        check_held(&host, &workers)?;
    }
    let mut sum = ObjectTally::default();
    for worker in workers {
        sum.add(&worker.finish()?);
    }
    drop(senders);
    check_end(&host, &grace)?;
    Ok(sum)
}

/// Sizes and kinds that take different paths.
fn caches(host: &Host) -> Result<Vec<ObjectCache<'_>>, mm::slab::SlabError> {
    let specs = [
        CacheSpec::new("word", 8),
        CacheSpec::new("line", 64),
        CacheSpec::new("vm_area_struct", 168).with_sheaves(32),
        CacheSpec::new("maple_node", 256).aligned(256).with_sheaves(32),
        CacheSpec::new("large", 4000),
        CacheSpec::new("constructed", 104).with(CacheFlags::CONSTRUCTOR),
        CacheSpec::new("typesafe", 208).with(CacheFlags::TYPESAFE_BY_RCU),
        CacheSpec::new("watched", 60).with(CacheFlags::DEBUG),
    ];
    specs.into_iter().map(|spec| host.cache(spec)).collect()
}

fn run_round(workers: &mut [ObjectWorker<'_>], length: Length) -> Result<(), String> {
    let (end, operations) = match length {
        Length::Operations(operations) => (StressEnd::never(), operations / u64::from(ROUNDS)),
        Length::Time(time) => (StressEnd::after(time / ROUNDS), u64::MAX),
    };
    thread::scope(|scope| {
        let end = &end;
        let running: Vec<_> = workers
            .iter_mut()
            .map(|worker| scope.spawn(move || worker.run(operations, end).inspect_err(|_| end.reach())))
            .collect();
        running.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// Nobody works at the moment: the allocator is whole, and counts as many objects in use as the threads hold.
fn check_held(host: &Host, workers: &[ObjectWorker<'_>]) -> Result<(), String> {
    host.check()?;
    let mut held = BTreeMap::new();
    for worker in workers {
        worker.caches().iter().for_each(|cache| {
            held.entry(cache.id()).or_insert((*cache, 0));
        });
    }
    for object in workers.iter().flat_map(ObjectWorker::held) {
        if let Some((_, count)) = held.get_mut(&object.cache().id()) {
            *count += 1;
        }
    }
    for (cache, count) in held.into_values() {
        let used = cache.check()?;
        if used.in_use - used.deferred != count {
            return Err(format!("{count} objects of {cache:?} are held, but {used:?}"));
        }
    }
    Ok(())
}

/// Everything was freed: every slab goes back but those of the CPUs' main sheaves.
fn check_end(host: &Host, grace: &GracePeriods) -> Result<(), String> {
    // Sheaves that gather deferred objects begin to wait when they are flushed, and their slabs after that.
    for _ in 0..3 {
        grace.end(host);
        grace.end(host);
        host.run_all_deferred();
        host.shrink_caches();
    }
    host.drain_all();
    let allocated = host.check()?.allocated;
    let (mut in_use, mut sheaves) = (0, 0);
    for cache in host.raw().slabs().caches() {
        let used = host.raw().slabs().check_cache(cache.id())?;
        if cache.sizing().sheaf_capacity > 0 {
            sheaves += host.topology().cpus.len() as u64;
        }
        in_use += used.in_use;
    }
    if in_use > sheaves {
        return Err(format!(
            "in the end {in_use} objects are in use, of which {sheaves} may be CPUs' sheaves"
        ));
    }
    let pages = host.raw().slabs().slab_pages();
    if allocated != pages {
        return Err(format!("in the end {allocated} pages are allocated, but caches have {pages}"));
    }
    Ok(())
}
