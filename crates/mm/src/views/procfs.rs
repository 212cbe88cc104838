//! /proc/buddyinfo, /proc/zoneinfo, /proc/pagetypeinfo and /proc/vmstat in the kernel's own layout, so that scripts
//! that read those read ours. Counters that we do not keep are left out.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::{ViewsDoor, ViewsGround};
use crate::ground::{
    Cpu, Machine, MigrateType, Node, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, WordSize, ZoneKind,
};
use crate::pages::{PROTECTION_COLUMNS, Zone, protection, watermarks};

/// The types that pagetypeinfo lists where no CMA is built in.
const SHOWN_TYPES: [MigrateType; 5] = [
    MigrateType::Unmovable,
    MigrateType::Movable,
    MigrateType::Reclaimable,
    MigrateType::HighAtomic,
    MigrateType::Isolate,
];

impl<M: Machine, G: ViewsGround<M>> ViewsDoor<'_, M, G> {
    /// /proc/buddyinfo: free blocks by order.
    pub fn buddyinfo(self) -> String {
        let mut text = String::new();
        for zone in self.zones() {
            let blocks = self.blocks_of(zone);
            put(&mut text, format_args!("Node {}, zone {:>8} ", zone.node().0, zone.kind().name()));
            for by_type in blocks {
                put(&mut text, format_args!("{:>6} ", by_type.iter().sum::<u32>()));
            }
            text.push('\n');
        }
        text
    }

    /// /proc/pagetypeinfo: free blocks by order and type, and pageblocks by type, node by node.
    pub fn pagetypeinfo(self) -> String {
        let mut text = String::new();
        for node in 0..self.topology().nodes.len() {
            let mut zones = self.zones().iter().filter(|zone| usize::from(zone.node().0) == node).peekable();
            if zones.peek().is_some() {
                self.put_page_types(&mut text, &zones.collect::<Vec<_>>());
            }
        }
        text
    }

    fn put_page_types(self, text: &mut String, zones: &[&Zone<M>]) {
        put(
            text,
            format_args!("Page block order: {PAGEBLOCK_ORDER}\nPages per block:  {PAGEBLOCK_PAGES}\n\n"),
        );
        put(text, format_args!("{:<43} ", "Free pages count per migrate type at order"));
        for order in Order::ZERO.to(Order::MAX) {
            put(text, format_args!("{:>6} ", order.get()));
        }
        text.push('\n');
        for zone in zones {
            let blocks = self.blocks_of(zone);
            for migratetype in SHOWN_TYPES {
                let (node, kind) = (zone.node().0, zone.kind().name());
                put(text, format_args!("Node {node:>4}, zone {kind:>8}, type {:>12} ", migratetype.name()));
                for by_type in blocks {
                    put(text, format_args!("{:>6} ", by_type[migratetype.index()]));
                }
                text.push('\n');
            }
        }
        put(text, format_args!("\n{:<23}", "Number of blocks type"));
        for migratetype in SHOWN_TYPES {
            put(text, format_args!("{:>12} ", migratetype.name()));
        }
        text.push('\n');
        for zone in zones {
            put(text, format_args!("Node {}, zone {:>8} ", zone.node().0, zone.kind().name()));
            for migratetype in SHOWN_TYPES {
                put(text, format_args!("{:>12} ", self.count_blocks(zone, migratetype)));
            }
            text.push('\n');
        }
    }

    /// Free blocks of `zone` by order and type, over all of its arenas.
    pub(crate) fn blocks_of(self, zone: &Zone<M>) -> [[u32; MigrateType::COUNT]; Order::MAX.index() + 1] {
        let mut blocks = [[0; MigrateType::COUNT]; Order::MAX.index() + 1];
        for free in zone.arenas().all() {
            let free = free.lock(self.machine());
            for order in Order::ZERO.to(Order::MAX) {
                for migratetype in MigrateType::ALL {
                    blocks[order.index()][migratetype.index()] += free.list(order, migratetype).len();
                }
            }
        }
        blocks
    }

    /// Free blocks by order, over all zones.
    pub fn free_blocks(self) -> [u64; Order::MAX.index() + 1] {
        let mut sum = [0; Order::MAX.index() + 1];
        for zone in self.zones() {
            for (blocks, by_type) in sum.iter_mut().zip(self.blocks_of(zone)) {
                *blocks += by_type.iter().map(|&blocks| u64::from(blocks)).sum::<u64>();
            }
        }
        sum
    }

    /// Free blocks of `zone` by order.
    pub fn free_blocks_in(self, zone: &Zone<M>) -> [u64; Order::MAX.index() + 1] {
        self.blocks_of(zone).map(|by_type| by_type.iter().map(|&blocks| u64::from(blocks)).sum())
    }

    fn count_blocks(self, zone: &Zone<M>, migratetype: MigrateType) -> usize {
        let first = zone.span().start.next_multiple_of(PAGEBLOCK_PAGES).saturating_sub(PAGEBLOCK_PAGES);
        let blocks = (first..zone.span().end).step_by(PAGEBLOCK_PAGES as usize);
        blocks.filter(|&pfn| self.blocks().get(Pfn(pfn)) == migratetype).count()
    }

    /// /proc/zoneinfo, empty zones included.
    pub fn zoneinfo(self) -> String {
        let mut text = String::new();
        for node in 0..self.topology().nodes.len() {
            let node = Node(node as u16);
            for &kind in self.topology().word.zone_kinds() {
                put(&mut text, format_args!("Node {}, zone {:>8}\n", node.0, kind.name()));
                match self.pages().zone(node, kind) {
                    Some(zone) => self.put_zone(&mut text, zone),
                    None => self.put_empty_zone(&mut text, node, kind),
                }
            }
        }
        text
    }

    fn put_zone(self, text: &mut String, zone: &Zone<M>) {
        let (free, marks, events) = (zone.free_pages_exact(), zone.watermarks(), self.zone_events(zone));
        let boost = zone.boost();
        let rows = [
            ("boost", boost),
            ("min", marks.min + boost),
            ("low", marks.low + boost),
            ("high", marks.high + boost),
            ("promo", marks.promo + boost),
            ("spanned", zone.spanned()),
            ("present", zone.present()),
            ("managed", zone.managed()),
            ("cma", 0),
        ];
        put(text, format_args!("  pages free     {free}\n"));
        for (name, pages) in rows {
            put(text, format_args!("        {name:<8} {pages}\n"));
        }
        put_protection(text, self.topology().word, zone.protection());
        put(text, format_args!("      nr_free_pages {free}\n"));
        let foreign = zone.stat().foreign();
        let numa = [
            ("numa_hit", events.numa_hit),
            ("numa_miss", events.numa_miss),
            ("numa_foreign", foreign),
            ("numa_interleave", zone.stat().interleaved()),
            ("numa_local", events.numa_local),
            ("numa_other", events.numa_other),
        ];
        for (name, count) in numa {
            put(text, format_args!("      {name:<12} {count}\n"));
        }
        text.push_str("  pagesets\n");
        for (cpu, pageset) in zone.pagesets().iter().enumerate() {
            let sizing = zone.pageset_sizing(self.machine(), Cpu(cpu as u16));
            put(text, format_args!("    cpu: {cpu}\n"));
            let rows = [
                ("count:", sizing.count),
                ("high:", sizing.high),
                ("batch:", sizing.batch),
                ("high_min:", sizing.high_min),
                ("high_max:", sizing.high_max),
            ];
            for (name, pages) in rows {
                put(text, format_args!("              {name:<9} {pages}\n"));
            }
            put(text, format_args!("  vm stats threshold: {}\n", pageset.stat_threshold()));
        }
        put(text, format_args!("  node_unreclaimable:  0\n  start_pfn:           {}\n", zone.start().0));
    }

    fn put_empty_zone(self, text: &mut String, node: Node, kind: ZoneKind) {
        let marks = watermarks(self.topology(), self.knobs(), self.rules(), kind, 0);
        let rows = [
            ("boost", 0),
            ("min", marks.min),
            ("low", marks.low),
            ("high", marks.high),
            ("promo", marks.promo),
            ("spanned", 0),
            ("present", 0),
            ("managed", 0),
            ("cma", 0),
        ];
        text.push_str("  pages free     0\n");
        for (name, pages) in rows {
            put(text, format_args!("        {name:<8} {pages}\n"));
        }
        let kept = protection(&self.topology().nodes[usize::from(node.0)], self.knobs(), kind);
        put_protection(text, self.topology().word, kept);
    }

    /// /proc/vmstat.
    pub fn vmstat(self) -> String {
        let mut text = String::new();
        for (name, value) in &self.counters().0 {
            put(&mut text, format_args!("{name} {value}\n"));
        }
        text
    }
}

/// The pages of each kind of zone that kernels of this word size have; 64-bit ones have Device too, the last.
pub(crate) fn columns(word: WordSize, pages: [u32; PROTECTION_COLUMNS]) -> impl Iterator<Item = u32> {
    let kinds = word.zone_kinds().iter().map(|kind| kind.index());
    let device = (word == WordSize::Bits64).then_some(ZoneKind::COUNT);
    kinds.chain(device).map(move |column| pages[column])
}

fn put_protection(text: &mut String, word: WordSize, pages: [u32; PROTECTION_COLUMNS]) {
    for (nth, pages) in columns(word, pages).enumerate() {
        let before = if nth == 0 { "        protection: (" } else { ", " };
        put(text, format_args!("{before}{pages}"));
    }
    text.push_str(")\n");
}

fn put(text: &mut String, what: core::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a String takes all that is written to it");
}
