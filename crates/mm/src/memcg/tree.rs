//! The tree of groups, who is in which, and what is counted of each.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Group, GroupEvent, GroupId, Limit, MOST_GROUPS, MemcgDoor, MemcgGround};
use crate::ground::{AtomicI64, AtomicU64, Machine, Nanos, Relaxed, TaskId};

/// How often the kernel brings the statistics of groups up to date by itself.
const FLUSH_TIME: u64 = 2_000_000_000;

impl Group {
    pub(super) fn new(name: String, parent: GroupId) -> Self {
        let limits = Limit::ALL.map(|limit| AtomicU64::new(limit.at_first()));
        let zero = || AtomicU64::new(0);
        Self {
            name,
            parent,
            usage: zero(),
            peak: zero(),
            swap: zero(),
            swap_peak: zero(),
            limits,
            events: Default::default(),
            delayed: zero(),
            file: AtomicI64::new(0),
            pending: AtomicI64::new(0),
            seen: [const { AtomicI64::new(0) }; 2],
        }
    }

    pub(super) fn limit(&self, limit: Limit) -> u64 {
        self.limits[limit as usize].load(Relaxed)
    }
}

impl<M: Machine, G: MemcgGround<M>> MemcgDoor<'_, M, G> {
    /// Whether there is any group but the root.
    #[inline]
    pub fn in_use(self) -> bool {
        self.own().in_use()
    }

    /// The group called `name` below `parent`, which is made if it is not there. `None`: there are too many.
    pub fn group(self, parent: GroupId, name: &str) -> Option<GroupId> {
        // Held for the whole of it: two makers make one group each.
        let _making = self.own().making.lock(self.machine());
        let count = self.own().count.load(Relaxed);
        let is_it =
            |id: &GroupId| *id != GroupId::ROOT && self.parent(*id) == parent && self.name(*id) == name;
        if let Some(there) = self.all().find(is_it) {
            return Some(there);
        }
        if count as usize == MOST_GROUPS {
            return None;
        }
        self.own().groups[count as usize].get_or(|| Group::new(name.to_string(), parent));
        self.own().count.store(count + 1, Relaxed);
        Some(GroupId(count as u16))
    }

    /// All groups, the root first, each behind its parent.
    pub fn all(self) -> impl Iterator<Item = GroupId> {
        (0..self.own().count.load(Relaxed) as u16).map(GroupId)
    }

    /// `root` and all below it, each group before those below it (`mem_cgroup_iter`'s order).
    pub(crate) fn tree(self, root: GroupId) -> Vec<GroupId> {
        let mut order = alloc::vec![root];
        if self.in_use() {
            for child in self.all().filter(|&id| id != GroupId::ROOT && self.parent(id) == root) {
                order.extend(self.tree(child));
            }
        }
        order
    }

    /// `group` and those above it, up to the root, which is the last.
    pub(crate) fn upward(self, group: GroupId) -> impl Iterator<Item = GroupId> {
        let mut next = Some(group);
        core::iter::from_fn(move || {
            let now = next?;
            next = (now != GroupId::ROOT).then(|| self.parent(now));
            Some(now)
        })
    }

    /// The group above; the root's is itself.
    pub(crate) fn parent(self, group: GroupId) -> GroupId {
        self.own().group(group).parent
    }

    /// What it is called.
    pub fn name(self, group: GroupId) -> String {
        self.own().group(group).name.clone()
    }

    /// `task` is in `group` from now on; what it has charged stays where it is.
    pub fn join(self, task: TaskId, group: GroupId) {
        self.own().members.join(task, group);
    }

    /// `task` has ended.
    pub fn leave(self, task: TaskId) {
        if self.in_use() {
            self.own().members.leave(task);
        }
    }

    /// Tasks that never joined a group are in `group` from now on; at first that is the root.
    pub fn set_home(self, group: GroupId) {
        self.own().members.set_home(group);
    }

    /// The group of the task that runs.
    #[inline]
    pub(crate) fn current(self) -> GroupId {
        self.own().members.group(self.machine().task())
    }

    /// Base pages charged to `group` and those below it.
    pub fn usage(self, group: GroupId) -> u64 {
        self.own().group(group).usage.load(Relaxed)
    }

    /// The most that was.
    pub fn peak(self, group: GroupId) -> u64 {
        self.own().group(group).peak.load(Relaxed)
    }

    /// Slots of swap charged to `group`.
    pub fn swap_usage(self, group: GroupId) -> u64 {
        self.own().group(group).swap.load(Relaxed)
    }

    /// The most that were.
    pub fn swap_peak(self, group: GroupId) -> u64 {
        self.own().group(group).swap_peak.load(Relaxed)
    }

    /// How long tasks of `group` were kept waiting for `high`.
    pub fn delayed(self, group: GroupId) -> Nanos {
        Nanos(self.own().group(group).delayed.load(Relaxed))
    }

    /// How often `event` happened in `group` or below it.
    pub fn events(self, group: GroupId, event: GroupEvent) -> u64 {
        self.own().group(group).events[event as usize].load(Relaxed)
    }

    /// `event` happened in `group`.
    pub fn count(self, group: GroupId, event: GroupEvent) {
        for group in self.upward(group).filter(|&group| group != GroupId::ROOT) {
            self.own().group(group).events[event as usize].fetch_add(1, Relaxed);
        }
    }

    /// Whether statistics are to be brought up to date: two seconds have gone by. It is so once.
    pub(crate) fn is_flush_due(self) -> bool {
        let own = self.own();
        let now = (self.machine().now().0 + own.flush_phase.load(Relaxed)) / FLUSH_TIME;
        own.flushed.fetch_max(now, Relaxed) < now
    }

    /// Statistics are brought up to date every two seconds; `number` says when first, by its rest. A kernel has done so since it booted.
    pub fn set_flush_phase(self, number: u64) {
        self.own().flush_phase.store(number % FLUSH_TIME, Relaxed);
    }
}
