//! What a program uses again between its recorded events, where memory may be taken from it: a page that went is missed only if somebody
//! comes back to it, and the first touches that a recording has do not say so.
//!
//! Where looks at accessed bits told pages apart, [`super::course`] has which come when. Otherwise
//! a look says of each mapping which part of its pages was used within some CPU time, once within a moment and once
//! since the look before. Between these two points, and beyond, the part of its pages that are used again within a time `t` is
//! **assumed** to grow as a power of `t`: `f (t/T)^b`. How often the process comes back to a page that it did not use for as long as
//! it takes to use `n` others of the mapping is the slope of that curve (Denning, 1968): `b N/T (f N/n)^(1/b) n/N`. Pages that came
//! in the time are left out of both points, for the recording has their first touches.
//!
//! Where only a moment is known, all pages are taken to be used within the mapping's age, first touches included, which stand for as
//! many uses then; the power follows as the mapping grows older. Where nothing is known, the power is [`ASSUMED_POWER`]. Uses of pages that are
//! there cost nothing more: they are in the recorded time.

use std::collections::BTreeMap;
use std::sync::Arc;

use mm::vm::{FaultError, Faulted, Residence, SpaceId, Touch, Vpn};

use super::ahead::Ahead;
use super::course::{Course, Periods};
use super::logarithm::{exp, minus_ln};
use super::process::Process;
use crate::program::{LookedAt, Program};
use crate::stage::{Random, Stage};

/// The power where nobody looked.
const ASSUMED_POWER: f64 = 0.5;
/// Powers beyond these would say that all pages are used at once, or each page but once.
const POWERS: [f64; 2] = [0.1, 0.9];
/// Ranks are cut so finely: so many cuts halve them.
const CUTS: u32 = 4;
/// Pages of the last cut are the latest used: one in 64 of all.
const CUTS_MAX: u32 = 6 * CUTS;
/// No page is used more often than each in so much time, on average over all of them, ns: the latest ones are there anyway.
const EVERY_NS_MIN: f64 = 8_000_000.0;

/// Uses of pages of neighbouring ranks.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    /// The first rank and the first behind it, as parts of all pages; the page used last has rank 0.
    ranks: (f64, f64),
    /// How often pages of it are used, in parts of how often those of rank 1 are.
    weight: f64,
    /// Uses that are due, in parts of one.
    due: f64,
}

/// Which part of pages was used again within some CPU time.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Point {
    share: f64,
    /// ns.
    within: f64,
}

/// How often pages come back that were not used for longer than any other.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Farthest {
    /// Each so often in a ns.
    PerNs(f64),
    /// All of them once in the time that they are there, first touches among them.
    ByAge,
}

/// A mapping that was looked at, or all that was not.
#[derive(Clone, Debug)]
struct Area {
    /// Its first page and the first behind it.
    range: (u32, u32),
    /// Its pages, the one used last at the end.
    pages: Vec<u32>,
    /// The process's CPU time when the first of them came, ns.
    born_ns: u64,
    /// What was found within a moment, and since the look before that.
    found: [Option<Point>; 2],
    farthest: Farthest,
    power: f64,
    /// The power that was found so far.
    seen: Option<f64>,
    /// Its age when that was last worked out, ns.
    shaped_ns: u64,
    /// From the page used longest ago to the latest; the first are those of rank 1 and beyond.
    cuts: Vec<Cut>,
    /// First touches that no uses were left out for yet.
    first_touches: f64,
}

impl Area {
    fn new(range: (u32, u32), born_ns: u64) -> Self {
        let mut area = Self {
            range,
            pages: vec![],
            born_ns,
            found: [None; 2],
            farthest: Farthest::ByAge,
            power: ASSUMED_POWER,
            seen: None,
            shaped_ns: 0,
            cuts: vec![],
            first_touches: 0.0,
        };
        area.set_power(ASSUMED_POWER);
        area
    }

