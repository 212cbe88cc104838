//! Looks by page tables: which pages were accessed, and when.
//!
//! Bits of a process are cleared, and from then on looked at again and again: pages whose bit has come since the look before were accessed
//! in between. So the first access of each page after a clearing is known to a few ms. A look costs next to nothing, clearing makes the
//! process walk to all its pages anew: the next one is due when the last has become a small part of the time.
//!
//! What looks by mapping tell is told as well: how many pages of each mapping were accessed within a moment, the first in which that were
//! enough to be counted, and all that were until the bits are cleared again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::busy::{Busy, Processes, UsedAt, own_ns};
use super::{OFTEN_SHARE, SELDOM_SHARE, Whose};
use crate::capture::bpf::{Bits, PageTables, UNIT_BYTES, Unit};
use crate::capture::contents::Reading;
use crate::capture::options::Looking;
use crate::heat::bits::{AccessedBits, Translations};
use crate::heat::{Mapping, parse};
use crate::meta::AccessedCost;
use crate::stream::accessed::{AccessedRound, Cleared, Found, FoundByMapping, FoundByPage, UsedPages};

/// The least time from one look to the next, and the most.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];
/// The part of the time that looks alone may cost, which none of the programs pays: one in so many.
const LOOKS_SHARE: u32 = SELDOM_SHARE;
const SELDOM: Allowed = Allowed { share: SELDOM_SHARE, beyond: Duration::from_millis(20) };
const OFTEN: Allowed = Allowed { share: OFTEN_SHARE, beyond: Duration::from_millis(300) };
/// The least time from clearing to clearing, and that before the first.
const CLEARED_MIN: Duration = Duration::from_millis(50);
/// A look that has found such a part of the resident pages tells how often they are used.
const MOMENT_SHARE: f64 = 0.12;
/// CPU time that a process has had on another CPU is known to a tick of the clock, 1 to 10 ms: from here on it is told, and
/// below taken to be as it was before.
const TICKS_NS: u64 = 40_000_000;
const PAGE: u64 = mm::ids::PAGE_SIZE;
const KIB_A_PAGE: u64 = PAGE / 1024;

/// Looks until it is `stopped`.
pub(super) fn look(
    tables: PageTables,
    (whose, looking): (Whose, Looking),
    bit_ns: u64,
    stopped: &Receiver<()>,
    rounds: Sender<AccessedRound>,
) -> AccessedCost {
    let mut course = Course {
        tables,
        processes: Processes::new(whose),
        rounds,
        open: BTreeMap::new(),
        reading: Reading::default(),
        reading_cost: Duration::ZERO,
        cost: AccessedCost { by_page: true, bit_ns, ..AccessedCost::default() },
    };
    course.run(stopped, Pace::new(if looking == Looking::Often { OFTEN } else { SELDOM }));
    course.cost
}

/// The thread's work.
struct Course {
    tables: PageTables,
    processes: Processes,
    rounds: Sender<AccessedRound>,
    /// Processes whose bits were cleared.
    open: BTreeMap<u32, Period>,
    reading: Reading,
    /// What reading pages has cost that no pause was made for.
    reading_cost: Duration,
    cost: AccessedCost,
}

/// A process, from one clearing to the next.
struct Period {
    pagemap: File,
    /// Its mappings, when it had so many pages in all of them together.
    maps: Vec<Mapping>,
    size: u64,
    /// When bits were cleared, and what the process had used.
    cleared: UsedAt,
    /// The same some time before.
    before: UsedAt,
    looked: UsedAt,
    /// What was accessed since, by the address of 512 pages.
    seen: BTreeMap<u64, Bits>,
    /// Whether a moment was told of.
    has_moment: bool,
}

/// What a look has found.
struct Look {
    at: UsedAt,
    /// With counts of pages.
    mappings: Vec<Mapping>,
    /// What has come since the look before.
    used: Vec<UsedPages>,
}

/// What clearing bits may cost, and reading pages, the recorder and the programs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Allowed {
    /// A part of the time: one in so many.
    share: u32,
    /// At any time, beyond that: a program that runs for a second is seen more than once.
    beyond: Duration,
}

/// When bits are cleared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pace {
    allowed: Allowed,
    /// What clearing has cost so far, and reading pages.
    spent: Duration,
    /// When the next clearing is due, since looking began.
    next: Duration,
}

impl Pace {
    const fn new(allowed: Allowed) -> Self {
        Self { allowed, spent: Duration::ZERO, next: CLEARED_MIN }
    }

