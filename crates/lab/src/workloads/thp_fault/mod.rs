//! David Rientjes' test (docs/published.md#rientjes-2014): a program faults ranges of anonymous memory in, 64 MiB each,
//! on a machine whose memory is fragmented ([`super::fragment`]) and whose CPUs others want too. Each first touch of 2
//! MiB asks for a huge page; where there is none, 512 small faults take its place.
//!
//! Besides the program there are `load` tasks on its CPU that always want to run, so that a fault that takes longer than a time
//! slice has to wait for theirs: what a kernel does at that moment is one of the thread's questions.
//!
//! Samples, all in ns: `fault`, the first touch of 2 MiB, whatever it got; `fault-huge` and `fault-small`, those that got a huge page
//! or a small one; `touch-2mib`, all of the 2 MiB, with the small faults that follow where it got none; `stall-range`, the
//! sum of those over a range, which is what the post measures; `stall-range-faults`, the sum of `fault`. A range that may not be
//! huge comes first, for comparison: `plain-range` and its parts `plain-2mib` say what 512 small faults cost by themselves, and so
//! what a huge page saves. `floor-range` is the least that a range could have cost as memory was before it. What the program does
//! besides is in none of them.
//!
//! Counters `thp_wanted`, `thp_got`, `thp_missed` are of the program's own faults (those of the kernel's names count what the
//! fragmenter did, too); `floor_pages` are the pages that had to move for the floors, `floor_blocks` the pageblocks that could be
//! emptied, of all ranges together. 2 MiB faulted are an operation.

mod floor;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use mm::ids::PAGEBLOCK_PAGES;
use mm::policy::Mechanism;
use mm::vm::{AddressSpace, FaultKind, MapSpec, Touch, Vpn};
use mm::{Cpu, Machine, Nanos};
use serde::Deserialize;
use sim::{Sim, SimMachine, TaskSpec};

use super::fragment::Fragment;
use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, number, within};

/// What the program is counted by.
const NOTES: [&str; 5] = ["thp_wanted", "thp_got", "thp_missed", "floor_pages", "floor_blocks"];

/// A task of the load computes so long between two looks at whether it is over; slices end in between.
const LOAD_STEP: Nanos = Nanos(1_000_000);

/// Parameters of the program and of what it runs on.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThpFault {
    /// A range, MiB, even, from 2.
    #[serde(default = "number::<64>")]
    pub mib: u32,
    /// How many of them, one after the other, from 1.
    #[serde(default = "number::<2>")]
    pub ranges: u32,
    /// From the start of one to the start of the next, ms, unless the one takes longer.
    #[serde(default = "number::<5000>")]
    pub every_ms: u32,
    /// What the program itself does with each 2 MiB that it has touched, µs, a tenth more or less at random.
    #[serde(default)]
    pub own_us: u32,
    /// Tasks on its CPU that always want to run.
    #[serde(default)]
    pub load: u32,
    /// Whether it reads each 2 MiB before it writes there.
    #[serde(default)]
    pub reads_first: bool,
    /// What memory is like.
    pub fragment: Fragment,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "thp-fault",
    tests: &[Mechanism::Compaction, Mechanism::HugePages],
    brings: Brings::SPACES,
    groups: &["all"],
    read: WorkloadKind::read::<ThpFault>,
    smallest: &["mib = 2\nranges = 1\nevery_ms = 0\n[fragment]\nkernel = 200\nfree = 5000\nindex = 950\n"],
    largest: &[],
};

impl Workload for ThpFault {
    fn title(&self) -> String {
        format!(
            "{} ranges of {} MiB faulted in huge pages beside {} tasks, memory {}",
            self.ranges,
            self.mib,
            self.load,
            self.fragment.title()
        )
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("mib", self.mib.into(), 2..=1 << 16)?;
        within("ranges", self.ranges.into(), 1..=1000)?;
        within("every_ms", self.every_ms.into(), 0..=1_000_000)?;
        within("own_us", self.own_us.into(), 0..=1_000_000)?;
        within("load", self.load.into(), 0..=1000)?;
        for name in NOTES {
            stage.tally.note(name, 0);
        }
        self.fragment.apply(stage)?;
        stage.tasks.set(1);
        let cpu = stage.cpu(0);
        for number in 0..self.load {
            start_load(sim, stage, number, cpu);
        }
        let random = RefCell::new(Random::new(stage.machine()));
        let program = Program { spec: self.clone(), stage: Rc::clone(stage), random };
        // The load is under way.
        let task = TaskSpec::new("thp-fault").on(cpu).at(Nanos(1_000_000));
        sim.spawn(task, move || program.run());
        Ok(())
    }
}

