//! The text beside a page trace: the kernel, the knob, zoneinfo before and after, and QEMU's arguments, from which
//! follows what a trace itself does not say: which zone a frame is in, which node a CPU.

use std::ops::Range;

use mm::{CpuSpec, Node, NodeSpec, Pfn, Topology, WordSize, ZoneKind, ZoneSpec};

use super::sections::{FormatError, Section, Sections, number, number_set};
use super::zoneinfo::{self, ZoneInfo};

/// What stands beside a page trace.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What `uname -r` said.
    pub release: String,
    /// `vm.pcp_batch_scale_max` at the beginning, on a kernel that has it.
    pub scale: Option<u32>,
    /// The populated zones when the trace began, in order of node and kind.
    pub before: Vec<ZoneInfo>,
    /// The same when it had ended.
    pub after: Vec<ZoneInfo>,
    /// Events that the kernel lost.
    pub lost: u64,
    /// Frames of each zone, in the order of `before`.
    pub spans: Vec<Range<u32>>,
    /// The node of each CPU.
    pub cpu_nodes: Vec<Node>,
    /// Each CPU's share of the last-level cache, in bytes.
    pub cache_slice: u64,
}

/// Frames of 16 MiB, of 4 GiB, and where QEMU's q35 ends memory below 4 GiB if there is more than 2.75 GiB.
const DMA_END: u32 = 16 << 8;
const DMA32_END: u32 = 1 << 20;
const LOW_END: u32 = 1 << 19;
const LOW_WITHOUT_HOLE: u64 = 0xb_0000;

/// QEMU's CPUs share 16 MiB, far more than the 756 KiB a CPU at which the rule for orders 1 to 3 changes.
const EMULATED_CACHE_SLICE: u64 = 4 << 20;

impl Beside {
    /// Reads the text beside a trace.
    ///
    /// # Errors
    /// The line that cannot be read, or the section that is missing.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let sections = Sections::of(text);
        let populated = |name| -> Result<Vec<ZoneInfo>, FormatError> {
            let mut zones = zoneinfo::zones(sections.need(name)?)?;
            zones.retain(|zone| zone.managed > 0 && ZoneKind::from_name(&zone.name).is_some());
            Ok(zones)
        };
        let (before, after) = (populated("zoneinfo-before")?, populated("zoneinfo-after")?);
        if before.is_empty() {
            return Err(FormatError::new(0, "zoneinfo-before names no populated zone"));
        }
        let knob = sections.word("knob");
        let emulated = Emulated::find(text)?;
        Ok(Self {
            release: sections.word("uname").to_string(),
            scale: if knob.is_empty() { None } else { Some(number(0, "the knob", knob)?) },
            lost: sections.get("stats").map_or(0, lost_events),
            spans: spans(&before, &emulated)?,
            cpu_nodes: cpu_nodes(&before, &emulated)?,
            cache_slice: EMULATED_CACHE_SLICE,
            before,
            after,
        })
    }

    /// Which zone of `before` a frame is in.
    pub fn zone_of(&self, pfn: Pfn) -> Option<usize> {
        self.spans.iter().position(|span| span.contains(&pfn.0))
    }

    /// A machine with these zones and CPUs. Where frames lie does not matter to mm, so that the zones follow each other
    /// without holes.
    ///
    /// # Errors
    /// If there is no such machine.
    pub fn topology(&self) -> Result<Topology, FormatError> {
        let nodes = self
            .before
            .iter()
            .map(|zone| usize::from(zone.node))
            .chain(self.cpu_nodes.iter().map(|n| n.0.into()));
        let count = nodes.max().unwrap_or(0) + 1;
        let mut topology = Topology {
            word: WordSize::default(),
            nodes: vec![NodeSpec::default(); count],
            cpus: self
                .cpu_nodes
                .iter()
                .map(|&node| CpuSpec { node, cache_slice: self.cache_slice })
                .collect(),
            distance: (0..count)
                .map(|from| (0..count).map(|to| if from == to { 10 } else { 20 }).collect())
                .collect(),
        };
        let mut next = 1 << 10;
        for zone in &self.before {
            let Some(kind) = ZoneKind::from_name(&zone.name) else { continue };
            let start = Pfn(next);
            let end = u64::from(next) + u64::from(zone.managed);
            next = u32::try_from(end.next_multiple_of(1 << 10))
                .map_err(|_| FormatError::new(zone.line, "there are more than 16 TiB of memory"))?;
            let managed = zone.managed;
            let spec = ZoneSpec { kind, start, spanned: managed, present: managed, managed };
            topology.nodes[usize::from(zone.node)].zones.push(spec);
        }
        topology.word = WordSize::of(&topology.nodes);
        topology.validate().map_err(|what| FormatError::new(0, what))?;
        Ok(topology)
    }
}

