//! Which refill of mm's answers which of the kernel's, and the same of drains. A few blocks on a list of which a trace
//! says nothing make mm refill or drain that many requests earlier or later; that is no disagreement.

use super::super::counts::{DrainAt, SLACK};
use super::super::lists::ListId;

/// Whether two drains are the same. A drain takes as many pages as were freed of late: one that comes some frees later
/// may take that many more, up to the end of a block. `blur` is how many frees later than it was a kernel's drain may
/// appear.
pub(super) fn is_same(kernel: DrainAt, mm: DrainAt, blur: u32) -> bool {
    let apart = kernel.freed.abs_diff(mm.freed) + blur;
    kernel.pages.abs_diff(mm.pages) <= if apart == 0 { 0 } else { apart + 7 }
}

/// A refill that was matched, or was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RefillMatch {
    /// The kernel's refill of that number, and the blocks of mm's.
    Both { kernel: u32, mm: u32 },
    /// mm did not refill.
    Kernel { kernel: u32 },
    /// The kernel did not.
    Mm { list: ListId, mm: u32 },
    /// One that was a disagreement already.
    Excused,
}

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Requests so far.
    requests: u32,
    /// A refill of the kernel's that mm has not done, and after how many requests it was.
    kernel: Option<(u32, u32)>,
    /// A refill of mm's that the kernel has not done.
    mm: Option<(u32, u32)>,
    /// mm's next refill was judged before it came.
    excused: bool,
}

/// Refills under way, by list.
#[derive(Clone, Debug)]
pub(super) struct Refills {
    lists: Vec<Waiting>,
    numbers: Vec<ListId>,
}

impl Refills {
    pub(super) fn new(lists: usize) -> Self {
        let numbers = (0..lists as u32).map(ListId::from_index).collect();
        Self { lists: vec![Waiting::default(); lists], numbers }
    }

    /// Whether mm has done the refill that the kernel does now.
    pub(super) fn came_early(&self, list: ListId) -> bool {
        let waiting = &self.lists[list.index()];
        waiting.mm.is_some_and(|(_, at)| waiting.requests - at <= SLACK)
    }

    /// The refill of `list` that comes next was judged.
    pub(super) fn excuse(&mut self, list: ListId) {
        self.lists[list.index()].excused = true;
    }

    /// A block was taken from `list`, for which the kernel did its refill number `kernel` and mm one of `mm` blocks.
    pub(super) fn taken(&mut self, list: ListId, kernel: Option<u32>, mm: Option<u32>) -> Vec<RefillMatch> {
        let waiting = &mut self.lists[list.index()];
        waiting.requests += 1;
        let mut matched = vec![];
        if kernel.is_none() && mm.is_none() && waiting.mm.is_none() {
            return matched;
        }
        if std::mem::take(&mut waiting.excused) {
            return vec![RefillMatch::Excused];
        }
        if let Some((blocks, at)) = waiting.mm.filter(|(_, at)| waiting.requests - at > SLACK + 1) {
            debug_assert!(at < waiting.requests);
            matched.push(RefillMatch::Mm { list, mm: blocks });
            waiting.mm = None;
        }
        let kernel = waiting.add_kernel(kernel, &mut matched);
        let mm =
            mm.or_else(|| kernel.is_some().then(|| waiting.mm.take().map(|(blocks, _)| blocks)).flatten());
        match (kernel, mm) {
            (Some(kernel), Some(mm)) => matched.push(RefillMatch::Both { kernel, mm }),
            (Some(kernel), None) => waiting.kernel = Some((kernel, waiting.requests)),
            (None, Some(mm)) => waiting.mm = Some((mm, waiting.requests)),
            (None, None) => {}
        }
        matched
    }

    /// What was never answered.
    pub(super) fn finish(&mut self) -> Vec<RefillMatch> {
        let mut left = vec![];
        for (waiting, list) in self.lists.iter_mut().zip(&self.numbers) {
            if let Some((kernel, _)) = waiting.kernel.take() {
                left.push(RefillMatch::Kernel { kernel });
            }
            if let Some((mm, _)) = waiting.mm.take() {
                left.push(RefillMatch::Mm { list: *list, mm });
            }
        }
        left
    }
}

impl Waiting {
    /// The kernel's refill to answer now: that of this request, or one that waits. One that waits while another comes is
    /// without an answer.
    fn add_kernel(&mut self, now: Option<u32>, matched: &mut Vec<RefillMatch>) -> Option<u32> {
        let waits = self.kernel.take().map(|(kernel, _)| kernel);
        match (waits, now) {
            (Some(waits), Some(now)) => {
                matched.push(RefillMatch::Kernel { kernel: waits });
                Some(now)
            }
            (waits, now) => now.or(waits),
        }
    }
}

