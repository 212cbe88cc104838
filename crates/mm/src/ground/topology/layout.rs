//! How x86 firmware and kernels lay memory out: which addresses are which kind of zone, where the hole for devices is, and
//! what is taken at boot.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{CpuSpec, NodeSize, NodeSpec, Topology, WordSize, ZoneSpec};
use crate::ground::ids::{Node, PAGE_SHIFT, PAGE_SIZE, Pfn, ZoneKind};

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

/// A way to lay memory out, node after node from the lowest address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    /// x86-64: DMA to 16 MiB, DMA32 to 4 GiB, Normal above.
    X86_64(Firmware),
    /// 32-bit x86 with PAE: DMA to 16 MiB, Normal to 896 MiB, HighMem above. There is no hole: nothing depends on where it
    /// would be.
    X86_32,
}

const DMA_END: u64 = 16 << 20 >> PAGE_SHIFT;
const DMA32_END: u64 = 4 << 30 >> PAGE_SHIFT;
/// What a 32-bit kernel maps for good: 1 GiB less 128 MiB for mappings that come and go.
const LOWMEM_END: u64 = 896 << 20 >> PAGE_SHIFT;
/// What PAE's 36 bits reach.
const PAE_END: u64 = 64 << 30 >> PAGE_SHIFT;
const PFN_END: u64 = u32::MAX as u64;
/// Linux's `struct page`.
const DESCRIPTOR_BYTES_64: u32 = 64;
const DESCRIPTOR_BYTES_32: u64 = 32;

/// The range of frames that a frame lies in.
enum Range {
    Zone { kind: ZoneKind, end: u64 },
    Hole { end: u64 },
}

impl Layout {
    fn word(self) -> WordSize {
        match self {
            Self::X86_64(_) => WordSize::Bits64,
            Self::X86_32 => WordSize::Bits32,
        }
    }

    fn range_at(self, pfn: u64) -> Range {
        let zone = |kind, end| Range::Zone { kind, end };
        match self {
            _ if pfn < DMA_END => zone(ZoneKind::Dma, DMA_END),
            Self::X86_64(firmware) => {
                let low_end = firmware.low_end >> PAGE_SHIFT;
                match pfn {
                    _ if pfn < low_end => zone(ZoneKind::Dma32, low_end),
                    _ if pfn < DMA32_END => Range::Hole { end: DMA32_END },
                    _ => zone(ZoneKind::Normal, PFN_END),
                }
            }
            Self::X86_32 if pfn < LOWMEM_END => zone(ZoneKind::Normal, LOWMEM_END),
            Self::X86_32 => zone(ZoneKind::HighMem, PAE_END),
        }
    }

    /// Pages that the allocator gets of a zone, descriptors apart where they all come from one zone.
    fn managed(self, spanned: u32) -> u32 {
        match self {
            Self::X86_64(_) => spanned - spanned / (PAGE_SIZE as u32 / DESCRIPTOR_BYTES_64),
            Self::X86_32 => spanned,
        }
    }

    /// The zones of a node of `pages`, from the frame `next` on, which moves behind them.
    fn zones(self, pages: u64, next: &mut u64) -> Result<Vec<ZoneSpec>, String> {
        let mut left = pages;
        let mut zones = Vec::new();
        while left > 0 {
            let (kind, end) = match self.range_at(*next) {
                Range::Zone { kind, end } => (kind, end),
                Range::Hole { end } => {
                    *next = end;
                    continue;
                }
            };
            let pages = left.min(end.saturating_sub(*next));
            if pages == 0 {
                let reach =
                    if self == Self::X86_32 { "64 GiB, which is all that PAE reaches" } else { "16 TiB" };
                return Err(format!("memory ends above {reach}"));
            }
            let spanned = pages as u32;
            let managed = self.managed(spanned);
            zones.push(ZoneSpec { kind, start: Pfn(*next as u32), spanned, present: spanned, managed });
            *next += pages;
            left -= pages;
        }
        Ok(zones)
    }

