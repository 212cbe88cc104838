//! Fragmenters: bring a machine into the state that months of work leave it in, before the clock starts. Free memory lies
//! in small holes between the pages of processes and files; some of those stay where they are, pinned or the kernel's own.
//!
//! All goes through the allocator's own doors, in the order in which it comes about on a machine: the kernel's early memory
//! takes pageblocks of its own, huge pages whole ones, processes what is left, in stretches, with pieces of files between; then some go, and
//! what the kernel needs later finds no block of its own and is scattered over theirs. So the types of pageblocks and the
//! order of free lists are what the policy makes of it. The mix is a parameter, and so is how small the holes are: at
//! which fragmentation index ([`index_of`]) free memory ends up. The same seed gives the same state.
//!
//! Left out: writeback and dirty pages, sharing by fork, swap, and how memory would change while it grows old.

mod fill;
mod holes;
mod pin;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use mm::ids::PAGEBLOCK_PAGES;
use mm::vm::{AddressSpace, File, Placement, Vpn};
use mm::{Knob, Node, NodeMask, Order, Pfn, Zone, ZoneKind};
use serde::Deserialize;
use sim::SimMachine;

use super::workload::within;
use crate::stage::{Random, Stage};

/// Parts that shares are counted in.
const WHOLE: u64 = 10_000;

/// What memory is to be like. Shares are parts of 10,000 of each node's pages; what they leave is anonymous memory in small
/// pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fragment {
    /// Of all that is random here.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Memory of the kernel's from when there were whole pageblocks: these are its own.
    #[serde(default)]
    pub kernel: u32,
    /// Memory of the kernel's from when there were none: single pages in pageblocks of others.
    #[serde(default)]
    pub scattered: u32,
    /// Huge pages of processes.
    #[serde(default)]
    pub huge: u32,
    /// Clean pages of files.
    #[serde(default)]
    pub file: u32,
    /// Of 10,000 pages of files, how many somebody works with: they are taken for movable, and stay.
    #[serde(default)]
    pub busy: u32,
    /// Anonymous memory that somebody works with: it stays where it is, though nothing says so but its references. It lies in
    /// stretches of several pageblocks, as that of a program which locks or registers its memory.
    #[serde(default)]
    pub pinned: u32,
    /// Free memory, from 50.
    pub free: u32,
    /// The fragmentation index that free memory is to have for a huge page, in thousandths, from 880 to 997.
    pub index: u32,
}

const fn default_seed() -> u64 {
    1
}

/// A machine that was fragmented, and what lies on it.
pub(super) struct Fragmented {
    /// What lies on each node that has memory.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests look at it"))]
    pub nodes: Vec<Remains>,
}

/// Memory of a process from its start.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Region {
    /// Where it begins.
    pub(super) start: Vpn,
    /// How much of it there is.
    pub(super) pages: u32,
}

/// What lies on a node.
pub(super) struct Remains {
    /// The node.
    pub node: Node,
    /// Anonymous memory in small pages, with its holes.
    pub space: Arc<AddressSpace<SimMachine>>,
    /// Where that begins, and its pages, holes included.
    pub anon: Region,
    /// The address space of the huge pages.
    pub huge: Arc<AddressSpace<SimMachine>>,
    /// Memory that stays where it is, with its holes.
    pub pinned: Region,
    /// The file, with its holes.
    pub file: Arc<File<SimMachine>>,
    /// Its pages, holes included.
    pub file_pages: u32,
    /// The kernel's blocks, early ones first.
    pub kernel: Vec<(Pfn, Order)>,
    /// Pages that somebody works with, of the file and of `pinned`.
    pub stay: u64,
    /// The fragmentation index that was reached for a huge page, in thousandths, of the node's largest zone.
    pub index: i32,
    /// Free pages of that zone.
    pub free: u64,
}

impl Fragment {
    /// It in a few words.
    pub(super) fn title(&self) -> String {
        format!("fragmented to index {} with {} % free", self.index, f64::from(self.free) / 100.0)
    }

    /// Fragments the memory of every node. It is for before the clock starts: outside of tasks nothing costs anything.
    ///
    /// # Errors
    /// Shares that cannot be.
    pub(super) fn apply(&self, stage: &Stage) -> Result<Fragmented, String> {
        self.check()?;
        let count = stage.mm.topology().nodes.len() as u16;
        let nodes = (0..count).map(Node).filter(|&node| largest_zone(stage, node).is_some());
        let reserves = Reserves::lift(stage);
        let nodes: Vec<Remains> = nodes.map(|node| self.apply_to(stage, node)).collect();
        reserves.restore(stage);
        let worst = nodes.iter().map(|node| node.index).min().unwrap_or_default();
        stage.tally.note("fragmentation_index", worst.max(0) as u64);
        stage.tally.note("fragmented_free_pages", nodes.iter().map(|node| node.free).sum());
        Ok(Fragmented { nodes })
    }

