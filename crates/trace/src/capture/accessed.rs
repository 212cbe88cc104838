//! What recorded processes access again after the first touch, which no event shows: accessed bits, looked at from time to time on a
//! thread of its own.
//!
//! A round takes the process that used most CPU time of late, clears its bits, waits a little and reads its smaps. How long it waits
//! follows from the rounds before: when most pages have their bit, it is too late to say how often they are used, and when few
//! have, too early. The next round comes when this one's cost has become [`SHARE`] of the time. Translations stay in
//! the TLBs, so a bit that is set again is a walk of the page tables, and what TLBs hold anyway is not seen.
//!
//! Before a round clears the bits of a process that one before has cleared, it reads them: these are all pages used since, of which replays
//! with little memory have to know.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{cgroup, contents, procs};
use crate::heat::bits::{AccessedBits, Translations};
use crate::heat::{Mapping, parse};
use crate::meta::AccessedCost;
use crate::stream::accessed::{AccessedRound, Cleared, Contents};

/// A process with less resident is not looked at: a TLB of today holds the translations of all its pages, and few are walked to.
const SMALL_PAGES: u64 = 2048;
/// The part of the time that looking may cost, the recorder's and the programs' together: one in so many.
const SHARE: u32 = 100;
/// The least time from round to round, and that before the first.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest wait from clearing to looking.
const WINDOW_MAX: Duration = Duration::from_millis(500);
/// CPU time that a process has had on another CPU is known to a tick of the clock, 1 to 10 ms. Windows from here on are long enough for
/// their own CPU time to be told; in shorter ones the process is taken to have had the share that it had since the round before.
const TICKS_NS: u64 = 40_000_000;
/// Of the rounds of a process, the first of so many reads pages too.
const ROUNDS_TO_READ: u32 = 4;
/// Shares of the resident pages between which a round says most: below, the window grows, above, it shrinks.
const GOOD_SHARES: [f64; 2] = [0.12, 0.4];

/// Whose pages are looked at.
#[derive(Clone, Debug)]
pub(super) enum Whose {
    /// A process's, and those of its descendants.
    Tree(u32),
    /// Those of the processes in a cgroup's folder.
    Cgroup(PathBuf),
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
    /// Starts to look.
    pub(super) fn start(whose: Whose) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (sender, rounds) = channel();
        let mut course = Course {
            whose,
            stopped,
            rounds: sender,
            pace: Pace::default(),
            used: BTreeMap::new(),
            cleared: BTreeMap::new(),
            rounds_of: BTreeMap::new(),
            cost: AccessedCost::default(),
        };
        let thread = thread::Builder::new().name("freehold-accessed".into());
        let thread = thread.spawn(move || {
            course.run();
            course.cost
        })?;
        Ok(Self { stop: Some(stop), rounds, thread: Some(thread) })
    }

    /// A round that is over, if there is one.
    pub(super) fn next(&self) -> Option<AccessedRound> {
        self.rounds.try_recv().ok()
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

/// How long rounds last and how far they are apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pace {
    /// From the end of clearing to the beginning of looking.
    window: Duration,
}

/// What a round found, and what it took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Found {
    resident: u64,
    accessed: u64,
    /// From the start of clearing to the start of looking, and so long had each page, nearly.
    lasted: Duration,
}

impl Pace {
    /// Learns from a round.
    fn after(&mut self, found: Found) {
        let share = found.accessed as f64 / found.resident.max(1) as f64;
        let [few, many] = GOOD_SHARES;
        if share < few {
            self.window = (self.window + found.lasted).min(WINDOW_MAX);
        } else if share > many {
            // Clearing and looking take their time as well: below that there is nothing to be had.
            self.window = if self.window * 4 < found.lasted { Duration::ZERO } else { self.window / 2 };
        }
    }

    /// How long to pause when looking has cost so much.
    fn pause(cost_ns: u64) -> Duration {
        (Duration::from_nanos(cost_ns) * SHARE).max(PAUSE)
    }
}

/// The thread's work.
struct Course {
    whose: Whose,
    stopped: Receiver<()>,
    rounds: Sender<AccessedRound>,
    pace: Pace,
    /// What processes had used when they were last thought of.
    used: BTreeMap<u32, UsedAt>,
    /// When the bits of processes were last cleared.
    cleared: BTreeMap<u32, UsedAt>,
    /// Rounds of processes so far.
    rounds_of: BTreeMap<u32, u32>,
    cost: AccessedCost,
}