    /// `nodes` one after the other, and where frames end. The CPUs are numbered node by node.
    fn topology(
        self,
        nodes: &[NodeSize],
        cache_slice: u64,
        distance: Vec<Vec<u32>>,
    ) -> Result<(Topology, u64), String> {
        // Frame 0 is the firmware's.
        let mut next = 1u64;
        let mut topology = Topology { word: self.word(), nodes: Vec::new(), cpus: Vec::new(), distance };
        for (number, size) in (0..).zip(nodes) {
            let zones = self.zones(size.bytes >> PAGE_SHIFT, &mut next);
            let zones = zones.map_err(|what| format!("node {number}: {what}"))?;
            topology.nodes.push(NodeSpec { zones });
            topology.cpus.extend((0..size.cpus).map(|_| CpuSpec { node: Node(number), cache_slice }));
        }
        Ok((topology, next))
    }
}

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
        let (topology, _) = Layout::X86_64(self).topology(nodes, cache_slice, distance)?;
        topology.validate()?;
        Ok(topology)
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

    /// The same for a 32-bit kernel. Node 0 has DMA, Normal and HighMem, nodes above 896 MiB only HighMem. All frames'
    /// descriptors, 32 bytes each, are taken from Normal: a 32-bit kernel can keep them nowhere else.
    ///
    /// # Errors
    /// Says what is wrong, as [`Topology::validate`] does.
    pub fn x86_32(nodes: &[NodeSize], cache_slice: u64, distance: Vec<Vec<u32>>) -> Result<Self, String> {
        let (mut topology, frames) = Layout::X86_32.topology(nodes, cache_slice, distance)?;
        topology.take_descriptors(frames)?;
        topology.validate()?;
        Ok(topology)
    }

    /// Takes the descriptors of `frames` from low memory; a machine without a Normal zone has them in DMA.
    fn take_descriptors(&mut self, frames: u64) -> Result<(), String> {
        let taken = (frames * DESCRIPTOR_BYTES_32).div_ceil(PAGE_SIZE);
        let zones = self.nodes.iter_mut().flat_map(|node| &mut node.zones);
        let Some(low) = zones.filter(|zone| zone.kind <= ZoneKind::Normal).max_by_key(|zone| zone.managed)
        else {
            return Ok(());
        };
        if taken >= u64::from(low.managed) {
            return Err(format!("the descriptors of {frames} frames leave no low memory"));
        }
        low.managed -= taken as u32;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn kinds(topology: &Topology) -> Vec<Vec<(ZoneKind, u32)>> {
        let zones = |node: &NodeSpec| node.zones.iter().map(|zone| (zone.kind, zone.present >> 8)).collect();
        topology.nodes.iter().map(zones).collect()
    }

    const TWO: [[u32; 2]; 2] = [[10, 20], [20, 10]];

    fn two() -> Vec<Vec<u32>> {
        TWO.iter().map(|row| row.to_vec()).collect()
    }

    #[test]
    fn a_32_bit_machine_has_low_memory_on_its_first_node_only() {
        let nodes = [NodeSize { bytes: 4 << 30, cpus: 1 }; 2];
        let topology = Topology::x86_32(&nodes, 0, two()).unwrap();
        let first = vec![(ZoneKind::Dma, 15), (ZoneKind::Normal, 880), (ZoneKind::HighMem, 3200)];
        assert_eq!(kinds(&topology), [first, vec![(ZoneKind::HighMem, 4096)]]);
        let normal = topology.nodes[0].zones[1];
        // 8 GiB have 64 MiB of descriptors.
        assert_eq!(normal.present - normal.managed, (64 << 8) + 1);
        assert_eq!((topology.word, WordSize::of(&topology.nodes)), (WordSize::Bits32, WordSize::Bits32));
    }

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

    #[test]
    fn memory_that_cannot_be_reached_is_refused() {
        let of = |bytes| Topology::x86_32(&[NodeSize { bytes, cpus: 1 }], 0, vec![vec![10]]);
        assert!(of(60 << 30).is_ok());
        assert_eq!(
            of(65 << 30).unwrap_err(),
            "node 0: memory ends above 64 GiB, which is all that PAE reaches"
        );
        let of = |bytes| Topology::x86(&[NodeSize { bytes, cpus: 1 }], 0, vec![vec![10]]);
        assert_eq!(of(16 << 40).unwrap_err(), "node 0: memory ends above 16 TiB");
    }

    #[test]
    fn zones_of_the_other_word_size_are_refused() {
        let mut topology = Topology::x86(&[NodeSize { bytes: 4 << 30, cpus: 1 }], 0, vec![vec![10]]).unwrap();
        topology.word = WordSize::Bits32;
        assert_eq!(topology.validate().unwrap_err(), "node 0: 32-bit kernels have no zone DMA32");
    }
}