    /// Pages are used as looks found it, at the age `age_ns`.
    fn shape(&mut self, age_ns: u64) {
        self.shaped_ns = age_ns;
        let (power, farthest) = match self.found {
            [Some(moment), Some(since)] if since.within > 2.0 * moment.within => {
                let grows = minus_ln(moment.share.min(since.share)) - minus_ln(since.share);
                let power = (grows / minus_ln(moment.within / since.within)).clamp(POWERS[0], POWERS[1]);
                // One moment says little.
                let power = self.seen.map_or(power, |before| f64::midpoint(before, power));
                self.seen = Some(power);
                let share = exp(minus_ln(since.share) / power);
                (power, Farthest::PerNs(power / since.within / share))
            }
            [Some(one), _] | [None, Some(one)] if age_ns as f64 > 2.0 * one.within => {
                (minus_ln(one.share) / minus_ln(one.within / age_ns as f64), Farthest::ByAge)
            }
            _ => (ASSUMED_POWER, Farthest::ByAge),
        };
        self.farthest = farthest;
        self.set_power(power);
    }

    fn set_power(&mut self, power: f64) {
        self.power = power.clamp(POWERS[0], POWERS[1]);
        // Rates rise by this from one cut to the next, while ranks fall by a `CUTS`th of a halving.
        let rise = exp((1.0 / self.power - 1.0) * std::f64::consts::LN_2 / f64::from(CUTS));
        let fall = 0.5_f64.sqrt().sqrt();
        self.cuts = vec![Cut { ranks: (1.0, 1.0), weight: 1.0, due: 0.0 }];
        let (mut rank, mut rate) = (1.0, 1.0);
        for _ in 0..CUTS_MAX {
            let cut = Cut { ranks: (rank * fall, rank), weight: rate * rise - rate, due: 0.0 };
            self.cuts.push(cut);
            (rank, rate) = (rank * fall, rate * rise);
        }
    }

    /// Adds to `due` the pages that `own_ns` of the process's time use, where its CPU time is `now_ns`.
    fn add_due(&mut self, own_ns: u64, now_ns: u64, random: &mut Random, due: &mut Vec<u32>) {
        if self.pages.is_empty() {
            return;
        }
        let age_ns = now_ns.saturating_sub(self.born_ns);
        if self.farthest == Farthest::ByAge && age_ns / 2 > self.shaped_ns {
            // A moment means another power in a mapping that is as old again.
            self.shape(age_ns);
        }
        let all = self.pages.len() as f64;
        let per_ns = match self.farthest {
            Farthest::PerNs(often) => often,
            Farthest::ByAge => self.power / (age_ns.max(own_ns) as f64),
        };
        let base = per_ns * all * own_ns as f64;
        if self.farthest != Farthest::ByAge {
            self.first_touches = 0.0;
        }
        let mut left = all * own_ns as f64 / EVERY_NS_MIN;
        for number in 0..self.cuts.len() {
            let more = (base * self.cuts[number].weight).min(left);
            left -= more;
            let firsts = more.min(self.first_touches);
            self.first_touches -= firsts;
            self.cuts[number].due += more - firsts;
            while self.cuts[number].due >= 1.0 {
                self.cuts[number].due -= 1.0;
                let ranks = self.cuts[number].ranks;
                due.push(self.use_of(ranks, random));
            }
        }
    }

    /// A page of these ranks, which is the latest used then.
    fn use_of(&mut self, ranks: (f64, f64), random: &mut Random) -> u32 {
        let count = self.pages.len();
        let rank = |part: f64| ((part * count as f64) as usize).min(count - 1);
        let (first, end) = (rank(ranks.0), rank(ranks.1).max(rank(ranks.0) + 1));
        let rank = first + random.below((end - first) as u64) as usize;
        let page = self.pages.remove(count - 1 - rank.min(count - 1));
        self.pages.push(page);
        page
    }
}

