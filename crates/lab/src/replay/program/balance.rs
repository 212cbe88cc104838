//! NUMA balancing of recorded programs: windows of an address space are made to fault as tasks run (`task_tick_numa`), and a hint
//! fault says who uses a page and where. What is decided is [`mm::tier`]'s; here is when.
//!
//! A recording has first touches. That a task goes on using what it touched is assumed: each page is accessed by the task that
//! touched it first, or by any of the process's where that one has ended or is not known, once in the shortest scan period of the
//! task's own CPU time. What the program does to a marked page itself, a copy for instance, comes when it comes.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use mm::ids::{PAGE_SIZE, PAGEBLOCK_PAGES};
use mm::tier::{
    Area, AreaHistory, BalancingSettings, HintFault, HintGround, HintScan, Looker, Moved, PageRange, Users,
};
use mm::vm::{AddressSpace, FaultKind, PartOf, Residence, SpaceId, Touch, Vpn};
use mm::{Knob, KnobUse, Machine, Nanos, Node, decide_by_sum_of_marks};
use sim::{Path, SimMachine};

use super::process::Process;
use crate::promotion::Balancer;
use crate::stage::Stage;

/// How often the scheduler looks whether a window is due, ns: CONFIG_HZ is 250 in Debian's kernels.
const TICK_NS: u64 = 4_000_000;

/// NUMA balancing of the machine.
pub(super) struct Balance {
    stage: Rc<Stage>,
    balancer: Balancer,
    /// By node: whether it has CPUs.
    fast: Box<[bool]>,
}

/// What balancing keeps of a process.
#[derive(Debug, Default)]
pub(super) struct Hints {
    scan: RefCell<Option<HintScan>>,
    areas: RefCell<AreaHistory>,
    pages: RefCell<BTreeMap<u32, PageUse>>,
    waiting: RefCell<BTreeMap<Option<u32>, Waiting>>,
    /// Whether two tasks have faulted on one page.
    sharing: Cell<bool>,
}

/// What is known of a page, by the first of a huge one.
#[derive(Clone, Copy, Debug, Default)]
struct PageUse {
    /// The task that touched it first.
    toucher: Option<u32>,
    /// Where its last hint fault was, and whose.
    last: Option<(Node, u32)>,
}

/// Marked pages that a task will access.
#[derive(Debug, Default)]
struct Waiting {
    pages: VecDeque<(Vpn, Nanos)>,
    /// How many a tick.
    pace: usize,
}

/// A task's time, as far as windows go by it.
#[derive(Debug, Default)]
pub(super) struct TaskClock {
    /// The task's number among the program's.
    task: u32,
    ran_ns: u64,
    /// CPU time at which it looked for a window last, and what must pass before it looks again.
    stamp_ns: u64,
    period_ns: u64,
}

/// A task of a process that is at work.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) process: &'a Process,
    pub(super) task: u32,
}

impl Balance {
    /// That of the machine; `None` where it has memory on one node only, or nobody asks for it.
    pub(super) fn new(stage: &Rc<Stage>) -> Option<Rc<Self>> {
        let topology = stage.mm.topology();
        let with_memory = topology.nodes.iter().filter(|node| !node.zones.is_empty()).count();
        let nodes = topology.nodes.len() as u16;
        let fast = (0..nodes).map(|node| topology.cpus_of(Node(node)) > 0).collect();
        let balancer = Balancer::new(stage);
        let wanted = with_memory > 1 && balancer.asked_for().is_some();
        wanted.then(|| Rc::new(Self { stage: Rc::clone(stage), balancer, fast }))
    }

    /// What is kept of a process with this address space, which is born now.
    pub(super) fn begin(&self, space: &AddressSpace<SimMachine>) -> Hints {
        let scan = self.balancer.begin_at_once(space.id(), self.stage.machine().now());
        Hints { scan: RefCell::new(scan), ..Hints::default() }
    }

    /// The clock of a task that begins.
    pub(super) fn clock(&self, task: u32) -> TaskClock {
        let delay = self.balancer.asked_for().map_or(0, |settings| settings.delay.0);
        TaskClock { task, period_ns: delay, ..TaskClock::default() }
    }

    /// The task computes for `time`; what is due meanwhile comes tick by tick.
    pub(super) fn compute(&self, process: &Process, clock: &mut TaskClock, time: Nanos) {
        let mut left = time.0;
        while left > 0 {
            let part = left.min(TICK_NS - clock.ran_ns % TICK_NS);
            self.stage.machine().compute(Nanos(part));
            left -= part;
            clock.ran_ns += part;
            if clock.ran_ns % TICK_NS == 0 {
                self.tick(process, clock);
            }
        }
    }

