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
    /// Page faults so far.
    pub faults: Vec<u64>,
    /// What all CPUs together have waited for locks so far.
    pub lock_wait_ns: Vec<u64>,
}

impl Timeline {
    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.at_ns.is_empty()
    }
}
