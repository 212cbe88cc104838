//! Reclaim over the groups of a tree (`shrink_node_memcgs`), and in one that is too large (`try_to_free_mem_cgroup_pages`).
//!
//! Requests that reclaim for themselves go on where the last one stopped, and end when they have enough, as since 6.12; before
//! that each looked at all groups, which is not told apart here.

use alloc::collections::BTreeMap;

use super::pressure::tell_of_priority;
use super::{DEF_PRIORITY, Effort, Met, ReclaimDoor, ReclaimGround, Reclaimer, Scan, Skipped};
use crate::ground::{Machine, Node, Order, ZoneKind};
use crate::lru::{SWAP_CLUSTER_MAX, VecId};
use crate::memcg::{GroupAsk, GroupEvent, GroupId};

/// By the group that is reclaimed and the node or zone: the group that was last looked at.
pub(super) type Cursors = BTreeMap<(GroupId, usize), GroupId>;

impl<M: Machine, G: ReclaimGround<M>> ReclaimDoor<'_, M, G> {
    /// One pass over the lists of the scan's target and of the groups below it.
    pub(super) fn shrink_groups(self, scan: &mut Scan) {
        self.look_at(scan);
        // The lists, then huge pages that wait to be split, and nodes of shadows.
        let shrink = |vec: VecId, scan: &mut Scan| {
            self.swap_ahead().note_written();
            let plug = self.swap().start_plug();
            self.shrink_lists(vec, scan);
            self.swap().finish_plug(plug);
            self.rmap().split_deferred(vec.group, scan.priority);
            self.files().shrink_shadow_nodes(vec, scan.priority);
        };
        if !self.memcg().in_use() {
            return shrink(scan.vec, scan);
        }
        let shares = scan.by == Reclaimer::Direct && !scan.effort.all_groups;
        let groups = self.memcg().tree(scan.target);
        let key = (scan.target, scan.vec.place());
        let first = if shares { self.next_of(&groups, key) } else { 0 };
        let mut stopped_at = None;
        for &group in &groups[first..] {
            if !self.may_take_from(group, scan) {
                continue;
            }
            shrink(VecId { group, ..scan.vec }, scan);
            if shares && scan.reclaimed >= scan.to_reclaim {
                stopped_at = Some(group);
                break;
            }
        }
        if shares {
            let mut cursors = self.own().cursors.lock(self.machine());
            match stopped_at {
                Some(group) => drop(cursors.insert(key, group)),
                None => drop(cursors.remove(&key)),
            }
        }
    }

    /// The place among `groups` of the one behind the last that was looked at; from the first again after the last.
    fn next_of(self, groups: &[GroupId], key: (GroupId, usize)) -> usize {
        let last = self.own().cursors.lock(self.machine()).get(&key).copied();
        let at = last.and_then(|last| groups.iter().position(|&group| group == last));
        at.map_or(0, |at| if at + 1 < groups.len() { at + 1 } else { 0 })
    }

    /// Whether `group` is not protected from this scan.
    pub(super) fn may_take_from(self, group: GroupId, scan: &mut Scan) -> bool {
        let protection = self.memcg().protection(scan.target, group);
        if protection.is_below_min() {
            return false;
        }
        if protection.is_below_low() {
            if !scan.effort.takes_low {
                scan.skipped.low = true;
                return false;
            }
            self.memcg().count(group, GroupEvent::Low);
        }
        true
    }

    /// Frees pages charged to a group and to those below it; gives how many.
    pub(crate) fn reclaim_in_group(self, ask: GroupAsk) -> u32 {
        if !self.lru().has_pages() {
            return 0;
        }
        // What this CPU keeps back is charged, and on no list.
        self.lru().lru_drain_cpu(self.machine().cpu());
        let mut scan = Scan::new(Reclaimer::Direct, Order::ZERO, ZoneKind::Movable);
        scan.target = ask.group;
        scan.no_fs = ask.no_fs;
        scan.to_reclaim = ask.pages.max(SWAP_CLUSTER_MAX as u32);
        while !self.try_group(&mut scan) && next_effort(&mut scan, true) {}
        scan.reclaimed
    }

    /// All priorities, until there is enough; says whether anything was freed.
    fn try_group(self, scan: &mut Scan) -> bool {
        for priority in (0..=DEF_PRIORITY).rev() {
            scan.priority = priority;
            tell_of_priority(self, scan);
            if self.pages().is_killed(self.machine().task()) {
                break;
            }
            for node in (0..self.topology().nodes.len()).map(|node| Node(node as u16)) {
                self.shrink_node(node, scan);
            }
            if scan.reclaimed >= scan.to_reclaim {
                break;
            }
        }
        self.end_of_reclaim(scan);
        scan.reclaimed > 0
    }

    /// What came back by now does not count next time.
    pub(super) fn end_of_reclaim(self, scan: &Scan) {
        for zone in self.zones() {
            self.lru().snapshot_refaults(VecId { group: scan.target, ..self.lru().vec_of_zone(zone) });
        }
    }
}

/// Nothing was freed: what else can be tried (`do_try_to_free_pages`). `false`: nothing.
pub(super) fn next_effort(scan: &mut Scan, has_groups: bool) -> bool {
    let Scan { effort, skipped, .. } = scan;
    if has_groups && !effort.all_groups {
        effort.all_groups = true;
    } else if skipped.active {
        effort.ages_all = true;
        skipped.active = false;
    } else if skipped.low {
        *effort = Effort { all_groups: effort.all_groups, ages_all: false, takes_low: true };
        *skipped = Skipped::default();
    } else {
        return false;
    }
    scan.met = Met::default();
    true
}
