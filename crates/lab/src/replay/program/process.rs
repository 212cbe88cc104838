//! A process of a replay: its address space, as long as any task is in it, and the calls that change it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use mm::vm::mempolicy::{InterleaveBy, InterleaveCursor, MemPolicy};
use mm::vm::{
    AddressSpace, Advice, Backing, File, HugePages, MapError, MapSpec, MemoryLock, Placement, SpaceCounters,
    Touch, Vpn,
};
use mm::{Nanos, Node, NodeMask, Request};
use sim::SimMachine;

use super::balance::Hints;
use super::files::{FileCalls, Readers};
use super::policies;
use super::sharing::Sharing;
use super::uses::Uses;
use crate::measurements::{ForkUse, RecordingCounts};
use crate::program::{self, Call, FileRange, MapCall, PageRange};
use crate::stage::Stage;

/// An address space with its tasks.
pub(super) struct Process {
    pub(super) space: Arc<AddressSpace<SimMachine>>,
    /// Tasks in it.
    tasks: Cell<u32>,
    /// Whether what it maps may be huge: its own wish, which its children and its next programs have too.
    huge: Cell<HugePages>,
    /// Of pages that several tasks touch at a time, those where one of them has had its fault.
    raced: RefCell<BTreeSet<u32>>,
    /// What its address space had been counted for when its tasks began.
    before: Cell<SpaceCounters>,
    /// Where its memory comes from.
    memory: Cell<Memory>,
    /// Whose turn it is where pages of files take turns.
    turn: InterleaveCursor,
    readers: Readers,
    hints: Hints,
    /// What it goes on using, where memory may be taken from it.
    uses: Option<RefCell<Uses>>,
    /// Its pages by node, the last time that it had nine tenths of its peak.
    placed: RefCell<Vec<u64>>,
    /// What has been counted of it, its address space's own counts apart.
    used: Cell<RecordingCounts>,
    /// Forks whose children still share pages with it.
    shares: RefCell<Vec<Rc<Sharing>>>,
    /// The fork that it came of.
    born: RefCell<Option<Rc<Sharing>>>,
}

/// Where a process's memory comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Nodes that it may be on (`cpuset.mems`).
    pub(super) allowed: NodeMask,
    /// In which order they are asked (`set_mempolicy`), where no range says otherwise.
    pub(super) policy: MemPolicy,
}

impl Process {
    /// One with no task in it yet.
    pub(super) fn new(
        space: Arc<AddressSpace<SimMachine>>,
        huge: HugePages,
        memory: Memory,
        (hints, uses): (Hints, Option<Uses>),
    ) -> Rc<Self> {
        Rc::new(Self {
            space,
            tasks: Cell::new(0),
            huge: Cell::new(huge),
            raced: RefCell::default(),
            before: Cell::default(),
            memory: Cell::new(memory),
            turn: InterleaveCursor::default(),
            readers: Readers::default(),
            hints,
            uses: uses.map(RefCell::new),
            placed: RefCell::default(),
            used: Cell::default(),
            shares: RefCell::default(),
            born: RefCell::default(),
        })
    }

    /// Tasks in it.
    pub(super) fn tasks(&self) -> u32 {
        self.tasks.get()
    }

    /// Something was counted of it.
    pub(super) fn count(&self, count: impl FnOnce(&mut RecordingCounts)) {
        let mut used = self.used.get();
        count(&mut used);
        self.used.set(used);
    }

    /// Something may go: where its pages are is noted, if it has about as many as it ever had.
    pub(super) fn note_placement(&self, stage: &Stage) {
        if 10 * self.space.resident_pages() >= 9 * self.space.counters().peak {
            let nodes = 0..stage.mm.topology().nodes.len() as u16;
            self.placed.replace(nodes.map(|node| self.space.pages_on(Node(node))).collect());
        }
    }

    /// Its pages by node, the last time that it had nine tenths of its peak.
    pub(super) fn placed(&self) -> Vec<u64> {
        self.placed.borrow().clone()
    }

