//! Pageblocks of types that a scene's kernel had at its first mark, and what was free in those of the kernel's own pages.
//!
//! Where movable pages run out, a request falls back on these. That mixes types, and raises marks.

use mm::{Bare, MigrateType, Mm, Order, Pfn, Zone, ZoneKind};

use crate::conform::read::sections::Sections;

const PAGEBLOCK: u32 = 512;

/// Types that movable pages fall back on.
const KINDS: [(&str, MigrateType); 2] =
    [("Unmovable", MigrateType::Unmovable), ("Reclaimable", MigrateType::Reclaimable)];

/// Pageblocks of a type in a zone.
#[derive(Clone, Debug)]
struct Typed {
    node: u16,
    zone: ZoneKind,
    kind: MigrateType,
    /// How many there are.
    blocks: usize,
    /// Free blocks by order.
    free: Vec<usize>,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Types(Vec<Typed>);

impl Types {
    /// As the file says that it was at the first mark; none if it does not.
    pub(super) fn of(sections: &Sections<'_>) -> Self {
        let mut all: Vec<Typed> = vec![];
        let lines = sections.get("pagetypeinfo").map(|section| &section.lines[..]).unwrap_or_default();
        for (_, line) in lines {
            let Some((node, zone, rest)) = place(line) else { continue };
            let numbers = |text: &str| text.split_whitespace().map_while(|word| word.parse().ok()).collect();
            if let Some(rest) = rest.strip_prefix("type") {
                let rest = rest.trim_start();
                let kind = KINDS.iter().find_map(|(name, kind)| Some((rest.strip_prefix(name)?, *kind)));
                let Some((rest, kind)) = kind else { continue };
                all.push(Typed { node, zone, kind, blocks: 0, free: numbers(rest) });
            } else {
                let counts: Vec<usize> = numbers(rest);
                for typed in all.iter_mut().filter(|typed| (typed.node, typed.zone) == (node, zone)) {
                    typed.blocks = counts.get(typed.kind.index()).copied().unwrap_or(0);
                }
            }
        }
        Self(all)
    }

    /// Makes pageblocks of `zone`'s types, the lowest of it, as far as `most` pages may be taken, and frees in them what was free.
    pub(super) fn make(&self, mm: &Mm<Bare>, zone: &Zone<Bare>, most: u64) {
        let mut left = most as usize;
        let mut starts =
            (zone.span().start / PAGEBLOCK * PAGEBLOCK..zone.span().end).step_by(PAGEBLOCK as usize);
        let steps = mm.pages().steps();
        let own = |typed: &&Typed| (typed.node, typed.zone) == (zone.node().0, zone.kind());
        for typed in self.0.iter().filter(own) {
            let make = |start| steps.set_block_type(zone.id(), Pfn(start), typed.kind) as usize;
            let there: usize = starts.by_ref().take(typed.blocks).map(make).sum();
            let free: usize = typed.free.iter().enumerate().map(|(order, count)| count << order).sum();
            let take = |_| steps.rmqueue_buddy(zone.id(), Order::ZERO, typed.kind);
            let mut pages: Vec<Pfn> = (0..there.min(left + free)).map_while(take).collect();
            left = left.saturating_sub(pages.len().saturating_sub(free));
            pages.sort_unstable();
            free_runs(mm, &pages, &typed.free);
        }
    }
}

/// Frees blocks of `pages`, so many of each order, the largest first; no two of an order that would become one.
fn free_runs(mm: &Mm<Bare>, pages: &[Pfn], by_order: &[usize]) {
    let (mut at, mut last) = (0, None);
    for (order, count) in by_order.iter().enumerate().rev() {
        let size = 1 << order;
        for _ in 0..*count {
            let is_run = |from: usize| {
                let first = pages[from].0;
                let ends_as_one =
                    pages.get(from + size - 1).is_some_and(|end| end.0 == first + size as u32 - 1);
                first as usize % size == 0 && ends_as_one && last != Some((first ^ size as u32, order))
            };
            let Some(from) = (at..pages.len()).find(|from| is_run(*from)) else { break };
            for pfn in &pages[from..from + size] {
                // They were allocated just now.
                let _ = mm.pages().steps().free_past_pageset(*pfn, Order::ZERO);
            }
            (at, last) = (from + size, Some((pages[from].0, order)));
        }
    }
}

/// `Node    0, zone    DMA32, type    Unmovable      1 …`: node, zone, and what comes behind.
fn place(line: &str) -> Option<(u16, ZoneKind, &str)> {
    let rest = line.strip_prefix("Node")?.trim_start();
    let (node, rest) = rest.split_once(',')?;
    let rest = rest.trim_start().strip_prefix("zone")?.trim_start();
    let (zone, rest) = rest.split_once([',', ' '])?;
    Some((node.parse().ok()?, ZoneKind::from_name(zone)?, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use mm::{Bare, Knobs, NodeSize, Policy, Topology};

    use super::*;

    /// As Debian's kernels have it on a machine of 64 MiB, by `@@pagetypeinfo`: 32 pages of the zone for DMA are taken.
    #[test]
    fn the_zone_for_dma_begins_with_a_pageblock_of_the_kernels_own() {
        let mut topology =
            Topology::x86(&[NodeSize { bytes: 64 << 20, cpus: 1 }], 1 << 20, vec![vec![10]]).unwrap();
        topology.nodes[0].zones[0].managed = 3840;
        let policy = Policy::linux(mm::version::Version::new(6, 12));
        let mm = Mm::new(Bare::default(), topology, policy, Knobs::default()).unwrap();
        let zone = &mm.zones()[0];
        let managed = zone.managed_span();
        assert_eq!((zone.kind(), managed.start), (ZoneKind::Dma, 256));
        let free = vec![0, 0, 0, 0, 0, 1, 1, 1];
        let own = Typed { node: 0, zone: ZoneKind::Dma, kind: MigrateType::Unmovable, blocks: 1, free };
        let before = zone.free_pages_exact();
        Types(vec![own]).make(&mm, zone, 32);
        assert_eq!(before - zone.free_pages_exact(), 32, "of the 256 pages of its first pageblock");
        let take =
            |_| mm.pages().steps().rmqueue_buddy(zone.id(), Order::ZERO, MigrateType::Unmovable).unwrap();
        assert!((0..224).map(take).all(|pfn: Pfn| pfn.0 < 512), "all that is free in it, and nothing else");
        assert!(take(0).0 >= 512, "then others' pages");
        assert!(mm.views().check().is_ok());
    }

    #[test]
    fn blocks_by_type_are_read_by_zone() {
        let text = "@@pagetypeinfo\nPage block order: 9\nFree pages count per migrate type at order 0 1\n\
            Node    0, zone      DMA, type    Unmovable      1      2\nNode    0, zone      DMA, type      Movable      7      7\n\
            Node    0, zone      DMA, type  Reclaimable      0    >9\nNumber of blocks type Unmovable Movable\n\
            Node 0, zone      DMA            3            5            4            0            0\n";
        let Types(all) = Types::of(&Sections::of(text));
        let all: Vec<_> =
            all.iter().map(|typed| (typed.zone, typed.kind, typed.blocks, &typed.free[..])).collect();
        let dma = ZoneKind::Dma;
        assert_eq!(
            all,
            [(dma, MigrateType::Unmovable, 3, &[1, 2][..]), (dma, MigrateType::Reclaimable, 4, &[0][..])]
        );
    }
}
