//! Daemons of a scene's machine. kswapd has a stack of its own and, as the flusher, takes turns with the program where it shares its CPU: the
//! program's time is the capture's, that of reclaim and of writing is by the page. On another CPU kswapd works now and then.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use mm::bare::Moment;
use mm::version::Version;
use mm::{Bare, Cpu, Daemon, GroupId, Machine, Mm, Nanos, Node, Span};
use sim::{Aside, put_aside};

use super::costs;
use super::elsewhere::Elsewhere;
use super::flusher::Flusher;
use super::play::Player;
use super::trace::Trace;
use super::trees::Trees;
use super::turns::{At, Preemption, Task, Turns};
use super::walks::Walks;

/// How often the kernel brings the statistics of groups up to date: 500 ticks, and four more by its timer wheel's steps of eight.
const FLUSHES_EVERY: u64 = 2_016_000_000;

/// When it did so first, by the captures' clock: how long these guests take until timers run. Traced (`flush_memcg_stats_dwork`, beside marks) in
/// exec-map-classic and mix-max-classic on 6.12 (2,284 ms both), mix-max-classic on 6.18 (2,296) and exec-map-classic on 7.2 (2,298).
fn first_flush(version: Version) -> u64 {
    let ms = match version {
        _ if version >= Version::new(7, 0) => 2_298,
        _ if version >= Version::new(6, 18) => 2_296,
        _ => 2_284,
    };
    ms * 1_000_000
}

/// When statistics of groups are brought up to date by the clock.
#[derive(Debug)]
pub(super) struct StatFlushes {
    first: u64,
    done: Cell<u64>,
}

impl StatFlushes {
    pub(super) fn of(version: Version) -> Self {
        Self { first: first_flush(version), done: Cell::default() }
    }

    /// Whether one is due at `now`, and has not been done.
    fn is_due(&self, now: Nanos) -> bool {
        let due = now.0.saturating_add(FLUSHES_EVERY).saturating_sub(self.first) / FLUSHES_EVERY;
        self.done.replace(due) < due
    }
}

/// Over how long the part of the time that reclaim takes is averaged.
const AVERAGED_OVER: f64 = 100_000_000.0;

/// The shortest of kswapd's pauses that it sleeps in; shorter ones are not the kernel's.
const A_SLEEP: Nanos = Nanos(100_000_000);

/// kswapd of a node.
#[derive(Debug)]
struct Kswapd {
    turns: Turns,
    /// The same where it has another CPU than the program.
    elsewhere: Elsewhere,
    work: Option<Aside>,
    /// It sleeps for a moment only, until then.
    until: Option<i64>,
    /// It was woken, and has not slept since.
    is_awake: bool,
    /// It is to give way as soon as it holds no lock.
    gives_way: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Daemons {
    mm: Weak<Mm<Bare>>,
    nodes: Vec<RefCell<Kswapd>>,
    flusher: Flusher,
    /// The kswapd that works.
    works: Cell<Option<Node>>,
    /// The part of the time that the program's own reclaim, kswapd and the flusher take.
    part: Cell<f64>,
    /// That they took since the program was last seen.
    taken: Cell<u64>,
    seen: Cell<Nanos>,
    /// kswapd wants the largest process killed.
    kills: Cell<bool>,
    walks: Walks,
    pub(super) trees: Trees,
    pub(super) trace: Trace,
}

impl Daemons {
    /// Those of `mm`, whose machine they watch from now on.
    pub(super) fn begin(mm: &Rc<Mm<Bare>>, version: Version) -> Rc<Self> {
        let cpus = mm.topology().cpus.len();
        let kswapd = |_| {
            RefCell::new(Kswapd {
                turns: Turns::new(version, cpus),
                elsewhere: Elsewhere::new(version),
                work: None,
                until: None,
                is_awake: false,
                gives_way: false,
            })
        };
        let all = Rc::new(Self {
            mm: Rc::downgrade(mm),
            nodes: mm.topology().nodes.iter().map(kswapd).collect(),
            flusher: Flusher::default(),
            works: Cell::default(),
            part: Cell::default(),
            taken: Cell::default(),
            seen: Cell::default(),
            kills: Cell::default(),
            walks: Walks::new(Preemption::of(version)),
            trees: Trees::default(),
            trace: Trace::default(),
        });
        let watching = Rc::downgrade(&all);
        mm.machine().watch(move |moment| {
            if let (Some(all), false) = (watching.upgrade(), std::thread::panicking()) {
                all.see(moment);
            }
        });
        all
    }

    fn of(&self, node: Node) -> &RefCell<Kswapd> {
        &self.nodes[usize::from(node.0)]
    }

    fn all_nodes(&self) -> impl Iterator<Item = Node> + use<> {
        (0..self.nodes.len() as u16).map(Node)
    }