    /// By `now` bits were cleared, which has cost so much; the next time is taken to cost as much.
    fn cleared(&mut self, now: Duration, cost: Duration) {
        self.spent += cost;
        let due = (self.spent + cost).saturating_sub(self.allowed.beyond) * self.allowed.share;
        self.next = due.max(now + CLEARED_MIN);
    }
}

impl Course {
    fn run(&mut self, stopped: &Receiver<()>, mut pace: Pace) {
        let began = Instant::now();
        let mut pause = PAUSES[1];
        while matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
            if began.elapsed() >= pace.next {
                let cost = self.cost_of(Self::clear_busiest);
                self.reading_cost = Duration::ZERO;
                pace.cleared(began.elapsed(), cost);
                pause = PAUSES[0];
            } else {
                let look = self.cost_of(|course| {
                    course.begin_new_ones();
                    course.look_at_one();
                });
                let read = std::mem::take(&mut self.reading_cost);
                pace.spent += read;
                pause = self.pause().max(look.saturating_sub(read) * LOOKS_SHARE);
            }
            let left = pace.next.saturating_sub(began.elapsed());
            pause = pause.min(left.max(PAUSES[0]));
        }
        self.cost.accessed_pages += self.open.values().map(Period::paid_pages).sum::<u64>();
        self.cost.own_ns = own_ns();
    }

    /// Does something, and says what it cost, us and those who were looked at.
    fn cost_of(&mut self, what: fn(&mut Self)) -> Duration {
        let before = own_ns() + self.cost.walks_ns();
        what(self);
        Duration::from_nanos(own_ns() + self.cost.walks_ns() - before)
    }

    fn clear_busiest(&mut self) {
        if let Some(busy) = self.processes.busiest() {
            // Who is gone, or may not be looked at, has nothing to say.
            let _ = self.clear(busy);
        }
        self.open.retain(|pid, _| self.processes.has(*pid));
        self.reading.retain(|pid| self.processes.has(pid));
    }

    /// How long to wait where looks cost nothing: soon after clearing much comes in a short time.
    fn pause(&self) -> Duration {
        let since = self.open.values().map(|period| period.cleared.at.elapsed() / 4).min();
        since.unwrap_or(PAUSES[1]).clamp(PAUSES[0], PAUSES[1])
    }

    /// A process that is new is looked at from now on: when it was forked its bits were clear. If it runs another program by now, they say what that
    /// has touched.
    fn begin_new_ones(&mut self) {
        for pid in self.processes.new_ones() {
            if let (Ok(pagemap), false) = (File::open(pagemap_of(pid)), self.open.contains_key(&pid)) {
                let born = UsedAt { at: Instant::now(), ns: 0 };
                let _ = self.begin(pid, Period::new(pagemap, born, born));
            }
        }
    }

    /// A process's bits are clear.
    fn begin(&mut self, pid: u32, mut period: Period) -> io::Result<()> {
        period.learn_maps(pid)?;
        self.open.insert(pid, period);
        self.tell(pid, Found::Cleared);
        Ok(())
    }

    /// Looks at the process that was not looked at for longest, of those that ran since.
    fn look_at_one(&mut self) {
        let mut waiting: Vec<(Instant, u32)> =
            self.open.iter().map(|(pid, period)| (period.looked.at, *pid)).collect();
        waiting.sort_unstable();
        for (_, pid) in waiting {
            let Some(period) = self.open.get_mut(&pid) else { continue };
            let Some(now) = UsedAt::now(pid) else {
                self.open.remove(&pid);
                continue;
            };
            if now.ns > period.looked.ns {
                let _ = self.look_at(pid);
                return;
            }
            period.looked.at = now.at;
        }
    }

    /// Looks at a process whose bits were cleared, and tells what came; a moment with it, if there is enough for one.
    fn look_at(&mut self, pid: u32) -> io::Result<()> {
        let Some(period) = self.open.get_mut(&pid) else { return Ok(()) };
        let look = period.look(pid, &self.tables)?;
        if look.mappings.iter().all(|mapping| mapping.resident_kib == 0) {
            // It runs another program now, in another address space.
            self.open.remove(&pid);
            return Ok(());
        }
        let is_moment = !period.has_moment && share(&look.mappings) >= MOMENT_SHARE;
        let since = period.since(&look);
        period.has_moment |= is_moment;
        let moment = is_moment.then(|| period.cpu_ns(&look));
        if let Some(cpu_ns) = moment {
            self.tell_moment(pid, cpu_ns, look.mappings);
        }
        self.tell(pid, Found::ByPage(FoundByPage { used: look.used, ..since }));
        Ok(())
    }

    fn tell_moment(&mut self, pid: u32, cpu_ns: u64, mappings: Vec<Mapping>) {
        let before = own_ns();
        let contents = self.reading.read(pid, &mappings);
        self.reading_cost += Duration::from_nanos(own_ns() - before);
        let found = FoundByMapping { cpu_ns, cleared: Cleared::ForThis, mappings, contents };
        self.tell(pid, Found::ByMapping(found));
    }

    fn tell(&self, pid: u32, found: Found) {
        // Nobody may listen any more.
        let _ = self.rounds.send(AccessedRound::new(pid, found));
    }

    /// A process's time since it was cleared last is over, and its bits are cleared again.
    fn clear(&mut self, Busy { pid, before }: Busy) -> io::Result<()> {
        if self.open.contains_key(&pid) {
            self.close(pid)?;
        }
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let mut bits = AccessedBits::open(pid).map_err(|(_, error)| error)?;
        let pagemap = File::open(pagemap_of(pid))?;
        let cleared = bits.clear(Translations::Kept)?;
        let mut now = UsedAt::now(pid).ok_or_else(gone)?;
        // Each page had its turn somewhere in that time.
        now.at = cleared.began + cleared.took / 2;
        self.cost.rounds += 1;
        self.cost.held_ns_max = self.cost.held_ns_max.max(cleared.took.as_nanos() as u64);
        self.begin(pid, Period::new(pagemap, now, before))
    }

    /// Tells what a process used until now since its bits were cleared.
    fn close(&mut self, pid: u32) -> io::Result<()> {
        let Some(mut period) = self.open.remove(&pid) else { return Ok(()) };
        let look = period.look(pid, &self.tables)?;
        let (since, cpu_ns) = (period.since(&look), period.cpu_ns(&look));
        self.cost.accessed_pages += period.paid_pages();
        if !period.has_moment {
            self.tell_moment(pid, cpu_ns, look.mappings.clone());
        }
        let found =
            FoundByMapping { cpu_ns, cleared: Cleared::Before, mappings: look.mappings, contents: vec![] };
        // An event has no more room for it.
        if u32::try_from(cpu_ns).is_ok() {
            self.tell(pid, Found::ByMapping(found));
        }
        self.tell(pid, Found::ByPage(FoundByPage { used: look.used, ..since }));
        Ok(())
    }
}

