//! What there is at a mark of a play.

use std::collections::BTreeMap;

use mm::vm::{PartOf, Residence};
use mm::{Bare, GroupEvent, GroupId, Mm};

use super::process::Process;
use super::trace::TraceRow;
use crate::script::names::{Named, PAGE, Region};

/// By what is counted, by eighths.
pub(super) type Eighths = BTreeMap<&'static str, [u64; 8]>;

/// What was there at a mark.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// What was said.
    pub(super) label: String,
    /// The program's faults since its mark before: minor, major. `None` at a process's first.
    pub(super) faults: Option<(u64, u64)>,
    /// The process that said it; 0: none, for all have ended.
    pub(super) process: u32,
    /// Events of the whole machine, from the beginning.
    pub(super) events: BTreeMap<String, u64>,
    /// By region or file, what is resident, by eighths.
    pub(super) regions: BTreeMap<String, Eighths>,
    /// By group, its statistics and events.
    pub(super) groups: BTreeMap<String, BTreeMap<String, u64>>,
}

/// All marks, and where the play stopped, if it did not come to the end.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) seen: Vec<Seen>,
    pub(super) stopped: Option<String>,
    /// Why the first process ended, if its lines went on.
    pub(super) ended: Option<String>,
    /// Calls that were refused.
    pub(super) refused: Vec<String>,
    /// Whether pages were kept by generations in the end.
    pub(super) by_generations: bool,
    /// Files that were set and that nothing here stands for.
    pub(super) unplayed: Vec<String>,
    /// Batches of reclaim, if they were asked for.
    pub(super) trace: Vec<TraceRow>,
}

/// What is resident of all that `process` has names for.
pub(super) fn residence(mm: &Mm<Bare>, process: &Process) -> BTreeMap<String, Eighths> {
    let of = |named: &Named<Bare>| match named {
        Named::Region(region) => of_region(mm, process, *region),
        Named::File { file, bytes } => {
            let edge = |eighth: u32| (bytes / PAGE * u64::from(eighth)).div_ceil(8) as u32;
            let cached = |eighth: usize| {
                file.cached_within(mm.machine(), edge(eighth as u32), edge(eighth as u32 + 1))
            };
            BTreeMap::from([("cached", std::array::from_fn(cached))])
        }
    };
    process.names.all().iter().map(|this| (this.id.clone(), of(&this.named))).collect()
}

fn of_region(mm: &Mm<Bare>, process: &Process, region: Region) -> Eighths {
    let mut all = Eighths::new();
    let pages = region.bytes / PAGE;
    for page in 0..pages as u32 {
        let eighth = (u64::from(page) * 8 / pages) as usize;
        let mut count = |what| all.entry(what).or_default()[eighth] += 1;
        let part = match mm.spaces().residence(&process.space, region.start.add(page)) {
            Residence::Absent => continue,
            Residence::Swapped => {
                count("swapped");
                continue;
            }
            Residence::Zeros(part) => {
                count("zero");
                part
            }
            Residence::Page(node, part) => {
                count(if node.0 == 0 { "node0" } else { "node1" });
                part
            }
        };
        count("present");
        // The kernel's flag says so of every folio of several pages.
        if part != PartOf::Itself {
            count("huge");
        }
    }
    all
}

/// What is counted of all groups but the root. Who reads it brings statistics up to date.
pub(super) fn groups(mm: &Mm<Bare>) -> BTreeMap<String, BTreeMap<String, u64>> {
    let of = |group: GroupId| {
        let mut all = mm.views().memory_stat(group).0;
        for event in GroupEvent::ALL {
            all.insert(format!("events {}", event.name()), mm.memcg().events(group, event));
        }
        all.insert("current".into(), mm.memcg().usage(group));
        all.insert("swap.current".into(), mm.memcg().swap_usage(group));
        (mm.memcg().name(group), all)
    };
    mm.memcg().all().filter(|&group| group != GroupId::ROOT).map(of).collect()
}
