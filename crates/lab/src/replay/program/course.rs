//! Which pages a process uses next, where the recording has looked page by page.
//!
//! Of each page it is known when it was first used after its accessed bit was cleared. These uses come again, at the same part of the own
//! time between two clearings. Of further ones a recording shows nothing. But a page that came back soon after this clearing, and soon
//! after those before and after it, is **assumed** to have come back all the time in between, each time that the longest of these delays had
//! passed. A page that was new in the period comes back in twice the delay that it has after the next clearing: on average a clearing falls into
//! the middle between two uses. Pages that were gone over in order, many side by side, are not taken to come back before that is seen.
//! Of pages that were seen in one period alone, how fast new ones come says how often others come back, where the periods around it are too short, or there are
//! none, to say that they do not ([`Single::come_back_at_random`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::logarithm::minus_ln;
use crate::program::UsedPeriod;
use crate::stage::Random;

/// No page is used more often than once in so much own time, ns: it stays where it is anyway.
const EVERY_NS_MIN: u64 = 8_000_000;
/// So many pages side by side that were used since one look were gone over in order.
const IN_ORDER_PAGES: u32 = 32;
/// Fewer pages do not say how fast new ones come.
const FEW_PAGES: usize = 64;

/// A use of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Use {
    /// Own time of the process since the period began, ns.
    at_ns: u64,
    page: u32,
    /// Whether it was one of many pages that lie side by side and were used one after the other.
    is_in_order: bool,
}

/// What a process uses from one clearing to the next.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// In the order of time.
    uses: Vec<Use>,
    /// The next of them.
    next: usize,
    /// Uses of pages that came in the period, the next on top.
    of_new: BinaryHeap<Reverse<Use>>,
    /// Of each page, how long after the next clearing it was used first, ns.
    delays: BTreeMap<u32, Option<u64>>,
    /// Own time in the period, ns.
    own_ns: u64,
    /// The process's own time when it began, ns.
    began_ns: u64,
    /// Whether the recording tells of no later one.
    is_last: bool,
}

/// A period with those before and after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periods<'a> {
    pub(super) before: Option<&'a UsedPeriod>,
    pub(super) now: &'a UsedPeriod,
    pub(super) next: Option<&'a UsedPeriod>,
}

impl Course {
    /// That of a period that begins at `began_ns` of the process's own time. `None` where pages were not told apart.
    pub(super) fn of(periods: Periods<'_>, began_ns: u64) -> Option<Self> {
        let Periods { before, now, next } = periods;
        if now.looks.is_empty() || now.own_ns == 0 {
            return None;
        }
        let around = [before, next].into_iter().flatten().filter(|other| !other.looks.is_empty());
        let around_ns = around.map(|other| other.own_ns).sum();
        let [before, delays] = [before, next].map(delays);
        let mut uses = first_uses(now);
        let mut single = vec![];
        for number in 0..uses.len() {
            let first = uses[number];
            let others = [before.get(&first.page), delays.get(&first.page)];
            let Some(every) = interval(first, others) else {
                single.extend((!first.is_in_order && others == [None; 2]).then_some(first));
                continue;
            };
            let times = (now.own_ns - first.at_ns.min(now.own_ns)).div_ceil(every);
            let again = (1..times).map(|time| first.at_ns + time * every);
            uses.extend(again.map(|at_ns| Use { at_ns, ..first }));
        }
        uses.extend(Single { own_ns: now.own_ns, around_ns, firsts: single }.come_back_at_random());
        uses.sort_unstable();
        let of_new = BinaryHeap::new();
        Some(Self { uses, next: 0, of_new, delays, own_ns: now.own_ns, began_ns, is_last: next.is_none() })
    }

    /// A page came by a touch of the program's at `now_ns`. One that is used soon after the next clearing is used as often until then.
    pub(super) fn came(&mut self, page: u32, now_ns: u64) {
        self.again(page, now_ns.saturating_sub(self.began_ns));
    }

    /// A new page was used at a time of the period: when it is used next.
    fn again(&mut self, page: u32, at_ns: u64) {
        let Some(&Some(delay)) = self.delays.get(&page) else { return };
        let every = 2 * delay.max(EVERY_NS_MIN / 2);
        if at_ns + every < self.own_ns {
            self.of_new.push(Reverse(Use { at_ns: at_ns + every, page, is_in_order: false }));
        }
    }

    /// Pages whose use is due when the process has had `now_ns` of own time, added to `due`. `came` says when a page came.
    pub(super) fn add_due(&mut self, now_ns: u64, came: impl Fn(u32) -> Option<u64>, due: &mut Vec<u32>) {
        let passed = now_ns.saturating_sub(self.began_ns);
        while let Some(next) = self.uses.get(self.next).filter(|next| next.at_ns <= passed) {
            self.next += 1;
            // Of a page that came meanwhile, that is its first touch.
            let is_old = came(next.page).is_none_or(|at| at < self.began_ns);
            due.extend(is_old.then_some(next.page));
        }
        while let Some(&Reverse(Use { at_ns, page, .. })) =
            self.of_new.peek().filter(|next| next.0.at_ns <= passed)
        {
            self.of_new.pop();
            due.push(page);
            self.again(page, at_ns);
        }
    }

