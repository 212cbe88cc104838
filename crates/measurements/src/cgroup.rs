//! What a cgroup of a run came to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a cgroup of a run came to, under the names of its files.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CgroupUse {
    /// Its name: that of the recording that is in it.
    pub name: String,
    /// The most that was charged to it, in bytes (`memory.peak`).
    pub peak: u64,
    /// The most of it that was in swap, in bytes (`memory.swap.peak`).
    pub swap_peak: u64,
    /// How often what happened (`memory.events`).
    pub events: BTreeMap<String, u64>,
    /// The same of swap (`memory.swap.events`).
    pub swap_events: BTreeMap<String, u64>,
    /// What was counted, in pages and faults (`memory.stat`); counts of 0 are left out.
    pub stat: BTreeMap<String, u64>,
    /// How long its tasks were made to wait for `memory.high`, ns.
    pub high_delay_ns: u64,
    /// When its tasks were killed, for nothing more could be freed, ns from the workload's start; absent where they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_ns: Option<u64>,
    /// Pages, whoever's, that were on their way to swap's disk when its tasks were killed; absent where there were none, or they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_on_their_way: Option<u64>,
}

impl CgroupUse {
    /// How often `event` of `memory.events` happened.
    pub fn event(&self, event: &str) -> u64 {
        self.events.get(event).copied().unwrap_or(0)
    }

    /// What `memory.stat` says under `name`.
    pub fn count(&self, name: &str) -> u64 {
        self.stat.get(name).copied().unwrap_or(0)
    }
}
