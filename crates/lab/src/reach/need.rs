//! What must be there for a knob to act, and what is missing.

use mm::knobs::Need;
use mm::policy::{SharedSwapInRule, SynchronousSwapInRule};
use mm::{Knob, Node, Policy, Topology, ZoneKind};

use super::Brings;

/// Why nothing is read ahead.
const READS_ALONE: &str =
    "from zram each page is read alone, but what was forked (until 7.0); swap.disk has another kind of swap";

/// Where a knob is to act.
#[derive(Clone, Copy, Debug)]
pub struct Where<'a> {
    /// What the workload brings.
    pub brings: Brings,
    /// The machine.
    pub topology: &'a Topology,
    /// The policy.
    pub policy: &'a Policy,
    /// All knobs that are set, at the start or later, with their values; one may be there several times.
    pub set: &'a [(Knob, u64)],
}

/// What is missing of `need`, as the end of "cannot act: …".
pub(super) fn missing(need: &Need, place: &Where<'_>) -> Option<String> {
    let Where { brings, topology, policy, .. } = *place;
    let (has, text) = match *need {
        Need::Daemons => (brings.daemons, "there are no daemons and no ticks here"),
        Need::Slabs if brings.is_recording => {
            (brings.slabs, "the recording has no slab events (record --events page,sched,slab has them)")
        }
        Need::Slabs => (brings.slabs, "the workload takes no slab objects"),
        Need::Spaces | Need::Forks | Need::Files | Need::Programs | Need::Killable | Need::Hints
            if brings.is_recording =>
        {
            (
                false,
                "the recording has page and slab events, but not what the program did to its memory (record has it by default)",
            )
        }
        Need::Spaces => (brings.spaces, "the workload has no address spaces"),
        Need::Forks => (brings.forks, "nothing here forks and shares its pages with its child"),
        Need::Files => (brings.files, "the workload writes to no files"),
        Need::Programs => (brings.programs, "the workload has no pages to be looked through for promotion"),
        Need::Killable => (brings.killable, "the workload has no programs that can be killed"),
        Need::Hints => (brings.hints, "the workload has no tasks whose pages NUMA balancing makes fault"),
        // Known after the run (`reach::after`).
        Need::Reclaim => return None,
        Need::SeveralNodes => (has_several_nodes(topology), "the machine has memory on one node only"),
        Need::SlowNode => (has_slow_node(topology), "the machine has no node without CPUs"),
        Need::ZoneBelowAnother(kind) => {
            let text = match kind {
                ZoneKind::Normal => "no node of the machine has HighMem or Movable above its zone Normal",
                _ => "no node of the machine has such a zone with a higher one above it",
            };
            (has_zone_below_another(topology, kind), text)
        }
        Need::HighMem => {
            (has_zone(topology, ZoneKind::HighMem), "the machine has no HighMem (32-bit machines do)")
        }
        Need::OrderOfZones => {
            (has_order(topology), "on the machine both orders ask the same zones in the same order")
        }
        Need::RoomForAnon(..) | Need::Swap(_) | Need::ReadsAhead(_) | Need::ReadsPrivateAhead(_) => {
            place.has_somewhere(need)
        }
        Need::Rule(has, text) => (has(policy.rules()), text),
        Need::HugePages if place.has(Knob::Hugepages2048kB, |value| value == INHERIT) => {
            let text = "transparent_hugepage.enabled is 0, and huge pages are nobody's";
            (place.has_huge_pages(), text)
        }
        Need::HugePages => {
            let text = "transparent_hugepage.hugepages-2048kB.enabled is 0, and huge pages are nobody's";
            (place.has_huge_pages(), text)
        }
        Need::Other(knob, suits, text) => (place.has(knob, suits), text),
    };
    (!has).then(|| match need {
        Need::Rule(..) => format!("{}: {text}", policy.name()),
        _ => text.to_owned(),
    })
}

/// Of the file of a size: as that of all sizes says.
const INHERIT: u64 = 3;

