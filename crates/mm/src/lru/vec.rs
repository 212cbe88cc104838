//! Sets of lists (the kernel's `lruvec`): one for each group and node, or zone where the policy has it so. What is known of one
//! without its lock is here: sizes, what was isolated, what happened to its pages; and, where there are groups, these figures
//! as the kernel's reclaim sees them: brought up to date each two seconds, or when somebody reads a group's statistics
//! (`lruvec_page_state`, `cgroup_rstat_flush`).

use alloc::boxed::Box;

use super::generations::GenVec;
use super::page::Page;
use super::{Lists, LruDoor, LruGround, LruList};
use crate::ground::{
    AtomicU32, AtomicU64, LockClass, Locked, Machine, Node, Once, Pfn, Relaxed, ZoneId, ZoneKind,
};
use crate::memcg::GroupId;
use crate::pages::{Counters, Zone};
use crate::rules::policy::{GroupStatRule, LruRule};

/// A set of lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct VecId {
    pub(crate) group: GroupId,
    /// The node or the zone, as the policy has it.
    pub(crate) place: u16,
}

impl VecId {
    /// The number of its node or zone.
    pub(crate) const fn place(self) -> usize {
        self.place as usize
    }
}

/// Something that happens to the pages of a set, counted for its group under the names of `memory.stat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VecEvent {
    ScanAnon,
    ScanFile,
    StealAnon,
    StealFile,
    RefaultAnon,
    RefaultFile,
    ActivateAnon,
    ActivateFile,
    RestoreAnon,
    RestoreFile,
    Refill,
    Activate,
    Deactivate,
    SwapIn,
    SwapOut,
    SwapInZero,
    SwapOutZero,
    ZswapIn,
    ZswapOut,
    ZswapWritten,
    MajorFault,
    NodeReclaim,
}

impl VecEvent {
    pub(crate) const COUNT: usize = 22;
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::ScanAnon,
        Self::ScanFile,
        Self::StealAnon,
        Self::StealFile,
        Self::RefaultAnon,
        Self::RefaultFile,
        Self::ActivateAnon,
        Self::ActivateFile,
        Self::RestoreAnon,
        Self::RestoreFile,
        Self::Refill,
        Self::Activate,
        Self::Deactivate,
        Self::SwapIn,
        Self::SwapOut,
        Self::SwapInZero,
        Self::SwapOutZero,
        Self::ZswapIn,
        Self::ZswapOut,
        Self::ZswapWritten,
        Self::MajorFault,
        Self::NodeReclaim,
    ];

    /// The name in vmstat or `memory.stat`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ScanAnon => "pgscan_anon",
            Self::ScanFile => "pgscan_file",
            Self::StealAnon => "pgsteal_anon",
            Self::StealFile => "pgsteal_file",
            Self::RefaultAnon => "workingset_refault_anon",
            Self::RefaultFile => "workingset_refault_file",
            Self::ActivateAnon => "workingset_activate_anon",
            Self::ActivateFile => "workingset_activate_file",
            Self::RestoreAnon => "workingset_restore_anon",
            Self::RestoreFile => "workingset_restore_file",
            Self::Refill => "pgrefill",
            Self::Activate => "pgactivate",
            Self::Deactivate => "pgdeactivate",
            Self::SwapIn => "pswpin",
            Self::SwapOut => "pswpout",
            Self::SwapInZero => "swpin_zero",
            Self::SwapOutZero => "swpout_zero",
            Self::ZswapIn => "zswpin",
            Self::ZswapOut => "zswpout",
            Self::ZswapWritten => "zswpwb",
            Self::MajorFault => "pgmajfault",
            Self::NodeReclaim => "workingset_nodereclaim",
        }
    }

    /// `file`, or its pendant for anonymous pages.
    pub(crate) const fn of_kind(self, list: LruList) -> Self {
        match (self, list.is_file()) {
            (Self::ScanFile, false) => Self::ScanAnon,
            (Self::StealFile, false) => Self::StealAnon,
            (Self::RefaultFile, false) => Self::RefaultAnon,
            (Self::ActivateFile, false) => Self::ActivateAnon,
            (Self::RestoreFile, false) => Self::RestoreAnon,
            (event, _) => event,
        }
    }
}

