//! A program of the model: an address space, the use of its memory, and what is known of each of its pages.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use mm::ids::PAGE_SIZE;
use mm::tier::{Area, HintScan, PageRange};
use mm::vm::{AddressSpace, MapSpec, Placement, SpaceId, Touch, Vpn};
use mm::{Nanos, Node, NodeMask};
use sim::SimMachine;

use super::chance;
use super::hints::{Hints, Marked};
use super::segment::{RegionSpec, Segment};
use crate::stage::{Random, Stage};

/// Where a program's memory lies at first, and how it is used.
#[derive(Clone, Debug)]
pub(crate) struct ProgramSpec<'a> {
    /// Where its memory is at first.
    pub(crate) node: Node,
    /// Its regions, upwards.
    pub(crate) regions: &'a [RegionSpec],
    /// Pages of 4 KiB that a page of the model stands for.
    pub(crate) grain: u32,
}

#[derive(Debug)]
struct Mapping {
    /// Where it begins, in modelled pages of the address space, …
    start: u32,
    /// … and among all modelled pages of the program.
    first: usize,
    pages: u32,
}

/// What is known of a modelled page.
#[derive(Debug)]
pub(super) struct PageState {
    pub(super) node: Cell<u16>,
    /// Whether its next access is a hint fault.
    pub(super) marked: Cell<bool>,
    /// The node of the CPU that took its last hint fault, above 0; 0 for none.
    pub(super) last_by: Cell<u16>,
    /// The thread that took it, above 0; 0 for none.
    pub(super) last_task: Cell<u32>,
    segment: u32,
    /// The segment's accesses at the last look.
    last: Cell<u64>,
}

/// Weights that move.
#[derive(Debug)]
struct Turning {
    segments: std::ops::Range<usize>,
    weights: Vec<u64>,
    shift: usize,
    every: Nanos,
}

pub(crate) struct Program {
    pub(crate) space: Arc<AddressSpace<SimMachine>>,
    pub(crate) grain: u32,
    /// Whether it still runs.
    pub(crate) lives: Cell<bool>,
    mappings: Vec<Mapping>,
    pub(super) segments: Vec<Segment>,
    pub(super) pages: Vec<PageState>,
    turning: Vec<Turning>,
    turned: Cell<Nanos>,
    whole: Cell<u64>,
    /// Threads, by the node that they run on.
    threads: Box<[Cell<u32>]>,
    hints: Hints,
    pub(super) hint_scan: RefCell<Option<HintScan>>,
}

impl Program {
    /// Maps and fills its memory; nothing is accessed yet.
    ///
    /// # Errors
    /// If the node has not so much memory.
    pub(crate) fn new(stage: &Stage, spec: &ProgramSpec<'_>) -> Result<Self, String> {
        let space = stage.mm.spaces().new_space();
        let nodes = stage.mm.topology().nodes.len();
        let mut program = Self {
            space,
            grain: spec.grain,
            lives: Cell::new(true),
            mappings: vec![],
            segments: vec![],
            pages: vec![],
            turning: vec![],
            turned: Cell::new(Nanos(0)),
            whole: Cell::new(0),
            threads: (0..nodes).map(|_| Cell::new(0)).collect(),
            hints: Hints::default(),
            hint_scan: RefCell::new(None),
        };
        for region in spec.regions {
            for _ in 0..region.copies {
                program.map(stage, region, spec.node, nodes)?;
            }
        }
        program.weigh();
        Ok(program)
    }

