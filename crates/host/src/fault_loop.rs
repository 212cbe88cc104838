//! A page-fault workload for real: memory is mapped, one byte is written to each page, and it is unmapped, over and over,
//! as will-it-scale's page_fault1 does. `lab::workloads` has the same on a simulated machine.
//!
//! Huge pages are switched off for the mapping (MADV_NOHUGEPAGE), so that each write is a fault of one page. Rounds are
//! timed in the thread's own CPU time, which stands still while others have the CPU.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::clock::thread_time;
use crate::probe::region::{MappedRegion, PAGE_BYTES, PAGE_WORDS, Sharing};
use crate::probe::{allowed, pin};

/// Threads of the loop have names that begin with this, so that a recording can tell them from others.
pub const TASK_NAME: &str = "fh-fault";

/// What is mapped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Memory {
    /// Private anonymous memory.
    Private,
    /// Shared anonymous memory.
    Shared,
}

impl Memory {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Private, Self::Shared];

    /// `private` or `shared`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Shared => "shared",
        }
    }
}

/// One task's loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultLoop {
    /// What is mapped.
    pub memory: Memory,
    /// Size of the mapping in MiB, from 2; rounded up to an even number.
    pub mib: u32,
    /// How long rounds are begun.
    pub lasts: Duration,
}

/// What a task did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultRounds {
    /// Pages that a round faults in and gives back.
    pub pages: u64,
    /// The task's CPU time of each round, ns; at least one.
    pub cpu_ns: Vec<u64>,
    /// All rounds together by the clock, ns.
    pub elapsed_ns: u64,
}

impl FaultLoop {
    /// Runs it as task number `task` on a thread of its own, which is kept on one CPU of those allowed. A first round,
    /// which finds page lists as others left them, is not timed.
    ///
    /// # Errors
    /// What mmap, sched_setaffinity or the making of a thread say.
    pub fn run(self, task: usize) -> io::Result<FaultRounds> {
        let body = move || {
            let cpus = allowed()?;
            pin(cpus[task % cpus.len()])?;
            self.rounds()
        };
        let thread = thread::Builder::new().name(format!("{TASK_NAME}/{task}")).spawn(body)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn rounds(self) -> io::Result<FaultRounds> {
        self.round()?;
        let mut rounds = FaultRounds { pages: (self.bytes() / PAGE_BYTES) as u64, ..FaultRounds::default() };
        let start = Instant::now();
        while rounds.cpu_ns.is_empty() || start.elapsed() < self.lasts {
            let before = thread_time();
            self.round()?;
            rounds.cpu_ns.push(thread_time().saturating_sub(before).as_nanos() as u64);
        }
        rounds.elapsed_ns = start.elapsed().as_nanos() as u64;
        Ok(rounds)
    }

    fn bytes(self) -> usize {
        (self.mib.max(2).next_multiple_of(2) as usize) << 20
    }

    fn round(self) -> io::Result<()> {
        let sharing = match self.memory {
            Memory::Private => Sharing::Private,
            Memory::Shared => Sharing::Shared,
        };
        let region = MappedRegion::untouched(self.bytes(), sharing)?;
        for word in region.words().iter().step_by(PAGE_WORDS) {
            word.store(1, Relaxed);
        }
        Ok(())
    }
}

/// Maps `mib` MiB of private memory, writes to each page on one CPU and unmaps it on another, so that the first CPU's page
/// lists only ever lose pages and the second's only get some. Gives this thread's CPU time in ns. The thread stays on the
/// second CPU; on a machine with one CPU both are the same.
///
/// # Errors
/// What mmap or sched_setaffinity say.
pub fn carry(mib: u32, cpus: &[u32]) -> io::Result<u64> {
    let (Some(&first), Some(&last)) = (cpus.first(), cpus.last()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    pin(first)?;
    let mut spent = Duration::ZERO;
    let before = thread_time();
    let region = MappedRegion::untouched((mib as usize) << 20, Sharing::Private)?;
    region.words().iter().step_by(PAGE_WORDS).for_each(|word| word.store(1, Relaxed));
    spent += thread_time().saturating_sub(before);
    pin(last)?;
    let before = thread_time();
    drop(region);
    spent += thread_time().saturating_sub(before);
    Ok(spent.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_carried_from_cpu_to_cpu() {
        let cpus = allowed().unwrap();
        let (ns, stays) = thread::spawn(move || (carry(4, &cpus), allowed())).join().unwrap();
        assert!(ns.unwrap() > 1024 && stays.unwrap().len() == 1);
    }

    #[test]
    fn rounds_are_counted_and_take_time() {
        for memory in Memory::ALL {
            let rounds = FaultLoop { memory, mib: 3, lasts: Duration::from_millis(20) }.run(5).unwrap();
            assert_eq!(rounds.pages, 1024, "3 MiB are rounded up to 4");
            assert!(!rounds.cpu_ns.is_empty() && rounds.cpu_ns.iter().all(|ns| *ns > 1024), "{rounds:?}");
            assert!(rounds.elapsed_ns >= 20_000_000);
        }
    }
}