    /// What was counted of it, its address space's own counts with it.
    pub(super) fn counted(&self) -> RecordingCounts {
        let space = self.space_counted();
        RecordingCounts {
            page_faults: space.minor + space.major,
            huge_faults: space.huge,
            pages_copied: space.copied,
            peak_rss_pages: space.peak,
            ..self.used.get()
        }
    }

    /// Where pages of files come from that it reads and writes by calls.
    pub(super) fn file_placement(&self, stage: &Stage) -> Placement {
        let Memory { allowed, policy } = self.memory.get();
        let request = Request { allowed, ..Request::USER };
        let placed = stage.mm.spaces().place(policy, InterleaveBy::Task(&self.turn), request);
        placed.map_or(Placement::default(), |placed| Placement { node: placed.node, allowed: placed.allowed })
    }

    /// How it reads its files.
    pub(super) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// What NUMA balancing keeps of it.
    pub(super) fn hints(&self) -> &Hints {
        &self.hints
    }

    /// What it goes on using, where memory may be taken from it.
    pub(super) fn uses(&self) -> Option<&RefCell<Uses>> {
        self.uses.as_ref()
    }

    /// It came of `sharing`, a fork.
    pub(super) fn forked(&self, sharing: Rc<Sharing>) {
        sharing.parent().shares.borrow_mut().push(Rc::clone(&sharing));
        self.born.replace(Some(sharing));
    }

    /// Whether it shares pages with a child of its own.
    pub(super) fn is_sharing(&self) -> bool {
        !self.shares.borrow().is_empty()
    }

    /// A fault of its took `ns`.
    pub(super) fn faulted(&self, ns: u64) {
        self.shares.borrow().iter().for_each(|sharing| sharing.faulted(ns));
    }

    /// It is to end at `now`: what came of the fork that it came of.
    pub(super) fn end_sharing(&self, now: Nanos) -> Option<ForkUse> {
        let sharing = self.born.take()?;
        sharing.parent().shares.borrow_mut().retain(|other| !Rc::ptr_eq(other, &sharing));
        Some(sharing.ended(self, now))
    }

    /// Where its memory comes from, and that of its children and its next programs.
    pub(super) fn memory(&self) -> Memory {
        self.memory.get()
    }

    /// Where its memory comes from.
    pub(super) fn set_memory(&self, memory: Memory) {
        self.memory.set(memory);
    }

    /// Whether what it maps may be huge.
    pub(super) fn huge(&self) -> HugePages {
        self.huge.get()
    }

    /// What it maps, and has mapped, may be huge or not from here on.
    pub(super) fn set_huge(&self, stage: &Stage, huge: HugePages) {
        self.huge.set(huge);
        stage.mm.spaces().advise(&self.space, Vpn(0), u32::MAX, huge);
    }

    /// It has what it had before the recording: bringing that in was no fault of its tasks.
    pub(super) fn is_as_before(&self) {
        self.before.set(self.space.counters());
    }

    /// What its address space has been counted for since its tasks began.
    pub(super) fn space_counted(&self) -> SpaceCounters {
        let (now, before) = (self.space.counters(), self.before.get());
        SpaceCounters {
            major: now.major - before.major,
            minor: now.minor - before.minor,
            huge: now.huge - before.huge,
            copied: now.copied - before.copied,
            reused: now.reused - before.reused,
            populated: now.populated - before.populated,
            populated_writes: now.populated_writes - before.populated_writes,
            tables_taken: now.tables_taken - before.tables_taken,
            ..now
        }
    }

    /// A task begins in it.
    pub(super) fn enter(&self) {
        self.tasks.set(self.tasks.get() + 1);
    }

    /// A task has had a fault at `page`, which another touches at the same time.
    pub(super) fn begin_race(&self, page: Vpn) {
        self.raced.borrow_mut().insert(page.0);
    }

    /// Whether another task has had its fault at `page`: who comes now is the second.
    pub(super) fn end_race(&self, page: Vpn) -> bool {
        self.raced.borrow_mut().remove(&page.0)
    }

    /// A task is no more in it; whether it was the last one, and the address space is to go.
    pub(super) fn leave(&self) -> bool {
        self.tasks.set(self.tasks.get() - 1);
        self.tasks.get() == 0
    }
}