/// What a process goes on using.
#[derive(Clone, Debug)]
pub(super) struct Uses {
    /// By their ranges; the last has all pages that are in no other's.
    areas: Vec<Area>,
    /// When each page first came, by the process's CPU time, ns.
    known: BTreeMap<u32, u64>,
    /// CPU time that the process has had, ns.
    age_ns: u64,
    random: Random,
    program: Arc<Program>,
    /// The looks that have told pages apart.
    ahead: Ahead,
    /// Which pages it uses, where that is known.
    course: Option<Course>,
    /// Pages that it should have used by now.
    late: Vec<u32>,
}

/// A use that could not be, or was a fault.
pub(super) type Missed = Result<Faulted, FaultError>;

impl Uses {
    pub(super) fn new(program: &Arc<Program>, random: Random) -> Self {
        Self {
            areas: vec![Area::new((0, u32::MAX), 0)],
            known: BTreeMap::new(),
            age_ns: 0,
            random,
            program: Arc::clone(program),
            ahead: Ahead::default(),
            course: None,
            late: vec![],
        }
    }

    /// Its random numbers. The machine's own would be others' with a limit than without one.
    pub(super) fn random(space: SpaceId) -> Random {
        Random::of(u64::from(space.0))
    }

    /// A child's: it goes on with what its parent used.
    pub(super) fn child(&self, random: Random) -> Self {
        Self { random, ahead: Ahead::default(), course: None, late: vec![], ..self.clone() }
    }

    fn area_of(&mut self, page: u32) -> &mut Area {
        let (rest, looked_at) = self.areas.split_last_mut().expect("there is always the rest");
        let behind = looked_at.partition_point(|area| area.range.0 <= page);
        looked_at[..behind].last_mut().filter(|area| page < area.range.1).unwrap_or(rest)
    }

    /// `count` pages from `page` on came in by a touch of the program's.
    pub(super) fn touched(&mut self, page: Vpn, count: u32) {
        let now = self.age_ns;
        for page in page.0..page.0 + count {
            if let Some(course) = &mut self.course {
                course.came(page, now);
            }
            if self.known.insert(page, now).is_none() {
                let area = self.area_of(page);
                if area.pages.is_empty() {
                    area.born_ns = now;
                }
                area.pages.push(page);
                area.first_touches += 1.0;
            }
        }
    }

    /// A task of the process knows of these looks. Pages are used as they have found it, one look after the other, if they told pages apart.
    pub(super) fn follow_pages(&mut self, looks: impl Iterator<Item = u32>) {
        self.ahead.learn(looks);
        self.begin_looks();
    }

    /// Begins the looks whose time it is. What should have been used before is due now.
    fn begin_looks(&mut self) {
        let Self { program, ahead, age_ns, .. } = self;
        let period = |look: u32| program.used.get(look as usize);
        while let Some(begins) = ahead.next(*age_ns, |look| period(look).map_or(0, |period| period.own_ns)) {
            if let Some(mut course) = self.course.take() {
                course.add_due(u64::MAX, |page| self.known.get(&page).copied(), &mut self.late);
            }
            let [before, next] = [begins.before, begins.next].map(|look| look.and_then(period));
            self.course =
                period(begins.now).and_then(|now| Course::of(Periods { before, now, next }, begins.at_ns));
        }
    }