fn start_load(sim: &Sim, stage: &Rc<Stage>, number: u32, cpu: Cpu) {
    let owned = Rc::clone(stage);
    // Not all slices begin together.
    let start = Random::new(stage.machine()).time_below(LOAD_STEP);
    let task = TaskSpec::new(format!("load/{number}")).on(cpu).at(start);
    sim.spawn(task, move || {
        while !owned.is_over() {
            owned.machine().compute(LOAD_STEP);
        }
    });
}

struct Program {
    spec: ThpFault,
    stage: Rc<Stage>,
    random: RefCell<Random>,
}

/// What touching 2 MiB took.
#[derive(Clone, Copy)]
struct Touched {
    /// The first touch.
    first: u64,
    all: u64,
}

impl Program {
    fn run(&self) {
        let space = self.stage.mm.spaces().new_space();
        self.range(&space, &self.plain());
        for range in 0..self.spec.ranges {
            let began = self.stage.machine().now();
            self.note_floor();
            self.range(&space, &self.huge());
            if range + 1 < self.spec.ranges {
                let every = u64::from(self.spec.every_ms) * 1_000_000;
                self.stage.machine().sleep_until(Nanos(began.0 + every));
            }
        }
        // Whoever runs on does so for others; the program waits for its end.
        while !self.stage.is_over() {
            self.stage.machine().sleep(LOAD_STEP);
        }
        self.stage.mm.spaces().exit(&space);
    }

    /// The least that the next range could cost.
    fn note_floor(&self) {
        let tally = &self.stage.tally;
        let floor = floor::floor(&self.stage, self.spec.mib / 2);
        tally.sampled("floor-range", floor.ns as f64);
        tally.note("floor_pages", floor.moved);
        tally.note("floor_blocks", floor.blocks);
    }

    fn plain(&self) -> RangeKind {
        RangeKind {
            spec: MapSpec::anonymous(self.spec.mib << 8).small(),
            range: "plain-range",
            part: "plain-2mib",
        }
    }

    fn huge(&self) -> RangeKind {
        RangeKind { spec: MapSpec::anonymous(self.spec.mib << 8), range: "stall-range", part: "touch-2mib" }
    }

    /// Maps a range and touches all of it.
    fn range(&self, space: &Arc<AddressSpace<SimMachine>>, kind: &RangeKind) {
        let Stage { mm, tally, .. } = &*self.stage;
        let spec = MapSpec { pages: kind.spec.pages, huge: kind.spec.huge, ..MapSpec::anonymous(1) };
        let Ok(start) = mm.spaces().mmap(space, spec) else { return tally.could_not_get() };
        let (mut first, mut all) = (0, 0);
        for part in 0..kind.spec.pages / PAGEBLOCK_PAGES {
            if self.stage.is_over() {
                // What is not complete is no sample.
                return;
            }
            let Some(touched) = self.touch(space, start.add(part * PAGEBLOCK_PAGES), kind) else { return };
            first += touched.first;
            all += touched.all;
            self.work();
            tally.did(1);
        }
        tally.sampled(kind.range, all as f64);
        if kind.wants_huge() {
            tally.sampled("stall-range-faults", first as f64);
        }
    }

    /// What the program does besides.
    fn work(&self) {
        let own = u64::from(self.spec.own_us) * 1000;
        let least = own - own / 10;
        let more = self.random.borrow_mut().below(own / 5 + 1);
        self.stage.machine().compute(Nanos(least + more));
    }

    /// Touches the 2 MiB at `start`, page by page where it must. `None`: there is no memory.
    fn touch(&self, space: &AddressSpace<SimMachine>, start: Vpn, kind: &RangeKind) -> Option<Touched> {
        let Stage { mm, tally, .. } = &*self.stage;
        let machine = self.stage.machine();
        let began = machine.now();
        if self.spec.reads_first && mm.spaces().touch_page(space, start, Touch::Read).is_err() {
            tally.could_not_get();
            return None;
        }
        let Ok((_, got)) = mm.spaces().touch_page(space, start, Touch::Write) else {
            tally.could_not_get();
            return None;
        };
        let first = machine.now().0 - began.0;
        let huge = got == Some(FaultKind::Huge);
        if !huge && mm.spaces().populate(space, start, PAGEBLOCK_PAGES, Touch::Write).is_err() {
            tally.could_not_get();
            return None;
        }
        let all = machine.now().0 - began.0;
        tally.sampled(kind.part, all as f64);
        if kind.wants_huge() {
            tally.note("thp_wanted", 1);
            tally.note(if huge { "thp_got" } else { "thp_missed" }, 1);
            tally.sampled("fault", first as f64);
            tally.sampled(if huge { "fault-huge" } else { "fault-small" }, first as f64);
        }
        Some(Touched { first, all })
    }
}

struct RangeKind {
    spec: MapSpec<SimMachine>,
    /// What samples of it and of its parts are called.
    range: &'static str,
    part: &'static str,
}

impl RangeKind {
    fn wants_huge(&self) -> bool {
        self.spec.huge == mm::vm::HugePages::AsConfigured
    }
}
