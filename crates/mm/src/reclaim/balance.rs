//! How many pages of each list a pass looks at: a part of it that doubles with every priority, divided between anonymous
//! memory and files by `vm.swappiness` and by what reclaiming either cost of late (`get_scan_count`, as since 5.8; older
//! kernels weigh by pages that were rotated among those scanned, which comes to much the same and is not told apart).

use crate::ground::PAGE_SHIFT;
use crate::lru::{LruList, SWAP_CLUSTER_MAX};

/// Base pages by [`LruList`].
pub(super) type PerList = [u32; LruList::COUNT];

/// What the target's lists looked like as a pass began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct View {
    /// Whether active pages may age: anonymous ones, those of files.
    pub(super) may_age: [bool; 2],
    pub(super) cache: Cache,
    pub(super) trims: Trims,
    /// What anonymous pages and those of files cost of late.
    pub(super) cost: [u32; 2],
}

/// How much there is of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Cache {
    #[default]
    Ordinary,
    /// Plenty that nobody uses: no need to swap.
    Plenty,
    /// So little that taking it would only bring it back at once.
    Tiny,
}

/// Whether plenty of unused pages of files spares anonymous ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Trims {
    #[default]
    Cache,
    /// That was tried, and nothing could be freed.
    Nothing,
}

/// A node's or zone's memory, in base pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlaceMemory {
    pub(super) file: u32,
    pub(super) inactive_anon: u32,
    pub(super) free: u32,
    /// The high marks of its zones together.
    pub(super) high: u32,
}

/// What a view is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    pub(super) sizes: PerList,
    pub(super) priority: u32,
    pub(super) may_age: [bool; 2],
    pub(super) trims: Trims,
}

impl Looks {
    /// `memory`: where the whole machine is short.
    pub(super) fn view(self, memory: Option<PlaceMemory>, cost: [u32; 2]) -> View {
        let Self { sizes, priority, may_age, trims } = self;
        let [anon_ages, file_ages] = may_age;
        let is_tiny = |memory: PlaceMemory| {
            memory.file + memory.free <= memory.high && !anon_ages && memory.inactive_anon >> priority > 0
        };
        let has_unused = sizes[LruList::InactiveFile.index()] >> priority > 0 && !file_ages;
        let cache = match memory {
            Some(memory) if is_tiny(memory) => Cache::Tiny,
            _ if has_unused && trims == Trims::Cache => Cache::Plenty,
            _ => Cache::Ordinary,
        };
        View { may_age, cache, trims, cost }
    }
}

/// Whose pages are too many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whose {
    Machine,
    Group,
}

/// What of a group is protected, and what it has, in base pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Kept {
    pub(super) pages: u64,
    pub(super) of: u64,
}

impl Kept {
    /// The part of `size` pages that may be looked at: at least 32 of a protected group.
    pub(super) fn rest(self, size: u32) -> u32 {
        if self.pages == 0 {
            return size;
        }
        let kept = u64::from(size) * self.pages / (self.of.max(self.pages) + 1);
        (size - kept as u32).max(SWAP_CLUSTER_MAX as u32)
    }
}

/// What the division goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighing {
    pub(super) priority: u32,
    /// 0 to 200, of which 100 weighs both alike.
    pub(super) swappiness: u32,
    /// Whether anonymous pages have anywhere to go.
    pub(super) room_for_anon: bool,
    pub(super) whose: Whose,
    pub(super) view: View,
    pub(super) kept: Kept,
}

/// Whose pages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Share {
    /// So much of each kind as its size says.
    Equal,
    Anon,
    File,
    /// Shares of the first (anonymous) and the second (files) of their sum.
    Parts(u64, u64),
}

/// Pages to look at, of each list.
pub(super) fn scan_counts(sizes: PerList, by: Weighing) -> PerList {
    let share = share(by);
    let mut counts = [0; LruList::COUNT];
    for list in LruList::ALL {
        let part = u64::from(by.kept.rest(sizes[list.index()]) >> by.priority);
        let pages = match (share, list.is_file()) {
            (Share::Equal, _) | (Share::Anon, false) | (Share::File, true) => part,
            (Share::Anon, true) | (Share::File, false) => 0,
            (Share::Parts(anon, file), false) => part * anon / (anon + file),
            (Share::Parts(anon, file), true) => part * file / (anon + file),
        };
        counts[list.index()] = pages as u32;
    }
    counts
}