impl Where<'_> {
    /// Whether somebody may have huge pages at any time, by their own file or, where that inherits, by that of all sizes.
    fn has_huge_pages(&self) -> bool {
        let size = Knob::Hugepages2048kB;
        self.has(size, |value| value != 0 && value != INHERIT)
            || self.has(size, |value| value == INHERIT)
                && self.has(Knob::TransparentHugepage, |value| value != 0)
    }

    /// Whether there is somewhere for pages to go as `need` says, and what to say where there is not.
    fn has_somewhere(&self, need: &Need) -> (bool, &'static str) {
        match *need {
            Need::RoomForAnon(demotes, swaps) => {
                let demotes = self.has(demotes, |value| value == 1) && has_slow_node(self.topology);
                let text = "nothing takes anonymous pages in: there is no swap (zram.disksize), and no pages are demoted";
                (demotes || self.has_swap(swaps), text)
            }
            Need::Swap(swaps @ &[Knob::SwapDisk]) => {
                (self.has_swap(swaps), "there is no swap on a disk (swap.disk)")
            }
            Need::Swap(swaps) => (self.has_swap(swaps), "there is no swap (zram.disksize)"),
            Need::ReadsAhead(disk) => {
                let from_zram = self.policy.rules().reclaim.swap.shared_in == SharedSwapInRule::Cluster;
                (from_zram || self.reads_private_ahead() || self.has_swap(&[disk]), READS_ALONE)
            }
            Need::ReadsPrivateAhead(disk) => {
                (self.reads_private_ahead() || self.has_swap(&[disk]), READS_ALONE)
            }
            _ => (true, ""),
        }
    }

    /// Whether private memory is read from zram with other pages.
    fn reads_private_ahead(&self) -> bool {
        match self.policy.rules().reclaim.swap.synchronous_in {
            SynchronousSwapInRule::AsFromDisk => true,
            SynchronousSwapInRule::AloneForOne => self.brings.forks,
            SynchronousSwapInRule::Alone => false,
        }
    }

    /// Whether there is swap at any time whose size is one of `sizes`: as is set, or where nothing of it is, as was recorded.
    fn has_swap(&self, sizes: &[Knob]) -> bool {
        if self.set.iter().any(|(knob, _)| matches!(knob, Knob::ZramDisksize | Knob::SwapDisk)) {
            return sizes.iter().any(|&size| self.has(size, |value| value > 0));
        }
        self.brings.swap.is_some_and(|size| sizes.contains(&size))
    }

    /// Whether `knob` has, at any time, a value that `suits`.
    fn has(&self, knob: Knob, suits: impl Fn(u64) -> bool) -> bool {
        let mut values = self.set.iter().filter(|(set, _)| *set == knob).map(|(_, value)| *value).peekable();
        if values.peek().is_none() { suits(self.policy.default_of(knob)) } else { values.any(suits) }
    }
}

fn has_slow_node(topology: &Topology) -> bool {
    let nodes = topology.nodes.iter().zip((0..).map(Node));
    nodes.into_iter().any(|(spec, node)| !spec.zones.is_empty() && topology.cpus_of(node) == 0)
}

fn has_several_nodes(topology: &Topology) -> bool {
    topology.nodes.iter().filter(|node| !node.zones.is_empty()).count() > 1
}

fn has_zone(topology: &Topology, kind: ZoneKind) -> bool {
    topology.nodes.iter().flat_map(|node| &node.zones).any(|zone| zone.kind == kind)
}

fn has_zone_below_another(topology: &Topology, kind: ZoneKind) -> bool {
    topology.nodes.iter().any(|node| {
        let has = |suits: &dyn Fn(ZoneKind) -> bool| node.zones.iter().any(|zone| suits(zone.kind));
        has(&|of| of == kind) && has(&|of| of > kind)
    })
}

fn has_order(topology: &Topology) -> bool {
    let with_memory = topology.nodes.iter().filter(|node| !node.zones.is_empty());
    with_memory.clone().count() > 1 && with_memory.into_iter().any(|node| node.zones.len() > 1)
}