/// What a call came to, where that matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// It was made.
    Done,
    /// The memory manager refused it.
    LeftOut,
    /// There was no memory for it.
    NoMemory,
    /// It is not made, for the reason that this name says.
    NotMade(&'static str),
}

/// Maps what `call` says.
pub(super) fn map(
    stage: &Stage,
    files: &[Arc<File<SimMachine>>],
    process: &Process,
    call: &MapCall,
) -> Result<(), MapError> {
    let file = |file: u32| Arc::clone(&files[file as usize]);
    let backing = match call.backing {
        program::Backing::Own => Backing::Anonymous,
        program::Backing::Private { file: number, first } => Backing::Private { file: file(number), first },
        program::Backing::Shared { file: number, first } => Backing::Shared { file: file(number), first },
    };
    let Memory { allowed, policy } = process.memory.get();
    let placement = Placement { allowed: stage.allowed.and(allowed), ..Placement::default() };
    let (huge, reserve) = (process.huge(), call.reserve);
    let spec = MapSpec { backing, policy, huge, reserve, ..MapSpec::anonymous(call.range.pages) };
    let spec = spec.placed(placement);
    stage.mm.spaces().mmap_at(&process.space, call.range.start, spec.protected(call.protection))
}

/// Makes a call other than exec's.
pub(super) fn make(
    stage: &Stage,
    files: &[Arc<File<SimMachine>>],
    process: &Process,
    call: &Call,
) -> Outcome {
    let (spaces, space) = (stage.mm.spaces(), &process.space);
    process.note_placement(stage);
    let done = match *call {
        Call::Map(call) => {
            let mapped = map(stage, files, process, &call).is_ok();
            mapped && (!call.populate || populate(stage, space, call.range, touch_of(&call)))
        }
        Call::Unmap(PageRange { start, pages }) => {
            spaces.munmap(space, start, pages);
            true
        }
        Call::Remap { from, to } => spaces.mremap(space, from.start, from.pages, to.start, to.pages).is_ok(),
        Call::Protect { range, protection } => {
            spaces.protect(space, range.start, range.pages, protection).is_ok()
        }
        Call::Advise { range: PageRange { start, pages }, advice } => match advice {
            Advice::PageOut => stage.mm.pages_out().page_out(space, start, pages).is_ok(),
            advice => spaces.madvise(space, start, pages, advice).is_ok(),
        },
        Call::Pin(PageRange { start, pages }) => spaces.mlock(space, start, pages, MemoryLock::Keep).is_ok(),
        Call::Unpin(PageRange { start, pages }) => {
            spaces.mlock(space, start, pages, MemoryLock::Release).is_ok()
        }
        Call::Bind { .. } | Call::SetPolicy(_) | Call::MoveNodes { .. } => {
            return policies::make(stage, process, call);
        }
        Call::Read(range) => return FileCalls { stage, files, process }.read(range),
        Call::Fill(range) => return FileCalls { stage, files, process }.fill(range),
        Call::Write(range) => return FileCalls { stage, files, process }.write(range),
        Call::Drop(FileRange { file, first, pages }) => {
            stage.mm.pages_out().cut_off(&files[file as usize], first, pages) > 0
        }
        Call::ForbidHuge => {
            process.set_huge(stage, HugePages::Never);
            true
        }
        Call::AllowHuge => {
            process.set_huge(stage, HugePages::AsConfigured);
            true
        }
        Call::Exec | Call::Exit => true,
    };
    if done { Outcome::Done } else { Outcome::LeftOut }
}

/// How the pages of a mapping are brought in with it: by writing where that makes them the process's own (`populate_vma_page_range`).
fn touch_of(call: &MapCall) -> Touch {
    match (call.protection, call.backing) {
        (_, program::Backing::Shared { .. }) => Touch::Read,
        (mm::vm::Protection::ReadWrite, _) => Touch::Write,
        _ => Touch::Read,
    }
}

fn populate(
    stage: &Stage,
    space: &AddressSpace<SimMachine>,
    PageRange { start, pages }: PageRange,
    touch: Touch,
) -> bool {
    stage.mm.spaces().populate(space, start, pages, touch).is_ok()
}
