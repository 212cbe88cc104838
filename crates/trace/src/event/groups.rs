//! Groups of tracepoints that are recorded together, by the names that `--events` takes.

use std::collections::BTreeSet;
use std::str::FromStr;

/// A group of tracepoints.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// Pages handed out and freed, refills and drains of per-CPU lists.
    Page,
    /// Page faults, in user mode and in the kernel's.
    Fault,
    /// Context switches and who lets whom run; new, renamed and ended tasks.
    Sched,
    /// Slab objects handed out and freed.
    Slab,
    /// Waiting for kernel locks.
    Lock,
    /// What tasks do to their address spaces: maps, advice, forks, programs.
    Space,
    /// Files read and written through the page cache.
    File,
}

/// What a kernel that lacks a tracepoint means for a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Absence {
    /// There is none.
    Fails,
    /// It goes without, and says so.
    IsTold,
    /// It goes without: another tracepoint says the same, or a file system is not in use.
    IsFine,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 7] =
        [Self::Page, Self::Fault, Self::Sched, Self::Slab, Self::Lock, Self::Space, Self::File];
    /// What is recorded if nothing is said.
    pub const DEFAULT: [Self; 5] = [Self::Page, Self::Sched, Self::Fault, Self::Space, Self::File];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Fault => "fault",
            Self::Sched => "sched",
            Self::Slab => "slab",
            Self::Lock => "lock",
            Self::Space => "space",
            Self::File => "file",
        }
    }

    /// The tracepoints. Not every kernel has all of them; see `absence`.
    pub fn tracepoints(self) -> impl Iterator<Item = &'static str> {
        super::tracepoints().filter(move |of| of.group == self).map(|of| of.name)
    }

    /// What it means that a kernel lacks `tracepoint` of this group. Linux 6.1 folded the `_node` ones into the others;
    /// only x86 has faults; each file system says for itself what is written.
    pub(crate) fn absence(self, tracepoint: &str) -> Absence {
        match self {
            _ if tracepoint.ends_with("_node") => Absence::IsFine,
            Self::File if !tracepoint.starts_with("filemap:") => Absence::IsFine,
            Self::Space if is_about_nodes(tracepoint) => Absence::IsFine,
            Self::Sched if tracepoint == "sched:sched_waking" => Absence::IsTold,
            Self::Page | Self::Sched | Self::Slab | Self::Lock => Absence::Fails,
            Self::Fault | Self::Space | Self::File => Absence::IsTold,
        }
    }

    /// Tracepoints of these groups, each with its group. Of pages that are freed together the kernel speaks twice. Which of them come
    /// together matters to a replay of page events alone; where address spaces are recorded, what is done to these says it, and a
    /// sixth of what recording costs a program that faults is saved.
    pub(crate) fn tracepoints_of(groups: &BTreeSet<Self>) -> impl Iterator<Item = (Self, &'static str)> {
        let repeats = groups.contains(&Self::Space);
        groups
            .iter()
            .flat_map(|&group| group.tracepoints().map(move |name| (group, name)))
            .filter(move |(_, name)| !(repeats && *name == REPEATS_FREES))
    }

    /// Reads names joined by commas, such as `page,sched`.
    ///
    /// # Errors
    /// The first name that is none, and those that are.
    pub fn parse_list(names: &str) -> Result<BTreeSet<Self>, String> {
        names.split(',').map(|name| name.trim().parse()).collect()
    }
}

/// Repeats frees.
const REPEATS_FREES: &str = "kmem:mm_page_free_batched";

/// Whether it is a call about nodes, which a kernel without several nodes does not have, nor an old one all of them: then nobody makes
/// such calls.
fn is_about_nodes(tracepoint: &str) -> bool {
    let names = ["mbind", "set_mempolicy", "set_mempolicy_home_node", "migrate_pages", "move_pages"];
    let call = tracepoint.trim_start_matches("syscalls:sys_enter_").trim_start_matches("syscalls:sys_exit_");
    names.contains(&call)
}

impl FromStr for Group {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|group| group.name() == name);
        found.ok_or_else(|| format!("there is no group of events {name:?}; there are {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frees_are_said_twice_only_where_pages_are_all_that_is_recorded() {
        let repeats = |groups: &[Group]| {
            let groups = groups.iter().copied().collect();
            Group::tracepoints_of(&groups).any(|(group, name)| group == Group::Page && name == REPEATS_FREES)
        };
        assert!(repeats(&[Group::Page]));
        assert!(repeats(&[Group::Page, Group::Sched, Group::Slab]));
        assert!(!repeats(&Group::DEFAULT));
        assert!(!repeats(&Group::ALL));
        assert!(!repeats(&[Group::Space, Group::File]));
    }
}
