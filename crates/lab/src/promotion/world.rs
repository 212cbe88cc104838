//! All programs of a scene, and what promotion has in common for them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::ids::PAGE_SIZE;
use mm::tier::{Balancing, BalancingSettings, HintFault, HintScan, Mode, Moved, Wanted, WantedPage};
use mm::vm::SpaceId;
use mm::watermark::Watermarks;
use mm::{Knob, KnobUse, Machine, Nanos, Node, TaskId, Zone};
use sim::profile::CpuPosition;
use sim::{Path, SimMachine};

use super::program::Program;
use crate::stage::{Random, Stage};

/// The knobs of NUMA balancing.
const KNOBS: [Knob; 7] = [
    Knob::NumaBalancing,
    Knob::PromoteRateLimit,
    Knob::BalancingScanDelay,
    Knob::BalancingPeriodMin,
    Knob::BalancingPeriodMax,
    Knob::BalancingScanSize,
    Knob::BalancingHotThreshold,
];

/// What promotion sees.
pub(crate) struct World {
    pub(crate) stage: Rc<Stage>,
    programs: RefCell<Vec<Rc<Program>>>,
    /// Programs that no scanner knows yet.
    newborn: RefCell<Vec<SpaceId>>,
    pub(super) wanted: RefCell<Wanted>,
    pub(super) random: RefCell<Random>,
    /// Modelled pages promoted since the last flush, by the thread that moved them: two may be at it.
    unflushed: RefCell<BTreeMap<TaskId, u32>>,
    balancing: Option<RefCell<Balancing>>,
    /// The same with each knob at its default that somebody set.
    watched: Vec<(Knob, RefCell<Balancing>)>,
    /// What it would be by default, where it was turned off.
    turned_on: Option<BalancingSettings>,
    pub(super) grain: u32,
    /// By node: whether it has CPUs. It is asked for each page that is looked at.
    fast: Box<[bool]>,
    /// Of hint faults that are to move a page, how many in a hundred cannot.
    hint_busy_percent: u32,
}

impl World {
    /// Without any program yet.
    pub(crate) fn new(stage: &Rc<Stage>, grain: u32, hint_busy_percent: u32) -> Rc<Self> {
        let knobs = stage.mm.knobs();
        let in_force = settings(|knob| knobs.get(knob));
        let by_default =
            |of: Knob| settings(|knob| if knob == of { of.spec().default } else { knobs.get(knob) });
        let topology = stage.mm.topology();
        let nodes = topology.nodes.len() as u16;
        let set = KNOBS.into_iter().filter(|knob| in_force.is_some() && knobs.is_set(*knob));
        let watched =
            set.filter_map(|knob| Some((knob, RefCell::new(Balancing::new(by_default(knob)?, nodes)))));
        let watched: Vec<(Knob, RefCell<Balancing>)> = watched.collect();
        let is_off = in_force.is_none() && knobs.is_set(Knob::NumaBalancing);
        let turned_on = is_off.then(|| by_default(Knob::NumaBalancing)).flatten();
        Rc::new(Self {
            stage: Rc::clone(stage),
            programs: RefCell::default(),
            newborn: RefCell::default(),
            wanted: RefCell::default(),
            random: RefCell::new(Random::new(stage.machine())),
            unflushed: RefCell::default(),
            balancing: in_force.map(|settings| RefCell::new(Balancing::new(settings, nodes))),
            watched,
            turned_on,
            grain,
            fast: (0..nodes).map(|node| topology.cpus_of(Node(node)) > 0).collect(),
            hint_busy_percent,
        })
    }

    /// `program` begins.
    pub(crate) fn enter(&self, program: &Rc<Program>) {
        let in_force = self.balancing.as_ref().map(|balancing| *balancing.borrow().settings());
        if let Some(settings) = in_force.or(self.turned_on) {
            let scan = HintScan::new(program.id(), self.machine().now(), &settings);
            program.hint_scan.replace(Some(scan));
        }
        self.newborn.borrow_mut().push(program.id());
        self.programs.borrow_mut().push(Rc::clone(program));
    }

    /// `program` ends; its memory is given back.
    pub(crate) fn leave(&self, program: &Program) {
        program.lives.set(false);
        self.programs.borrow_mut().retain(|other| other.id() != program.id());
        self.wanted.borrow_mut().forget(program.id());
        self.stage.mm.spaces().exit(&program.space);
    }

    /// Programs that no scanner knows yet; it does from now on.
    pub(crate) fn take_newborn(&self) -> Vec<SpaceId> {
        self.newborn.take()
    }