/// Figures of a set and those below it, as reclaim sees them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct VecStat {
    /// Base pages of each list.
    pub(crate) sizes: [u32; LruList::COUNT],
    /// Pages that were activated as they came back: anonymous ones, those of files.
    pub(crate) activated: [u64; 2],
}

/// A set of lists.
#[derive(Debug)]
pub(super) struct LruVec<M: Machine> {
    pub(super) lists: Locked<M, Lists>,
    /// Base pages that reclaim has taken off and has not brought back: anonymous ones, those of files.
    pub(super) isolated: [AtomicU32; 2],
    /// Base pages on the lists, by the kind of their zone.
    pub(super) sizes: [[AtomicU32; LruList::COUNT]; ZoneKind::ALL.len()],
    /// The same of the list of pages that cannot go.
    pub(super) unevictable: [AtomicU32; ZoneKind::ALL.len()],
    /// What reclaiming anonymous pages and those of files cost of late (`anon_cost`, `file_cost`).
    pub(super) cost: [AtomicU32; 2],
    /// Evictions and activations: the clock of refaults.
    pub(super) age: AtomicU64,
    pub(super) events: [AtomicU64; VecEvent::COUNT],
    /// As reclaim sees it.
    seen: SeenStat,
    /// `activated` as reclaim saw it when it last ended (`snapshot_refaults`).
    snapshot: [AtomicU64; 2],
    /// Its generations, from the first look at them.
    pub(super) gens: Once<Box<GenVec<M>>>,
}

#[derive(Debug, Default)]
struct SeenStat {
    sizes: [AtomicU32; LruList::COUNT],
    activated: [AtomicU64; 2],
    /// On all lists of the set alone, and of these on that of what cannot go.
    own: AtomicU32,
    unevictable: AtomicU32,
}

/// A group's sets, by node or zone.
pub(super) fn of_group<M: Machine>(
    machine: &M,
    group: GroupId,
    (places, by_generation): (usize, bool),
) -> Box<[LruVec<M>]> {
    let vec = |place| LruVec {
        lists: Locked::new(
            machine,
            LockClass::Lru,
            (group.index() * places) as u32 + place,
            Lists::new(by_generation),
        ),
        isolated: Default::default(),
        sizes: Default::default(),
        unevictable: Default::default(),
        cost: Default::default(),
        age: AtomicU64::new(0),
        events: Default::default(),
        seen: SeenStat::default(),
        snapshot: Default::default(),
        gens: Once::default(),
    };
    (0..places as u32).map(vec).collect()
}

/// The sets of groups other than the root.
#[derive(Debug)]
pub(super) struct GroupVecs<M: Machine>(Box<[Once<OfGroup<M>>]>);

/// A group's sets, by node or zone.
type OfGroup<M> = Box<[LruVec<M>]>;

impl<M: Machine> Default for GroupVecs<M> {
    fn default() -> Self {
        Self((0..crate::memcg::MOST_GROUPS).map(|_| Once::default()).collect())
    }
}