/// CPU time that a process had had at a time.
#[derive(Clone, Copy, Debug)]
struct UsedAt {
    at: Instant,
    /// The kernel knows what runs on another CPU to a tick of the clock, some ms.
    ns: u64,
}

impl UsedAt {
    fn now(pid: u32) -> Option<Self> {
        Some(Self { at: Instant::now(), ns: process_ns(pid)? })
    }

    /// CPUs that the process kept busy since `before`.
    fn cpus_since(self, before: Self) -> f64 {
        let passed = self.at.saturating_duration_since(before.at).as_nanos().max(1);
        self.ns.saturating_sub(before.ns) as f64 / passed as f64
    }
}

impl Course {
    fn run(&mut self) {
        let mut pause = PAUSE;
        let mut charged_ns = 0;
        while matches!(self.stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
            if let Some(Busy { pid, before }) = self.busiest() {
                // Who is gone, or may not be looked at, has nothing to say.
                let _ = self.round(pid, before);
            }
            self.cost.own_ns = clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0);
            let cost_ns = self.cost.own_ns + self.cost.walks_ns();
            pause = Pace::pause(cost_ns - charged_ns);
            charged_ns = cost_ns;
        }
    }

    /// Of the processes that are not small, and were there when this was last asked, the one that had most CPU time since.
    fn busiest(&mut self) -> Option<Busy> {
        let pids = match &self.whose {
            Whose::Tree(root) => procs::tree(*root),
            Whose::Cgroup(folder) => cgroup::members(folder),
        };
        let large = pids.into_iter().filter(|&pid| procs::resident_pages(pid) >= SMALL_PAGES);
        let used = large.filter_map(|pid| Some((pid, UsedAt::now(pid)?))).collect();
        let before = std::mem::replace(&mut self.used, used);
        self.cleared.retain(|pid, _| self.used.contains_key(pid));
        self.rounds_of.retain(|pid, _| self.used.contains_key(pid));
        let since = |(&pid, now): (&u32, &UsedAt)| {
            let before = *before.get(&pid)?;
            Some((Busy { pid, before }, now.ns.saturating_sub(before.ns)))
        };
        let (busy, most) = self.used.iter().filter_map(since).max_by_key(|(_, used)| *used)?;
        (most > 0).then_some(busy)
    }

    fn round(&mut self, pid: u32, before: UsedAt) -> Result<(), io::Error> {
        let mut bits = AccessedBits::open(pid).map_err(|(_, error)| error)?;
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let used = || UsedAt::now(pid).ok_or_else(gone);
        self.since_cleared(pid, &mut bits)?;
        let before_clearing = used()?;
        let cleared = bits.clear(Translations::Kept)?;
        let after_clearing = used()?;
        self.cleared.insert(pid, after_clearing);
        if !self.pace.window.is_zero() {
            thread::sleep(self.pace.window);
        }
        let before_looking = used()?;
        let looked = bits.look()?;
        let after_looking = used()?;
        let mappings = parse(&looked.text);
        if mappings.is_empty() {
            return Err(gone());
        }
        let sum = |of: fn(&Mapping) -> u64| mappings.iter().map(|mapping| of(mapping) / 4).sum::<u64>();
        let accessed = sum(|mapping| mapping.accessed_kib);
        let resident = sum(|mapping| mapping.resident_kib);
        let lasted = looked.began.saturating_duration_since(cleared.began);
        self.pace.after(Found { resident, accessed, lasted });
        self.cost.rounds += 1;
        self.cost.accessed_pages += accessed;
        self.cost.held_ns_max = self.cost.held_ns_max.max(cleared.took.as_nanos() as u64);
        // Clearing goes over the pages in the same order as looking: a page had its time from the one to the other, on average the
        // mean of what lies between the beginnings and between the ends.
        let windows = [(before_clearing, before_looking), (after_clearing, after_looking)];
        let mean =
            |of: fn(UsedAt, UsedAt) -> u64| windows.map(|(from, to)| of(from, to)).iter().sum::<u64>() / 2;
        let window_ns = mean(|from, to| to.at.saturating_duration_since(from.at).as_nanos() as u64);
        let cpu_ns = if window_ns >= TICKS_NS {
            mean(|from, to| to.ns.saturating_sub(from.ns))
        } else {
            (window_ns as f64 * after_looking.cpus_since(before)) as u64
        };
        let contents = self.read_into(pid, &mappings);
        // Nobody may listen any more.
        let _ =
            self.rounds.send(AccessedRound { pid, cpu_ns, cleared: Cleared::ForThis, mappings, contents });
        Ok(())
    }

    /// What private pages of `pid` hold, from time to time.
    fn read_into(&mut self, pid: u32, mappings: &[Mapping]) -> Vec<Contents> {
        let round = self.rounds_of.entry(pid).or_default();
        let is_due = *round % ROUNDS_TO_READ == 0;
        *round += 1;
        let turn = self.cost.rounds.into();
        // Who may not be looked into is taken to hold no zeros.
        if is_due { contents::of(pid, mappings, turn).unwrap_or_default() } else { vec![] }
    }

    /// Says what `pid` used since its bits were last cleared, if they were.
    fn since_cleared(&mut self, pid: u32, bits: &mut AccessedBits) -> Result<(), io::Error> {
        let Some(then) = self.cleared.get(&pid).copied() else { return Ok(()) };
        let Some(now) = UsedAt::now(pid) else { return Ok(()) };
        let cpu_ns = now.ns.saturating_sub(then.ns);
        // An event has no more room for it.
        if u32::try_from(cpu_ns).is_ok() {
            let (mappings, contents) = (parse(&bits.look()?.text), vec![]);
            let round = AccessedRound { pid, cpu_ns, cleared: Cleared::Before, mappings, contents };
            let _ = self.rounds.send(round);
        }
        Ok(())
    }
}