/// Sum of what the ring buffers say they lost.
fn lost_events(section: &Section<'_>) -> u64 {
    let lost = section.lines.iter().filter_map(|(_, text)| {
        let (name, value) = text.split_once(':')?;
        let counts = matches!(name.trim(), "overrun" | "dropped events");
        counts.then(|| value.trim().parse::<u64>().ok()).flatten()
    });
    lost.fold(0, u64::saturating_add)
}

/// What QEMU was told: each node's frames and CPUs.
#[derive(Clone, Debug, Default)]
pub(in crate::conform) struct Emulated {
    frames: Vec<u64>,
    pub(in crate::conform) cpus: Vec<Vec<u16>>,
}

impl Emulated {
    pub(in crate::conform) fn find(text: &str) -> Result<Self, FormatError> {
        let mut emulated = Self::default();
        for (index, line) in text.lines().enumerate() {
            if let Some(arguments) = line.strip_prefix("# qemu:") {
                emulated.read(index + 1, arguments)?;
            }
        }
        Ok(emulated)
    }

    fn read(&mut self, line: usize, arguments: &str) -> Result<(), FormatError> {
        for argument in arguments.split_whitespace() {
            if argument.starts_with("memory-backend-") {
                if let Some(size) = value_of(argument, "size") {
                    self.frames.push(frames(line, size)?);
                }
            } else if let Some(rest) = argument.strip_prefix("node,") {
                let node: usize = value_of(rest, "nodeid").map_or(Ok(0), |id| number(line, "nodeid", id))?;
                if node > 255 {
                    return Err(FormatError::new(line, "nodeid is above 255"));
                }
                self.cpus.resize(self.cpus.len().max(node + 1), vec![]);
                for cpus in rest.split(',').filter_map(|part| part.strip_prefix("cpus=")) {
                    self.cpus[node].extend(number_set(line, "cpus", cpus)?);
                }
            }
        }
        Ok(())
    }

    /// The frames of each node: below the hole first, then above 4 GiB, node after node.
    fn ranges(&self) -> Vec<(u16, Range<u32>)> {
        let total: u64 = self.frames.iter().sum();
        let low = if total > LOW_WITHOUT_HOLE { u64::from(LOW_END) } else { total };
        let mut ranges = vec![];
        let mut begin = 0;
        for (node, frames) in self.frames.iter().enumerate() {
            let end = begin + frames;
            let shift = u64::from(DMA32_END) - low.min(u64::from(DMA32_END));
            for (first, last, up) in
                [(begin.min(low), end.min(low), 0), (begin.max(low), end.max(low), shift)]
            {
                if let (true, Ok(end)) = (first < last, u32::try_from(last + up)) {
                    ranges.push((node as u16, (first + up) as u32..end));
                }
            }
            begin = end;
        }
        ranges
    }
}

/// `512M`, `2G` as frames.
fn frames(line: usize, size: &str) -> Result<u64, FormatError> {
    let (digits, shift) = match size.strip_suffix('G') {
        Some(digits) => (digits, 18),
        None => (size.strip_suffix('M').unwrap_or(size), 8),
    };
    let size: u32 = number(line, "a memory size", digits)?;
    Ok(u64::from(size) << shift)
}

fn value_of<'a>(argument: &'a str, key: &str) -> Option<&'a str> {
    argument.split(',').find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
}

