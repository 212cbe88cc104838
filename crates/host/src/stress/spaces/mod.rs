//! Address spaces under stress: threads map, write, read and unmap pages of address spaces that they share and of their
//! own, fork them and go on in parent and child, move pages between nodes, split huge ones, count in shared memory, and
//! read and end files until memory runs out. Every page that is written carries its writer's stamp, which must be there
//! whenever it is read, in whatever frame it is by then; one that was not written reads as zeros. Meanwhile a thread
//! compacts memory and puts huge pages in the place of small ones. In the end every invariant is checked and nothing may
//! be left allocated.

mod helper;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::{fmt, thread};

use mm::ids::PAGE_SIZE;
use mm::vm::{AddressSpace, File, FileKind, MapSpec, Pinned, Vpn};
use mm::{Addr, Knob, Knobs};

use super::{Length, Stress, StressEnd};
use crate::host::Host;
use crate::machine::HostMachine;
use worker::SpaceWorker;

/// Address spaces that all threads use.
const SHARED: usize = 2;
/// Pages of shared memory that everyone counts in.
const COUNTERS: u32 = 8;

type Space = Arc<AddressSpace<HostMachine>>;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpaceTally {
    /// Pages stamped.
    pub written: u64,
    /// Pages whose stamps were looked at.
    pub checked: u64,
    /// Faults and forks that failed, for there was no memory.
    pub failed: u64,
    /// Pages unmapped.
    pub unmapped: u64,
    /// Forks.
    pub forks: u64,
    /// Pages that were moved to another frame.
    pub moved: u64,
    /// Huge pages split.
    pub split: u64,
    /// Counts in shared memory.
    pub counted: u64,
    /// Pages of files read or written.
    pub file_pages: u64,
    /// Dirty pages written to the disk by the helper.
    pub flushed: u64,
    /// Rounds of the helper.
    pub helped: u64,
    /// Pages that compaction moved.
    pub compacted: u64,
    /// Huge pages that were put in the place of small ones.
    pub collapsed: u64,
}

impl SpaceTally {
    fn add(&mut self, other: &Self) {
        self.written += other.written;
        self.checked += other.checked;
        self.failed += other.failed;
        self.unmapped += other.unmapped;
        self.forks += other.forks;
        self.moved += other.moved;
        self.split += other.split;
        self.counted += other.counted;
        self.file_pages += other.file_pages;
        self.flushed += other.flushed;
        self.helped += other.helped;
        self.compacted += other.compacted;
        self.collapsed += other.collapsed;
    }
}

impl fmt::Display for SpaceTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} pages written, {} looked at, {} faults and forks failed, {} pages unmapped, {} forks, {} pages moved, {} \
             huge pages split, {} counts in shared memory, {} pages of files; beside them {} rounds, {} pages flushed, {} \
             moved by compaction, {} huge pages made of small ones",
            self.written,
            self.checked,
            self.failed,
            self.unmapped,
            self.forks,
            self.moved,
            self.split,
            self.counted,
            self.file_pages,
            self.helped,
            self.flushed,
            self.compacted,
            self.collapsed
        )
    }
}

/// An address space of the run.
#[derive(Debug)]
struct StressProcess {
    space: Space,
    /// Held for writing while it forks, for reading while somebody writes through a pinned page: such a write would be
    /// seen by the child or not, as it happens.
    forking: RwLock<()>,
    /// Where the shared memory is mapped.
    counters: Vpn,
}

impl StressProcess {
    fn new(host: &Host, memory: &Arc<File<HostMachine>>) -> Result<Self, String> {
        let space = host.raw().spaces().new_space();
        let counters = host.raw().spaces().mmap(&space, MapSpec::shared(memory, COUNTERS));
        let counters = counters.map_err(|error| error.to_string())?;
        Ok(Self { space, forking: RwLock::new(()), counters })
    }
}

/// The first and the last word of a pinned page.
fn words_of(pinned: &Pinned) -> [Addr; 2] {
    let start = u64::from(pinned.frame().0) * PAGE_SIZE;
    [Addr(start), Addr(start + PAGE_SIZE - 8)]
}