/// A process that is worth a look.
#[derive(Clone, Copy, Debug)]
struct Busy {
    pid: u32,
    before: UsedAt,
}

/// CPU time that a process has had, ns.
fn process_ns(pid: u32) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: writes one number, which is ours.
    let result = unsafe { libc::clock_getcpuclockid(pid as i32, &raw mut clock) };
    (result == 0).then(|| clock_ns(clock)).flatten()
}

fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec, which is ours.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_window_grows_until_something_is_accessed_and_shrinks_when_all_is() {
        let mut pace = Pace::default();
        let round = |accessed, lasted| Found { resident: 100, accessed, lasted };
        pace.after(round(1, 3 * MS));
        assert_eq!(pace.window, 3 * MS);
        pace.after(round(1, 6 * MS));
        assert_eq!(pace.window, 9 * MS);
        pace.after(round(30, 12 * MS));
        assert_eq!(pace.window, 9 * MS, "that is good");
        pace.after(round(90, 12 * MS));
        assert_eq!(pace.window, 9 * MS / 2);
        pace.after(Found { lasted: 40 * MS, ..round(90, MS) });
        assert_eq!(pace.window, Duration::ZERO, "clearing alone takes longer");
        pace.window = WINDOW_MAX;
        pace.after(Found { resident: 0, accessed: 0, lasted: MS });
        assert_eq!(pace.window, WINDOW_MAX);
    }

    #[test]
    fn a_round_is_paid_for_by_a_hundred_times_its_cost() {
        assert_eq!(Pace::pause(2_000_000), 200 * MS);
        assert_eq!(Pace::pause(10), PAUSE);
    }

    /// A loop over memory that no TLB holds is seen, with its CPU time.
    #[test]
    fn this_process_is_seen() {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let flag = std::sync::Arc::clone(&stop);
        let walker = thread::spawn(move || {
            let mut memory = vec![1_u8; 64 << 20];
            while !flag.load(std::sync::atomic::Ordering::Relaxed) {
                memory.iter_mut().step_by(4096).for_each(|byte| *byte = byte.wrapping_add(1));
            }
        });
        let mut sampler = AccessSampler::start(Whose::Tree(std::process::id())).unwrap();
        let found = sampler.rounds.recv_timeout(Duration::from_secs(20)).unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let cost = sampler.stop().unwrap();
        walker.join().unwrap();
        assert!(cost.rounds > 0 && cost.own_ns > 0, "{cost:?}");
        assert!(sampler.stop().is_none());
        let accessed: u64 = found.mappings.iter().map(|mapping| mapping.accessed_kib).sum();
        assert!(found.cpu_ns > 0 && accessed > 0, "{found:?}");
        assert!(found.contents.iter().any(|read| read.read == 64 && read.zeros < 32), "{found:?}");
    }
}
