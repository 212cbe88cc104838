//! Filling a node up: the kernel's early memory, huge pages, then anonymous memory and a file side by side.

use std::sync::Arc;

use mm::vm::{AddressSpace, File, FileKind, MapSpec, Placement, Touch};
use mm::{MigrateType, Node, Order, Pfn, Request, Zone};
use sim::SimMachine;

use super::{BLOCK, Fragment, Region, Remains, WHOLE, is_asked, pages_of, placement};
use crate::stage::{Random, Stage};

/// Pages of a process lie together in pieces of so many, and between them those of files, which are read more or less ahead:
/// estimates.
const PIECE: u32 = 64;
const FILE_PIECE: u32 = 16;

/// Memory that is to stay lies in stretches of so many pages, four pageblocks: an estimate.
const STRETCH: u32 = 4 * BLOCK;

/// Of ten blocks of the kernel's, how many are single pages; the others are of order 1 to 3, as slabs are: an estimate.
const SINGLES: u64 = 6;

/// A node that fills up.
pub(super) struct Filling<'a> {
    stage: &'a Stage,
    spec: Fragment,
    node: Node,
    from: Placement,
    pub(super) random: Random,
    space: Arc<AddressSpace<SimMachine>>,
    huge: Arc<AddressSpace<SimMachine>>,
    file: Arc<File<SimMachine>>,
    /// Anonymous memory.
    anon: Region,
    /// And memory that is to stay where it is.
    pinned: Region,
    file_pages: u32,
    kernel: Vec<(Pfn, Order)>,
}

/// Whether memory of a process can be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Memory {
    /// It stays where it is.
    Pinned,
    /// It can.
    Movable,
}

impl<'a> Filling<'a> {
    pub(super) fn new(stage: &'a Stage, spec: Fragment, node: Node, random: Random) -> Self {
        let mm = &stage.mm;
        Self {
            stage,
            spec,
            node,
            from: placement(stage, node),
            random,
            space: mm.spaces().new_space(),
            huge: mm.spaces().new_space(),
            file: mm.files().new_file(FileKind::Disk),
            anon: Region::default(),
            pinned: Region::default(),
            file_pages: 0,
            kernel: vec![],
        }
    }

    /// Blocks of the kernel's, as slabs and buffers are, until they have their share.
    pub(super) fn kernel_early(&mut self) {
        let mut left = pages_of(self.stage, self.node, self.spec.kernel);
        while left > 0 {
            let order = match self.random.below(10) {
                single if single < SINGLES => Order::ZERO,
                _ => Order::new(1 + self.random.below(3) as u8).unwrap_or(Order::ZERO),
            };
            let kind =
                if self.random.below(4) == 0 { MigrateType::Reclaimable } else { MigrateType::Unmovable };
            let request = Request { migratetype: kind, order, ..kernel_request(self.from) };
            let Ok(block) = self.stage.mm.alloc(request) else { return };
            self.kernel.push((block, order));
            left = left.saturating_sub(u64::from(order.pages()));
        }
    }

    /// Huge pages of processes, as many as are configured to be had.
    pub(super) fn huge(&mut self) {
        let pages = pages_of(self.stage, self.node, self.spec.huge) as u32 / BLOCK * BLOCK;
        if pages == 0 {
            return;
        }
        let spec = MapSpec::anonymous(pages).placed(self.from);
        if let Ok(start) = self.stage.mm.spaces().mmap(&self.huge, spec) {
            // What cannot be had is missing from the share; the run's counters say so (thp_fault_fallback).
            let _ = self.stage.mm.spaces().populate(&self.huge, start, pages, Touch::Write);
        }
    }

    /// Anonymous memory and a file, piece by piece at random, until the node is as full as it may be without anybody
    /// reclaiming.
    pub(super) fn small(&mut self) {
        let room = self.free_pages().saturating_sub(self.kept_free()).max(1);
        // Holes will come everywhere alike.
        let Fragment { kernel, huge, scattered, free, .. } = self.spec;
        let rest = WHOLE.saturating_sub(u64::from(kernel + huge + scattered + free)).max(1);
        let share = |share| u64::from(share) * WHOLE / rest;
        let (of_file, of_pinned) = (share(self.spec.file), share(self.spec.pinned));
        let spec = || MapSpec::anonymous(room as u32).small().placed(self.from);
        let (Ok(anon), Ok(pinned)) = (
            self.stage.mm.spaces().mmap(&self.space, spec()),
            self.stage.mm.spaces().mmap(&self.space, spec()),
        ) else {
            return;
        };
        (self.anon.start, self.pinned.start) = (anon, pinned);
        let mut before = u64::MAX;
        while self.has_room() && self.free_pages() < before {
            before = self.free_pages();
            let is_pinned = self.random.below(WHOLE - of_file.min(WHOLE - 1)) < of_pinned;
            let memory = if is_pinned { Memory::Pinned } else { Memory::Movable };
            for _ in 0..STRETCH / PIECE {
                self.piece(memory, of_file);
            }
        }
    }

    fn has_room(&self) -> bool {
        self.free_pages() > self.kept_free() + u64::from(2 * STRETCH)
    }

    /// A piece of a process's memory, with as many small pieces of the file before it as are its share.
    fn piece(&mut self, memory: Memory, of_file: u64) {
        let of_process = WHOLE - of_file.min(WHOLE - 1);
        // So many small pieces of 10,000 for each of the process.
        let mut owed =
            of_file * u64::from(PIECE / FILE_PIECE) * WHOLE / of_process + self.random.below(WHOLE);
        while owed >= WHOLE && self.has_room() {
            self.read_piece();
            owed -= WHOLE;
        }
        match memory {
            Memory::Pinned => self.pinned.pages += self.populate(self.pinned, PIECE),
            Memory::Movable => self.anon.pages += self.populate(self.anon, PIECE),
        }
    }

    /// Touches the next `pages` behind `region`; gives how many there were.
    fn populate(&self, region: Region, pages: u32) -> u32 {
        let done =
            self.stage.mm.spaces().populate(&self.space, region.start.add(region.pages), pages, Touch::Write);
        if done.is_ok() { pages } else { 0 }
    }

    fn read_piece(&mut self) {
        for _ in 0..FILE_PIECE {
            if self.stage.mm.files().read_file(&self.file, self.file_pages, self.from).is_ok() {
                self.file_pages += 1;
            }
        }
    }

    pub(super) fn done(self) -> Remains {
        let Self { node, space, huge, anon, pinned, file, file_pages, kernel, .. } = self;
        Remains { node, space, anon, huge, pinned, file, file_pages, kernel, stay: 0, index: 0, free: 0 }
    }

    fn free_pages(&self) -> u64 {
        let zones = self.stage.mm.zones().iter().filter(|zone| zone.node() == self.node && is_asked(zone));
        zones.map(|zone| u64::from(zone.free_pages())).sum()
    }

    /// What is left free of the node's zones: what they keep, and a few pageblocks, which are broken up later.
    fn kept_free(&self) -> u64 {
        let zones = self.stage.mm.zones().iter().filter(|zone| zone.node() == self.node && is_asked(zone));
        let kept = |zone: &Zone<SimMachine>| {
            let high = zone.decide_by_marks(self.stage.mm.machine(), |marks| marks.high);
            u64::from(high) + u64::from(2 * BLOCK)
        };
        zones.map(kept).sum()
    }
}

/// Kernel memory from where `from` says.
pub(super) fn kernel_request(from: Placement) -> Request {
    Request { node: from.node, allowed: from.allowed, ..Request::KERNEL }
}