fn share(by: Weighing) -> Share {
    if !by.room_for_anon || by.whose == Whose::Group && by.swappiness == 0 {
        return Share::File;
    }
    if by.priority == 0 && by.swappiness > 0 {
        return Share::Equal;
    }
    match by.view.cache {
        Cache::Tiny => return Share::Anon,
        Cache::Plenty => return Share::File,
        Cache::Ordinary => {}
    }
    let [anon, file] = by.view.cost.map(u64::from);
    let (anon_cost, file_cost) = (anon + file + anon, anon + file + file);
    let sum = anon_cost + file_cost;
    let weigh = |weight: u32, cost: u64| u64::from(weight) * (sum + 1) / (cost + 1);
    Share::Parts(weigh(by.swappiness, anon_cost), weigh(200 - by.swappiness, file_cost))
}

/// Whether the inactive list of `list`'s kind is so short against the active one that pages should move over: 1 to the
/// root of ten times their GiB.
pub(super) fn inactive_is_low(sizes: PerList, list: LruList) -> bool {
    let (inactive, active) = (sizes[list.inactive().index()], sizes[list.active().index()]);
    let gib = (u64::from(inactive) + u64::from(active)) >> (30 - PAGE_SHIFT);
    let ratio = if gib == 0 { 1 } else { (10 * gib).isqrt() };
    u64::from(inactive) * ratio < u64::from(active)
}

