//! A process of a replay: its address space, as long as any task is in it, and the calls that change it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use mm::vm::{AddressSpace, Backing, File, HugePages, MapError, MapSpec, MemoryLock, Placement, Touch, Vpn};
use sim::SimMachine;

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
}

impl Process {
    /// One with no task in it yet.
    pub(super) fn new(space: Arc<AddressSpace<SimMachine>>, huge: HugePages) -> Rc<Self> {
        Rc::new(Self { space, tasks: Cell::new(0), huge: Cell::new(huge), raced: RefCell::default() })
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
    /// The memory manager refused it, or has nothing like it.
    LeftOut,
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
    let placement = Placement { allowed: stage.allowed, ..Placement::default() };
    let spec = MapSpec { backing, huge: process.huge(), ..MapSpec::anonymous(call.range.pages) };
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
        Call::Advise { range: PageRange { start, pages }, advice } => {
            spaces.madvise(space, start, pages, advice).is_ok()
        }
        Call::Pin(PageRange { start, pages }) => spaces.mlock(space, start, pages, MemoryLock::Keep).is_ok(),
        Call::Read(range) => read(stage, files, range),
        Call::Fill(range) => fill(stage, files, range),
        Call::Write(range) => write(stage, files, range),
        Call::Drop(FileRange { file, first, pages }) => {
            stage.mm.files().truncate_pages(&files[file as usize], first, pages) > 0
        }
        Call::ForbidHuge => {
            process.set_huge(stage, HugePages::Never);
            true
        }
        Call::AllowHuge => {
            process.set_huge(stage, HugePages::AsConfigured);
            true
        }
        Call::Exec => true,
    };
    if done { Outcome::Done } else { Outcome::LeftOut }
}

fn touch_of(call: &MapCall) -> Touch {
    match call.protection {
        mm::vm::Protection::ReadWrite => Touch::Write,
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

/// A read through the page cache: what is not there any more, though it was when this was recorded, is waited for.
fn read(stage: &Stage, files: &[Arc<File<SimMachine>>], range: FileRange) -> bool {
    let missed = each_page(stage, files, range, |file, page| {
        stage.mm.files().read_file(file, page, Placement::default())
    });
    missed.is_some_and(|pages| {
        if pages > 0 {
            stage.disk.transfer(stage.machine(), pages);
        }
        true
    })
}

/// Pages come in; the recorded wait for them is a step of its own.
fn fill(stage: &Stage, files: &[Arc<File<SimMachine>>], range: FileRange) -> bool {
    let read = |file: &File<SimMachine>, page| stage.mm.files().read_file(file, page, Placement::default());
    each_page(stage, files, range, read).is_some()
}

fn write(stage: &Stage, files: &[Arc<File<SimMachine>>], range: FileRange) -> bool {
    let write = |file: &File<SimMachine>, page| stage.mm.files().write_file(file, page, Placement::default());
    each_page(stage, files, range, write).is_some()
}

/// Does it to each page; how many were not in memory. `None` if there was no memory for one.
fn each_page(
    stage: &Stage,
    files: &[Arc<File<SimMachine>>],
    FileRange { file, first, pages }: FileRange,
    act: impl Fn(&File<SimMachine>, u32) -> Result<mm::vm::Cached, mm::AllocError>,
) -> Option<u64> {
    let file = files.get(file as usize)?;
    let mut missed = 0;
    for page in first..first.saturating_add(pages) {
        match act(file, page) {
            Ok(mm::vm::Cached::Hit) => {}
            Ok(mm::vm::Cached::Miss) => missed += 1,
            Err(_) => {
                stage.tally.could_not_get();
                return None;
            }
        }
    }
    Some(missed)
}