    fn see(&self, moment: Moment) {
        let Some(mm) = self.mm.upgrade() else { return };
        match moment {
            Moment::Wakes(Daemon::Kswapd(node)) => self.wake(node),
            Moment::Wakes(Daemon::OomKiller) => self.ask_to_kill(),
            Moment::Wakes(Daemon::PressureWorker) => self.wake_here(&mm, Task::Worker),
            Moment::Wakes(Daemon::Flusher) if self.flusher.wake(&mm) => self.wake_here(&mm, Task::Flusher),
            _ => {}
        }
        if self.flusher.writes() {
            return;
        }
        if let Moment::Traces(what) = moment {
            self.trace.hear(self.works.get(), what);
        }
        match self.works.get() {
            Some(node) => self.see_kswapd(&mm, node, moment),
            None => self.see_program(&mm, moment),
        }
    }

    /// The time by which kswapd of `node` sleeps: its CPU's, or the capture's where it has another one than the program.
    fn now_of(&self, mm: &Mm<Bare>, node: Node, kswapd: &Kswapd) -> i64 {
        if shares(mm, node) { kswapd.turns.now() } else { self.seen.get().0 as i64 }
    }

    fn wake(&self, node: Node) {
        // Whoever looks at its own state holds it.
        let Ok(mut kswapd) = self.of(node).try_borrow_mut() else { return };
        if !kswapd.is_awake {
            kswapd.elsewhere.wake(self.seen.get());
        }
        kswapd.is_awake = true;
        kswapd.turns.wake(Task::Kswapd);
    }

    /// `task` of the CPU on which this happens.
    fn wake_here(&self, mm: &Mm<Bare>, task: Task) {
        let is_here = |node: &Node| shares(mm, *node) && self.works.get().is_none_or(|works| works == *node);
        for node in self.all_nodes().filter(is_here) {
            self.of(node).borrow_mut().turns.wake(task);
        }
    }

    fn see_kswapd(&self, mm: &Mm<Bare>, node: Node, moment: Moment) {
        if let Moment::Blocks(at_most) = moment {
            if at_most >= A_SLEEP && !mm.machine().holds_lock() {
                {
                    let mut kswapd = self.of(node).borrow_mut();
                    let now = self.now_of(mm, node, &kswapd);
                    kswapd.until = Some(now.saturating_add(at_most.0 as i64));
                    kswapd.is_awake = false;
                }
                put_aside();
            }
            return;
        }
        let Some(cost) = costs::of(moment) else { return };
        self.taken.set(self.taken.get() + cost);
        let gives_way = {
            let mut kswapd = self.of(node).borrow_mut();
            let called =
                if shares(mm, node) { kswapd.turns.worked(cost) } else { kswapd.elsewhere.ran(cost) };
            kswapd.gives_way |= called;
            kswapd.gives_way
        };
        if gives_way && !mm.machine().holds_lock() {
            put_aside();
        }
    }

    fn see_program(&self, mm: &Rc<Mm<Bare>>, moment: Moment) {
        if let Some(passed) = self.walks.hear(self.seen.get(), moment) {
            mm.machine().set_now(Nanos(mm.machine().now().0 + passed.0));
        }
        if let Some(cost) = costs::of(moment) {
            self.taken.set(self.taken.get() + cost);
            self.program_ran(mm, cost);
        }
        if mm.machine().holds_lock() {
            return;
        }
        match moment {
            Moment::Blocks(_) => self.program_sleeps(mm),
            Moment::Enters(Span::PageAlloc) => {
                self.trees.grow(mm);
                self.ask(mm, At::Kernel);
            }
            Moment::Enters(Span::DirectReclaim) => self.ask(mm, At::Kernel),
            _ if costs::of(moment).is_some() => self.ask(mm, At::Kernel),
            _ => {}
        }
    }

    fn program_ran(&self, mm: &Mm<Bare>, ns: u64) {
        for node in self.all_nodes().filter(|node| shares(mm, *node)) {
            self.of(node).borrow_mut().turns.program_ran(ns);
        }
    }

    /// The program, at `now` of the capture's time, has come to the end of a call or an access.
    pub(super) fn program_at(&self, now: Nanos) {
        let Some(mm) = self.mm.upgrade() else { return };
        self.walks.go_on(now);
        let since = now.0.saturating_sub(self.seen.replace(now).0) as f64;
        let taken = self.taken.take() as f64;
        // What reclaim takes is in the capture's time too, evenly.
        let part = self.part.get() * (1.0 - since / AVERAGED_OVER).max(0.0) + taken / AVERAGED_OVER;
        self.part.set(part.min(1.0));
        self.program_ran(&mm, (since * (1.0 - self.part.get())) as u64);
        for node in self.all_nodes() {
            let mut kswapd = self.of(node).borrow_mut();
            let now = self.now_of(&mm, node, &kswapd);
            if kswapd.until.is_some_and(|until| now >= until) && !kswapd.is_awake {
                kswapd.is_awake = true;
                kswapd.turns.wake(Task::Kswapd);
                kswapd.elsewhere.wake(self.seen.get());
            }
        }
        self.ask(&mm, At::Program);
    }

    /// kswapd wants somebody killed. Who is killed ends before kswapd goes on, as seen in a trace of a process killed so on 6.18: saying so takes
    /// longer than a turn.
    fn ask_to_kill(&self) {
        self.kills.set(true);
        if let Some(node) = self.works.get() {
            self.of(node).borrow_mut().gives_way = true;
        }
    }

