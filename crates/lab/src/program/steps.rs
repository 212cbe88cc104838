//! What a program is made of.

use std::collections::BTreeMap;

use mm::Cpu;
use mm::vm::{Advice, Protection, Reserve, Touch, Vpn, ZeroPages};
use sim::Tlb;

use super::accesses::{LookedAt, Walked, WalkedFrom};
use super::counts::Counted;
use super::files::RecordedFile;
use super::said::{SaidPolicy, WhatIsThere};
use super::surroundings::Surroundings;
use super::used::UsedPeriod;
use crate::measurements::HeatMap;
use crate::reach::Brings;
use crate::recorded::TaskRef;

/// Something that one task waits for and another brings about, once: a number within the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalId(pub u32);

/// A step of a task: so many nanoseconds of its own on a CPU, then what it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// CPU time of the task's own, ns on the machine that was recorded.
    pub own_ns: u32,
    /// What it then does.
    pub doing: Doing,
}

/// Whether others touched a page at about the same time: then each of them had a fault, though one brought the page in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Company {
    /// Nobody did.
    Alone,
    /// Another task did, and found the page there by the time that it looked.
    Close,
    /// Another task did, and both had a page for it: one was for nothing.
    AtOnce,
}

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// Nothing: the time was all.
    Computes,
    /// Sleeps for so many nanoseconds: for a timer, an arrival, a disk, somebody outside of the program.
    Sleeps(u32),
    /// Touches a page of its address space.
    Touches {
        /// The page.
        page: Vpn,
        /// How.
        touch: Touch,
        /// Whether another task was at the same page when this was recorded.
        company: Company,
    },
    /// Makes a call: an index into [`Program::calls`].
    Calls(u32),
    /// Lets another task begin.
    Starts(TaskRef),
    /// Waits until another task has done what it waits for.
    Awaits(SignalId),
    /// Likewise, but goes on without it after so many nanoseconds: a sleep that the other cuts short where it comes first.
    AwaitsFor(SignalId, u32),
    /// Has done what another may wait for.
    Signals(SignalId),
}

impl Doing {
    /// Whether it is to wait, and nothing else.
    pub const fn waits(self) -> bool {
        matches!(self, Self::Sleeps(_) | Self::Awaits(_) | Self::AwaitsFor(..))
    }
}

/// Pages of an address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRange {
    /// The first.
    pub start: Vpn,
    /// How many, from 1.
    pub pages: u32,
}

/// Pages of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileRange {
    /// The file: an index into [`Program::files`].
    pub file: u32,
    /// The first page.
    pub first: u32,
    /// How many, from 1.
    pub pages: u32,
}

/// What stands behind a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backing {
    /// Memory of the program's own.
    Own,
    /// A file, from page `first` on; who writes to a page gets a copy.
    Private {
        /// The file: an index into [`Program::files`].
        file: u32,
        /// Its page at the mapping's start.
        first: u32,
    },
    /// A file, or shared memory, from page `first` on; changed for all who map it.
    Shared {
        /// The file: an index into [`Program::files`].
        file: u32,
        /// Its page at the mapping's start.
        first: u32,
    },
}

/// A mapping that a program made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapCall {
    /// Where.
    pub range: PageRange,
    /// Of what.
    pub backing: Backing,
    /// What may be done with it.
    pub protection: Protection,
    /// Whether all of it is brought in at once.
    pub populate: bool,
    /// Whether it counts as promised.
    pub reserve: Reserve,
}

impl MapCall {
    /// Memory of the process's own that it may write to, none of it there yet.
    pub const fn own(range: PageRange) -> Self {
        let protection = Protection::ReadWrite;
        Self { range, backing: Backing::Own, protection, populate: false, reserve: Reserve::IfWritable }
    }
}

/// A call of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Maps a range, in the place of what was there.
    Map(MapCall),
    /// Unmaps one.
    Unmap(PageRange),
    /// Moves one, or makes it longer or shorter.
    Remap {
        /// Where it was.
        from: PageRange,
        /// Where it is.
        to: PageRange,
    },
    /// Changes what may be done with one.
    Protect {
        /// The range.
        range: PageRange,
        /// What may be done.
        protection: Protection,
    },
    /// Says what it does with one.
    Advise {
        /// The range.
        range: PageRange,
        /// The word.
        advice: Advice,
    },
    /// Has no huge pages from here on, whatever it maps (`PR_SET_THP_DISABLE`).
    ForbidHuge,
    /// May have them again.
    AllowHuge,
    /// Brings one in to stay (`mlock`).
    Pin(PageRange),
    /// Lets it go again (`munlock`).
    Unpin(PageRange),
    /// Says which nodes one's memory comes from (`mbind`).
    Bind {
        /// The range.
        range: PageRange,
        /// The nodes.
        policy: SaidPolicy,
        /// What becomes of pages that are elsewhere.
        there: WhatIsThere,
    },
    /// Says it of all that has no policy of its own (`set_mempolicy`).
    SetPolicy(SaidPolicy),
    /// Moves all pages from nodes to others (`migrate_pages`), a bit for each node.
    MoveNodes {
        /// Where they are.
        from: u64,
        /// Where they go.
        to: u64,
    },
    /// Becomes another program, in an empty address space.
    Exec,
    /// Leaves its address space for good; the last one to do so frees it. What it still does is to wake others.
    Exit,
    /// Reads pages of a file by a system call.
    Read(FileRange),
    /// Writes them.
    Write(FileRange),
    /// Cuts pages off a file.
    Drop(FileRange),
    /// Has pages of a file come into the page cache, for a read, a fault or readahead: its wait for them is among its sleeps.
    Fill(FileRange),
}