    /// From now on pages are used as the next look will find it, by mapping; `before` is what the one now finds.
    pub(super) fn follow(&mut self, found: &[LookedAt], before: &[LookedAt]) {
        let came = came_by_mapping(found, before);
        let areas = std::mem::take(&mut self.areas);
        let now = self.age_ns;
        for found in found.iter().filter(|found| !found.since_before) {
            let range = (found.first.0, found.first.0.saturating_add(found.pages));
            let overlaps = |area: &&Area| area.range.0 < range.1 && range.0 < area.range.1;
            let known = areas.iter().filter(|area| area.range.1 < u32::MAX).find(overlaps);
            let new = Area::new(range, now);
            self.areas.push(match known {
                Some(known) => Area { found: known.found, seen: known.seen, ..new },
                None => new,
            });
        }
        self.areas.sort_unstable_by_key(|area| area.range);
        self.areas.push(Area::new((0, u32::MAX), now));
        for area in areas {
            let kept = if area.pages.is_empty() { 0.0 } else { area.first_touches / area.pages.len() as f64 };
            for page in area.pages {
                let came = self.known.get(&page).copied().unwrap_or(0);
                let area = self.area_of(page);
                area.pages.push(page);
                area.born_ns = area.born_ns.min(came);
                area.first_touches += kept;
            }
        }
        for (found, came) in found.iter().zip(came) {
            let point = again(found, came);
            let area = self.area_of(found.first.0);
            let place = &mut area.found[usize::from(found.since_before)];
            *place = point.or(*place);
        }
        let (rest, looked_at) = self.areas.split_last_mut().expect("there is always the rest");
        rest.found = [None; 2];
        for area in looked_at.iter_mut() {
            area.shape(now.saturating_sub(area.born_ns));
        }
    }

    /// Pages that `own_ns` of the process's time use.
    fn due(&mut self, own_ns: u64) -> Vec<u32> {
        self.age_ns += own_ns;
        self.begin_looks();
        let mut due = std::mem::take(&mut self.late);
        if let Some(course) = &mut self.course {
            course.add_due(self.age_ns, |page| self.known.get(&page).copied(), &mut due);
            course.repeat(self.age_ns);
            return due;
        }
        for area in &mut self.areas {
            area.add_due(own_ns, self.age_ns, &mut self.random, &mut due);
        }
        due
    }

    /// A page is not the program's any more.
    fn forget(&mut self, page: u32) {
        if self.known.remove(&page).is_some() {
            // It was used just now: it is near the end.
            let pages = &mut self.area_of(page).pages;
            if let Some(at) = pages.iter().rposition(|other| *other == page) {
                pages.remove(at);
            }
        }
    }
}

/// How many of the pages of each mapping in `found` came in the time that is told of. Since the look `before` all came that were not there
/// then; in a moment, as many as in any other of the same length.
fn came_by_mapping(found: &[LookedAt], before: &[LookedAt]) -> Vec<u64> {
    let end = |of: &LookedAt| of.first.0.saturating_add(of.pages);
    let overlap = |one: &LookedAt, other: &LookedAt| one.first.0 < end(other) && other.first.0 < end(one);
    let sum = |of: &LookedAt| {
        let there = before.iter().filter(|there| !there.since_before && overlap(there, of));
        there.map(|there| there.resident).sum::<u64>()
    };
    let came_since = |of: &LookedAt| if before.is_empty() { 0 } else { of.resident.saturating_sub(sum(of)) };
    let came = |of: &LookedAt| {
        if of.since_before {
            return came_since(of);
        }
        let since = found.iter().find(|since| since.since_before && overlap(since, of) && since.cpu_ns > 0);
        since.map_or(0, |since| came_since(since) * of.cpu_ns.min(since.cpu_ns) / since.cpu_ns)
    };
    found.iter().map(came).collect()
}

/// What a look says of the pages that were there when its time began, where `came` pages came in it; `None` where there were next to none,
/// or the process did not run.
fn again(found: &LookedAt, came: u64) -> Option<Point> {
    let LookedAt { accessed, resident, cpu_ns, .. } = *found;
    let of = resident.saturating_sub(came);
    if cpu_ns == 0 || accessed == 0 || of < FEW_PAGES {
        return None;
    }
    let share = accessed.saturating_sub(came).clamp(1, of) as f64 / of as f64;
    Some(Point { share, within: cpu_ns as f64 })
}

/// Fewer pages say nothing.
const FEW_PAGES: u64 = 16;