fn pagemap_of(pid: u32) -> String {
    format!("/proc/{pid}/pagemap")
}

impl Period {
    /// Of a process whose bits were cleared when it had used `cleared`, and which had used `before` some time before that.
    const fn new(pagemap: File, cleared: UsedAt, before: UsedAt) -> Self {
        Self {
            pagemap,
            maps: vec![],
            size: 0,
            cleared,
            before,
            looked: cleared,
            seen: BTreeMap::new(),
            has_moment: false,
        }
    }

    fn look(&mut self, pid: u32, tables: &PageTables) -> io::Result<Look> {
        self.learn_maps(pid)?;
        let units = tables.look(&self.pagemap, self.maps.iter().map(|map| (map.start, map.end)));
        let at = UsedAt::now(pid).ok_or(io::ErrorKind::NotFound)?;
        self.looked = at;
        let mut mappings = self.maps.clone();
        let mut used = vec![];
        for mapping in &mut mappings {
            let first = units.partition_point(|unit| unit.address + UNIT_BYTES <= mapping.start);
            let end = mapping.end;
            for unit in units[first..].iter().take_while(|unit| unit.address < end) {
                let before = self.seen.get(&unit.address).copied().unwrap_or_default();
                add_unit(mapping, unit, &before, &mut used);
            }
        }
        for unit in units {
            let seen = self.seen.entry(unit.address).or_default();
            seen.iter_mut().zip(unit.accessed).for_each(|(seen, new)| *seen |= new);
        }
        Ok(Look { at, mappings, used })
    }

    /// Reads the mappings anew if their size has changed.
    fn learn_maps(&mut self, pid: u32) -> io::Result<()> {
        let statm = fs::read_to_string(format!("/proc/{pid}/statm"))?;
        let size = statm.split_ascii_whitespace().next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
        if size != self.size {
            self.maps = parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/maps"))?));
            // vsyscall lies beyond what programs may map.
            self.maps.retain(|map| map.start < 1 << 63);
            self.size = size;
        }
        Ok(())
    }

    /// How long ago the bits were cleared, as looks tell it.
    fn since(&self, look: &Look) -> FoundByPage {
        let us = |ns: u128| u32::try_from(ns / 1000).unwrap_or(u32::MAX);
        let passed = look.at.at.saturating_duration_since(self.cleared.at).as_nanos();
        let cpu_us = us(look.at.ns.saturating_sub(self.cleared.ns).into());
        FoundByPage { passed_us: us(passed), cpu_us, used: vec![] }
    }

