//! Cgroups of a run: each recording's tasks are in one, or all tasks of a workload in one, where any limit of a cgroup is set.
//! Without one there is no group, and a run is what it was.

use std::cell::RefCell;
use std::collections::BTreeMap;

use mm::ids::PAGE_SIZE;
use mm::{GroupEvent, GroupId, Knob, Limit, Machine};

use super::{Random, Stage};
use crate::measurements::CgroupUse;

/// A limit of one cgroup among several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSetting {
    /// What the cgroup is called: as the recording is that is in it.
    pub name: String,
    /// The knob that sets the limit.
    pub knob: Knob,
    /// Its value.
    pub value: u64,
}

impl GroupSetting {
    /// The setting as it is written: `cgroup.db.memory.high`.
    pub fn full_name(&self) -> String {
        format!("cgroup.{}.{}", self.name, self.knob.spec().name)
    }
}

/// What is said of groups before anything runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupSetup<'a> {
    /// Limits of single groups.
    pub(crate) named: &'a [GroupSetting],
    /// Some limit changes while it runs.
    pub(crate) changes: bool,
}

/// How a group's tasks were killed.
#[derive(Clone, Copy, Debug)]
struct Killed {
    /// When, from the workload's start.
    ns: u64,
    /// Pages that were on their way to swap's disk then.
    on_their_way: u64,
}

/// The groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    wanted: bool,
    /// The run's.
    seed: u64,
    named: Vec<GroupSetting>,
    made: RefCell<Vec<(String, GroupId)>>,
    /// Those whose tasks were killed.
    killed: RefCell<BTreeMap<GroupId, Killed>>,
}

impl Groups {
    pub(super) fn new(knobs: &[(Knob, u64)], setup: GroupSetup<'_>, seed: u64) -> Self {
        let is_set = |&(knob, value): &(Knob, u64)| Limit::of(knob).is_some() && value != knob.spec().default;
        let named = setup.named.iter().map(|setting| (setting.knob, setting.value)).any(|set| is_set(&set));
        Self {
            wanted: setup.changes || named || knobs.iter().any(is_set),
            named: setup.named.to_vec(),
            seed,
            ..Self::default()
        }
    }

    /// The value of `knob` that holds for the group called so, where that is its own.
    fn own(&self, name: &str, knob: Knob) -> Option<u64> {
        let is_it = |setting: &&GroupSetting| setting.name == name && setting.knob == knob;
        self.named.iter().find(is_it).map(|setting| setting.value)
    }
}

impl Stage {
    /// Whether any limit of a cgroup is set.
    pub(crate) fn is_grouped(&self) -> bool {
        self.groups.wanted
    }

    /// The cgroup called so, with its limits; the root where nobody wants groups, and where there are too many.
    pub(crate) fn group(&self, name: &str) -> GroupId {
        if self.groups.wanted { self.made_group(name) } else { GroupId::ROOT }
    }

    /// The same, wanted or not: a program makes it.
    pub(crate) fn made_group(&self, name: &str) -> GroupId {
        if let Some((_, there)) = self.groups.made.borrow().iter().find(|(made, _)| made == name) {
            return *there;
        }
        let Some(group) = self.mm.memcg().group(GroupId::ROOT, name) else {
            self.tally.leave_out("cgroups");
            return GroupId::ROOT;
        };
        if self.groups.made.borrow().is_empty() {
            self.mm.memcg().set_flush_phase(Random::of(self.groups.seed).next());
        }
        self.groups.made.borrow_mut().push((name.to_owned(), group));
        for limit in Limit::ALL {
            let knob = limit.knob();
            let value = self.groups.own(name, knob).unwrap_or_else(|| self.mm.knobs().get(knob));
            self.mm.memcg().set_limit(group, limit, limit.pages(value));
        }
        group
    }

    /// All tasks that are in no group are in the one called so from now on, if there are any.
    pub(crate) fn begin_in_group(&self, name: &str) {
        if self.groups.wanted {
            self.mm.memcg().set_home(self.group(name));
        }
    }

    /// Gives `value` to `knob`, as writing to its file does; that of a cgroup's limit to all cgroups that have none of their own.
    pub(crate) fn set_knob(&self, knob: Knob, value: u64) -> Result<(), mm::KnobError> {
        self.mm.set_knob(knob, value)?;
        let Some(limit) = Limit::of(knob) else { return Ok(()) };
        let made = self.groups.made.borrow().clone();
        for (_, group) in made.iter().filter(|(name, _)| self.groups.own(name, knob).is_none()) {
            self.mm.memcg().set_limit(*group, limit, limit.pages(value));
        }
        Ok(())
    }

    /// What is in `group` is killed now: nothing more can be freed in it. Only the first time says so.
    pub(crate) fn group_is_killed(&self, group: GroupId) {
        let mut killed = self.groups.killed.borrow_mut();
        killed.entry(group).or_insert_with(|| {
            self.mm.memcg().count(group, GroupEvent::OomKill);
            Killed {
                ns: self.machine().now().0.saturating_sub(self.start.get().0),
                on_their_way: self.mm.swap().pages_on_their_way(),
            }
        });
    }

    /// What the groups came to, in the order in which they were made; those that never had a page are left out.
    pub(crate) fn groups_used(&self) -> Vec<CgroupUse> {
        let made = self.groups.made.borrow();
        let used = made.iter().map(|(name, group)| self.group_used(name, *group));
        used.filter(|used| used.peak > 0).collect()
    }

    fn group_used(&self, name: &str, group: GroupId) -> CgroupUse {
        let memcg = self.mm.memcg();
        let killed = self.groups.killed.borrow().get(&group).copied();
        let counted = |event: GroupEvent| (event.name().to_owned(), memcg.events(group, event));
        let (swap, own): (Vec<_>, Vec<_>) =
            GroupEvent::ALL.into_iter().partition(|event| *event == GroupEvent::SwapFail);
        CgroupUse {
            name: name.to_owned(),
            peak: memcg.peak(group) * PAGE_SIZE,
            swap_peak: memcg.swap_peak(group) * PAGE_SIZE,
            events: own.into_iter().map(counted).collect(),
            swap_events: swap.into_iter().map(counted).collect(),
            stat: self.mm.views().memory_stat(group).0.into_iter().filter(|(_, count)| *count > 0).collect(),
            high_delay_ns: memcg.delayed(group).0,
            killed_ns: killed.map(|killed| killed.ns),
            killed_on_their_way: killed.map(|killed| killed.on_their_way).filter(|pages| *pages > 0),
        }
    }
}
