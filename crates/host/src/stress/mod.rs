//! Many threads that allocate, free, hand blocks to each other, turn knobs, drain and tick, all at random. Every page
//! carries its owner's mark, and the mark is checked when the block is freed. This finds a block that was handed out twice,
//! and one that the allocator wrote to. At the end every invariant is checked, and nothing may be left allocated.
//! [`objects`] tests caches in the same way, [`spaces`] address spaces.

pub mod objects;
pub mod spaces;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use mm::{Knobs, Policy, Topology};

use crate::host::Host;
use worker::PageWorker;

/// How long each thread goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// So many operations.
    Operations(u64),
    /// So long.
    Time(Duration),
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Stress {
    /// Threads, at least one.
    pub threads: u32,
    /// How long each goes on.
    pub length: Length,
    /// Seed of each thread's choices. The schedule is the system's, so a run is not repeated by it.
    pub seed: u64,
    /// The policy.
    pub policy: Policy,
    /// What the machine is made out to be.
    pub topology: Topology,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StressTally {
    /// Blocks allocated.
    pub allocated: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Blocks handed to another thread.
    pub sent: u64,
    /// Blocks made into single pages.
    pub split: u64,
    /// Pages whose marks were looked at.
    pub pages_checked: u64,
    /// Knobs turned.
    pub knobs: u64,
    /// Times that all page lists were drained, or ticked, on purpose.
    pub drains: u64,
}

impl StressTally {
    fn add(&mut self, other: &Self) {
        self.allocated += other.allocated;
        self.failed += other.failed;
        self.sent += other.sent;
        self.split += other.split;
        self.pages_checked += other.pages_checked;
        self.knobs += other.knobs;
        self.drains += other.drains;
    }
}

impl fmt::Display for StressTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} blocks allocated ({} requests failed), {} sent to other threads, {} split, {} pages looked at, {} knobs \
             turned, {} drains and ticks",
            self.allocated, self.failed, self.sent, self.split, self.pages_checked, self.knobs, self.drains
        )
    }
}

/// Ends the run for all threads: the time is up, or one found fault.
#[derive(Debug)]
struct StressEnd {
    at: Option<Instant>,
    now: AtomicBool,
}

impl StressEnd {
    fn never() -> Self {
        Self { at: None, now: AtomicBool::new(false) }
    }

    fn after(time: Duration) -> Self {
        Self { at: Some(Instant::now() + time), ..Self::never() }
    }

    /// From now on.
    fn reach(&self) {
        // Relaxed: it says when to stop and publishes nothing; joining the threads does.
        self.now.store(true, Ordering::Relaxed);
    }

    fn reached(&self) -> bool {
        self.now.load(Ordering::Relaxed) || self.at.is_some_and(|at| Instant::now() >= at)
    }
}

/// Runs `stress`.
///
/// # Errors
/// What was found wrong, in one line.
pub fn run(stress: &Stress) -> Result<StressTally, String> {
    let host = Host::with_topology(stress.topology.clone(), stress.policy.clone(), Knobs::default())
        .map_err(|error| error.to_string())?;
    let managed = host.memory_use().managed;
    let tally = run_threads(&host, stress)?;
    host.drain_all();
    let pages = host.check()?;
    if (pages.free, pages.pcp, pages.allocated) != (managed, 0, 0) {
        return Err(format!("{managed} pages are managed, but in the end there are {pages:?}"));
    }
    Ok(tally)
}

fn run_threads(host: &Host, stress: &Stress) -> Result<StressTally, String> {
    let threads = stress.threads.max(1) as usize;
    let (end, operations) = match stress.length {
        Length::Operations(operations) => (StressEnd::never(), operations),
        Length::Time(time) => (StressEnd::after(time), u64::MAX),
    };
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..threads).map(|_| mpsc::channel()).unzip();
    let mut sum = StressTally::default();
    thread::scope(|scope| {
        let running: Vec<_> = inboxes
            .into_iter()
            .zip(0..)
            .map(|(inbox, number)| {
                let worker = PageWorker::new(host, number, stress.seed, senders.clone(), inbox);
                let end = &end;
                scope.spawn(move || {
                    let result = worker.run(operations, end);
                    if result.is_err() {
                        end.reach();
                    }
                    result
                })
            })
            .collect();
        // Each worker has clones; an inbox ends when the last of them is dropped.
        drop(senders);
        for thread in running {
            match thread.join() {
                Ok(result) => sum.add(&result?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(sum)
    })
}