    /// A scanner wants `page` on a fast node.
    pub(crate) fn want(&self, page: WantedPage) {
        self.wanted.borrow_mut().push(page);
    }

    /// Pages of 4 KiB that are wanted and were not moved yet.
    pub(crate) fn waiting(&self) -> usize {
        self.wanted.borrow().len() * self.grain as usize
    }

    /// The program of `space`, while it lives.
    pub(super) fn program(&self, space: SpaceId) -> Option<Rc<Program>> {
        let programs = self.programs.borrow();
        // They are born in the order of their numbers.
        let index = programs.binary_search_by_key(&space, |program| program.id()).ok()?;
        Some(Rc::clone(&programs[index]))
    }

    pub(super) fn programs(&self) -> Vec<Rc<Program>> {
        self.programs.borrow().clone()
    }

    pub(crate) fn machine(&self) -> &SimMachine {
        self.stage.machine()
    }

    /// This thread has moved a modelled page.
    pub(super) fn note_moved(&self) {
        *self.unflushed.borrow_mut().entry(self.machine().task()).or_default() += 1;
    }

    /// Modelled pages that this thread has moved since it was last asked.
    pub(super) fn take_unflushed(&self) -> u32 {
        self.unflushed.borrow_mut().remove(&self.machine().task()).unwrap_or(0)
    }

    /// Whether `node` is of the fast tier: whether it has CPUs.
    pub(crate) fn is_of_fast_tier(&self, node: Node) -> bool {
        self.fast[usize::from(node.0)]
    }

    /// What a thread of `program` does in the kernel after a stretch of accesses: its hint faults, and the next window.
    pub(crate) fn balance(&self, program: &Program) {
        let Some(balancing) = &self.balancing else { return self.watch_off(program) };
        let start = self.machine().now();
        let place: &CpuPosition = &self.stage.places[usize::from(self.machine().cpu().0)];
        let by = Node(place.node);
        let mode = balancing.borrow().settings().mode;
        while let Some(marked) = program.next_fault() {
            self.machine().charge_times(Path::HintFault, self.grain);
            self.stage.tally.note("numa_hint_faults", self.grain.into());
            let state = &program.pages[marked.page];
            let last = state.last_by.replace(by.0 + 1);
            let task = self.machine().task().0 + 1;
            let last_task = state.last_task.replace(task);
            let fault = HintFault {
                from: Node(state.node.get()),
                by,
                last_by: last.checked_sub(1).map(Node),
                is_private: last_task == 0 || last_task == task,
                marked: marked.since,
            };
            let bytes = mm::ids::PAGE_SIZE * u64::from(self.grain);
            let to = balancing.borrow_mut().fault(fault, bytes, self);
            for (knob, other) in &self.watched {
                let by_default = other.borrow_mut().fault(fault, bytes, self);
                self.machine().knob_used(*knob, KnobUse::of(&to, &by_default));
            }
            let is_busy = self.random.borrow_mut().below(100) < self.hint_busy_percent.into();
            let goes = to.filter(|to| !is_busy && self.has_room(*to, mode));
            let mut moved = if to.is_some() { Moved::Failed } else { Moved::Stayed };
            if let Some(to) = goes {
                let pages = self.move_page(program, marked.page, marked.vpn, to);
                self.flush_page();
                self.stage.tally.note("numa_pages_migrated", pages.map_or(0, u64::from));
                moved = if pages.is_ok() { Moved::Moved } else { Moved::Failed };
            }
            self.note_fault(program, fault, moved, &balancing.borrow());
        }
        let after_faults = self.machine().now();
        self.mark_window(program, balancing);
        let end = self.machine().now();
        self.spent("hint-fault", Nanos(after_faults.0 - start.0));
        self.spent("hint-scan", Nanos(end.0 - after_faults.0));
    }

    /// What the fault says of when the next window should come. While a window is being marked nobody counts.
    fn note_fault(&self, program: &Program, fault: HintFault, moved: Moved, balancing: &Balancing) {
        let counts = balancing.counts(fault, self);
        for (knob, other) in self.watched.iter().filter(|(knob, _)| *knob == Knob::NumaBalancing) {
            self.machine().knob_used(*knob, KnobUse::of(&counts, &other.borrow().counts(fault, self)));
        }
        if !counts {
            return;
        }
        if let Some(scan) = program.hint_scan.borrow_mut().as_mut() {
            let resident = program.space.resident_pages() * mm::ids::PAGE_SIZE * u64::from(self.grain);
            scan.note(fault, moved, resident, balancing.settings());
        }
    }

