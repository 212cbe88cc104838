//! The test of proactive compaction (docs/published.md#gupta-2020): memory is filled, three quarters of each 2 MiB are
//! given back, and then somebody asks for all of the rest in huge pages. docs/compaction-history.md says what is known of
//! the original.
//!
//! Memory is filled before the clock starts, page by page, on each node for itself. Who asks waits for `settle_ms`, in which
//! compaction that nobody asked for may begin. Then the *driver* takes blocks of 2 MiB from the page allocator, one after the other,
//! until a node and all others have none; `hugepage` is the time of each, in ns, the note `hugepages_allocated` how many there
//! were, and the sample `hugepage-share` how many in a hundred of what was free. *Java* is a thread that touches and writes its
//! heap, of as much as was free, in order; `pretouch` is the time of each 2 MiB in ns. *By hand*, all memory is compacted as writing to
//! `vm.compact_memory` does: the sample `compact-node` is what each node took, in ns. Or *nobody* asks. An operation is a block or 2 MiB.
//!
//! Left out: whatever else a running system's memory has in it; the machine's memory is filled to its high marks.

mod ask;
mod fill;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use mm::policy::Mechanism;
use serde::Deserialize;
use sim::{Sim, TaskSpec};

use crate::reach::Brings;
use crate::stage::Stage;
use crate::workloads::workload::{Workload, WorkloadKind, number, within};

/// Whose the memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Filled {
    /// A program's, in small pages.
    #[default]
    Anonymous,
    /// The kernel's, which stays where it is.
    Kernel,
}

/// Who asks for huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Asks {
    /// A driver, for blocks of kernel memory: the post says no more of it.
    Driver,
    /// A program that touches a heap for which huge pages are advised.
    Java,
    /// Whoever writes to `vm.compact_memory`.
    ByHand,
    /// Nobody.
    Nobody,
}

/// Parameters of the test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Proactive {
    /// Who asks.
    pub asks: Asks,
    /// Whose memory it is.
    #[serde(default)]
    pub filled: Filled,
    /// How many of the first pages of each 2 MiB are given back.
    #[serde(default = "number::<384>")]
    pub holes: u32,
    /// From the start of the clock to the first request, ms.
    #[serde(default)]
    pub settle_ms: u32,
    /// From the end of a request to the next one, µs, to half of it more or less.
    #[serde(default)]
    pub pause_us: u32,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "proactive",
    tests: &[Mechanism::Compaction],
    brings: Brings::SPACES,
    groups: &["all"],
    read: WorkloadKind::read::<Proactive>,
    smallest: &["asks = 'nobody'\nholes = 1\n", "asks = 'java'\nholes = 1\n"],
    largest: &[],
};

impl Workload for Proactive {
    fn title(&self) -> String {
        let who = match self.asks {
            Asks::Driver => "a driver asks for huge pages",
            Asks::Java => "a program touches huge pages",
            Asks::ByHand => "compaction by hand",
            Asks::Nobody => "nobody asks",
        };
        let whose = match self.filled {
            Filled::Anonymous => "a program's",
            Filled::Kernel => "the kernel's",
        };
        format!("{who} in memory of which {} of 512 pages are free, the others {whose}", self.holes)
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("holes", self.holes.into(), 1..=511)?;
        within("settle_ms", self.settle_ms.into(), 0..=1_000_000)?;
        within("pause_us", self.pause_us.into(), 0..=1_000_000)?;
        let filled = fill::fill(stage, self.filled, self.holes);
        let (spec, owned) = (*self, Rc::clone(stage));
        sim.spawn(TaskSpec::new("asks").on(stage.cpu(0)), move || ask::run(&owned, spec, filled));
        Ok(())
    }
}
