//! A mapping of a process: faulted in page by page, taken down in the kernel's batches. What a page's content costs is
//! charged where a workload touches it.
//!
//! Modelled: the fault itself, the page with its clearing, a page-table page for every 512 pages, unmapping by batches
//! of 31 pages whose descriptors are touched when the last map count goes, and again when they are freed. Left out: huge
//! pages, the LRU lists and their lock, memory cgroups' counters, upper page-table levels, TLB flushes.

use mm::{Access, Line, LineKind, Machine, Order, Pfn, Request};
use sim::{Path, Traffic};

use crate::stage::Stage;

/// Pages that the kernel frees together when it unmaps (a folio batch).
pub(super) const BATCH: usize = 31;
/// Pages that a page-table page maps.
const TABLE_SPAN: usize = 512;

/// What is behind a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Backing {
    /// Private anonymous memory.
    Anonymous,
    /// Shared anonymous memory: a file of shmem.
    Shared,
    /// A private mapping of a file in the page cache: a write copies the page.
    CopyOnWrite,
}

impl Backing {
    /// What a first write costs besides the page. No list has the pages here: what putting them there in batches takes each is a part.
    pub(super) const fn fault(self) -> [Path; 3] {
        let served = match self {
            Self::Shared => Path::SharedFault,
            Self::Anonymous | Self::CopyOnWrite => Path::Fault,
        };
        [Path::Exception, served, Path::LruAdd]
    }
}

/// A mapping, as far as its pages go.
#[derive(Debug)]
pub(super) struct Mapping {
    backing: Backing,
    pages: Vec<Pfn>,
    /// How many of them, from the first on, have been given back.
    gone: usize,
    tables: Vec<Pfn>,
}

impl Mapping {
    /// An empty mapping with room for `pages` pages; charges the system call.
    pub(super) fn new(stage: &Stage, backing: Backing, pages: usize) -> Self {
        stage.machine().charge(Path::Syscall);
        let tables = Vec::with_capacity(pages / TABLE_SPAN + 1);
        Self { backing, pages: Vec::with_capacity(pages), gone: 0, tables }
    }

    /// The pages, in the order of their addresses.
    pub(super) fn pages(&self) -> &[Pfn] {
        &self.pages
    }

    /// The first write to the page behind the last one. False if there is no memory for it.
    #[inline]
    pub(super) fn fault(&mut self, stage: &Stage) -> bool {
        let machine = stage.machine();
        let since = machine.enter(mm::Span::Fault);
        self.backing.fault().into_iter().for_each(|path| machine.charge(path));
        let got = self.populate(stage);
        let work = mm::Work { count: u32::from(got), ..mm::Work::default() };
        machine.leave(mm::Span::Fault, since, work);
        got
    }

    #[inline]
    fn populate(&mut self, stage: &Stage) -> bool {
        if self.pages.len() % TABLE_SPAN == 0 {
            let Some(table) = get(stage, Request { zero: true, ..Request::KERNEL }) else { return false };
            self.tables.push(table);
        }
        let zero = self.backing != Backing::CopyOnWrite;
        let Some(page) = get(stage, Request { zero, ..Request::USER }) else { return false };
        if !zero {
            stage.machine().stream(page, Order::ZERO, Traffic::Copy);
        }
        self.pages.push(page);
        true
    }

    /// Takes the mapping down and gives its pages back, lowest address first. Pages of a file are unmapped first, all of
    /// them; they go when the file does.
    pub(super) fn unmap(mut self, stage: &Stage) {
        stage.machine().charge(Path::Syscall);
        if self.backing == Backing::Shared {
            self.pages[self.gone..].chunks(BATCH).for_each(|batch| change(stage, Path::Unmap, batch));
        }
        while self.give_some(stage) {}
        self.tables.chunks(BATCH).for_each(|batch| give(stage, batch));
    }

    /// Gives the next batch of pages back, which ends the mapping's use for all else; false if none is left.
    pub(super) fn give_some(&mut self, stage: &Stage) -> bool {
        let Some(batch) = self.pages[self.gone..].chunks(BATCH).next() else { return false };
        change(stage, self.going(), batch);
        give(stage, batch);
        self.gone += batch.len();
        true
    }

    /// What a page's giving back costs.
    const fn going(&self) -> Path {
        match self.backing {
            Backing::Shared => Path::Truncate,
            Backing::Anonymous | Backing::CopyOnWrite => Path::Unmap,
        }
    }

    /// Whether pages have been given back.
    pub(super) const fn is_going(&self) -> bool {
        self.gone > 0
    }
}

/// Each page of a batch costs `path` and a change of its descriptor.
fn change(stage: &Stage, path: Path, batch: &[Pfn]) {
    let machine = stage.machine();
    machine.charge_times(path, batch.len() as u32);
    for page in batch {
        machine.touch(Line { kind: LineKind::Frame, index: page.0 }, Access::Write);
    }
}

/// A page for `request`, or `None`; either is counted.
#[inline]
pub(super) fn get(stage: &Stage, request: Request) -> Option<Pfn> {
    let got = stage.mm.alloc(Request { allowed: stage.allowed, ..request }).ok();
    match got {
        Some(_) => stage.tally.got(request.order.pages()),
        None => stage.tally.could_not_get(),
    }
    got
}

/// Gives single pages back together; there are at most 31.
#[inline]
fn give(stage: &Stage, pages: &[Pfn]) {
    let mut blocks = [(Pfn(0), Order::ZERO); BATCH];
    for (block, page) in blocks.iter_mut().zip(pages) {
        block.0 = *page;
    }
    stage.mm.free_batch(&blocks[..pages.len()]).expect("a mapping frees only what it holds");
    stage.tally.gave_singles(pages.len() as u32);
}