    /// Whether kswapd has asked for somebody to be killed since the last call.
    pub(super) fn take_kill(&self) -> bool {
        self.kills.take()
    }

    /// So many processes share the CPU from now on.
    pub(super) fn set_programs(&self, programs: u64) {
        let Some(mm) = self.mm.upgrade() else { return };
        for node in self.all_nodes().filter(|node| shares(&mm, *node)) {
            self.of(node).borrow_mut().turns.set_programs(programs);
        }
    }

    /// The program comes to a mark: it waits until that is written.
    pub(super) fn mark(&self) {
        self.idle();
        self.walks.mark();
    }

    /// The program sleeps: who is awake works until it sleeps.
    pub(super) fn idle(&self) {
        if let Some(mm) = self.mm.upgrade() {
            self.program_sleeps(&mm);
        }
    }

    fn program_sleeps(&self, mm: &Rc<Mm<Bare>>) {
        for node in self.all_nodes() {
            if shares(mm, node) {
                let runs = self.of(node).borrow_mut().turns.program_sleeps();
                self.take_turns(mm, node, runs);
                continue;
            }
            while self.of(node).borrow().is_awake {
                self.of(node).borrow().elsewhere.leave_alone();
                self.kswapd_works(mm, node);
            }
        }
    }

    /// Whoever's turn it is works.
    fn ask(&self, mm: &Rc<Mm<Bare>>, at: At) {
        for node in self.all_nodes() {
            if shares(mm, node) {
                let runs = self.of(node).borrow_mut().turns.asked(at);
                self.take_turns(mm, node, runs);
                continue;
            }
            let is_its_turn = {
                let kswapd = self.of(node).borrow();
                kswapd.is_awake && kswapd.elsewhere.takes_turn(self.seen.get())
            };
            if is_its_turn {
                self.kswapd_works(mm, node);
            }
        }
    }

    /// On the program's CPU, which is that of `node`, `runs` works and whoever comes after, until it is the program's turn.
    fn take_turns(&self, mm: &Rc<Mm<Bare>>, node: Node, mut runs: Task) {
        loop {
            let sleeps = match runs {
                Task::Kswapd => self.kswapd_works(mm, node),
                Task::Flusher => self.flusher_works(mm, node),
                Task::Program | Task::Worker => return,
            };
            let turns = &mut self.of(node).borrow_mut().turns;
            runs = if sleeps { turns.sleeps() } else { turns.gives_way() };
        }
    }

    /// The flusher works until it is done or has to give way; says whether it is done.
    fn flusher_works(&self, mm: &Mm<Bare>, node: Node) -> bool {
        while let Some(took) = self.flusher.work(mm) {
            self.taken.set(self.taken.get() + took);
            if self.of(node).borrow_mut().turns.worked(took) {
                return false;
            }
        }
        true
    }

    /// kswapd of `node` works until it sleeps or has to give way; says whether it sleeps.
    fn kswapd_works(&self, mm: &Rc<Mm<Bare>>, node: Node) -> bool {
        let work = { self.of(node).borrow_mut().work.take() };
        let begins = work.is_none();
        let mut work = work.unwrap_or_else(|| {
            let mm = Rc::downgrade(mm);
            Aside::new(move || {
                if let Some(mm) = mm.upgrade() {
                    mm.reclaim().kswapd(node);
                }
            })
        });
        {
            let mut kswapd = self.of(node).borrow_mut();
            (kswapd.until, kswapd.gives_way) = (None, false);
        }
        let outer = self.works.replace(Some(node));
        if begins && shares(mm, node) {
            self.of(node).borrow_mut().turns.worked(costs::A_RUN);
        }
        let is_done = work.go_on();
        self.works.set(outer);
        let mut kswapd = self.of(node).borrow_mut();
        kswapd.work = (!is_done).then_some(work);
        let sleeps = is_done || kswapd.until.is_some();
        kswapd.is_awake &= !sleeps;
        sleeps
    }
}

/// Whether kswapd of `node` and the program share a CPU.
fn shares(mm: &Mm<Bare>, node: Node) -> bool {
    let Cpu(cpu) = mm.machine().cpu();
    mm.topology().cpus.get(usize::from(cpu)).is_some_and(|cpu| cpu.node == node)
}

impl Player {
    /// Daemons whose turn it is work. The clock is the machine's.
    pub(super) fn run_daemons(&self) {
        let now = self.clock.borrow().now();
        let mm = &self.machine.mm;
        mm.machine().set_now(now);
        if self.machine.stat_flushes.is_due(now) {
            mm.lru().flush_stats(GroupId::ROOT);
        }
        mm.machine().take_seen();
        let woken = mm.machine().take_woken();
        if woken.contains(&Daemon::Khugepaged) {
            mm.collapses().khugepaged();
            self.machine.khugepaged_ran.set(Some(now));
        }
        self.machine.kcompactd.run(mm, &woken, now);
        self.machine.daemons.program_at(now);
    }
}
