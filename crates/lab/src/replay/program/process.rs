//! A process of a replay: its address space, as long as any task is in it, and the calls that change it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use mm::vm::{AddressSpace, Backing, File, HugePages, MapError, MapSpec, Placement, Touch, Vpn};
use sim::SimMachine;

use crate::program::{self, Advice, Call, FileRange, MapCall, PageRange};
use crate::stage::Stage;

/// An address space with its tasks.
pub(super) struct Process {
    pub(super) space: Arc<AddressSpace<SimMachine>>,
    /// Tasks in it.
    tasks: Cell<u32>,
    /// The pages of its last faults, in a circle.
    last_faults: RefCell<[Vpn; RACERS]>,
    faults: Cell<usize>,
}

/// How many faults of a process may be under way at a time.
const RACERS: usize = 16;

impl Process {
    /// One with no task in it yet.
    pub(super) fn new(space: Arc<AddressSpace<SimMachine>>) -> Rc<Self> {
        let last_faults = RefCell::new([Vpn(u32::MAX); RACERS]);
        Rc::new(Self { space, tasks: Cell::new(0), last_faults, faults: Cell::new(0) })
    }

    /// A task begins in it.
    pub(super) fn enter(&self) {
        self.tasks.set(self.tasks.get() + 1);
    }

    /// A task of it has had a fault at `page`.
    #[inline]
    pub(super) fn note_fault(&self, page: Vpn) {
        let at = self.faults.get();
        self.last_faults.borrow_mut()[at % RACERS] = page;
        self.faults.set(at + 1);
    }

    /// Whether other tasks of it may still be about a fault at `page`: one that comes now is a fault too.
    #[inline]
    pub(super) fn is_contended(&self, page: Vpn) -> bool {
        self.tasks.get() > 1 && self.last_faults.borrow().contains(&page)
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
    space: &Arc<AddressSpace<SimMachine>>,
    call: &MapCall,
) -> Result<(), MapError> {
    let file = |file: u32| Arc::clone(&files[file as usize]);
    let backing = match call.backing {
        program::Backing::Own => Backing::Anonymous,
        program::Backing::Private { file: number, first } => Backing::Private { file: file(number), first },
        program::Backing::Shared { file: number, first } => Backing::Shared { file: file(number), first },
    };
    let placement = Placement { allowed: stage.allowed, ..Placement::default() };
    let spec = MapSpec { backing, ..MapSpec::anonymous(call.range.pages) }.placed(placement);
    stage.mm.spaces().mmap_at(space, call.range.start, spec.protected(call.protection))
}

/// Makes a call other than exec's.
pub(super) fn make(
    stage: &Stage,
    files: &[Arc<File<SimMachine>>],
    space: &Arc<AddressSpace<SimMachine>>,
    call: &Call,
) -> Outcome {
    let spaces = stage.mm.spaces();
    let done = match *call {
        Call::Map(call) => {
            let mapped = map(stage, files, space, &call).is_ok();
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
        Call::Advise { range, advice } => advise(stage, space, range, advice),
        Call::Pin(range) => populate(stage, space, range, Touch::Write),
        Call::Read(range) => read(stage, files, range),
        Call::Fill(range) => fill(stage, files, range),
        Call::Write(range) => write(stage, files, range),
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

fn advise(stage: &Stage, space: &AddressSpace<SimMachine>, range: PageRange, advice: Advice) -> bool {
    let PageRange { start, pages } = range;
    let spaces = stage.mm.spaces();
    match advice {
        Advice::DontNeed => spaces.discard(space, start, pages),
        Advice::Huge => spaces.advise(space, start, pages, HugePages::Advised),
        Advice::NoHuge => spaces.advise(space, start, pages, HugePages::Never),
        Advice::PopulateRead => return populate(stage, space, range, Touch::Read),
        Advice::PopulateWrite => return populate(stage, space, range, Touch::Write),
        Advice::Free | Advice::Collapse | Advice::Cold | Advice::PageOut => return false,
    }
    true
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