    /// If the last period is over, it begins anew: nothing else is known of what comes.
    pub(super) fn repeat(&mut self, now_ns: u64) {
        if self.is_last && self.next == self.uses.len() && now_ns.saturating_sub(self.began_ns) >= self.own_ns
        {
            (self.next, self.began_ns) = (0, now_ns);
        }
    }
}

/// How often a page is used in a period in which it was first used at `first`, ns, where it is known of the periods around it when it was used
/// first in them, if at all. `None`: nothing says that it was used again.
fn interval(first: Use, others: [Option<&Option<u64>>; 2]) -> Option<u64> {
    if first.is_in_order || others == [None; 2] {
        return None;
    }
    let delays = others.into_iter().flatten();
    delays.copied().try_fold(first.at_ns.max(EVERY_NS_MIN), |most, delay| Some(most.max(delay?)))
}

/// Pages that were seen in one period and not in those around it.
#[derive(Debug)]
struct Single {
    /// Own time of the period, ns.
    own_ns: u64,
    /// Own time of those around it in which pages were looked at, ns.
    around_ns: u64,
    /// Their first uses, but for those that came in order.
    firsts: Vec<Use>,
}

impl Single {
    /// Further uses of them: they are **assumed** to be used at random, each as often as any other. Then fewer and fewer come for the first time, as many in
    /// the second half of the period as in the first times `exp(-n/2)`, if each is used `n` times in all of it. What is gone over once comes as fast in
    /// both, and so does not come back; and what would have been used in the time around does not, for it was not. The times are drawn by the pages'
    /// numbers.
    fn come_back_at_random(self) -> Vec<Use> {
        let Self { own_ns, around_ns, firsts } = self;
        let late = firsts.iter().filter(|first| first.at_ns >= own_ns / 2).count();
        let early = firsts.len() - late;
        if early < FEW_PAGES || late >= early {
            return vec![];
        }
        let every_ns = own_ns as f64 / (2.0 * minus_ln(late.max(1) as f64 / early as f64));
        if around_ns as f64 > every_ns {
            return vec![];
        }
        let mut uses = vec![];
        for first in firsts {
            let mut random = Random::of(first.page.into());
            let mut wait = || every_ns * minus_ln((random.below(1 << 32) + 1) as f64 / (1_u64 << 32) as f64);
            let mut at_ns = first.at_ns + (wait() as u64).max(EVERY_NS_MIN);
            while at_ns < own_ns {
                uses.push(Use { at_ns, ..first });
                at_ns += (wait() as u64).max(EVERY_NS_MIN);
            }
        }
        uses
    }
}

/// How long after a period's beginning each page was used first, ns; `None` of those that were gone over in order.
fn delays(period: Option<&UsedPeriod>) -> BTreeMap<u32, Option<u64>> {
    let all = period.into_iter().flat_map(first_uses);
    all.map(|first| (first.page, (!first.is_in_order).then_some(first.at_ns))).collect()
}

/// First uses of pages, each somewhere between the look that has found it and the one before.
fn first_uses(period: &UsedPeriod) -> Vec<Use> {
    let cpu_ns = period.cpu_ns().max(1);
    // The kernel's part is not in the own time.
    let own = |at: u64| (u128::from(at) * u128::from(period.own_ns) / u128::from(cpu_ns)) as u64;
    let mut uses = vec![];
    let mut from = 0;
    for (number, look) in period.looks.iter().enumerate() {
        let until = own(look.until_ns);
        let count: u64 = look.pages.iter().map(|range| u64::from(range.pages)).sum();
        let pages = look.pages.iter().flat_map(|range| {
            // By the first look they may have been gone over many times.
            let is_in_order = number > 0 && range.pages >= IN_ORDER_PAGES;
            (range.start.0..range.start.0 + range.pages).map(move |page| (page, is_in_order))
        });
        uses.extend(pages.zip(1..).map(|((page, is_in_order), number)| Use {
            at_ns: from + (until.max(from) - from) * number / (count + 1),
            page,
            is_in_order,
        }));
        from = until;
    }
    uses
}

#[cfg(test)]
mod tests {
    use mm::vm::Vpn;

    use super::*;
    use crate::program::{PageRange, UsedLook};

    const MS: u64 = 1_000_000;

