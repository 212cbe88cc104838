//! The machine of a scene: its zones with as much free as its kernel had at the first mark, and what was set.

use std::cell::{Cell, RefCell};

use mm::knobs::StandsFor;
use mm::vm::HugePages;
use mm::{
    Bare, CpuSpec, KNOBS, Knob, Knobs, Mm, Node, NodeSpec, Policy, Request, Topology, Urgency, WordSize,
    ZoneKind,
};

use super::daemons::Woken;
use super::play::{At, Stop};
use super::program::{Line, What, swap_disk};
use crate::conform::read::capture::{kernel_version, spec};
use crate::conform::read::sections::{FormatError, Sections};
use crate::conform::read::zoneinfo::{ZoneInfo, zones};

/// The machine that a scene is played on.
pub(super) struct Played {
    pub(super) mm: Mm<Bare>,
    /// The disk for swap, in pages.
    pub(super) swap_disk: u32,
    pub(super) woken: RefCell<Vec<Woken>>,
    pub(super) flush: Cell<bool>,
    /// How often statistics were brought up to date by the clock.
    pub(super) flushes: Cell<u64>,
    /// What is to be free at the first mark, while that is to come.
    to_fill: RefCell<Vec<ZoneInfo>>,
}

impl Played {
    pub(super) fn new(sections: &Sections<'_>, program: &[Line]) -> Result<Self, FormatError> {
        let swap_disk = swap_disk(sections.need("scene")?);
        let zones = zones(sections.need("zoneinfo")?)?;
        let zones: Vec<ZoneInfo> = zones.into_iter().filter(|zone| zone.managed > 0).collect();
        let policy = Policy::linux(kernel_version(sections.word("uname"))?);
        let knobs = Knobs::default();
        for &(_, line) in &sections.need("settings")?.lines {
            if let Some((file, value)) = line.split_once('=') {
                set(file, value, |knob, value| drop(knobs.set(knob, value)));
            }
        }
        let topology = topology(sections, &zones)?;
        let mm = Mm::new(Bare::default(), topology, policy, knobs);
        let mut played = Self {
            mm: mm.map_err(|error| FormatError::new(0, error))?,
            swap_disk,
            woken: RefCell::default(),
            flush: Cell::default(),
            flushes: Cell::default(),
            to_fill: RefCell::default(),
        };
        // What a program touches before its first mark is not to be missing twice.
        if touches_before_first_mark(program) {
            played.to_fill = RefCell::new(zones);
        } else {
            for zone in &zones {
                played.fill(zone);
            }
        }
        Ok(played)
    }

    /// The first mark is said: what its kernel had free is known of that moment.
    pub(super) fn fill_to_first_mark(&self) {
        self.to_fill.take().iter().for_each(|zone| self.fill(zone));
    }

    /// Whether a setting is one that changes what is reclaimed, and that nothing here stands for.
    pub(super) fn check_setting(file: &str, value: &str, at: At) -> Result<(), Stop> {
        if file == "/proc/sys/vm/zone_reclaim_mode" && value.trim() != "0" {
            return Err(at.stop("vm.zone_reclaim_mode is not simulated"));
        }
        Ok(())
    }

    /// The scene sets a file; says whether anything here stands for it.
    pub(super) fn set(&self, file: &str, value: &str) -> bool {
        set(file, value, |knob, value| drop(self.mm.set_knob(knob, value)))
    }

    /// Takes what `zone` had not free.
    fn fill(&self, zone: &ZoneInfo) {
        let Some(kind) = ZoneKind::from_name(&zone.name) else { return };
        let is_it = |other: &&mm::Zone<Bare>| other.kind() == kind && other.node() == Node(zone.node);
        let Some(ours) = self.mm.zones().iter().find(is_it) else { return };
        let request = Request {
            highest: kind,
            node: Some(Node(zone.node)),
            this_node: true,
            urgency: Urgency::Never,
            ..Request::KERNEL
        };
        // What its kernel's one CPU kept is as good as free; of several, others' is not to be had.
        let kept = if let [pageset] = zone.pagesets[..] { pageset.count.into() } else { 0 };
        while ours.free_pages_exact() > zone.free + kept && self.mm.alloc(request).is_ok() {}
    }
}

fn touches_before_first_mark(program: &[Line]) -> bool {
    let before = program.iter().take_while(|line| !matches!(line.what, What::Mark));
    let mut before = before.into_iter();
    before.any(|line| matches!(line.what, What::Touch { .. } | What::Calls { .. } | What::Zipf { .. }))
}

/// Gives the knob that stands for `file` and the value that is meant to `then`, if there is one.
fn set(file: &str, value: &str, then: impl FnOnce(Knob, u64)) -> bool {
    let is_of = |stands_for: StandsFor| match stands_for {
        StandsFor::Sysctl(path) | StandsFor::Sysfs(path) => path == file,
        _ => false,
    };
    let Some(spec) = KNOBS.iter().find(|spec| is_of(spec.stands_for)) else { return false };
    // Computed by the kernel from the machine, and not set by anybody.
    if spec.knob == Knob::MinFreeKbytes {
        return true;
    }
    let chosen = value.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    match spec.knob.parse_one(chosen.unwrap_or(value.trim())) {
        Ok(value) => {
            then(spec.knob, value);
            true
        }
        Err(_) => false,
    }
}

fn topology(sections: &Sections<'_>, zones: &[ZoneInfo]) -> Result<Topology, FormatError> {
    let mut distance = vec![];
    let mut cpus = vec![];
    for &(line, text) in &sections.need("topology")?.lines {
        if let Some((_, row)) = text.split_once("/distance=") {
            let row: Result<Vec<u32>, _> = row.split_whitespace().map(str::parse).collect();
            distance.push(row.map_err(|_| FormatError::new(line, "a distance is no number"))?);
        }
        if let Some((path, _)) = text.split_once("/cpulist=") {
            let node = path.rsplit("node").next().and_then(|node| node.parse().ok());
            let node = node.ok_or_else(|| FormatError::new(line, "a node is no number"))?;
            // One CPU a node, as all scenes have it.
            cpus.push(CpuSpec { node: Node(node), cache_slice: 0 });
        }
    }
    let mut nodes = vec![NodeSpec::default(); distance.len()];
    for zone in zones {
        let Some(kind) = ZoneKind::from_name(&zone.name) else { continue };
        let node = nodes.get_mut(usize::from(zone.node));
        let node = node.ok_or_else(|| FormatError::new(zone.line, "a zone of a node without distances"))?;
        node.zones.push(spec(zone, kind)?);
    }
    let topology = Topology { word: WordSize::of(&nodes), nodes, cpus, distance };
    topology.validate().map_err(|what| FormatError::new(0, what))?;
    Ok(topology)
}

/// What a region says of huge pages at first.
pub(super) fn spec_of(pages: u32, huge: HugePages) -> mm::vm::MapSpec<Bare> {
    mm::vm::MapSpec { huge, ..mm::vm::MapSpec::anonymous(pages) }.unreserved()
}
