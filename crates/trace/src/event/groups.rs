//! Groups of tracepoints that are recorded together, by the names that `--events` takes.

use std::collections::BTreeSet;
use std::str::FromStr;

/// A group of tracepoints.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// Pages handed out and freed, refills and drains of per-CPU lists.
    Page,
    /// Page faults of user programs.
    Fault,
    /// Context switches; new, renamed and ended tasks.
    Sched,
    /// Slab objects handed out and freed.
    Slab,
    /// Waiting for kernel locks.
    Lock,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 5] = [Self::Page, Self::Fault, Self::Sched, Self::Slab, Self::Lock];
    /// What is recorded if nothing is said.
    pub const DEFAULT: [Self; 2] = [Self::Page, Self::Sched];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Fault => "fault",
            Self::Sched => "sched",
            Self::Slab => "slab",
            Self::Lock => "lock",
        }
    }

    /// The tracepoints. Older kernels lack `lock:*` and have two more for slab; see `Group::is_optional`.
    pub fn tracepoints(self) -> impl Iterator<Item = &'static str> {
        super::tracepoints().filter(move |of| of.group == self).map(|of| of.name)
    }

    /// Whether kernels that record fine may lack `tracepoint`: Linux 6.1 folded the `_node` ones into the others.
    pub(crate) fn is_optional(tracepoint: &str) -> bool {
        tracepoint.ends_with("_node")
    }

    /// Reads names joined by commas, such as `page,sched`.
    ///
    /// # Errors
    /// The first name that is none, and those that are.
    pub fn parse_list(names: &str) -> Result<BTreeSet<Self>, String> {
        names.split(',').map(|name| name.trim().parse()).collect()
    }
}

impl FromStr for Group {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|group| group.name() == name);
        found.ok_or_else(|| format!("there is no group of events {name:?}; there are {}", known()))
    }
}
