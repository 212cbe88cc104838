//! One copy of a program: who waits for whom, which processes there are.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use mm::vm::{AddressSpace, File, HugePages};
use mm::{Cpu, GroupId, Machine, Nanos};
use sim::{SimMachine, TaskSpec, WaitQueue};

use super::balance::Balance;
use super::before;
use super::player::Player;
use super::process::{Memory, Process};
use super::uses::Uses;
use super::walks::WalkPrices;
use crate::program::{Begins, Program, SignalId};
use crate::recorded::TaskRef;
use crate::stage::{Random, Stage};

/// Who had a copy killed looks so often whether that has gone.
const LOOKS_EVERY: Nanos = Nanos(1_000_000);

/// What all copies share.
pub(super) struct Play {
    pub(super) stage: Rc<Stage>,
    pub(super) program: Arc<Program>,
    /// Its place among the recordings of the replay.
    pub(super) recording: usize,
    /// The program's files, which copies have in common.
    pub(super) files: Vec<Arc<File<SimMachine>>>,
    /// The cgroup that its tasks are in.
    pub(super) group: GroupId,
    /// Where tasks may run.
    pub(super) cpus: Rc<[Cpu]>,
    /// Whether they run where they ran when they were recorded.
    pub(super) as_recorded: bool,
    /// Where their memory comes from.
    pub(super) memory: Memory,
    /// NUMA balancing, where there is any.
    pub(super) balance: Option<Rc<Balance>>,
    /// Times that each copy goes through the program.
    pub(super) passes: u32,
    /// The program's own time is multiplied by this / 65536.
    pub(super) slowness: u64,
    /// What walks of page tables cost, where the recording says how many there were.
    pub(super) walks: Option<WalkPrices>,
}

/// A copy of the program.
pub(super) struct Copy {
    pub(super) play: Rc<Play>,
    number: u32,
    /// What has been signalled in this pass.
    signalled: RefCell<Vec<bool>>,
    /// Who waits for a signal.
    awaited: RefCell<BTreeMap<u32, WaitQueue>>,
    /// Processes that tasks begin in, by number.
    spaces: RefCell<Vec<Rc<Process>>>,
    /// The address spaces of all its processes, those that came later with them.
    live: RefCell<Vec<Weak<AddressSpace<SimMachine>>>>,
    /// Tasks that are not through with this pass.
    running: Cell<u32>,
    pass: Cell<u32>,
    /// Nothing could be freed for one of its tasks, or kswapd asked for it, and all of them end.
    killed: Cell<bool>,
    /// Of the processes that ended in this pass.
    largest: RefCell<Largest>,
}

/// The process with the most memory.
#[derive(Default)]
struct Largest {
    /// The most that it had resident, in pages.
    peak_pages: u64,
    /// Its pages on each node, the last time that it had nine tenths of that.
    by_node: Vec<u64>,
}

impl Copy {
    pub(super) fn new(play: &Rc<Play>, number: u32) -> Rc<Self> {
        Rc::new(Self {
            play: Rc::clone(play),
            number,
            signalled: RefCell::new(vec![false; play.program.signals as usize]),
            awaited: RefCell::default(),
            spaces: RefCell::default(),
            live: RefCell::default(),
            running: Cell::new(0),
            pass: Cell::new(0),
            killed: Cell::new(false),
            largest: RefCell::default(),
        })
    }

    /// Makes the address spaces that tasks begin in, with what was there before.
    pub(super) fn make_spaces(&self) {
        let Play { stage, program, files, .. } = &*self.play;
        let mut spaces = vec![];
        for had in &program.before {
            let process =
                self.process(stage.mm.spaces().new_space(), HugePages::AsConfigured, self.play.memory);
            before::fill(stage, files, &process, had);
            process.is_as_before();
            spaces.push(process);
        }
        *self.spaces.borrow_mut() = spaces;
    }

    /// A process of this copy, with no task in it yet.
    fn process(&self, space: Arc<AddressSpace<SimMachine>>, huge: HugePages, memory: Memory) -> Rc<Process> {
        let hints = self.play.balance.as_ref().map(|balance| balance.begin(&space)).unwrap_or_default();
        let stage = &self.play.stage;
        stage.has_space(&space);
        let mut live = self.live.borrow_mut();
        live.retain(|space| space.strong_count() > 0);
        live.push(Arc::downgrade(&space));
        let uses =
            stage.is_short_of_memory().then(|| Uses::new(&self.play.program, Uses::random(space.id())));
        Process::new(space, huge, memory, (hints, uses))
    }

    /// A child of `before`, or what it becomes: with its wishes, and no task in it yet.
    pub(super) fn successor(&self, space: Arc<AddressSpace<SimMachine>>, before: &Process) -> Rc<Process> {
        self.process(space, before.huge(), before.memory())
    }

    /// Starts all tasks that begin with the program, at `start`.
    pub(super) fn start(self: &Rc<Self>, start: Nanos) {
        let tasks = &self.play.program.tasks;
        self.running.set(tasks.len() as u32);
        for (number, task) in tasks.iter().enumerate() {
            if let Begins::InSpace(space) = task.begins {
                let process = Rc::clone(&self.spaces.borrow()[space as usize]);
                self.spawn(TaskRef(number as u32), process, start);
            }
        }
    }

