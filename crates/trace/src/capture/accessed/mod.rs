//! What recorded processes access again after the first touch, which no event shows: accessed bits, looked at from time to time on a
//! thread of its own.
//!
//! ```text
//! busy      who is worth a look
//!  ├─ by_page     page tables, read by programs of ours in the kernel: which pages, many times between two clearings
//!  └─ by_mapping  smaps, where that cannot be: how many pages of each mapping, within a moment and between two clearings
//! ```
//!
//! Bits are cleared for a process that used most CPU time of late; the next ones when what this cost, to the recorder and
//! the programs, has become its part of the time. Translations stay in the TLBs, so a bit that is set again is a walk of the page tables,
//! and what TLBs hold anyway is not seen.

mod busy;
mod by_mapping;
mod by_page;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::bpf::{self, PageTables};
use super::options::{Looking, RecordOptions, Target};
use super::{cgroup, procs};
use crate::error::RecordError;
use crate::meta::AccessedCost;
use crate::stream::accessed::AccessedRound;

/// The part of the time that clearing bits may cost, and looks that come with it, the recorder and the programs together: one in so many.
const SELDOM_SHARE: u32 = 100;
const OFTEN_SHARE: u32 = 10;

/// Whose pages are looked at.
#[derive(Clone, Debug)]
pub(super) enum Whose {
    /// A process's, and those of its descendants.
    Tree(u32),
    /// Those of the processes in a cgroup's folder.
    Cgroup(PathBuf),
}

impl Whose {
    fn processes(&self) -> BTreeSet<u32> {
        match self {
            Self::Tree(root) => procs::tree(*root),
            Self::Cgroup(folder) => cgroup::members(folder),
        }
    }
}

/// The thread.
#[derive(Debug)]
pub(super) struct AccessSampler {
    /// Closed when no more is to be looked at.
    stop: Option<Sender<()>>,
    rounds: Receiver<AccessedRound>,
    thread: Option<JoinHandle<AccessedCost>>,
}

impl AccessSampler {
    /// Who looks at the command that is `root`, or at whom the options name, where they do not leave it out. A page that gets its bit back loses
    /// `bit_ns`.
    pub(super) fn of(
        options: &RecordOptions,
        root: Option<u32>,
        bit_ns: u64,
    ) -> Result<Option<Self>, RecordError> {
        let whose = match (&options.target, root) {
            _ if options.looking() == Looking::Never => return Ok(None),
            (Target::Process(pid), _) => Whose::Tree(*pid),
            (Target::Cgroup(name), _) => Whose::Cgroup(cgroup::find(name)?),
            (_, Some(root)) => Whose::Tree(root),
            (_, None) => return Ok(None),
        };
        let started = Self::start(whose, options.looking(), bit_ns);
        started.map(Some).map_err(|error| RecordError::System { what: "starting a thread", error })
    }

    /// Starts to look, seldom or often: page by page, where the kernel lets us.
    fn start(whose: Whose, looking: Looking, bit_ns: u64) -> io::Result<Self> {
        let tables = bpf::types().and_then(|types| PageTables::load(&types));
        Self::start_with((whose, looking), bit_ns, tables.ok())
    }

    fn start_with(
        (whose, looking): (Whose, Looking),
        bit_ns: u64,
        tables: Option<PageTables>,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (sender, rounds) = channel();
        let thread = thread::Builder::new().name("freehold-accessed".into());
        let thread = thread.spawn(move || match tables {
            Some(tables) => by_page::look(tables, (whose, looking), bit_ns, &stopped, sender),
            None => by_mapping::look((whose, looking), bit_ns, &stopped, sender),
        })?;
        Ok(Self { stop: Some(stop), rounds, thread: Some(thread) })
    }

    /// What was found since this was last asked.
    pub(super) fn rounds(&self) -> impl Iterator<Item = AccessedRound> {
        self.rounds.try_iter()
    }

    /// Ends it, and says what it cost; `None` if it was ended before.
    pub(super) fn stop(&mut self) -> Option<AccessedCost> {
        drop(self.stop.take());
        self.thread.take()?.join().ok()
    }
}

impl Drop for AccessSampler {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::stream::accessed::{Cleared, Found};

    /// What is found of a loop over memory that no TLB holds, until `is_enough`.
    fn found_of_a_loop(
        tables: Option<PageTables>,
        mut is_enough: impl FnMut(&Found, (u64, u64)) -> bool,
    ) -> AccessedCost {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let (tell, told) = channel();
        let walker = thread::spawn(move || {
            let mut memory = vec![1_u8; 64 << 20];
            let start = memory.as_ptr() as u64;
            tell.send((start, start + memory.len() as u64)).unwrap();
            while !flag.load(Ordering::Relaxed) {
                memory.iter_mut().step_by(4096).for_each(|byte| *byte = byte.wrapping_add(1));
            }
        });
        let mut sampler =
            AccessSampler::start_with((Whose::Tree(std::process::id()), Looking::Seldom), 0, tables).unwrap();
        let (began, memory) = (Instant::now(), told.recv().unwrap());
        loop {
            let round = sampler.rounds.recv_timeout(Duration::from_secs(20)).unwrap();
            assert!(began.elapsed() < Duration::from_secs(60));
            if is_enough(&round.found, memory) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let cost = sampler.stop().unwrap();
        walker.join().unwrap();
        assert!(cost.rounds > 0 && cost.own_ns > 0, "{cost:?}");
        assert!(sampler.stop().is_none());
        cost
    }

    fn is_a_moment(found: &Found) -> bool {
        let Found::ByMapping(found) = found else { return false };
        if found.cleared == Cleared::Before {
            return false;
        }
        let accessed: u64 = found.mappings.iter().map(|mapping| mapping.accessed_kib).sum();
        assert!(found.cpu_ns > 0 && accessed > 0, "{found:?}");
        assert!(found.contents.iter().any(|read| read.read == 64 && read.zeros < 32), "{found:?}");
        true
    }

    #[test]
    fn this_process_is_seen_by_mapping() {
        let cost = found_of_a_loop(None, |found, _| is_a_moment(found));
        assert!(!cost.by_page);
    }

    /// All pages that the loop goes over are seen between two clearings. (Not between any two: where others have the CPUs, the loop does
    /// not get round in 50 ms.)
    #[test]
    fn this_process_is_seen_by_page() {
        let tables = match bpf::types().and_then(|types| PageTables::load(&types)) {
            Ok(tables) => tables,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let (mut pages, mut has_moment) = (BTreeSet::new(), false);
        let cost = found_of_a_loop(Some(tables), |found, memory| {
            match found {
                // Of later ones the contents are not read each time.
                Found::ByMapping(_) => has_moment = has_moment || is_a_moment(found),
                Found::Cleared => pages.clear(),
                Found::ByPage(found) => {
                    let own = found.used.iter().flat_map(|used| {
                        let bits = (0..64).filter(|bit| used.bits >> bit & 1 == 1);
                        bits.map(|bit| used.address + bit * 4096)
                    });
                    pages.extend(own.filter(|address| (memory.0..memory.1).contains(address)));
                }
            }
            has_moment && pages.len() > 16_000
        });
        assert!(cost.by_page);
    }
}
