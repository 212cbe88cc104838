//! What each recording of a replay came to, where several run side by side or the machine has several nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one recording of a replay came to, all of its copies together.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordingUse {
    /// Its name.
    pub name: String,
    /// How many copies of it ran.
    pub copies: u32,
    /// From the start of its first task to the end of its last, ns.
    pub elapsed_ns: u64,
    /// What was counted.
    #[serde(flatten)]
    pub counts: RecordingCounts,
    /// Resident pages of 4 KiB by node: of each copy's largest process, the last time that it had nine tenths of its peak.
    pub pages_by_node: Vec<u64>,
}

/// Counts of a recording's address spaces, added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordingCounts {
    /// Page faults, NUMA balancing's too.
    pub page_faults: u64,
    /// Of these, those that mapped a huge page.
    pub huge_faults: u64,
    /// Pages copied on write.
    pub pages_copied: u64,
    /// The most that one address space had resident, in pages.
    pub peak_rss_pages: u64,
    /// Pages that NUMA balancing made fault (`numa_pte_updates`).
    pub numa_pte_updates: u64,
    /// Faults on them (`numa_hint_faults`).
    pub numa_hint_faults: u64,
    /// Of these, those by a task on the page's node (`numa_hint_faults_local`).
    pub numa_hint_faults_local: u64,
    /// Pages that moved after them (`numa_pages_migrated`).
    pub numa_pages_migrated: u64,
}

impl RecordingCounts {
    /// Both together.
    pub fn add(&mut self, other: &Self) {
        self.page_faults += other.page_faults;
        self.huge_faults += other.huge_faults;
        self.pages_copied += other.pages_copied;
        self.peak_rss_pages = self.peak_rss_pages.max(other.peak_rss_pages);
        self.numa_pte_updates += other.numa_pte_updates;
        self.numa_hint_faults += other.numa_hint_faults;
        self.numa_hint_faults_local += other.numa_hint_faults_local;
        self.numa_pages_migrated += other.numa_pages_migrated;
    }
}

impl RecordingUse {
    /// Of these pages, how many in a hundred were on each node; empty where there were none.
    pub fn shares(&self) -> Vec<f64> {
        let all: u64 = self.pages_by_node.iter().sum();
        let share = |pages: &u64| 100.0 * *pages as f64 / all as f64;
        if all == 0 { vec![] } else { self.pages_by_node.iter().map(share).collect() }
    }
}