    fn map(&mut self, stage: &Stage, region: &RegionSpec, node: Node, nodes: usize) -> Result<(), String> {
        let first = self.pages.len();
        let segments = self.segments.len();
        for (mib, weight) in region.parts() {
            let pages = (u64::from(mib) << 20) / PAGE_SIZE / u64::from(self.grain);
            let number = self.segments.len() as u32;
            self.segments.push(Segment::new(pages as usize, weight.into(), nodes));
            self.pages.extend((0..pages).map(|_| PageState::new(number, node)));
        }
        let weights: Vec<u64> =
            self.segments[segments..].iter().map(|segment| segment.weight.get()).collect();
        if region.every_ms > 0 && region.shift > 0 {
            let every = Nanos(u64::from(region.every_ms) * 1_000_000);
            let shift = region.shift as usize;
            self.turning.push(Turning { segments: segments..self.segments.len(), weights, shift, every });
        }
        let pages = (self.pages.len() - first) as u32;
        let start = fill(stage, &self.space, pages, node)?;
        self.mappings.push(Mapping { start: start.0, first, pages });
        for segment in &self.segments[segments..] {
            segment.placed[usize::from(node.0)].set(segment.pages as u32);
        }
        Ok(())
    }

    /// Its number.
    pub(crate) fn id(&self) -> SpaceId {
        self.space.id()
    }

    /// Bytes of the model's memory.
    pub(crate) fn working_set(&self) -> u64 {
        let used = self.segments.iter().filter(|segment| segment.weight.get() > 0);
        used.map(|segment| segment.pages as u64).sum::<u64>() * PAGE_SIZE
    }

    /// Pages of 4 KiB that it has.
    pub(crate) fn real_pages(&self) -> u64 {
        self.pages.len() as u64 * u64::from(self.grain)
    }

    pub(crate) fn begin_thread(&self, node: Node) {
        let threads = &self.threads[usize::from(node.0)];
        threads.set(threads.get() + 1);
    }

    pub(super) fn threads_on(&self, node: Node) -> u32 {
        self.threads[usize::from(node.0)].get()
    }

    fn weigh(&self) {
        self.whole.set(self.segments.iter().map(|segment| segment.weight.get()).sum());
    }

    /// Moves weights, where it is time to.
    pub(crate) fn turn(&self, now: Nanos) {
        let is_due = |turning: &Turning| now.0 / turning.every.0 != self.turned.get().0 / turning.every.0;
        if !self.turning.iter().any(is_due) {
            return;
        }
        for turning in &self.turning {
            let count = turning.weights.len();
            let moved = (now.0 / turning.every.0) as usize * turning.shift % count;
            for (index, segment) in self.segments[turning.segments.clone()].iter().enumerate() {
                segment.weight.set(turning.weights[(index + count - moved) % count]);
            }
        }
        self.turned.set(now);
        self.weigh();
    }

    /// Of its accesses, how many are to memory of each node, in any unit.
    pub(crate) fn shares(&self, nodes: usize) -> Vec<(Node, u64)> {
        let mut shares = vec![0u64; nodes];
        for segment in self.segments.iter().filter(|segment| segment.weight.get() > 0) {
            shares.iter_mut().zip(segment.shares(self.whole.get())).for_each(|(share, here)| *share += here);
        }
        shares.into_iter().enumerate().map(|(node, share)| (Node(node as u16), share)).collect()
    }

    /// Every page is accessed.
    pub(crate) fn write_all(&self) {
        self.segments
            .iter()
            .for_each(|segment| segment.accesses.set(segment.accesses.get() + chance::CERTAIN));
    }

    /// Its threads made `accesses`.
    pub(crate) fn access(&self, accesses: u64) {
        for segment in self.segments.iter().filter(|segment| segment.weight.get() > 0) {
            segment.access(accesses, self.whole.get(), self.grain);
        }
    }

    /// The lowest mapping that ends above `from`, in pages of 4 KiB.
    pub(super) fn area(&self, from: Vpn) -> Option<Area> {
        let end = |mapping: &Mapping| (mapping.start + mapping.pages) * self.grain;
        let index = self.mappings.partition_point(|mapping| end(mapping) <= from.0);
        let mapping = self.mappings.get(index)?;
        let range = PageRange { start: Vpn(mapping.start * self.grain), end: Vpn(end(mapping)) };
        Some(Area { range, is_scanned: true })
    }