/// Runs `stress` on address spaces.
///
/// # Errors
/// What was found wrong, in one line.
pub fn run(stress: &Stress) -> Result<SpaceTally, String> {
    let host = Host::with_topology(stress.topology.clone(), stress.policy.clone(), Knobs::default())
        .map_err(|error| error.to_string())?;
    // Threads promise more than there is and find out when they touch it.
    host.set_knob(Knob::OvercommitMemory, 1).map_err(|error| error.to_string())?;
    let mm = host.raw();
    let memory = mm.files().new_file(FileKind::Memory);
    let threads = stress.threads.max(1) as usize;
    let processes: Result<Vec<StressProcess>, String> =
        (0..SHARED + threads).map(|_| StressProcess::new(&host, &memory)).collect();
    let processes = processes?;
    let tally = run_threads(&host, &processes, stress)?;
    mm.spaces().check_vm()?;
    let counted = count(&host, &processes[0])?;
    if counted != tally.counted {
        return Err(format!("{} counts were made in shared memory, {counted} are there", tally.counted));
    }
    for process in &processes {
        mm.spaces().exit(&process.space);
    }
    mm.files().drop_file(&memory);
    check_end(&host)?;
    Ok(tally)
}

/// What everyone counted.
fn count(host: &Host, process: &StressProcess) -> Result<u64, String> {
    let mut sum = 0;
    for page in 0..COUNTERS {
        let at = process.counters.add(page);
        let pinned = host.raw().rmap().pin_page(&process.space, at, mm::vm::Touch::Read);
        let pinned = pinned.map_err(|error| error.to_string())?;
        let [word, _] = words_of(&pinned);
        sum += host.raw().machine().arena().word(word).load(Ordering::Relaxed);
        host.raw().rmap().unpin_page(pinned);
    }
    Ok(sum)
}

fn check_end(host: &Host) -> Result<(), String> {
    let mm = host.raw();
    host.stop_daemons();
    mm.lru().lru_drain_all();
    // It stays once it was made, until memory is short.
    mm.spaces().free_huge_zero();
    mm.spaces().check_vm()?;
    host.drain_all();
    let (managed, pages) = (host.memory_use().managed, host.check()?);
    if (pages.free, pages.pcp, pages.allocated) != (managed, 0, 0) || mm.spaces().committed_pages() != 0 {
        let promised = mm.spaces().committed_pages();
        return Err(format!(
            "{managed} pages are managed, but in the end there are {pages:?}, {promised} promised"
        ));
    }
    Ok(())
}

fn run_threads(host: &Host, processes: &[StressProcess], stress: &Stress) -> Result<SpaceTally, String> {
    let (end, operations) = match stress.length {
        Length::Operations(operations) => (StressEnd::never(), operations),
        Length::Time(time) => (StressEnd::after(time), u64::MAX),
    };
    let mut sum = SpaceTally::default();
    let done = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let (end, done) = (&end, &done);
        let helper = scope.spawn(move || helper::run(host, done));
        let running: Vec<_> = (SHARED..processes.len())
            .map(|own| {
                let worker = SpaceWorker::new(host, processes, own, stress.seed);
                scope.spawn(move || worker.run(operations, end).inspect_err(|_| end.reach()))
            })
            .collect();
        let results: Vec<_> = running.into_iter().map(thread::ScopedJoinHandle::join).collect();
        // Relaxed: a helper that sees it later does one round more.
        done.store(true, Ordering::Relaxed);
        for result in results.into_iter().chain([helper.join().map(Ok)]) {
            match result {
                Ok(result) => sum.add(&result?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(sum)
    });
    let counters = host.raw().views().counters();
    let (compacted, collapsed) =
        (counters.get("compact_pages_moved"), counters.get("khugepaged_pages_collapsed"));
    result.map(|sum| SpaceTally { compacted, collapsed, ..sum })
}
