//! How many pages of each list a pass looks at: a part of it that doubles with every priority, divided between anonymous
//! memory and files by `vm.swappiness` and by what reclaiming either cost of late (`get_scan_count`, as since 5.8; older
//! kernels weigh by pages that were rotated among those scanned, which comes to much the same and is not told apart).

use crate::ground::PAGE_SHIFT;
use crate::lru::LruList;

/// Base pages by [`LruList`].
pub(super) type PerList = [u32; LruList::COUNT];

/// What the division goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighing {
    pub(super) priority: u32,
    /// 0 to 200, of which 100 weighs both alike.
    pub(super) swappiness: u32,
    /// Whether anonymous pages have anywhere to go.
    pub(super) room_for_anon: bool,
    /// What anonymous pages and those of files cost of late.
    pub(super) cost: [u32; 2],
    /// Free pages of the node, and the high marks of its zones together.
    pub(super) free: u32,
    pub(super) high: u32,
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
    let share = share(sizes, by);
    let mut counts = [0; LruList::COUNT];
    for list in LruList::ALL {
        let part = u64::from(sizes[list.index()] >> by.priority);
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

fn share(sizes: PerList, by: Weighing) -> Share {
    let size = |list: LruList| sizes[list.index()];
    if !by.room_for_anon {
        return Share::File;
    }
    if by.priority == 0 && by.swappiness > 0 {
        return Share::Equal;
    }
    let file = size(LruList::InactiveFile) + size(LruList::ActiveFile);
    // So few pages of files are left that taking them would only bring them back at once.
    let file_is_tiny = file + by.free <= by.high
        && size(LruList::InactiveAnon) >> by.priority > 0
        && !inactive_is_low(sizes, LruList::InactiveAnon);
    if file_is_tiny {
        return Share::Anon;
    }
    // Plenty of pages of files that nobody uses: no need to swap.
    let trims_cache =
        size(LruList::InactiveFile) >> by.priority > 0 && !inactive_is_low(sizes, LruList::InactiveFile);
    if trims_cache || by.swappiness == 0 {
        return Share::File;
    }
    let total = u64::from(by.cost[0]) + u64::from(by.cost[1]);
    let (anon_cost, file_cost) = (total + u64::from(by.cost[0]), total + u64::from(by.cost[1]));
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

    const EVEN: Weighing =
        Weighing { priority: 2, swappiness: 100, room_for_anon: true, cost: [0, 0], free: 1000, high: 100 };

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
        let dear = scan_counts(sizes, Weighing { swappiness: 60, cost: [1000, 0], ..EVEN });
        assert!(dear[0] < sixty[0] && dear[2] > sixty[2], "{dear:?}");
        assert_eq!(scan_counts(sizes, Weighing { swappiness: 0, ..EVEN })[..2], [0, 0]);
    }

    #[test]
    fn unused_cache_goes_before_anonymous_memory() {
        assert_eq!(scan_counts([400, 400, 1200, 400], EVEN), [0, 0, 300, 100]);
        // But not the last of it.
        let short = Weighing { free: 10, high: 5000, ..EVEN };
        assert_eq!(scan_counts([400, 400, 1200, 400], short), [100, 100, 0, 0]);
    }

    #[test]
    fn shares_of_both_kinds_are_rounded_down() {
        // Few inactive pages of files, so that both kinds count: 60 and 140 of 200 parts of 2 pages.
        let counts = scan_counts([8, 8, 8, 12], Weighing { swappiness: 60, ..EVEN });
        assert_eq!(counts, [0, 0, 1, 2]);
    }

    #[test]
    fn few_pages_of_files_are_spared_only_while_anonymous_ones_wait_to_go() {
        let short = Weighing { free: 10, high: 5000, ..EVEN };
        assert_eq!(scan_counts([400, 400, 1200, 400], short), [100, 100, 0, 0]);
        assert_eq!(scan_counts([399, 400, 1200, 400], short), [0, 0, 300, 100], "they have to age first");
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
