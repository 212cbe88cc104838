//! All programs of a scene, and what promotion has in common for them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::ids::PAGE_SIZE;
use mm::tier::{HintFault, Moved, Users, Wanted, WantedPage};
use mm::vm::SpaceId;
use mm::watermark::Watermarks;
use mm::{Machine, Nanos, Node, TaskId, Zone};
use sim::profile::CpuPosition;
use sim::{Path, SimMachine};

use super::balancer::Balancer;
use super::program::Program;
use crate::stage::{Random, Stage};

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
    balancer: Balancer,
    pub(super) grain: u32,
    /// By node: whether it has CPUs. It is asked for each page that is looked at.
    fast: Box<[bool]>,
    /// Of hint faults that are to move a page, how many in a hundred cannot.
    hint_busy_percent: u32,
}

impl World {
    /// Without any program yet.
    pub(crate) fn new(stage: &Rc<Stage>, grain: u32, hint_busy_percent: u32) -> Rc<Self> {
        let topology = stage.mm.topology();
        let nodes = topology.nodes.len() as u16;
        Rc::new(Self {
            stage: Rc::clone(stage),
            programs: RefCell::default(),
            newborn: RefCell::default(),
            wanted: RefCell::default(),
            random: RefCell::new(Random::new(stage.machine())),
            unflushed: RefCell::default(),
            balancer: Balancer::new(stage),
            grain,
            fast: (0..nodes).map(|node| topology.cpus_of(Node(node)) > 0).collect(),
            hint_busy_percent,
        })
    }

    /// `program` begins.
    pub(crate) fn enter(&self, program: &Rc<Program>) {
        program.hint_scan.replace(self.balancer.begin(program.id(), self.machine().now()));
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
        if self.balancer.settings().is_none() {
            return Balancer::watch_off(&program.hint_scan, self);
        }
        let start = self.machine().now();
        let place: &CpuPosition = &self.stage.places[usize::from(self.machine().cpu().0)];
        let by = Node(place.node);
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
                users: Users::Modelled,
            };
            let bytes = PAGE_SIZE * u64::from(self.grain);
            let to = self.balancer.fault(fault, bytes, self);
            let is_busy = self.random.borrow_mut().below(100) < self.hint_busy_percent.into();
            let goes = to.filter(|to| !is_busy && self.balancer.has_room(&self.stage, *to));
            let mut moved = if to.is_some() { Moved::Failed } else { Moved::Stayed };
            if let Some(to) = goes {
                let pages = self.move_page(program, marked.page, marked.vpn, to);
                self.flush_page();
                self.stage.tally.note("numa_pages_migrated", pages.map_or(0, u64::from));
                moved = if pages.is_ok() { Moved::Moved } else { Moved::Failed };
            }
            let resident = program.space.resident_pages() * PAGE_SIZE * u64::from(self.grain);
            self.balancer.note(&program.hint_scan, (fault, moved), resident, self);
        }
        let after_faults = self.machine().now();
        self.balancer.mark(&program.hint_scan, self);
        let end = self.machine().now();
        self.spent("hint-fault", Nanos(after_faults.0 - start.0));
        self.spent("hint-scan", Nanos(end.0 - after_faults.0));
    }

    /// Bytes free of `zone` above the mark up to which promotion may fill it, with these marks.
    pub(super) fn room_of(&self, zone: &Zone<SimMachine>, marks: Watermarks) -> u64 {
        u64::from(zone.free_pages().saturating_sub(marks.promo)) * PAGE_SIZE * u64::from(self.grain)
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
