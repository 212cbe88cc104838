//! What a recording says of its origin: all that a replay or a reader needs besides the events.

use std::collections::BTreeMap;

use mm::{CpuSpec, Node, NodeSpec, Pfn, Topology, WordSize, ZoneKind, ZoneSpec};
use serde::{Deserialize, Serialize};

/// Written when a recording starts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// What made the recording: `freehold 0.1.0`, or `perf 6.1` for an import.
    pub source: String,
    /// The clock of event times, `monotonic` or `perf` (an import without `-k`).
    pub clock: String,
    /// The kernel's release, as `uname -r` has it.
    pub kernel: String,
    /// The CPU's model name.
    pub cpu_model: String,
    /// CPU numbers are below this.
    pub cpus: u32,
    /// The host's nodes.
    pub nodes: Vec<NodeInfo>,
    /// The last-level cache of CPU 0.
    pub cache: Option<CacheInfo>,
    /// `/proc/zoneinfo` when the recording started.
    pub zoneinfo: String,
    /// What zoneinfo says of where zones lie.
    pub zones: Vec<ZoneSpan>,
    /// The files of `/proc/sys/vm`, by name, in the kernel's text.
    pub vm: BTreeMap<String, String>,
    /// What recording costs, measured before the start.
    pub cost: Option<RecordingCost>,
    /// By what: `bpf` or `perf`; empty in older recordings and in imported ones, which are perf's.
    pub via: String,
    /// The tracepoints recorded: `kmem:mm_page_alloc` …
    pub tracepoints: Vec<String>,
    /// Which events were kept.
    pub keep: Keep,
    /// The command that was recorded, empty for none.
    pub command: Vec<String>,
    /// Start by the clock of event times, in ns.
    pub start_ns: u64,
    /// Start in ns since 1970.
    pub start_unix_ns: u64,
    /// Whether addresses and names are hidden.
    pub masked: bool,
    /// Files of /sys and /proc that say how memory is managed, besides `vm`: by their paths, in the kernel's text.
    pub settings: BTreeMap<String, String>,
    /// /proc/vmstat when the recording started.
    pub counters: BTreeMap<String, u64>,
    /// Devices of file systems that are in memory (tmpfs), as names of files begin: `0:24`.
    pub memory_devices: Vec<String>,
    /// Whether the command ran without huge pages (`PR_SET_THP_DISABLE`), so that each first touch of a page has its fault.
    pub without_huge_pages: bool,
}

/// Written when a recording ends.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingEnd {
    /// End by the clock of event times, in ns.
    pub end_ns: u64,
    /// End in ns since 1970.
    pub end_unix_ns: u64,
    /// Events in the recording, marks and losses among them.
    pub events: u64,
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// Events that could not be expressed: frames above 16 TiB, unknown orders or types, records that made no sense.
    pub unreadable: u64,
    /// Events of others that were left out as [`Keep::Workload`] says.
    pub left_out: u64,
    /// How the command ended: its exit status, or 128 + the signal; `None` if it did not end or there was none.
    pub exit_status: Option<i32>,
    /// Whether the recording was stopped from outside (Ctrl-C, SIGTERM).
    pub interrupted: bool,
    /// /proc/vmstat when the recording ended.
    pub counters: BTreeMap<String, u64>,
    /// What the command, or the process, used meanwhile by the kernel's own account.
    pub usage: Option<Usage>,
    /// What looking at accessed bits cost; `None` where that was not done.
    pub accessed: Option<AccessedCost>,
    /// What was sampled to keep a budget (`record --budget`); `None` where there was none.
    pub sampled: Option<Sampled>,
}

/// What a recording cost the tasks that were recorded, and what was sampled to keep it within a budget.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampled {
    /// What it might cost, in millionths of the tasks' own CPU time.
    pub budget_ppm: u32,
    /// What its events cost by the measurement before the start, ns.
    pub spent_ns: u64,
    /// CPU time of the tasks, that with it, ns.
    pub cpu_ns: u64,
    /// Page events that were counted and not recorded.
    pub page_events_counted: u64,
    /// Pages for user space (`__GFP_MOVABLE`) that were handed out by those.
    pub user_pages_counted: u64,
    /// Of `spent_ns`, what these cost.
    pub counted_ns: u64,
    /// What was sampled from when on.
    pub steps: Vec<SamplingStep>,
}

/// A step towards the budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplingStep {
    /// When, ns by the clock of event times.
    pub at_ns: u64,
    /// From then on page events of one unit of 1024 frames in so many were recorded.
    pub page_events_one_in: u32,
    /// From then on accessed bits were looked at no more.
    pub stops_accesses: bool,
}

/// What it cost to look at which pages are used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AccessedCost {
    /// Rounds: clearing once, looking once.
    pub rounds: u32,
    /// The recorder's CPU time, ns.
    pub own_ns: u64,
    /// The longest that the lock of an address space was held against faults and mmap, ns.
    pub held_ns_max: u64,
    /// Pages that got their bit back in the time before the look, each by a walk of the page tables that writes to them. Where it is known
    /// which, all that had their bit before the next clearing or the end: new ones too, so more than were paid for.
    pub accessed_pages: u64,
    /// Whether it is known which pages these were, from page tables, and not only how many of each mapping.
    #[serde(default)]
    pub by_page: bool,
    /// ns that each of them lost by that, as measured before; 0 where it was not.
    #[serde(default)]
    pub bit_ns: u64,
}