    fn tick(&self, process: &Process, clock: &mut TaskClock) {
        let at = At { process, task: clock.task };
        for whose in [Some(clock.task), None] {
            for (page, marked) in process.hints().due(whose) {
                self.access(at, page, marked);
            }
        }
        self.watch_first(process, clock);
        if clock.ran_ns < clock.stamp_ns + clock.period_ns {
            return;
        }
        clock.stamp_ns += clock.period_ns;
        let view = View { balance: self, process };
        if self.balancer.settings().is_none() {
            Balancer::watch_off(&process.hints().scan, &view);
        } else {
            let who = Looker { task: clock.task, threads: process.tasks() };
            let mark = |scan: &mut HintScan, settings: &BalancingSettings| {
                scan.mark_by(who, &mut process.hints().areas.borrow_mut(), &view, settings)
            };
            if self.balancer.mark_due(&process.hints().scan, &view, mark) > 0 {
                self.share_out(process);
            }
        }
        let period = process.hints().scan.borrow().as_ref().map(HintScan::period);
        clock.period_ns = period.map_or(clock.period_ns, |period| period.0).max(TICK_NS);
    }

    /// Whether the task's first window is due, and whether it would be by default.
    fn watch_first(&self, process: &Process, clock: &TaskClock) {
        if clock.stamp_ns > 0 {
            return;
        }
        let is_due = |delay: Nanos| clock.ran_ns >= delay.0;
        let in_force = is_due(Nanos(clock.period_ns));
        let view = View { balance: self, process };
        let used = |other: &BalancingSettings| KnobUse::of(&in_force, &is_due(other.delay));
        self.balancer.watch(&view, used, &[Knob::BalancingScanDelay]);
    }

    /// How many of the marked pages are accessed in a tick.
    fn share_out(&self, process: &Process) {
        let period = self.balancer.settings().map_or(TICK_NS, |settings| settings.period_min.0);
        let ticks = (period / TICK_NS).max(1) as usize;
        for waiting in process.hints().waiting.borrow_mut().values_mut() {
            waiting.pace = waiting.pages.len().div_ceil(ticks);
        }
    }

    /// The task accesses a page that was marked, if it still is.
    fn access(&self, at: At<'_>, page: Vpn, marked: Nanos) {
        let spaces = self.stage.mm.spaces();
        if spaces.is_hinted(&at.process.space, page) {
            if let Ok((_, Some(FaultKind::Hint))) = spaces.touch_page(&at.process.space, page, Touch::Read) {
                self.hint_fault(at, page, marked);
            }
        }
    }

    /// The task has had a hint fault on `page`, by an operation of its own.
    pub(super) fn own_hint_fault(&self, at: At<'_>, page: Vpn) {
        self.hint_fault(at, page, self.stage.machine().now());
    }

    fn hint_fault(&self, at: At<'_>, page: Vpn, marked: Nanos) {
        let At { process, task } = at;
        let (stage, hints) = (&self.stage, process.hints());
        let place = &stage.places[usize::from(stage.machine().cpu().0)];
        let by = Node(place.node);
        let Some(from) = stage.mm.spaces().node_at(&process.space, page) else { return };
        let last = hints.pages.borrow_mut().entry(page.0).or_default().last.replace((by, task));
        let is_private = last.is_none_or(|(_, other)| other == task);
        hints.sharing.set(hints.sharing.get() || !is_private);
        let passes = hints.scan.borrow().as_ref().map_or(0, HintScan::passes);
        let users = Users::Tasks { space: process.space.id(), passes, sharing: hints.sharing.get() };
        let fault = HintFault { from, by, last_by: last.map(|(node, _)| node), is_private, marked, users };
        let view = View { balance: self, process };
        if let Some(area) = stage.mm.spaces().hint_area(&process.space, page) {
            hints.areas.borrow_mut().note_fault(area.start, task);
        }
        process.count(|used| used.numa_hint_faults += 1);
        if from == by {
            process.count(|used| used.numa_hint_faults_local += 1);
        }
        let to = self.balancer.fault(fault, PAGE_SIZE, &view);
        let moved = match to {
            None => Moved::Stayed,
            Some(to) if self.balancer.has_room(stage, to) => self.move_page(process, page, to),
            Some(_) => Moved::Failed,
        };
        let resident = process.space.resident_pages() * PAGE_SIZE;
        self.balancer.note(&hints.scan, (fault, moved), resident, &view);
    }