impl<'a, M: Machine, G: LruGround<M>> LruDoor<'a, M, G> {
    #[inline]
    pub(super) fn vec(self, vec: VecId) -> &'a LruVec<M> {
        if vec.group == GroupId::ROOT {
            return &self.own().vecs[vec.place()];
        }
        let places = self.own().vecs.len();
        let make = || of_group(self.machine(), vec.group, (places, self.own().keeps_generations()));
        &self.own().groups.0[vec.group.index()].get_or(make)[vec.place()]
    }

    /// The root's set of lists that pages of `zone` are on.
    #[inline]
    pub(crate) fn vec_of_zone(self, zone: &Zone<M>) -> VecId {
        let place = match self.own().rule {
            LruRule::PerNode => zone.node().0,
            LruRule::PerZone => zone.id().0,
        };
        VecId { group: GroupId::ROOT, place }
    }

    /// The set of the page at `pfn`.
    #[inline]
    pub(crate) fn vec_of(self, pfn: Pfn) -> VecId {
        let zone = &self.zones()[usize::from(self.map().frame(pfn).state().zone.0)];
        VecId { group: self.page(pfn).group(), ..self.vec_of_zone(zone) }
    }

    /// Where the base pages of `list` in the set and the zone of `page`, whose frame is in `zone`, are counted.
    #[inline]
    pub(super) fn size_of(self, page: &Page, zone: ZoneId, list: LruList) -> &'a AtomicU32 {
        let zone = &self.zones()[usize::from(zone.0)];
        let vec = VecId { group: page.group(), ..self.vec_of_zone(zone) };
        &self.vec(vec).sizes[zone.kind() as usize][list.index()]
    }

    /// All groups that may have lists.
    fn groups(self) -> impl Iterator<Item = GroupId> {
        self.memcg().all()
    }

    /// Base pages of `zone` on lists of this kind.
    pub(crate) fn zone_size(self, zone: &Zone<M>, list: LruList) -> u32 {
        let of = |group| {
            let vec = self.vec(VecId { group, ..self.vec_of_zone(zone) });
            vec.sizes[zone.kind() as usize][list.index()].load(Relaxed)
        };
        self.groups().map(of).sum()
    }

    /// Base pages on a list of `vec` alone, of zones up to `highest`.
    pub(crate) fn list_size(self, vec: VecId, list: LruList, highest: ZoneKind) -> u32 {
        let kinds = ZoneKind::ALL.into_iter().filter(|&kind| kind <= highest);
        kinds.map(|kind| self.vec(vec).sizes[kind as usize][list.index()].load(Relaxed)).sum()
    }

    /// Base pages of the lists of `node` of this kind.
    pub(crate) fn node_list_size(self, node: Node, list: LruList) -> u32 {
        let zones = self.zones().iter().filter(|zone| zone.node() == node);
        zones.map(|zone| self.zone_size(zone, list)).sum()
    }

    /// Base pages of `list`'s kind that are isolated.
    pub(crate) fn isolated(self, vec: VecId, list: LruList) -> u32 {
        self.vec(vec).isolated[usize::from(list.is_file())].load(Relaxed)
    }

    /// `event` happened to `pages` of `vec`.
    pub(crate) fn count_in(self, vec: VecId, event: VecEvent, pages: u32) {
        self.vec(vec).events[event as usize].fetch_add(pages.into(), Relaxed);
    }

    /// `event` happened to so many base pages of what the page at `pfn` belongs to.
    pub(crate) fn count_of(self, pfn: Pfn, event: VecEvent, pages: u32) {
        self.count_in(self.vec_of(pfn), event, pages);
    }

    /// How often `event` happened, in base pages, in `group` and below it.
    pub(crate) fn counted(self, group: GroupId, event: VecEvent) -> u64 {
        let places = self.own().vecs.len() as u16;
        let vecs = (0..places)
            .flat_map(|place| self.memcg().tree(group).into_iter().map(move |group| VecId { group, place }));
        vecs.map(|vec| self.vec(vec).events[event as usize].load(Relaxed)).sum()
    }

    /// Adds what was counted of all groups, as far as vmstat has it and nobody else counts it for the whole machine; kinds that did
    /// not happen are left out.
    pub(crate) fn add_group_counters(self, counters: &mut Counters) {
        let is_groups_own = |event: &VecEvent| {
            use VecEvent as Is;
            let swapped = matches!(event, Is::SwapIn | Is::SwapInZero | Is::SwapOut | Is::SwapOutZero);
            swapped || matches!(event, Is::Refill | Is::Activate | Is::Deactivate | Is::MajorFault)
        };
        for event in VecEvent::ALL.into_iter().filter(|event| !is_groups_own(event)) {
            let count = self.counted(GroupId::ROOT, event);
            if count > 0 {
                counters.add(event.name(), count);
            }
        }
    }

    /// Base pages on `list` of `group` and those below it.
    pub(crate) fn group_list_size(self, group: GroupId, list: LruList) -> u64 {
        let places = self.own().vecs.len() as u16;
        let vecs = (0..places).map(|place| VecId { group, place });
        vecs.map(|vec| u64::from(self.sum(vec).sizes[list.index()])).sum()
    }

    /// The figures of `vec` alone, as they are.
    fn alone(self, vec: VecId) -> VecStat {
        let this = self.vec(vec);
        let mut stat = VecStat::default();
        for by_list in &this.sizes {
            for (size, pages) in stat.sizes.iter_mut().zip(by_list) {
                *size += pages.load(Relaxed);
            }
        }
        let activated = [VecEvent::ActivateAnon, VecEvent::ActivateFile];
        stat.activated = activated.map(|event| this.events[event as usize].load(Relaxed));
        stat
    }

    /// The figures of `vec` and those below it, as they are.
    fn sum(self, vec: VecId) -> VecStat {
        let mut sum = VecStat::default();
        for group in self.memcg().tree(vec.group) {
            let this = self.alone(VecId { group, ..vec });
            for (all, size) in sum.sizes.iter_mut().zip(this.sizes) {
                *all += size;
            }
            for (all, activated) in sum.activated.iter_mut().zip(this.activated) {
                *all += activated;
            }
        }
        sum
    }

    /// The same as reclaim sees them. Without groups these are the figures as they are.
    pub(crate) fn stat(self, vec: VecId) -> VecStat {
        if !self.memcg().in_use() {
            return self.alone(vec);
        }
        if self.rules().reclaim.group_stat == GroupStatRule::AsTheyAre {
            return self.sum(vec);
        }
        let seen = &self.vec(vec).seen;
        VecStat {
            sizes: core::array::from_fn(|list| seen.sizes[list].load(Relaxed)),
            activated: core::array::from_fn(|kind| seen.activated[kind].load(Relaxed)),
        }
    }

    /// Base pages on all lists of `vec` alone, those of what cannot go too, as reclaim sees them.
    pub(crate) fn pages_seen(self, vec: VecId) -> u32 {
        if self.memcg().in_use() && self.rules().reclaim.group_stat == GroupStatRule::Flushed {
            return self.vec(vec).seen.own.load(Relaxed);
        }
        self.listed(vec)
    }

    /// Of these, the pages that cannot go.
    pub(crate) fn unevictable_seen(self, vec: VecId) -> u32 {
        if self.memcg().in_use() && self.rules().reclaim.group_stat == GroupStatRule::Flushed {
            return self.vec(vec).seen.unevictable.load(Relaxed);
        }
        self.unevictable().size(vec)
    }

    fn listed(self, vec: VecId) -> u32 {
        self.alone(vec).sizes.iter().sum::<u32>() + self.unevictable().size(vec)
    }

    /// Does so for all groups if two seconds have gone by since (`flush_memcg_stats_dwork`). The vmstat tick asks, too; who would have it
    /// sooner asks more often.
    pub fn flush_due_stats(self) {
        if self.memcg().in_use() && self.memcg().is_flush_due() {
            self.flush_stats(GroupId::ROOT);
        }
    }

    /// Brings what reclaim sees of `group` and of those below it up to date, as a reader of `memory.stat` does.
    pub fn flush_stats(self, group: GroupId) {
        for group in self.memcg().tree(group) {
            self.memcg().see_dirt(group);
            for place in 0..self.own().vecs.len() as u16 {
                let vec = VecId { group, place };
                let (now, seen) = (self.sum(vec), &self.vec(vec).seen);
                seen.own.store(self.listed(vec), Relaxed);
                seen.unevictable.store(self.unevictable().size(vec), Relaxed);
                for (seen, now) in seen.sizes.iter().zip(now.sizes) {
                    seen.store(now, Relaxed);
                }
                for (seen, now) in seen.activated.iter().zip(now.activated) {
                    seen.store(now, Relaxed);
                }
            }
        }
    }

    /// Whether pages of the kind came back to `vec`, which has `stat`, and were activated since reclaim there last ended.
    pub(crate) fn refaults_since(self, vec: VecId, list: LruList, stat: &VecStat) -> bool {
        let kind = usize::from(list.is_file());
        stat.activated[kind] != self.vec(vec).snapshot[kind].load(Relaxed)
    }

    /// Reclaim in `vec` and what is below it ends (`snapshot_refaults`).
    pub(crate) fn snapshot_refaults(self, vec: VecId) {
        for (then, now) in self.vec(vec).snapshot.iter().zip(self.stat(vec).activated) {
            then.store(now, Relaxed);
        }
    }
}