    /// Looks at these ms of CPU time, each with pages; half of the time is the program's own.
    fn period(looks: &[(u64, &[(u32, u32)])]) -> UsedPeriod {
        let range = |&(start, pages): &(u32, u32)| PageRange { start: Vpn(start), pages };
        let look = |&(until, pages): &(u64, &[(u32, u32)])| UsedLook {
            until_ns: until * MS,
            pages: pages.iter().map(range).collect(),
        };
        let looks: Vec<UsedLook> = looks.iter().map(look).collect();
        UsedPeriod { own_ns: looks.last().map_or(0, |last| last.until_ns / 2), looks }
    }

    /// Uses of `page`, in whole ms of own time, in a course that began at 1 s.
    fn uses_of(course: &mut Course, page: u32, came: Option<u64>) -> Vec<u64> {
        let times = (0..=1000).filter(|ms| {
            let mut due = vec![];
            course.add_due(1000 * MS + ms * MS, |_| came, &mut due);
            course.repeat(1000 * MS + ms * MS);
            due.contains(&page)
        });
        times.collect()
    }

    fn course(before: Option<&UsedPeriod>, now: &UsedPeriod, next: Option<&UsedPeriod>) -> Course {
        Course::of(Periods { before, now, next }, 1000 * MS).unwrap()
    }

    #[test]
    fn uses_come_in_the_order_and_at_the_times_that_looks_have_found() {
        let now = period(&[(20, &[(7, 1)]), (40, &[(100, 3)]), (200, &[(0, 0)])]);
        let next = period(&[(200, &[])]);
        let mut course = course(None, &now, Some(&next));
        let mut due = vec![];
        course.add_due(1005 * MS, |_| None, &mut due);
        assert_eq!(due, [7], "own time is half of the CPU time, and a use is within it");
        course.add_due(1020 * MS, |_| None, &mut due);
        assert_eq!(due, [7, 100, 101, 102]);
        course.repeat(5000 * MS);
        course.add_due(5000 * MS, |_| None, &mut due);
        assert_eq!(due.len(), 4, "something else follows");
        assert!(Course::of(Periods { before: None, now: &UsedPeriod::default(), next: None }, 0).is_none());
    }

    #[test]
    fn what_comes_back_soon_after_clearings_comes_back_in_between() {
        let now = period(&[(40, &[(7, 1), (8, 1)]), (200, &[])]);
        let next = period(&[(60, &[(7, 1)]), (200, &[])]);
        // After 10 ms here and after 15 ms there.
        let mut both = course(None, &now, Some(&next));
        assert_eq!(uses_of(&mut both, 7, None), [7, 22, 37, 52, 67, 82, 97]);
        let mut once = course(None, &now, Some(&next));
        assert_eq!(uses_of(&mut once, 8, None), [14], "nothing says so of it");
        // It was new: it is used in twice the delay, from then on.
        let mut new = course(None, &now, Some(&next));
        new.came(7, 1010 * MS);
        assert_eq!(uses_of(&mut new, 7, Some(1010 * MS)), [40, 70]);
    }

    #[test]
    fn pages_that_were_gone_over_in_order_wait_for_their_next_turn() {
        let now = period(&[(20, &[(0, 1)]), (100, &[(100, 40)]), (400, &[])]);
        let mut course = course(Some(&now), &now, Some(&now));
        assert_eq!(uses_of(&mut course, 120, None).len(), 1);
    }

    /// Pages of which as many come in each part of a period, and pages of which fewer and fewer come.
    #[test]
    fn pages_of_a_single_period_come_back_as_fast_as_fewer_new_ones_come() {
        let apart = |first: u32, count: u32| (0..count).map(move |page| (first + 2 * page, 1));
        let [a, b, c] =
            [(0, 400), (1000, 400), (2000, 54)].map(|(first, count)| apart(first, count).collect::<Vec<_>>());
        let again = |second: &[(u32, u32)], next: Option<&UsedPeriod>| {
            let now = period(&[(1000, &a), (2000, second)]);
            let mut due = vec![];
            course(None, &now, next).add_due(u64::MAX, |_| None, &mut due);
            due.len() - 400 - second.len()
        };
        assert_eq!(again(&b, None), 0);
        // 54 after 400: each is used 2 ln(400 / 54) = 4 times in the period, and on average for half of it more than 400 of them are known.
        let often = again(&c, None);
        assert!(
            (1050..1300).contains(&often),
            "400 pages for three quarters of the time, 54 for a quarter: 1255; {often}"
        );
        let [short, long] = [400, 600].map(|ms| period(&[(ms, &[])]));
        assert_eq!(
            again(&c, Some(&short)),
            often,
            "200 ms of own time are less than the 250 until it is used again"
        );
        assert_eq!(again(&c, Some(&long)), 0, "it would have been seen in the next period");
    }

    #[test]
    fn the_last_period_goes_on() {
        let now = period(&[(200, &[(7, 1)])]);
        assert_eq!(uses_of(&mut course(None, &now, None), 7, None)[..3], [50, 150, 250]);
    }
}