    fn move_page(&self, process: &Process, page: Vpn, to: Node) -> Moved {
        let (mm, machine) = (&self.stage.mm, self.stage.machine());
        let moved = mm.rmap().move_page(&process.space, page, to);
        machine.charge(Path::Promote);
        machine.charge(Path::TlbFlush);
        if moved.is_err() {
            return Moved::Failed;
        }
        let huge = matches!(mm.spaces().residence(&process.space, page), Residence::Page(_, PartOf::Huge));
        let pages = if huge { u64::from(PAGEBLOCK_PAGES) } else { 1 };
        process.count(|used| used.numa_pages_migrated += pages);
        Moved::Moved
    }
}

impl Hints {
    /// `task` has touched `page` and had a fault.
    pub(super) fn touched(&self, page: Vpn, task: u32) {
        let fresh = PageUse { toucher: Some(task), last: None };
        self.pages.borrow_mut().insert(page.0, fresh);
    }

    /// A task has ended: others use what it touched.
    pub(super) fn ended(&self, task: u32) {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(mut left) = waiting.remove(&Some(task)) {
            let all = waiting.entry(None).or_default();
            all.pages.append(&mut left.pages);
            all.pace += left.pace;
        }
        drop(waiting);
        let mut pages = self.pages.borrow_mut();
        pages.values_mut().filter(|page| page.toucher == Some(task)).for_each(|page| page.toucher = None);
    }

    /// Pages that `whose` task accesses in this tick.
    fn due(&self, whose: Option<u32>) -> Vec<(Vpn, Nanos)> {
        let mut waiting = self.waiting.borrow_mut();
        let Some(Waiting { pages, pace }) = waiting.get_mut(&whose) else { return vec![] };
        let count = (*pace).min(pages.len());
        pages.drain(..count).collect()
    }

    fn wait(&self, page: Vpn, now: Nanos) {
        let toucher = self.pages.borrow().get(&page.0).and_then(|page| page.toucher);
        self.waiting.borrow_mut().entry(toucher).or_default().pages.push_back((page, now));
    }
}

/// A process as balancing sees it.
struct View<'a> {
    balance: &'a Balance,
    process: &'a Process,
}

impl View<'_> {
    fn stage(&self) -> &Stage {
        &self.balance.stage
    }

    fn zones(&self, node: Node) -> impl Iterator<Item = &mm::Zone<SimMachine>> {
        self.stage().mm.zones().iter().filter(move |zone| zone.node() == node)
    }
}

/// Bytes free of `zone` above the mark up to which promotion may fill it, with these marks.
fn room_of(zone: &mm::Zone<SimMachine>, marks: mm::watermark::Watermarks) -> u64 {
    u64::from(zone.free_pages().saturating_sub(marks.promo)) * PAGE_SIZE
}

impl HintGround for View<'_> {
    fn now(&self) -> Nanos {
        self.stage().machine().now()
    }

    fn area(&self, _: SpaceId, from: Vpn) -> Option<Area> {
        let found = self.stage().mm.spaces().hint_area(&self.process.space, from)?;
        let range = PageRange { start: found.start, end: found.end };
        Some(Area { range, is_scanned: found.is_scanned })
    }

    fn mark(&self, _: SpaceId, range: PageRange, marks: impl Fn(Node) -> bool) -> u32 {
        let (stage, hints) = (self.stage(), self.process.hints());
        let here = Node(stage.places[usize::from(stage.machine().cpu().0)].node);
        // What the only task of a process uses is at home where it runs.
        let home = (self.process.tasks() == 1).then_some(here);
        let range = (range.start, range.end);
        let hinted = stage.mm.spaces().hint(&self.process.space, range, home, marks);
        let now = self.now();
        hinted.pages.iter().for_each(|&page| hints.wait(page, now));
        self.process.count(|used| used.numa_pte_updates += u64::from(hinted.updates()));
        hinted.updates()
    }

    fn is_fast(&self, node: Node) -> bool {
        self.balance.fast[usize::from(node.0)]
    }

    fn room(&self, node: Node) -> u64 {
        self.zones(node).map(|zone| room_of(zone, zone.watermarks())).sum()
    }

    fn has_room(&self, node: Node, bytes: u64) -> bool {
        decide_by_sum_of_marks(self.stage().machine(), || self.zones(node), room_of, |room| room >= bytes)
    }

    fn size(&self, node: Node) -> u64 {
        self.zones(node).map(|zone| u64::from(zone.managed())).sum::<u64>() * PAGE_SIZE
    }

    fn knob_used(&self, knob: Knob, used: KnobUse) {
        self.stage().machine().knob_used(knob, used);
    }
}