    /// CPU time of the process since its bits were cleared, ns.
    fn cpu_ns(&self, look: &Look) -> u64 {
        let passed = look.at.at.saturating_duration_since(self.cleared.at).as_nanos() as u64;
        if passed >= TICKS_NS {
            return look.at.ns.saturating_sub(self.cleared.ns);
        }
        (passed as f64 * look.at.cpus_since(self.before)) as u64
    }

    /// Pages whose bit has come since it was cleared; none of a process that is looked at since it was forked, whose pages are all new.
    fn paid_pages(&self) -> u64 {
        if self.cleared.ns == 0 {
            return 0;
        }
        self.seen.values().flatten().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// Counts a unit's pages to a mapping, as far as they are its own, and adds those that were not accessed before to `used`.
fn add_unit(mapping: &mut Mapping, unit: &Unit, before: &Bits, used: &mut Vec<UsedPages>) {
    for (word, before) in before.iter().enumerate() {
        let start = unit.address + word as u64 * u64::from(u64::BITS) * PAGE;
        let skipped = (mapping.start.saturating_sub(start) / PAGE).min(64);
        let kept = (mapping.end.saturating_sub(start) / PAGE).min(64);
        if skipped >= kept {
            continue;
        }
        let own = u64::MAX >> (64 - (kept - skipped)) << skipped;
        let (present, accessed) = (unit.present[word] & own, unit.accessed[word] & own);
        let kib = |bits: u64| u64::from(bits.count_ones()) * KIB_A_PAGE;
        mapping.resident_kib += kib(present);
        mapping.accessed_kib += kib(accessed);
        mapping.huge_kib += if unit.is_huge { kib(present) } else { 0 };
        let new = accessed & !before;
        if new != 0 {
            used.push(UsedPages { address: start + skipped * PAGE, bits: new >> skipped });
        }
    }
}

/// The part of what is resident that was accessed.
fn share(mappings: &[Mapping]) -> f64 {
    let sum = |of: fn(&Mapping) -> u64| mappings.iter().map(of).sum::<u64>();
    sum(|mapping| mapping.accessed_kib) as f64 / sum(|mapping| mapping.resident_kib).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_pays_for_itself_once_the_allowance_is_spent() {
        const MS: Duration = Duration::from_millis(1);
        let mut pace = Pace::new(SELDOM);
        pace.cleared(50 * MS, 8 * MS);
        assert_eq!(pace.next, 100 * MS, "16 of the 20 ms that it may cost at any time");
        pace.cleared(100 * MS, 8 * MS);
        assert_eq!(pace.next, 400 * MS, "24 ms will be spent: 4 too many, a hundred times");
        pace.spent += 6 * MS;
        pace.cleared(400 * MS, 3 * MS);
        assert_eq!(pace.next, 800 * MS);
        pace.cleared(9000 * MS, MS);
        assert_eq!(pace.next, 9050 * MS, "who was idle is not cleared at once again");
        let mut often = Pace::new(OFTEN);
        often.cleared(50 * MS, 140 * MS);
        assert_eq!(often.next, 100 * MS);
        often.cleared(200 * MS, 140 * MS);
        assert_eq!(often.next, 1200 * MS, "420 ms will be spent: 120 too many, ten times");
    }

    #[test]
    fn pages_are_counted_to_their_own_mapping() {
        let mut unit = Unit { address: UNIT_BYTES, present: [u64::MAX; 8], accessed: [0; 8], is_huge: false };
        (unit.accessed[0], unit.accessed[1]) = (0b1110, 1);
        let mapping = |first: u64, end: u64| Mapping {
            start: UNIT_BYTES + first * PAGE,
            end: UNIT_BYTES + end * PAGE,
            ..Mapping::default()
        };
        let mut used = vec![];
        let mut before = [0; 8];
        before[0] = 0b100;
        let [mut first, mut second] = [mapping(0, 3), mapping(3, 66)];
        for mapping in [&mut first, &mut second] {
            add_unit(mapping, &unit, &before, &mut used);
        }
        let counted =
            |mapping: &Mapping| (mapping.resident_kib / KIB_A_PAGE, mapping.accessed_kib / KIB_A_PAGE);
        assert_eq!((counted(&first), counted(&second)), ((3, 2), (63, 2)));
        let at = |page: u64, bits| UsedPages { address: UNIT_BYTES + page * PAGE, bits };
        assert_eq!(used, [at(0, 0b10), at(3, 1), at(64, 1)]);
    }
}