impl Process {
    /// `own_ns` of its time have passed: it uses what is due. `missed` hears of uses that were no plain access.
    pub(super) fn use_again(&self, stage: &Stage, own_ns: u64, mut missed: impl FnMut(Missed)) {
        let Some(uses) = self.uses() else { return };
        let due = uses.borrow_mut().due(own_ns);
        for page in due {
            let vpn = Vpn(page);
            if self.space.access(vpn, Touch::Read).is_some() {
                continue;
            }
            // What the program gave back comes with a recorded touch if it comes again; a page of a file may have been taken.
            let residence = stage.mm.spaces().residence(&self.space, vpn);
            let is_gone = residence == Residence::Absent && !stage.mm.spaces().is_of_file(&self.space, vpn);
            if is_gone {
                uses.borrow_mut().forget(page);
                continue;
            }
            match stage.mm.spaces().fault(&self.space, vpn, Touch::Read) {
                Ok(done) => missed(Ok(done)),
                Err(FaultError::Alloc(error)) => missed(Err(FaultError::Alloc(error))),
                Err(_) => uses.borrow_mut().forget(page),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(accessed: u64, cpu_ns: u64) -> LookedAt {
        LookedAt { first: Vpn(0), pages: 1000, accessed, resident: 1000, cpu_ns, since_before: false }
    }

    fn ripe() -> Uses {
        let mut uses = Uses::new(&Arc::default(), Random::of(1));
        uses.touched(Vpn(0), 1000);
        uses.age_ns = 1_000_000_000;
        uses.areas[0].first_touches = 0.0;
        uses
    }

    /// Uses of pages that were not among the `rank` used last, in a tenth of the age, step by step.
    fn beyond(uses: &mut Uses, rank: usize) -> usize {
        let mut count = 0;
        for _ in 0..1000 {
            let before: Vec<u32> = uses.areas[0].pages.clone();
            let due = uses.due(100_000);
            let late = &before[before.len() - rank..];
            count += due.iter().filter(|page| !late.contains(page)).count();
        }
        count
    }

    #[test]
    fn pages_come_back_as_the_slope_of_the_working_set_says() {
        // With a power of a half: N/2T a second times N/n, while T grows by a tenth.
        let far = beyond(&mut ripe(), 500);
        assert!((85..=105).contains(&far), "0.5 * 1000 / 1.05 s * 2 * 100 ms = 95: {far}");
        let near = beyond(&mut ripe(), 125);
        assert!((350..=410).contains(&near), "0.5 * 1000 / 1.05 s * 8 * 100 ms = 381: {near}");
    }

    #[test]
    fn first_touches_stand_for_as_many_uses() {
        let mut uses = ripe();
        uses.areas[0].first_touches = 60.0;
        let fewer = beyond(&mut ripe(), 0) - beyond(&mut uses, 0);
        // Each of the 25 cuts may have a part of one left.
        assert!((35..=85).contains(&fewer), "60: {fewer}");
        let mut uses = ripe();
        uses.touched(Vpn(2000), 10);
        assert_eq!((uses.areas[0].first_touches, uses.areas[0].pages.len()), (10.0, 1010));
    }

    #[test]
    fn a_look_says_how_steep_it_is() {
        let shape = |found: &[LookedAt]| {
            let mut uses = ripe();
            uses.follow(found, &[]);
            (uses.areas[0].power, uses.areas[0].farthest)
        };
        // A tenth of the pages in a hundredth of the age, and in a ten thousandth.
        assert!((shape(&[found(100, 10_000_000)]).0 - 0.5).abs() < 1e-6);
        assert!((shape(&[found(100, 100_000)]).0 - 0.25).abs() < 1e-6);
        assert_eq!(
            shape(&[found(900, 900_000_000)]),
            (ASSUMED_POWER, Farthest::ByAge),
            "as long as it lives"
        );
        // A tenth in a ms, and four tenths in 16: a half. What was not used in 16 ms comes back once in 200.
        let since = LookedAt { since_before: true, ..found(400, 16_000_000) };
        let (power, Farthest::PerNs(often)) = shape(&[since, found(100, 1_000_000)]) else {
            panic!("by age")
        };
        assert!((power - 0.5).abs() < 1e-6 && (often - 0.5 * 0.16 / 16e6).abs() < 1e-15, "{power} {often}");
        // Hardly more: the rest is dead.
        let since = LookedAt { since_before: true, ..found(110, 16_000_000) };
        let (_, Farthest::PerNs(often)) = shape(&[since, found(100, 1_000_000)]) else { panic!("by age") };
        assert!(often < 1e-15, "{often}");
    }

    #[test]
    fn a_moment_means_more_as_its_mapping_grows_older() {
        let mut uses = Uses::new(&Arc::default(), Random::of(1));
        // A hundredth of the pages in a ms, of a mapping that nobody has touched yet.
        uses.follow(&[found(10, 1_000_000)], &[]);
        uses.touched(Vpn(0), 1000);
        assert!((uses.areas[0].power - ASSUMED_POWER).abs() < 1e-9);
        let mut power_at = |age_ns: u64| {
            uses.due(age_ns - uses.age_ns);
            uses.areas[0].power
        };
        assert!(
            (power_at(10_000_000) - POWERS[1]).abs() < 1e-9,
            "a hundredth in a tenth of its age: first touches"
        );
        assert!((power_at(1_000_000_000) - 2.0 / 3.0).abs() < 1e-6, "in a thousandth");
    }

    #[test]
    fn what_came_in_the_time_of_a_look_was_not_used_again() {
        let before = [found(100, 5_000_000)];
        let since = LookedAt { since_before: true, pages: 1500, resident: 1500, ..found(600, 50_000_000) };
        let moment = LookedAt { since_before: false, cpu_ns: 5_000_000, accessed: 150, ..since };
        let came = came_by_mapping(&[since, moment], &before);
        assert_eq!(came, [500, 50]);
        assert_eq!(again(&since, came[0]), Some(Point { share: 0.1, within: 50_000_000.0 }));
        assert_eq!(again(&moment, came[1]).map(|point| point.share), Some(100.0 / 1450.0));
        assert_eq!(again(&since, 1490), None, "few were there");
        assert_eq!(again(&LookedAt { accessed: 0, ..moment }, 50), None, "it did not run");
        assert_eq!(came_by_mapping(&[since, moment], &[]), [0, 0], "nobody knows");
    }

    #[test]
    fn mappings_are_used_each_in_its_own_way() {
        let mut uses = ripe();
        uses.age_ns += 1_000_000_000;
        uses.touched(Vpn(5000), 300);
        uses.age_ns += 1_000_000_000;
        let hot = LookedAt { first: Vpn(4990), pages: 310, resident: 300, ..found(300, 20_000_000) };
        uses.follow(&[hot, LookedAt { pages: 900, resident: 900, ..found(9, 20_000_000) }], &[]);
        let shape: Vec<(u32, usize, u64)> =
            uses.areas.iter().map(|area| (area.range.0, area.pages.len(), area.born_ns)).collect();
        assert_eq!(shape, [(0, 900, 0), (4990, 300, 2_000_000_000), (0, 100, 0)]);
        assert_eq!(uses.areas[1].found, [Some(Point { share: 1.0, within: 20_000_000.0 }), None]);
        assert!(uses.areas[0].power > 0.8, "{}", uses.areas[0].power);
        uses.touched(Vpn(5200), 200);
        assert_eq!(
            [1, 2].map(|area: usize| uses.areas[area].pages.len()),
            [300, 200],
            "beyond what was looked at"
        );
    }

    #[test]
    fn what_is_gone_is_used_no_more() {
        let mut uses = Uses::new(&Arc::default(), Random::of(1));
        uses.touched(Vpn(7), 2);
        uses.forget(7);
        assert_eq!((&uses.areas[0].pages[..], uses.child(Random::of(2)).known.len()), (&[8][..], 1));
        uses.areas[0].cuts[0].due = 5.0;
        assert_eq!(uses.due(1), [8; 5]);
    }
}