    /// Whether `node` may take a page more and stay above its high mark (`migrate_balanced_pgdat`). Where pages are promoted,
    /// kswapd is told if not.
    fn has_room(&self, node: Node, mode: Mode) -> bool {
        let mm = &self.stage.mm;
        let has_room = mm.reclaim().has_room_above_high(node);
        if !has_room && mode != Mode::Normal {
            mm.reclaim().make_room(node);
        }
        has_room
    }

    /// Bytes free of `zone` above the mark up to which promotion may fill it, with these marks.
    pub(super) fn room_of(&self, zone: &Zone<SimMachine>, marks: Watermarks) -> u64 {
        u64::from(zone.free_pages().saturating_sub(marks.promo)) * PAGE_SIZE * u64::from(self.grain)
    }

    fn mark_window(&self, program: &Program, balancing: &RefCell<Balancing>) {
        self.watch_delay(program, balancing);
        let taken = program.hint_scan.borrow_mut().take_if(|scan| scan.is_due(self.machine().now()));
        let Some(mut scan) = taken else { return };
        let settings = *balancing.borrow().settings();
        self.watch(
            |other| KnobUse::of(&scan.period_by(&settings), &scan.period_by(other)),
            &[Knob::BalancingPeriodMin, Knob::BalancingPeriodMax],
        );
        let marked = scan.mark(self, &settings);
        let is_other = |other: &BalancingSettings| scan.would_be_other(marked, &settings, other);
        self.watch(|other| KnobUse::of(&is_other(other), &false), &[Knob::BalancingScanSize]);
        let by_heat = |settings: &BalancingSettings| settings.mode == Mode::Tiering;
        self.watch(|other| KnobUse::of(&by_heat(&settings), &by_heat(other)), &[Knob::NumaBalancing]);
        program.hint_scan.replace(Some(scan));
    }

    /// Says of each of `knobs` that somebody set what its default would have decided.
    fn watch(&self, used: impl Fn(&BalancingSettings) -> KnobUse, knobs: &[Knob]) {
        for (knob, other) in self.watched.iter().filter(|(knob, _)| knobs.contains(knob)) {
            self.machine().knob_used(*knob, used(other.borrow().settings()));
        }
    }

    /// Whether the program's first window is due, and whether it would be by default.
    fn watch_delay(&self, program: &Program, balancing: &RefCell<Balancing>) {
        let (scan, now) = (program.hint_scan.borrow(), self.machine().now());
        let (Some(scan), settings) = (&*scan, *balancing.borrow().settings()) else { return };
        let due = |other: &BalancingSettings| scan.would_be_due(now, &settings, other);
        self.watch(|other| KnobUse::of(&scan.is_due(now), &due(other)), &[Knob::BalancingScanDelay]);
    }

    /// NUMA balancing is off: by default a window would be marked once one is due.
    fn watch_off(&self, program: &Program) {
        if let Some(scan) = &*program.hint_scan.borrow() {
            let is_due = scan.is_due(self.machine().now());
            self.machine().knob_used(Knob::NumaBalancing, KnobUse::of(&is_due, &false));
        }
    }

    /// What somebody spent on `name`; all of it together is the sample `overhead`.
    pub(crate) fn spent(&self, name: &str, time: Nanos) {
        if time.0 > 0 {
            self.stage.tally.spent(name, time);
            self.stage.tally.spent("overhead", time);
        }
    }

    /// CPUs that use the program's memory forget a page.
    fn flush_page(&self) {
        self.take_unflushed();
        self.machine().charge_times(Path::TlbFlush, self.grain);
    }
}

/// How NUMA balancing works, if it does.
fn settings(knob: impl Fn(Knob) -> u64) -> Option<BalancingSettings> {
    let ms = |of: Knob| Nanos(knob(of) * 1_000_000);
    let mode = match knob(Knob::NumaBalancing) {
        0 => return None,
        1 => Mode::Normal,
        2 => Mode::Tiering,
        _ => Mode::Both,
    };
    Some(BalancingSettings {
        mode,
        delay: ms(Knob::BalancingScanDelay),
        period_min: ms(Knob::BalancingPeriodMin),
        period_max: ms(Knob::BalancingPeriodMax),
        window: knob(Knob::BalancingScanSize) << 20,
        hot: ms(Knob::BalancingHotThreshold),
        rate_limit: knob(Knob::PromoteRateLimit).saturating_mul(1_000_000),
    })
}