/// What a command and its descendants used from start to end, as wait4(2) says; of a process that was recorded while it ran,
/// what /proc says of it: the difference from start to end, and the peak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// CPU time in user mode, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, ns.
    pub system_ns: u64,
    /// Faults that needed no disk (`ru_minflt`).
    pub minor_faults: u64,
    /// Faults that did (`ru_majflt`).
    pub major_faults: u64,
    /// The most pages that one process of them had resident at a time (`ru_maxrss`, `VmHWM`).
    pub peak_rss_pages: u64,
}

/// Which events are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Those of the workload's tasks, and besides: switches to and from them, frees by anybody of pages that they
    /// allocated (until freed whole), and losses.
    #[default]
    Workload,
    /// All, whoever's they are.
    System,
}

/// A node of the recording host.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Its number.
    pub node: u16,
    /// Its CPUs.
    pub cpus: Vec<u16>,
    /// Its distance to each node, as the firmware says: 10 is local.
    pub distance: Vec<u32>,
}

/// A cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CacheInfo {
    /// Its size in bytes.
    pub bytes: u64,
    /// CPUs that share it.
    pub shared_by: u32,
}

/// Where a zone lies. Counts are pages.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ZoneSpan {
    /// Its node.
    pub node: u16,
    /// The kernel's name for it: `DMA`, `DMA32`, `Normal`, `Movable`, `Device`.
    pub name: String,
    /// The first frame.
    pub start_pfn: u64,
    /// Frames from the first to the last.
    pub spanned: u64,
    /// Frames that exist.
    pub present: u64,
    /// Frames that the page allocator manages.
    pub managed: u64,
}

impl ZoneSpan {
    /// Whether `pfn` lies within.
    pub const fn contains(&self, pfn: Pfn) -> bool {
        let pfn = pfn.0 as u64;
        pfn >= self.start_pfn && pfn - self.start_pfn < self.spanned
    }
}

/// What recording cost in a loop of page faults, with the events on and off in turn, on the recording host.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RecordingCost {
    /// ns that one event adds to the task that causes it: the median over the rounds.
    pub ns_per_event: f64,
    /// ns that a fault takes while recording, allocation and free of its page included: the median.
    pub fault_ns_recorded: f64,
    /// ns that it takes otherwise: the median.
    pub fault_ns: f64,
    /// Events per fault.
    pub events_per_fault: f64,
    /// Rounds that were measured.
    pub rounds: u32,
    /// ns that a page's next access takes longer once its accessed bit was cleared; 0 where that was not measured.
    #[serde(default)]
    pub bit_ns: u64,
}

impl AccessedCost {
    /// What a program loses for each page that gets its bit back where it was not measured, ns: 173 to 201 were measured on a guest on an AMD
    /// Genoa, 250 to 380 on one on an Intel Xeon.
    const BIT_NS: u64 = 190;

    /// What programs lost for that, ns.
    pub const fn walks_ns(&self) -> u64 {
        let bit_ns = if self.bit_ns > 0 { self.bit_ns } else { Self::BIT_NS };
        self.accessed_pages * bit_ns
    }
}

impl Meta {
    /// The zone that holds `pfn`, as an index into [`Meta::zones`].
    pub fn zone_of(&self, pfn: Pfn) -> Option<usize> {
        self.zones.iter().position(|zone| zone.contains(pfn))
    }

    /// The recording host as a machine for `mm`.
    ///
    /// # Errors
    /// Says what is not known of the host or cannot be.
    pub fn topology(&self) -> Result<Topology, String> {
        if self.nodes.is_empty() || self.zones.is_empty() {
            return Err("the recording does not describe its host's nodes and zones".into());
        }
        let mut nodes = vec![NodeSpec::default(); self.nodes.len()];
        for zone in self.zones.iter().filter(|zone| zone.managed > 0) {
            let kind = ZoneKind::from_name(&zone.name);
            let (Some(kind), Some(node)) = (kind, nodes.get_mut(usize::from(zone.node))) else { continue };
            node.zones.push(zone.spec(kind)?);
        }
        let slice = self.cache.map_or(0, |cache| cache.bytes / u64::from(cache.shared_by.max(1)));
        let mut cpus: Vec<(u16, u16)> =
            self.nodes.iter().flat_map(|node| node.cpus.iter().map(|&cpu| (cpu, node.node))).collect();
        cpus.sort_unstable();
        let cpus = cpus.iter().map(|&(_, node)| CpuSpec { node: Node(node), cache_slice: slice }).collect();
        let distance = self.nodes.iter().map(|node| node.distance.clone()).collect();
        let topology = Topology { word: WordSize::of(&nodes), nodes, cpus, distance };
        topology.validate()?;
        Ok(topology)
    }
}

impl ZoneSpan {
    fn spec(&self, kind: ZoneKind) -> Result<ZoneSpec, String> {
        let small = |value: u64| {
            u32::try_from(value)
                .map_err(|_| format!("zone {} of node {} ends above 16 TiB", self.name, self.node))
        };
        Ok(ZoneSpec {
            kind,
            start: Pfn(small(self.start_pfn)?),
            spanned: small(self.spanned)?,
            present: small(self.present)?,
            managed: small(self.managed)?,
        })
    }
}