/// While much more of one kind has been looked at than was asked for, what is left to look at of each list: nothing of
/// the kind of which less is left, and of the other as much in proportion (`shrink_lruvec`). `None`: all of one kind is done.
pub(super) fn rest_in_proportion(targets: PerList, left: PerList) -> Option<PerList> {
    let sum = |of: &PerList, is_file: bool| -> u32 {
        LruList::ALL.into_iter().filter(|list| list.is_file() == is_file).map(|list| of[list.index()]).sum()
    };
    let (anon_left, file_left) = (sum(&left, false), sum(&left, true));
    if anon_left == 0 || file_left == 0 {
        return None;
    }
    let file_is_less = file_left <= anon_left;
    let less_left = if file_is_less { file_left } else { anon_left };
    let percent_left = u64::from(less_left) * 100 / (u64::from(sum(&targets, file_is_less)) + 1);
    let mut rest = left;
    for list in LruList::ALL {
        let (target, left) = (targets[list.index()], left[list.index()]);
        rest[list.index()] = if list.is_file() == file_is_less {
            0
        } else {
            let wanted = (u64::from(target) * (100 - percent_left.min(100)) / 100) as u32;
            wanted.saturating_sub(target - left)
        };
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Weighing = Weighing {
        priority: 2,
        swappiness: 100,
        room_for_anon: true,
        whose: Whose::Machine,
        view: View { may_age: [false; 2], cache: Cache::Ordinary, trims: Trims::Cache, cost: [0; 2] },
        kept: Kept { pages: 0, of: 0 },
    };

    /// As a machine with so much free and these high marks sees lists of which none had refaults.
    fn seen(sizes: PerList, free: u32, high: u32) -> PerList {
        let may_age = [LruList::InactiveAnon, LruList::InactiveFile].map(|list| inactive_is_low(sizes, list));
        let looks = Looks { sizes, priority: EVEN.priority, may_age, trims: Trims::Cache };
        let memory = PlaceMemory { file: sizes[2] + sizes[3], inactive_anon: sizes[0], free, high };
        scan_counts(sizes, Weighing { view: looks.view(Some(memory), [0; 2]), ..EVEN })
    }

    #[test]
    fn a_pass_looks_at_a_part_of_each_list() {
        // Few inactive pages of files: both kinds count.
        let sizes = [400, 800, 400, 1200];
        assert_eq!(scan_counts(sizes, EVEN), [50, 100, 50, 150]);
        assert_eq!(scan_counts(sizes, Weighing { priority: 12, ..EVEN }), [0; 4]);
        assert_eq!(scan_counts(sizes, Weighing { priority: 0, ..EVEN }), sizes);
    }

    #[test]
    fn without_swap_only_files_are_looked_at() {
        let counts = scan_counts([400, 800, 400, 1200], Weighing { room_for_anon: false, ..EVEN });
        assert_eq!(counts, [0, 0, 100, 300]);
    }

    #[test]
    fn swappiness_divides_and_cost_shifts() {
        let sizes = [400, 400, 400, 1200];
        let sixty = scan_counts(sizes, Weighing { swappiness: 60, ..EVEN });
        assert_eq!(sixty, [30, 30, 70, 210]);
        let view = View { cost: [1000, 0], ..EVEN.view };
        let dear = scan_counts(sizes, Weighing { swappiness: 60, view, ..EVEN });
        assert!(dear[0] < sixty[0] && dear[2] > sixty[2], "{dear:?}");
        assert_eq!(scan_counts(sizes, Weighing { swappiness: 0, ..EVEN })[..2], [0, 0]);
    }

    #[test]
    fn unused_cache_goes_before_anonymous_memory() {
        assert_eq!(seen([400, 400, 1200, 400], 1000, 100), [0, 0, 300, 100]);
        // But not the last of it.
        assert_eq!(seen([400, 400, 1200, 400], 10, 5000), [100, 100, 0, 0]);
    }

    #[test]
    fn shares_of_both_kinds_are_rounded_down() {
        // Few inactive pages of files, so that both kinds count: 60 and 140 of 200 parts of 2 pages.
        let counts = scan_counts([8, 8, 8, 12], Weighing { swappiness: 60, ..EVEN });
        assert_eq!(counts, [0, 0, 1, 2]);
    }

    #[test]
    fn few_pages_of_files_are_spared_only_while_anonymous_ones_wait_to_go() {
        assert_eq!(seen([400, 400, 1200, 400], 10, 5000), [100, 100, 0, 0]);
        assert_eq!(seen([399, 400, 1200, 400], 10, 5000), [0, 0, 300, 100], "they have to age first");
    }

    #[test]
    fn a_protected_group_gives_of_what_is_beyond() {
        let sizes = [0, 0, 4000, 0];
        let of = |kept: u64| scan_counts(sizes, Weighing { kept: Kept { pages: kept, of: 4000 }, ..EVEN })[2];
        // 3999 of 4001 parts of 2000 pages are kept, and so on; half of what is looked at is for anonymous pages.
        assert_eq!([0, 1000, 2000, 5000].map(of), [500, 375, 250, 4]);
    }

    #[test]
    fn in_a_group_nothing_is_swapped_at_swappiness_0() {
        let last = Weighing { priority: 0, swappiness: 0, whose: Whose::Group, ..EVEN };
        assert_eq!(scan_counts([100, 100, 100, 100], last), [0, 0, 100, 100]);
    }

    #[test]
    fn the_inactive_list_may_be_shorter_the_larger_both_are() {
        assert!(!inactive_is_low([0, 0, 100, 100], LruList::ActiveFile));
        assert!(inactive_is_low([0, 0, 99, 100], LruList::InactiveFile));
        // 10 GiB in all: one to ten.
        let gib = 1 << 18;
        assert!(!inactive_is_low([gib, 9 * gib, 0, 0], LruList::ActiveAnon));
        assert!(inactive_is_low([gib / 2, 9 * gib + gib / 2, 0, 0], LruList::ActiveAnon));
    }

    #[test]
    fn what_is_left_stays_in_proportion() {
        // Of files a quarter is left: they are let be, and three quarters of the rest is looked at in all.
        assert_eq!(rest_in_proportion([100, 100, 400, 0], [50, 50, 100, 0]), Some([26, 26, 0, 0]));
        assert_eq!(rest_in_proportion([100, 100, 400, 0], [50, 50, 0, 0]), None);
    }
}
