//! Threads that allocate, write and free pages in a loop, all at once, and what that came to.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mm::{Machine, Mm, Order, Pfn, Request};

use super::meter::{self, Meter};
use crate::arena::Arena;
use crate::clock::thread_time;
use crate::probe::pin;

/// Pages that are freed together, as the kernel does when it unmaps (a folio batch).
const BATCH: usize = 31;
/// Rounds before anything is measured.
const WARM_UP: u32 = 3;

/// What each thread does, and for how long.
#[derive(Clone, Debug)]
pub(super) struct Job<'a> {
    /// A thread for each of these CPUs.
    pub(super) cpus: &'a [u32],
    /// Pages that each holds at most.
    pub(super) pages: usize,
    /// All stop once one has had so much CPU time.
    pub(super) time: Duration,
}

/// What came of a job.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Pages allocated, of all threads.
    pub(super) pages: u64,
    /// The sum of all threads' pages in a second of their CPU time.
    pub(super) pages_per_second: f64,
    /// The largest part of its time that a thread was without its CPU.
    pub(super) disturbed: f64,
    /// Requests that failed.
    pub(super) failed: u64,
    /// Threads that could not be kept on their CPU.
    pub(super) unpinned: u32,
    pub(super) meters: Vec<Meter>,
}

/// Runs `job` on `mm`, whose blocks lie in `arena`.
pub(super) fn run<M: Machine + Sync>(mm: &Mm<M>, arena: &Arena, job: &Job<'_>) -> Done
where
    M::Lock: Send + Sync,
{
    let (ready, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    let all = job.cpus.len() as u32;
    let thread = |cpu: u32| {
        let unpinned = u32::from(pin(cpu).is_err());
        let mut worker = ContentionWorker { mm, arena, held: Vec::with_capacity(job.pages), failed: 0 };
        (0..WARM_UP).for_each(|_| worker.round());
        worker.failed = 0;
        meter::begin();
        // Relaxed: a gate that everybody comes through at once publishes nothing.
        ready.fetch_add(1, Ordering::Relaxed);
        while ready.load(Ordering::Relaxed) < all {
            spin_loop();
        }
        let (start, cpu_start) = (Instant::now(), thread_time());
        let mut pages = 0;
        // A thread whose CPU was taken away at the gate has its round too: of none there is nothing to say.
        loop {
            worker.round();
            pages += job.pages as u64;
            if thread_time().saturating_sub(cpu_start) >= job.time {
                stop.store(true, Ordering::Relaxed);
            }
            // Relaxed: who sees it later does a round more, which is counted and timed like any other.
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let used = thread_time().saturating_sub(cpu_start).as_secs_f64().max(1e-9);
        let pages = pages.saturating_sub(worker.failed);
        Done {
            pages,
            pages_per_second: pages as f64 / used,
            disturbed: (1.0 - used / start.elapsed().as_secs_f64()).max(0.0),
            failed: worker.failed,
            unpinned,
            meters: vec![meter::end()],
        }
    };
    thread::scope(|scope| {
        let thread = &thread;
        let running: Vec<_> = job.cpus.iter().map(|&cpu| scope.spawn(move || thread(cpu))).collect();
        let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
        let done = joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done.fold(Done::default(), Done::and)
    })
}

impl Done {
    fn and(mut self, other: Self) -> Self {
        self.meters.extend(other.meters);
        Self {
            pages: self.pages + other.pages,
            pages_per_second: self.pages_per_second + other.pages_per_second,
            disturbed: self.disturbed.max(other.disturbed),
            failed: self.failed + other.failed,
            unpinned: self.unpinned + other.unpinned,
            meters: self.meters,
        }
    }
}

/// A thread's hands.
struct ContentionWorker<'a, M: Machine> {
    mm: &'a Mm<M>,
    arena: &'a Arena,
    /// Empty between rounds.
    held: Vec<(Pfn, Order)>,
    failed: u64,
}

impl<M: Machine> ContentionWorker<'_, M> {
    /// Allocates pages until the hands are full, writes a word to each, and frees them all in the same order.
    fn round(&mut self) {
        for _ in 0..self.held.capacity() {
            match self.mm.alloc(Request::USER) {
                Ok(pfn) => self.held.push((pfn, Order::ZERO)),
                Err(_) => self.failed += 1,
            }
        }
        for &(pfn, order) in &self.held {
            let address = self.arena.address(pfn, order).cast::<u64>();
            // SAFETY: the page was allocated by this thread just now and is in no other's hands.
            unsafe { address.write_volatile(u64::from(pfn.0)) };
        }
        for batch in self.held.chunks(BATCH) {
            let freed = self.mm.free_batch(batch);
            debug_assert_eq!(freed, Ok(()));
        }
        self.held.clear();
    }
}
