//! Blocks of one order allocated in bulk, passed on, freed, and again: kernel-side allocation alone, with nothing but the
//! allocator between two requests. Frees come in order of allocation or at random; with more than one task, each may free
//! what another one got in the round before, as when work moves between CPUs. Tasks go from round to round each by itself, or
//! all of them allocate before the first one frees, as in benchmarks of allocators that time the two apart.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use mm::{Nanos, Order, Pfn, Request};
use serde::Deserialize;
use sim::{Sim, TaskSpec, WaitQueue};

use super::mapping::get;
use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, within};

/// Parameters of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllocLoop {
    /// Tasks, from 1.
    pub tasks: u32,
    /// Order of the blocks, 0 to 10.
    #[serde(default)]
    pub order: u8,
    /// Blocks that each task holds at most.
    pub blocks: u32,
    /// Order of the frees.
    #[serde(default)]
    pub free: FreeOrder,
    /// Whose blocks a task frees.
    #[serde(default)]
    pub whose: Whose,
    /// What is asked for.
    #[serde(default)]
    pub memory: Memory,
    /// Whether tasks wait for each other.
    #[serde(default)]
    pub rounds: Rounds,
}

/// What blocks are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Memory {
    /// The kernel itself; they cannot be moved.
    #[default]
    Kernel,
    /// Programs; they can.
    User,
}

/// How a task's rounds lie to those of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Rounds {
    /// Each begins when the one before it is over.
    #[default]
    Apart,
    /// No task frees before all have allocated, none allocates before all have freed.
    Together,
}

/// In which order blocks are freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FreeOrder {
    /// As they were got.
    #[default]
    InOrder,
    /// At random.
    Shuffled,
}

/// Whose blocks a task frees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Whose {
    /// Its own.
    #[default]
    Own,
    /// Those that the task before it got.
    Neighbours,
}

/// A task's place among all.
#[derive(Clone, Copy)]
struct Place<'a> {
    number: usize,
    hands: &'a Hand,
    meeting: &'a Meeting,
}

/// Where tasks wait for each other.
#[derive(Default)]
struct Meeting {
    arrived: Cell<u32>,
    /// How often all have been there.
    times: Cell<u32>,
    /// Whether time was over when they were.
    over: Cell<bool>,
    queue: WaitQueue,
}

impl Meeting {
    /// Whether there is no other round for who comes from one.
    fn over(&self, stage: &Stage, rounds: Rounds) -> bool {
        match rounds {
            Rounds::Apart => stage.is_over(),
            Rounds::Together => self.over.get(),
        }
    }

    /// Waits until all `tasks` are there.
    fn wait(&self, stage: &Stage, tasks: u32) {
        let machine = stage.machine();
        machine.sync();
        let times = self.times.get();
        self.arrived.set(self.arrived.get() + 1);
        if self.arrived.get() < tasks {
            return machine.wait_until(&self.queue, || self.times.get() != times);
        }
        self.arrived.set(0);
        self.over.set(stage.is_over());
        self.times.set(times + 1);
        machine.notify_all(&self.queue);
    }
}

/// Blocks that wait to be freed, by the task that will free them.
type Hand = Rc<[RefCell<Vec<Pfn>>]>;

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "alloc-loop",
    tests: &[Mechanism::PageLists],
    brings: Brings::PAGES,
    groups: &["all"],
    read: WorkloadKind::read::<AllocLoop>,
    smallest: &[
        "tasks = 1\nblocks = 1\n",
        "tasks = 1\nblocks = 1\nwhose = 'neighbours'\n",
        "tasks = 1\nblocks = 1\nmemory = 'user'\nrounds = 'together'\n",
    ],
    largest: &["tasks = 2\norder = 10\nblocks = 1048576\n"],
};

impl Workload for AllocLoop {
    fn title(&self) -> String {
        format!("allocator loop, {} tasks of {} blocks of order {}", self.tasks, self.blocks, self.order)
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        Some(Arc::new(Self { blocks: (self.blocks / by).max(1), ..*self }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("tasks", self.tasks.into(), 1..=100_000)?;
        within("order", self.order.into(), 0..=u64::from(Order::MAX.get()))?;
        within("blocks", self.blocks.into(), 1..=1 << 30)?;
        let order = Order::new(self.order).expect("an order that was checked");
        let hands: Hand = (0..self.tasks).map(|_| RefCell::default()).collect();
        let meeting = Rc::new(Meeting::default());
        for number in 0..self.tasks {
            let (stage, spec, hands, meeting) =
                (Rc::clone(stage), *self, Rc::clone(&hands), Rc::clone(&meeting));
            let mut random = Random::new(stage.machine());
            let start = random.time_below(Nanos(1_000_000));
            let task = TaskSpec::new(format!("loop/{number}")).on(stage.cpu(number)).at(start);
            sim.spawn(task, move || {
                let place = Place { number: number as usize, hands: &hands, meeting: &meeting };
                // Who meets others must go as often as they do: the last one to come says whether there is another round.
                while !meeting.over(&stage, spec.rounds) {
                    spec.round(&stage, order, place, &mut random);
                }
            });
        }
        Ok(())
    }
}

impl AllocLoop {
    fn round(self, stage: &Stage, order: Order, place: Place<'_>, random: &mut Random) {
        let Place { number, hands, meeting } = place;
        let request = match self.memory {
            Memory::Kernel => Request::KERNEL,
            Memory::User => Request::USER,
        };
        let mut blocks = Vec::with_capacity(self.blocks as usize);
        for _ in 0..self.blocks {
            blocks.extend(get(stage, request.of_order(order)));
            if stage.is_over() {
                break;
            }
        }
        self.meet(stage, meeting);
        if self.free == FreeOrder::Shuffled {
            random.shuffle(&mut blocks);
        }
        if self.whose == Whose::Neighbours {
            // Hands are shared data: they are swapped in order of simulated time.
            stage.machine().sync();
            hands[(number + 1) % hands.len()].borrow_mut().append(&mut blocks);
            blocks = hands[number].take();
        }
        for pfn in blocks {
            stage.mm.free(pfn, order).expect("the loop frees only what it holds");
            stage.tally.gave(order.pages());
        }
        self.meet(stage, meeting);
    }

    fn meet(self, stage: &Stage, meeting: &Meeting) {
        if self.rounds == Rounds::Together {
            meeting.wait(stage, self.tasks);
        }
    }
}