/// The frames of each zone: as zoneinfo says, or else by x86's limits and by node.
fn spans(zones: &[ZoneInfo], emulated: &Emulated) -> Result<Vec<Range<u32>>, FormatError> {
    if let Some(spans) = spans_said(zones) {
        return Ok(spans);
    }
    let nodes = match emulated.ranges() {
        ranges if ranges.is_empty() => node_ranges(zones),
        ranges => ranges,
    };
    zones.iter().map(|zone| span_by_limits(zone, zones, &nodes)).collect()
}

/// The frames of each zone, if zoneinfo says that of all.
pub(in crate::conform) fn spans_said(zones: &[ZoneInfo]) -> Option<Vec<Range<u32>>> {
    let said = |zone: &ZoneInfo| -> Option<Range<u32>> {
        let start = zone.start_pfn?;
        (zone.spanned > 0).then(|| start..start.saturating_add(zone.spanned))
    };
    zones.iter().map(said).collect()
}

fn span_by_limits(
    zone: &ZoneInfo,
    zones: &[ZoneInfo],
    nodes: &[(u16, Range<u32>)],
) -> Result<Range<u32>, FormatError> {
    let has_dma = zones.iter().any(|zone| zone.name == ZoneKind::Dma.name());
    let limits = match ZoneKind::from_name(&zone.name) {
        Some(ZoneKind::Dma) => 0..DMA_END,
        Some(ZoneKind::Dma32) if has_dma => DMA_END..DMA32_END,
        Some(ZoneKind::Dma32) => 0..DMA32_END,
        Some(ZoneKind::Normal) => DMA32_END..u32::MAX,
        Some(ZoneKind::HighMem | ZoneKind::Movable) | None => {
            return Err(FormatError::new(zone.line, format!("where zone {} lies cannot be told", zone.name)));
        }
    };
    if zones.iter().filter(|other| other.name == zone.name).count() == 1 {
        return Ok(limits);
    }
    let of_node = nodes.iter().filter(|(node, _)| *node == zone.node);
    let parts = of_node.map(|(_, range)| range.start.max(limits.start)..range.end.min(limits.end));
    let part = parts.filter(|part| part.start < part.end).max_by_key(ExactSizeIterator::len);
    part.ok_or_else(|| FormatError::new(zone.line, "which frames are this node's cannot be told"))
}

/// Without QEMU's arguments: nodes follow each other, each as large as its zones, rounded up to 128 MiB.
fn node_ranges(zones: &[ZoneInfo]) -> Vec<(u16, Range<u32>)> {
    let count = zones.iter().map(|zone| usize::from(zone.node) + 1).max().unwrap_or(0);
    let mut guessed = Emulated { frames: vec![0; count], cpus: vec![] };
    for zone in zones {
        guessed.frames[usize::from(zone.node)] += u64::from(zone.managed);
    }
    for frames in &mut guessed.frames {
        *frames = frames.next_multiple_of(1 << 15);
    }
    guessed.ranges()
}

/// The node of each CPU that has a pageset: as QEMU was told, or else in equal parts.
fn cpu_nodes(zones: &[ZoneInfo], emulated: &Emulated) -> Result<Vec<Node>, FormatError> {
    let cpus =
        zones.iter().flat_map(|zone| &zone.pagesets).map(|set| usize::from(set.cpu) + 1).max().unwrap_or(0);
    if cpus == 0 || cpus > 1024 {
        return Err(FormatError::new(
            zones[0].line,
            format!("zoneinfo-before names {cpus} CPUs; 1 to 1024 can be"),
        ));
    }
    let nodes = zones.iter().map(|zone| usize::from(zone.node) + 1).max().unwrap_or(1);
    let mut of_cpu: Vec<Node> = (0..cpus).map(|cpu| Node((cpu * nodes / cpus) as u16)).collect();
    for (node, told) in emulated.cpus.iter().enumerate() {
        for &cpu in told {
            if let Some(of_cpu) = of_cpu.get_mut(usize::from(cpu)) {
                *of_cpu = Node(node as u16);
            }
        }
    }
    Ok(of_cpu)
}
