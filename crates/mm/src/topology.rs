//! What the memory manager is told of a machine: which zones its nodes have, which CPUs, how far apart.
//!
//! All parameters (watermarks, pageset sizes, fallback lists) follow from this, a [`crate::Policy`] and the knobs.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use crate::ids::{Node, PAGE_SHIFT, Pfn, ZoneKind};

/// A machine, as its memory manager sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The nodes; index is the node's number.
    pub nodes: Vec<NodeSpec>,
    /// The CPUs; index is the CPU's number.
    pub cpus: Vec<CpuSpec>,
    /// `distance[from][to]` as the firmware's SLIT says: 10 is local.
    pub distance: Vec<Vec<u32>>,
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

/// How x86-64 firmware lays memory out: some below 4 GiB, then a hole for devices, the rest above 4 GiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Firmware {
    /// Where memory below 4 GiB ends and the hole begins, in bytes: from 16 MiB to 4 GiB. It bounds the DMA32 zone.
    pub low_end: u64,
}

impl Default for Firmware {
    /// 2 GiB, as on many boards and in QEMU's q35.
    fn default() -> Self {
        Self { low_end: 2 << 30 }
    }
}

const DMA_END: u64 = 16 << 20 >> PAGE_SHIFT;
const DMA32_END: u64 = 4 << 30 >> PAGE_SHIFT;

impl Firmware {
    /// Lays `nodes` out one after the other. One page in 64 is taken at boot for frame descriptors, as Linux's 64-byte
    /// `struct page` does. `cache_slice` is in bytes.
    ///
    /// # Errors
    /// Says what is wrong, as [`Topology::validate`] does.
    pub fn lay_out(
        self,
        nodes: &[NodeSize],
        cache_slice: u64,
        distance: Vec<Vec<u32>>,
    ) -> Result<Topology, String> {
        if !(16 << 20..=4 << 30).contains(&self.low_end) {
            return Err(format!("low memory ends at {} bytes; 16 MiB to 4 GiB are possible", self.low_end));
        }
        let mut next = Pfn(1);
        let mut topology = Topology { nodes: vec![], cpus: vec![], distance };
        for (number, size) in (0..).zip(nodes) {
            let zones = self.zones(size.bytes >> PAGE_SHIFT, &mut next);
            let zones = zones.ok_or_else(|| format!("node {number}: memory ends above 16 TiB"))?;
            topology.nodes.push(NodeSpec { zones });
            topology.cpus.extend((0..size.cpus).map(|_| CpuSpec { node: Node(number), cache_slice }));
        }
        topology.validate()?;
        Ok(topology)
    }

    /// The zones of a node of `pages`, from frame `next` on; `None` where frame numbers end.
    fn zones(self, pages: u64, next: &mut Pfn) -> Option<Vec<ZoneSpec>> {
        let low_end = self.low_end >> PAGE_SHIFT;
        let (mut left, mut zones) = (pages, vec![]);
        while left > 0 {
            if (low_end..DMA32_END).contains(&u64::from(next.0)) {
                *next = Pfn(DMA32_END as u32);
            }
            let start = u64::from(next.0);
            let (kind, end) = match start {
                0..DMA_END => (ZoneKind::Dma, DMA_END),
                DMA_END..DMA32_END => (ZoneKind::Dma32, low_end),
                _ => (ZoneKind::Normal, u64::MAX),
            };
            let pages = left.min(end - start);
            let last = u32::try_from(start + pages).ok()?;
            let spanned = pages as u32;
            let managed = spanned - spanned / 64;
            zones.push(ZoneSpec { kind, start: *next, spanned, present: spanned, managed });
            *next = Pfn(last);
            left -= pages;
        }
        Some(zones)
    }
}

impl Topology {
    /// Memory laid out as x86-64 firmware usually does, [`Firmware::default`].
    ///
    /// # Errors
    /// As [`Firmware::lay_out`].
    pub fn x86(nodes: &[NodeSize], cache_slice: u64, distance: Vec<Vec<u32>>) -> Result<Self, String> {
        Firmware::default().lay_out(nodes, cache_slice, distance)
    }

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
mod tests {
    use super::*;

    fn pages(low_end: u64, bytes: u64) -> Vec<(ZoneKind, u32)> {
        let nodes = [NodeSize { bytes, cpus: 1 }];
        let laid_out = Firmware { low_end }.lay_out(&nodes, 1 << 20, vec![vec![10]]).unwrap();
        laid_out.nodes[0].zones.iter().map(|zone| (zone.kind, zone.present)).collect()
    }

    #[test]
    fn the_hole_for_devices_bounds_dma32() {
        let zones =
            |dma32, normal| vec![(ZoneKind::Dma, 4095), (ZoneKind::Dma32, dma32), (ZoneKind::Normal, normal)];
        let all = 16 << 18;
        assert_eq!(pages(2 << 30, 16 << 30), zones((2 << 18) - 4096, all - (2 << 18) + 1));
        assert_eq!(pages(3 << 30, 16 << 30), zones((3 << 18) - 4096, all - (3 << 18) + 1));
        assert_eq!(pages(4 << 30, 16 << 30), zones((4 << 18) - 4096, all - (4 << 18) + 1));
        assert_eq!(pages(16 << 20, 1 << 30), [(ZoneKind::Dma, 4095), (ZoneKind::Normal, (1 << 18) - 4095)]);
    }

    #[test]
    fn low_memory_ends_below_4_gib() {
        for low_end in [0, (16 << 20) - 1, (4 << 30) + 1] {
            let laid_out = Firmware { low_end }.lay_out(&[], 0, vec![]);
            assert!(laid_out.unwrap_err().contains("16 MiB to 4 GiB are possible"));
        }
    }
}