    fn check(&self) -> Result<(), String> {
        within("free", self.free.into(), 50..=9000)?;
        within("busy", self.busy.into(), 0..=WHOLE)?;
        within("index", self.index.into(), 880..=997)?;
        let shares = [self.kernel, self.scattered, self.huge, self.file, self.pinned, self.free];
        let sum = shares.iter().map(|&share| u64::from(share)).sum();
        within("the sum of the shares of fragment", sum, 0..=WHOLE).map(|_| ())
    }

    fn apply_to(&self, stage: &Stage, node: Node) -> Remains {
        let random = Random::of(self.seed ^ u64::from(node.0) << 32);
        let mut filling = fill::Filling::new(stage, *self, node, random);
        filling.kernel_early();
        filling.huge();
        filling.small();
        let mut random = filling.random.clone();
        let mut remains = filling.done();
        let mut holes = holes::Holes::new(stage, *self, &mut random);
        holes.dig(&mut remains, holes::Purpose::Scattered);
        holes.scatter(&mut remains);
        holes.dig(&mut remains, holes::Purpose::Free);
        pin::pin(stage, self.busy, &mut remains, &mut random);
        let zone = largest_zone(stage, node).expect("only nodes with memory are fragmented");
        remains.index = index_of(&stage.mm.views().free_blocks_in(zone), Order::PAGEBLOCK);
        remains.free = zone.free_pages_exact();
        remains
    }
}

/// What zones keep free, taken away for the time that memory is filled: otherwise that much of it would stay in one piece.
struct Reserves(Vec<(Knob, u64)>);

impl Reserves {
    fn lift(stage: &Stage) -> Self {
        let lifted = [
            (Knob::MinFreeKbytes, 128),
            (Knob::WatermarkScaleFactor, 1),
            (Knob::WatermarkBoostFactor, 0),
            (Knob::LowmemReserveDma32, 0),
        ];
        // A kernel that lacks a knob has no rule for it to weaken.
        let policy = stage.mm.policy();
        let lifted: Vec<(Knob, u64)> =
            lifted.into_iter().filter(|&(knob, value)| policy.check_knob(knob, value).is_ok()).collect();
        let before = lifted.iter().map(|&(knob, _)| (knob, stage.mm.knobs().get(knob))).collect();
        Self(lifted).restore(stage);
        Self(before)
    }

    fn restore(self, stage: &Stage) {
        for (knob, value) in self.0 {
            stage.mm.set_knob(knob, value).expect("the kernel has the knob, and takes the value");
        }
    }
}

/// What a share of the node's memory is in pages.
fn pages_of(stage: &Stage, node: Node, share: u32) -> u64 {
    let zones = stage.mm.zones().iter().filter(|zone| zone.node() == node);
    zones.map(|zone| u64::from(zone.managed())).sum::<u64>() * u64::from(share) / WHOLE
}

/// The zone of `node` that most requests are served from.
fn largest_zone(stage: &Stage, node: Node) -> Option<&Zone<SimMachine>> {
    let of_node = stage.mm.zones().iter().filter(|zone| zone.node() == node && zone.managed() > 0);
    of_node.max_by_key(|zone| (zone.managed(), zone.kind()))
}

/// Memory of `node` alone, where there are others.
fn placement(stage: &Stage, node: Node) -> Placement {
    let alone = stage.mm.topology().nodes.len() == 1;
    let allowed = if alone { NodeMask::ALL } else { [node].into_iter().collect() };
    Placement { node: Some(node), allowed }
}

/// The fragmentation index of free blocks by order for a request of `order`, in thousandths (docs/rules/compaction.md):
/// towards 0 memory is what is missing, towards 1000 it is there in pieces; -1000 if there is a block.
pub(super) fn index_of(blocks: &[u64], order: Order) -> i32 {
    let number: u64 = blocks.iter().sum();
    if blocks[order.index()..].iter().any(|&count| count > 0) {
        return -1000;
    }
    if number == 0 {
        return 0;
    }
    let pages: u64 = blocks.iter().enumerate().map(|(order, count)| count << order).sum();
    1000 - ((1000 + 1000 * pages / u64::from(order.pages())) / number) as i32
}

/// Zones below which nothing is asked for here: DMA keeps to itself.
fn is_asked(zone: &Zone<SimMachine>) -> bool {
    zone.kind() >= ZoneKind::Dma32
}

const BLOCK: u32 = PAGEBLOCK_PAGES;
