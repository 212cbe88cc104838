//! What the memory manager is told of a machine: which zones its nodes have, which CPUs, how far apart.
//!
//! All parameters (watermarks, pageset sizes, fallback lists) follow from this, a [`crate::Policy`] and the knobs.

mod layout;

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::ops::Range;

use crate::ground::ids::{Node, Pfn, ZoneKind};

pub use layout::Firmware;

/// A machine, as its memory manager sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// What its kernel counts in.
    pub word: WordSize,
    /// The nodes; index is the node's number.
    pub nodes: Vec<NodeSpec>,
    /// The CPUs; index is the CPU's number.
    pub cpus: Vec<CpuSpec>,
    /// `distance[from][to]` as the firmware's SLIT says: 10 is local.
    pub distance: Vec<Vec<u32>>,
}

/// The width of a kernel's addresses, which decides what zones it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WordSize {
    /// Only the lowest memory is mapped for good; the rest is HighMem.
    Bits32,
    /// All memory is mapped.
    #[default]
    Bits64,
}

impl WordSize {
    /// The kinds of zone that kernels of this size have on x86, lowest first.
    pub const fn zone_kinds(self) -> &'static [ZoneKind] {
        match self {
            Self::Bits32 => &[ZoneKind::Dma, ZoneKind::Normal, ZoneKind::HighMem, ZoneKind::Movable],
            Self::Bits64 => &[ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable],
        }
    }

    /// The size that `nodes` speak for: 32 bits where one has HighMem.
    pub fn of(nodes: &[NodeSpec]) -> Self {
        let mut zones = nodes.iter().flat_map(|node| &node.zones);
        if zones.any(|zone| zone.kind == ZoneKind::HighMem) { Self::Bits32 } else { Self::Bits64 }
    }

    /// 32 or 64.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bits32 => 32,
            Self::Bits64 => 64,
        }
    }
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeSpec {
    /// Its zones, at most one of a kind, lowest first; empty for a node without memory.
    pub zones: Vec<ZoneSpec>,
}

/// A zone of a node. All counts are pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneSpec {
    /// Its kind.
    pub kind: ZoneKind,
    /// The first frame.
    pub start: Pfn,
    /// Frames from the first to the last, holes included.
    pub spanned: u32,
    /// Frames that exist.
    pub present: u32,
    /// Frames that the page allocator got; the rest was taken at boot.
    pub managed: u32,
}

/// The first mebibyte, in pages, which x86 kernels keep from their allocator since 5.13 (`reserve_real_mode`). Older ones keep parts of it, which is not
/// told apart here.
const FIRST_MEBIBYTE: u32 = 256;

impl ZoneSpec {
    /// The frames that the page allocator got: the lowest of the span, for Linux takes its boot memory from the top. The zone for DMA lacks the
    /// first mebibyte before anything else.
    pub fn managed_span(&self) -> Range<u32> {
        let start = self.start.0;
        let low = if self.kind == ZoneKind::Dma { FIRST_MEBIBYTE.saturating_sub(start) } else { 0 };
        let first = start + low.min(self.spanned.saturating_sub(self.managed));
        first..first + self.managed
    }
}

/// A CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuSpec {
    /// The node that it belongs to.
    pub node: Node,
    /// Bytes of last-level cache, divided by the CPUs that share it.
    pub cache_slice: u64,
}

/// Memory and CPUs of a node, from which [`Firmware`] lays out zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeSize {
    /// Bytes of memory.
    pub bytes: u64,
    /// CPUs; they are numbered node by node.
    pub cpus: u32,
}

impl Topology {
    /// The number of CPUs of `node`.
    pub fn cpus_of(&self, node: Node) -> usize {
        self.cpus.iter().filter(|cpu| cpu.node == node).count()
    }

    /// The number of CPUs that share the zones of `node`: its own, or all where it has none.
    pub(crate) fn cpus_that_share(&self, node: Node) -> usize {
        match self.cpus_of(node) {
            0 => self.cpus.len(),
            local => local,
        }
    }