    /// Indices of the modelled pages of `range`, and the modelled virtual page of the first.
    pub(super) fn pages_of(&self, range: PageRange) -> Vec<(std::ops::Range<usize>, Vpn)> {
        let (start, end) = (range.start.0 / self.grain, range.end.0.div_ceil(self.grain));
        let from = self.mappings.partition_point(|mapping| mapping.start + mapping.pages <= start);
        let within = self.mappings[from..].iter().take_while(|mapping| mapping.start < end);
        let part = |mapping: &Mapping| {
            let (low, high) = (start.max(mapping.start), end.min(mapping.start + mapping.pages));
            let index = |vpn: u32| mapping.first + (vpn - mapping.start) as usize;
            (index(low)..index(high), Vpn(low))
        };
        within.map(part).collect()
    }

    pub(super) fn segment(&self, page: usize) -> &Segment {
        &self.segments[self.pages[page].segment as usize]
    }

    /// Where the pages of segment `number` are marked for hint faults.
    pub(super) fn segment_number(&self, page: usize) -> u32 {
        self.pages[page].segment
    }

    /// Whether the page was accessed since the last look, which this one is from now on.
    pub(super) fn was_accessed(&self, page: usize, random: &mut Random) -> bool {
        let (state, now) = (&self.pages[page], self.segment(page).accesses.get());
        let expected = now - state.last.replace(now);
        chance::happened(expected, random)
    }

    pub(super) fn moved(&self, page: usize, to: Node) {
        let from = self.pages[page].node.replace(to.0);
        let placed = &self.segment(page).placed;
        let change = |node: u16, by: i32| {
            let count = &placed[usize::from(node)];
            count.set(count.get().wrapping_add_signed(by));
        };
        change(from, -1);
        change(to.0, 1);
    }

    /// Each modelled page with its virtual page.
    pub(super) fn all_pages(&self) -> impl Iterator<Item = (usize, Vpn)> {
        let of = |mapping: &Mapping| {
            let (first, start) = (mapping.first, mapping.start);
            (0..mapping.pages).map(move |page| (first + page as usize, Vpn(start + page)))
        };
        self.mappings.iter().flat_map(of)
    }

    /// The next access to `page` is a fault.
    pub(super) fn mark(&self, page: usize, vpn: Vpn, since: Nanos, random: &mut Random) {
        if self.pages[page].marked.replace(true) {
            return;
        }
        let at = self.segment(page).accesses.get() + chance::until_first(random);
        self.hints.push(self.segment_number(page), Marked::new(at, page, vpn, since));
    }

    /// A page that has been accessed since it was marked, if there is one; it is marked no more.
    pub(super) fn next_fault(&self) -> Option<Marked> {
        let marked = self.hints.next(|segment| self.segments[segment as usize].accesses.get())?;
        self.pages[marked.page].marked.set(false);
        Some(marked)
    }
}

impl PageState {
    fn new(segment: u32, node: Node) -> Self {
        let (node, marked) = (Cell::new(node.0), Cell::new(false));
        Self { node, marked, last_by: Cell::new(0), last_task: Cell::new(0), segment, last: Cell::new(0) }
    }
}

fn fill(stage: &Stage, space: &Arc<AddressSpace<SimMachine>>, pages: u32, node: Node) -> Result<Vpn, String> {
    let mm = &stage.mm;
    let only = Placement { node: Some(node), allowed: [node].into_iter().collect::<NodeMask>() };
    let spec = MapSpec::anonymous(pages).small().placed(only);
    let start = mm.spaces().mmap(space, spec).map_err(|error| format!("workload: {error}"))?;
    let filled = mm.spaces().populate(space, start, pages, Touch::Write);
    filled.map_err(|error| format!("workload: {pages} pages of node {}: {error}", node.0))?;
    Ok(start)
}
