//! Forks of a recorded program: what each took, and what sharing pages with the child cost the parent while that lasted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fork, until the child ended or ran another program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ForkUse {
    /// Who forked.
    pub parent: String,
    /// The parent's resident pages at the fork.
    pub resident_pages: u64,
    /// How long the fork took, ns.
    pub fork_ns: u64,
    /// How long the recorded one took, recording apart, ns; 0 where that was not seen.
    pub recorded_ns: u64,
    /// How long the child had the pages, ns.
    pub lasted_ns: u64,
    /// The parent's faults meanwhile.
    pub faults: u64,
    /// How long half of these took at most, ns.
    pub fault_p50_ns: u64,
    /// How long 99 of 100 took at most, ns.
    pub fault_p99_ns: u64,
    /// How long the longest took, ns.
    pub fault_max_ns: u64,
    /// Pages that parent and child copied meanwhile: what memory grew by for being shared.
    pub copied_pages: u64,
    /// Page tables that the child had at its end.
    pub table_pages: u64,
}

/// The forks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Forks {
    /// How many.
    pub count: u64,
    /// Those of the largest parents, [`Self::KEPT`] at most, the largest first.
    pub largest: Vec<ForkUse>,
}

impl Forks {
    /// Forks that are told one by one.
    pub const KEPT: usize = 16;

    /// One more.
    pub fn add(&mut self, fork: ForkUse) {
        self.count += 1;
        let place = self.largest.partition_point(|other| other.resident_pages >= fork.resident_pages);
        self.largest.insert(place, fork);
        self.largest.truncate(Self::KEPT);
    }

    /// Whether there was none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_kept_and_all_are_counted() {
        let mut forks = Forks::default();
        for pages in (1..=40).chain([40]) {
            forks.add(ForkUse { resident_pages: pages, fork_ns: forks.count, ..ForkUse::default() });
        }
        assert_eq!((forks.count, forks.largest.len()), (41, Forks::KEPT));
        let first: Vec<(u64, u64)> =
            forks.largest[..3].iter().map(|fork| (fork.resident_pages, fork.fork_ns)).collect();
        assert_eq!(first, [(40, 39), (40, 40), (39, 38)], "equals in the order in which they came");
    }
}