    /// Checks that the description is one of a machine that could exist.
    ///
    /// # Errors
    /// One line that says what is wrong and where.
    pub fn validate(&self) -> Result<(), String> {
        if self.cpus.is_empty() || self.cpus.len() > 1024 {
            return Err(format!("{} CPUs; 1 to 1024 can be described", self.cpus.len()));
        }
        if self.nodes.is_empty() || self.nodes.len() > 256 {
            return Err(format!("{} nodes; 1 to 256 can be described", self.nodes.len()));
        }
        if let Some(cpu) = self.cpus.iter().position(|cpu| usize::from(cpu.node.0) >= self.nodes.len()) {
            return Err(format!("cpu {cpu} is on node {}, which does not exist", self.cpus[cpu].node.0));
        }
        self.validate_distances()?;
        self.validate_zones()
    }

    fn validate_distances(&self) -> Result<(), String> {
        let count = self.nodes.len();
        if self.distance.len() != count || self.distance.iter().any(|row| row.len() != count) {
            return Err(format!("the distance table is not {count} by {count}"));
        }
        for (from, row) in self.distance.iter().enumerate() {
            if let Some(to) = row.iter().position(|&d| !(10..=254).contains(&d)) {
                return Err(format!("distance {from} to {to} is {}; 10 to 254 are allowed", row[to]));
            }
            // As emulated nodes (numa=fake) are, two nodes may be as near to each other as each to itself.
            if let Some(to) = (0..count).find(|&to| row[to] < row[from]) {
                return Err(format!("node {from} is nearer to node {to} than to itself"));
            }
        }
        Ok(())
    }

    fn validate_zones(&self) -> Result<(), String> {
        let mut spans: Vec<(u32, u32, usize)> = vec![];
        for (node, spec) in self.nodes.iter().enumerate() {
            for pair in spec.zones.windows(2) {
                if pair[0].kind >= pair[1].kind {
                    return Err(format!("node {node}: zones must be one of a kind, lowest first"));
                }
            }
            for zone in &spec.zones {
                let name = zone.kind.name();
                if !self.word.zone_kinds().contains(&zone.kind) {
                    let bits = self.word.bits();
                    return Err(format!("node {node}: {bits}-bit kernels have no zone {name}"));
                }
                if zone.managed > zone.present || zone.present > zone.spanned || zone.managed == 0 {
                    return Err(format!(
                        "node {node}, zone {name}: managed {} of present {} of spanned {} pages cannot be",
                        zone.managed, zone.present, zone.spanned
                    ));
                }
                let Some(end) = zone.start.0.checked_add(zone.spanned) else {
                    return Err(format!("node {node}, zone {name} ends above 16 TiB"));
                };
                spans.push((zone.start.0, end, node));
            }
        }
        if spans.is_empty() {
            return Err("no node has memory".into());
        }
        spans.sort_unstable();
        for pair in spans.windows(2) {
            if pair[0].1 > pair[1].0 {
                return Err(format!("zones of node {} and node {} overlap", pair[0].2, pair[1].2));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
impl Topology {
    /// For tests: a node with zones of `kinds`, of `pages` each, and so many CPUs.
    pub(crate) fn one_node(kinds: &[ZoneKind], pages: u32, cpus: usize) -> Self {
        let zone = |(&kind, place): (&ZoneKind, u32)| ZoneSpec {
            kind,
            start: Pfn(place * pages),
            spanned: pages,
            present: pages,
            managed: pages,
        };
        Self {
            word: WordSize::Bits64,
            nodes: vec![NodeSpec { zones: kinds.iter().zip(0..).map(zone).collect() }],
            cpus: vec![CpuSpec { node: Node(0), cache_slice: 0 }; cpus],
            distance: vec![vec![10]],
        }
    }
}
