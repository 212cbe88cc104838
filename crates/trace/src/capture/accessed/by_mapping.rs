//! Looks by `smaps`: how many pages of each mapping were accessed.
//!
//! A round clears a process's bits, waits a little and reads its smaps. How long it waits follows from the rounds before: when most pages
//! have their bit, it is too late to say how often they are used, and when few have, too early. Before a round clears the bits of a process that
//! one before has cleared, it reads them: these are all pages used since, of which replays with little memory have to know.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::busy::{Busy, Processes, UsedAt, own_ns};
use super::{OFTEN_SHARE, SELDOM_SHARE, Whose};
use crate::capture::contents::Reading;
use crate::capture::options::Looking;
use crate::heat::bits::{AccessedBits, Translations};
use crate::heat::{Mapping, parse};
use crate::meta::AccessedCost;
use crate::stream::accessed::{AccessedRound, Cleared, Found, FoundByMapping};

/// The least time from round to round, and that before the first.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest wait from clearing to looking.
const WINDOW_MAX: Duration = Duration::from_millis(500);
/// CPU time that a process has had on another CPU is known to a tick of the clock, 1 to 10 ms. Windows from here on are long enough for
/// their own CPU time to be told; in shorter ones the process is taken to have had the share that it had since the round before.
const TICKS_NS: u64 = 40_000_000;
/// Shares of the resident pages between which a round says most: below, the window grows, above, it shrinks.
const GOOD_SHARES: [f64; 2] = [0.12, 0.4];

/// Looks until it is `stopped`.
pub(super) fn look(
    (whose, looking): (Whose, Looking),
    bit_ns: u64,
    stopped: &Receiver<()>,
    rounds: Sender<AccessedRound>,
) -> AccessedCost {
    let mut course = Course {
        share: if looking == Looking::Often { OFTEN_SHARE } else { SELDOM_SHARE },
        processes: Processes::new(whose),
        rounds,
        pace: Pace::default(),
        cleared: BTreeMap::new(),
        reading: Reading::default(),
        cost: AccessedCost { bit_ns, ..AccessedCost::default() },
    };
    course.run(stopped);
    course.cost
}

/// How long rounds last and how far they are apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pace {
    /// From the end of clearing to the beginning of looking.
    window: Duration,
}

/// What a round found, and what it took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Share {
    resident: u64,
    accessed: u64,
    /// From the start of clearing to the start of looking, and so long had each page, nearly.
    lasted: Duration,
}

impl Pace {
    /// Learns from a round.
    fn after(&mut self, found: Share) {
        let share = found.accessed as f64 / found.resident.max(1) as f64;
        let [few, many] = GOOD_SHARES;
        if share < few {
            self.window = (self.window + found.lasted).min(WINDOW_MAX);
        } else if share > many {
            // Clearing and looking take their time as well: below that there is nothing to be had.
            self.window = if self.window * 4 < found.lasted { Duration::ZERO } else { self.window / 2 };
        }
    }

    /// How long to pause when looking has cost so much, which may be one in `share` of the time.
    fn pause(cost_ns: u64, share: u32) -> Duration {
        (Duration::from_nanos(cost_ns) * share).max(PAUSE)
    }
}

/// The thread's work.
struct Course {
    /// One in so many of the time is what rounds may cost.
    share: u32,
    processes: Processes,
    rounds: Sender<AccessedRound>,
    pace: Pace,
    /// When the bits of processes were last cleared.
    cleared: BTreeMap<u32, UsedAt>,
    reading: Reading,
    cost: AccessedCost,
}

impl Course {
    fn run(&mut self, stopped: &Receiver<()>) {
        let mut pause = PAUSE;
        let mut charged_ns = 0;
        while matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
            if let Some(Busy { pid, before }) = self.processes.busiest() {
                // Who is gone, or may not be looked at, has nothing to say.
                let _ = self.round(pid, before);
            }
            self.cleared.retain(|pid, _| self.processes.has(*pid));
            self.reading.retain(|pid| self.processes.has(pid));
            self.cost.own_ns = own_ns();
            let cost_ns = self.cost.own_ns + self.cost.walks_ns();
            pause = Pace::pause(cost_ns - charged_ns, self.share);
            charged_ns = cost_ns;
        }
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
        self.pace.after(Share { resident, accessed, lasted });
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
        let contents = self.reading.read(pid, &mappings);
        let found = FoundByMapping { cpu_ns, cleared: Cleared::ForThis, mappings, contents };
        // Nobody may listen any more.
        let _ = self.rounds.send(AccessedRound::new(pid, Found::ByMapping(found)));
        Ok(())
    }

    /// Says what `pid` used since its bits were last cleared, if they were.
    fn since_cleared(&mut self, pid: u32, bits: &mut AccessedBits) -> Result<(), io::Error> {
        let Some(then) = self.cleared.get(&pid).copied() else { return Ok(()) };
        let Some(now) = UsedAt::now(pid) else { return Ok(()) };
        let cpu_ns = now.ns.saturating_sub(then.ns);
        // An event has no more room for it.
        if u32::try_from(cpu_ns).is_ok() {
            let (mappings, contents) = (parse(&bits.look()?.text), vec![]);
            let found = FoundByMapping { cpu_ns, cleared: Cleared::Before, mappings, contents };
            let _ = self.rounds.send(AccessedRound::new(pid, Found::ByMapping(found)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_window_grows_until_something_is_accessed_and_shrinks_when_all_is() {
        let mut pace = Pace::default();
        let round = |accessed, lasted| Share { resident: 100, accessed, lasted };
        pace.after(round(1, 3 * MS));
        assert_eq!(pace.window, 3 * MS);
        pace.after(round(1, 6 * MS));
        assert_eq!(pace.window, 9 * MS);
        pace.after(round(30, 12 * MS));
        assert_eq!(pace.window, 9 * MS, "that is good");
        pace.after(round(90, 12 * MS));
        assert_eq!(pace.window, 9 * MS / 2);
        pace.after(Share { lasted: 40 * MS, ..round(90, MS) });
        assert_eq!(pace.window, Duration::ZERO, "clearing alone takes longer");
        pace.window = WINDOW_MAX;
        pace.after(Share { resident: 0, accessed: 0, lasted: MS });
        assert_eq!(pace.window, WINDOW_MAX);
    }

    #[test]
    fn a_round_is_paid_for_by_a_hundred_times_its_cost() {
        assert_eq!(
            [(2, SELDOM_SHARE), (20, OFTEN_SHARE)].map(|(ms, share)| Pace::pause(ms * 1_000_000, share)),
            [200 * MS; 2]
        );
        assert_eq!(Pace::pause(10, SELDOM_SHARE), PAUSE);
    }
}