/// In which address space a task begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begins {
    /// With the program, in an address space of this number that others may begin in too.
    InSpace(u32),
    /// When another task starts it, in that one's address space.
    AsThread,
    /// When another task starts it, in a copy of that one's address space.
    AsFork,
}

/// A task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskProgram {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub begins: Begins,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// Where it ran: from which step on, on which CPU of the machine that was recorded. Ascending; empty where that is not known.
    pub ran_on: Vec<(u32, Cpu)>,
    /// How often its process walked to its pages, from which step on; empty where that was not looked at.
    pub walked: Vec<WalkedFrom>,
    /// Steps that others wait for, with the signal that is given when the step is done. Ascending.
    pub awaited: Vec<(u32, SignalId)>,
}

/// A recorded program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Program {
    /// What it is called in reports.
    pub name: String,
    /// The tasks.
    pub tasks: Vec<TaskProgram>,
    /// The calls that steps refer to.
    pub calls: Vec<Call>,
    /// The files.
    pub files: Vec<RecordedFile>,
    /// What was there before, by the address space's number: done before anything runs.
    pub before: Vec<Vec<Before>>,
    /// What of this was in huge pages.
    pub huge_before: HugeBefore,
    /// What looks at accessed bits have found.
    pub walked: Vec<Walked>,
    /// And what that was found from, by mapping.
    pub looked_at: Vec<Vec<LookedAt>>,
    /// What private pages held then, by mapping; empty of looks that read none.
    pub zeros: Vec<Vec<ZeroPages>>,
    /// Which pages were used until then, and when; empty of looks that did not tell pages apart.
    pub used: Vec<UsedPeriod>,
    /// The same as a map of each address space, to be shown.
    pub heat: Vec<HeatMap>,
    /// The TLB of the machine that it was recorded on: the tasks' own time has its walks in it.
    pub tlb: Option<Tlb>,
    /// Signals are numbered below this.
    pub signals: u32,
    /// Where it was recorded.
    pub surroundings: Surroundings,
    /// What the recorded kernel counted.
    pub counted: Counted,
    /// How long calls took that forked a task, recording apart, ns, by the child; where that was seen. To compare with, as well.
    pub forked_ns: BTreeMap<u32, u64>,
    /// What could not be carried over, by name.
    pub omissions: BTreeMap<&'static str, u64>,
    /// What is wrong with the recording's file.
    pub damage: Option<String>,
}

impl Program {
    /// Whether looks at accessed bits told which pages were used.
    pub fn tells_pages_apart(&self) -> bool {
        self.used.iter().any(|period| !period.looks.is_empty())
    }
}

/// Huge pages that were there before: which small pages of them were touched is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HugeBefore {
    /// Small pages that they are.
    pub pages: u64,
    /// Those of them that held nothing but zeros: as many at most were never touched.
    pub zeros: u64,
}

/// Something that was there in an address space before the recording began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// It was mapped so.
    Mapped(MapCall),
    /// Its pages had been touched so.
    Touched(PageRange, Touch),
}

impl Call {
    /// The ranges of whose pages it takes some away, or brings some in, or maps what was not there.
    pub(super) fn changes(&self) -> [Option<PageRange>; 2] {
        match *self {
            Self::Map(MapCall { range, .. })
            | Self::Unmap(range)
            | Self::Advise {
                range,
                advice: Advice::DontNeed | Advice::PopulateRead | Advice::PopulateWrite,
            } => [Some(range), None],
            Self::Remap { from, to } => [Some(from), Some(to)],
            _ => [None; 2],
        }
    }
}

impl TaskProgram {
    /// A task that does nothing yet.
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            begins: Begins::AsThread,
            steps: vec![],
            ran_on: vec![],
            walked: vec![],
            awaited: vec![],
        }
    }
}

impl Program {
    /// What it brings for knobs to act on.
    pub fn brings(&self) -> Brings {
        let writes = self.calls.iter().any(|call| matches!(call, Call::Write(_)));
        let forks = self.tasks.iter().any(|task| task.begins == Begins::AsFork);
        let swap = self.surroundings.swap.size();
        Brings { files: writes, forks, hints: true, killable: true, swap, ..Brings::SPACES }
    }

    /// CPUs of the recorded machine that are known to have run its tasks: the highest one's number and one more; 0 for none.
    pub fn recorded_cpus(&self) -> u32 {
        let ran_on = self.tasks.iter().flat_map(|task| &task.ran_on);
        ran_on.map(|(_, cpu)| u32::from(cpu.0) + 1).max().unwrap_or(0)
    }

    /// Whether there is nothing to replay.
    pub fn is_empty(&self) -> bool {
        self.tasks.iter().all(|task| task.steps.is_empty())
    }

    /// The longest task's own time and sleep, ns.
    pub fn length_ns(&self) -> u64 {
        let slept = |step: &Step| match step.doing {
            Doing::Sleeps(ns) | Doing::AwaitsFor(_, ns) => u64::from(ns),
            _ => 0,
        };
        let of_task = |task: &TaskProgram| {
            task.steps.iter().map(|step| u64::from(step.own_ns) + slept(step)).sum::<u64>()
        };
        self.tasks.iter().map(of_task).max().unwrap_or(0)
    }

    /// Counts something that could not be carried over.
    pub(super) fn omit(&mut self, name: &'static str) {
        *self.omissions.entry(name).or_default() += 1;
    }
}
