//! A run over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was seen of a run at moments that are evenly spaced, 64 to 128 of a run that is long enough. Every list but the moments' own is as
/// long as theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeline {
    /// The moments, in ns from the workload's start on.
    pub at_ns: Vec<u64>,
    /// Free pages of each node.
    pub free_pages: Vec<Vec<u64>>,
    /// Resident pages of all processes of recorded programs, shared ones in each; empty where there is none.
    pub resident_pages: Vec<u64>,
    /// The same by the names of tasks, of processes that one of that name began: the [`Self::PROCESSES`] that had most at a moment, the most
    /// first; empty where only one name is there.
    pub processes: Vec<ProcessOverTime>,
    /// Page faults so far.
    pub faults: Vec<u64>,
    /// What all CPUs together have waited for locks so far.
    pub lock_wait_ns: Vec<u64>,
    /// Both by the names of tasks: the [`Self::TASKS`] that waited longest, and as many of those with most faults. Empty where only one name
    /// is there.
    pub tasks: Vec<TaskOverTime>,
}

/// Processes whose first tasks have one name, over a run's time.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessOverTime {
    /// The task's name.
    pub name: String,
    /// Their resident pages, shared ones in each, by moment.
    pub resident_pages: Vec<u64>,
}

/// Tasks of one name, over a run's time.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskOverTime {
    /// The name.
    pub name: String,
    /// Their page faults so far, by moment.
    pub faults: Vec<u64>,
    /// What they have waited for locks so far.
    pub lock_wait_ns: Vec<u64>,
}

impl Timeline {
    /// How many names there are at most.
    pub const PROCESSES: usize = 6;
    /// How many names of tasks there are at most of those that waited, and of those with faults.
    pub const TASKS: usize = 4;

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.at_ns.is_empty()
    }
}