    /// Starts a task in `process`.
    pub(super) fn spawn(self: &Rc<Self>, task: TaskRef, process: Rc<Process>, start: Nanos) {
        let tasks = &self.play.program.tasks;
        let name = format!("{}/{}", tasks[task.0 as usize].name, self.number);
        let first = tasks[task.0 as usize].ran_on.first().filter(|_| self.play.as_recorded);
        let cpus = first.map_or_else(|| Rc::clone(&self.play.cpus), |(_, cpu)| Rc::new([*cpu]));
        let spec = TaskSpec::new(name).on_any(cpus).at(start);
        process.enter();
        self.stage().begins_in(&process.space, &tasks[task.0 as usize].name);
        let jitter = Random::new(self.stage().machine());
        let player = Player::new(Rc::clone(self), task, process, jitter);
        self.stage().machine().spawn(spec, move || player.play());
    }

    pub(super) fn stage(&self) -> &Stage {
        &self.play.stage
    }

    /// Nothing more can be freed within the limits of its cgroup: all tasks end, as where `memory.oom.group` is 1.
    pub(super) fn kill(&self) {
        if self.ends_early() {
            self.stage().group_is_killed(self.play.group);
        }
    }

    /// kswapd asks for it: all tasks end. Returns when they have.
    pub(super) fn kill_for_kswapd(&self) {
        let stage = self.stage();
        if !self.ends_early() {
            return;
        }
        stage.count_kill(self.play.group);
        while self.running.get() > 0 {
            stage.machine().sleep(LOOKS_EVERY);
        }
    }

    /// All tasks end at their next step; who waits for another is woken. Says whether that is new.
    fn ends_early(&self) -> bool {
        let is_new = !self.killed.replace(true);
        for queue in std::mem::take(&mut *self.awaited.borrow_mut()).into_values() {
            self.stage().machine().notify_all(&queue);
        }
        is_new
    }

    /// Pages that it has, in memory and in swap, and its page tables; shared ones in each of its processes.
    pub(super) fn size(&self) -> u64 {
        let size = |space: Arc<AddressSpace<SimMachine>>| {
            space.resident_pages() + space.swapped_pages() + space.table_pages()
        };
        self.live.borrow().iter().filter_map(Weak::upgrade).map(size).sum()
    }

    /// Whether that has happened.
    pub(super) fn is_killed(&self) -> bool {
        self.killed.get()
    }

    /// Waits until `signal` has been given.
    pub(super) fn wait(&self, signal: SignalId) {
        if let Some(queue) = self.queue_for(signal) {
            self.stage().machine().wait_until(&queue, || self.is_given(signal));
        }
    }

    /// Waits until `signal` has been given, for `time` at most.
    pub(super) fn wait_at_most(&self, signal: SignalId, time: Nanos) {
        if let Some(queue) = self.queue_for(signal) {
            self.stage().machine().wait_at_most(&queue, time, || self.is_given(signal));
        }
    }

    /// Where to wait for `signal`; nowhere if it has been given.
    fn queue_for(&self, signal: SignalId) -> Option<WaitQueue> {
        (!self.is_given(signal)).then(|| self.awaited.borrow_mut().entry(signal.0).or_default().clone())
    }

    fn is_given(&self, signal: SignalId) -> bool {
        self.killed.get() || self.signalled.borrow()[signal.0 as usize]
    }

    /// Gives `signal`.
    pub(super) fn signal(&self, signal: SignalId) {
        self.signalled.borrow_mut()[signal.0 as usize] = true;
        let queue = self.awaited.borrow_mut().remove(&signal.0);
        if let Some(queue) = queue {
            self.stage().machine().notify_all(&queue);
        }
    }

    /// A task has left `process` for good, or for another.
    pub(super) fn leave(&self, process: &Process) {
        if process.leave() {
            let stage = self.stage();
            if let Some(fork) = process.end_sharing(stage.machine().now()) {
                stage.tally.forked(fork);
            }
            stage.tally.space_counted(&process.space_counted());
            let counted = process.counted();
            stage.tally.recording_counted(self.play.recording, &counted);
            if counted.peak_rss_pages > self.largest.borrow().peak_pages {
                process.note_placement(stage);
                let (peak_pages, by_node) = (counted.peak_rss_pages, process.placed());
                self.largest.replace(Largest { peak_pages, by_node });
            }
            self.stage().mm.spaces().exit(&process.space);
        }
    }

    /// A task is through with this pass; the last one begins another, if one is to follow.
    pub(super) fn finish(self: &Rc<Self>) {
        self.running.set(self.running.get() - 1);
        self.stage().tally.recording_ran_until(self.play.recording, self.stage().machine().now());
        if self.running.get() > 0 {
            return;
        }
        if self.killed.get() {
            return;
        }
        let largest = self.largest.take();
        if self.pass.get() + 1 == self.play.passes {
            self.stage().tally.recording_placed(self.play.recording, &largest.by_node);
            return;
        }
        self.pass.set(self.pass.get() + 1);
        self.signalled.borrow_mut().fill(false);
        self.make_spaces();
        self.start(self.stage().machine().now());
    }
}