/// Puts each drain of the kernel's beside mm's of the same moment. Where a trace does not say when pages freed together
/// reach the pageset, several drains of one side may be one of the other's.
pub(super) fn pair_drains(
    kernel: &[DrainAt],
    mm: &[DrainAt],
    blur: u32,
) -> Vec<(Option<DrainAt>, Option<DrainAt>)> {
    let of = |drains: &[DrainAt], by_tick: bool| -> Vec<DrainAt> {
        drains.iter().copied().filter(|drain| drain.by_tick == by_tick).collect()
    };
    let mut pairs = pair_of_a_cause(of(kernel, false), of(mm, false), blur);
    pairs.extend(pair_of_a_cause(of(kernel, true), of(mm, true), blur));
    pairs
}

fn pair_of_a_cause(
    kernel: Vec<DrainAt>,
    mm: Vec<DrainAt>,
    blur: u32,
) -> Vec<(Option<DrainAt>, Option<DrainAt>)> {
    let mut pairs = vec![];
    let (mut kernel, mut mm) = (kernel.into_iter().peekable(), mm.into_iter().peekable());
    loop {
        match (kernel.peek().copied(), mm.peek().copied()) {
            (Some(one), Some(other)) if one.is_near(&other) => {
                let mut pair = (one, other);
                kernel.next();
                mm.next();
                while !is_same(pair.0, pair.1, blur) {
                    let (short, rest) = if pair.0.pages < pair.1.pages {
                        (&mut pair.0, &mut kernel)
                    } else {
                        (&mut pair.1, &mut mm)
                    };
                    let wanted = one.pages.max(other.pages);
                    let fits = |next: &DrainAt| {
                        next.freed.abs_diff(short.freed) <= SLACK / 2 && short.pages + next.pages <= wanted
                    };
                    let Some(next) = rest.next_if(fits) else { break };
                    short.pages += next.pages;
                }
                pairs.push((Some(pair.0), Some(pair.1)));
            }
            (Some(one), other) if other.is_none_or(|other| one.freed < other.freed) => {
                kernel.next();
                pairs.push((Some(one), None));
            }
            (_, Some(other)) => {
                mm.next();
                pairs.push((None, Some(other)));
            }
            (_, None) => return pairs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: ListId = ListId::from_index(0);

    #[test]
    fn refills_at_one_request_or_a_few_apart_are_the_same() {
        let mut refills = Refills::new(1);
        let both = |kernel, mm| vec![RefillMatch::Both { kernel, mm }];
        assert_eq!(refills.taken(LIST, Some(0), Some(63)), both(0, 63));
        assert_eq!(refills.taken(LIST, None, Some(126)), []);
        assert!(refills.came_early(LIST));
        assert_eq!(refills.taken(LIST, Some(1), None), both(1, 126));
        assert_eq!(refills.taken(LIST, Some(2), None), []);
        assert_eq!(refills.taken(LIST, None, None), []);
        assert_eq!(refills.taken(LIST, None, Some(5)), both(2, 5));
        assert_eq!(refills.finish(), []);
    }

    #[test]
    fn refills_far_apart_are_two_disagreements() {
        let mut refills = Refills::new(1);
        assert_eq!(refills.taken(LIST, None, Some(63)), []);
        for _ in 0..=SLACK {
            assert_eq!(refills.taken(LIST, None, None), []);
        }
        assert!(!refills.came_early(LIST));
        assert_eq!(refills.taken(LIST, None, None), [RefillMatch::Mm { list: LIST, mm: 63 }]);
        assert_eq!(refills.taken(LIST, Some(7), None), []);
        assert_eq!(refills.finish(), [RefillMatch::Kernel { kernel: 7 }]);
    }

    #[test]
    fn drains_are_paired_by_what_was_freed_before() {
        let at = |freed, pages| DrainAt { step: 0, frees: freed, freed, pages, by_tick: false };
        let pairs = pair_drains(
            &[at(100, 63), at(900, 126)],
            &[at(90, 63), at(870, 63), at(899, 63), at(2000, 63)],
            0,
        );
        let pages: Vec<_> = pairs.iter().map(|(k, m)| (k.map(|d| d.pages), m.map(|d| d.pages))).collect();
        assert_eq!(pages, [(Some(63), Some(63)), (Some(126), Some(126)), (None, Some(63))]);
    }
}
