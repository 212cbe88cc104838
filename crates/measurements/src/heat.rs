//! What of a recorded program's memory was used when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Looks at the accessed bits of a process that was recorded, by mapping: what it walked to, as a map of its address space over time.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct HeatMap {
    /// The recording.
    pub recording: String,
    /// The process, by a task's name.
    pub process: String,
    /// When it was looked at, in ns from the recording's first event on; each stands for itself and those up to the next, 64 at most.
    pub at_ns: Vec<u64>,
    /// Its mappings by address, those with most resident; what is not among them comes last, together, as `the rest`.
    pub mappings: Vec<HeatedMapping>,
}

/// A mapping in a [`HeatMap`]. Its lists are as long as the map's moments.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct HeatedMapping {
    /// Its file's name without the folder, or `[heap]`, `[stack]`, `[shared]`, `[anon]`.
    pub name: String,
    /// Its first address as recorded; 0 of `the rest`.
    pub address: u64,
    /// Its pages, at most.
    pub pages: u64,
    /// Those that were resident.
    pub resident_pages: Vec<u64>,
    /// How often a resident page was walked to in a second of the process's CPU time; `null` where nothing was resident, where some of it stood in huge
    /// pages, which have one accessed bit for 512, or where the process did not run. What a TLB holds is no walk, and where nearly all pages
    /// had their bit it is a lower bound.
    pub walks_per_second: Vec<Option<f64>>,
}
