//! The modelled programs as the controllers' ground.

use mm::ids::{PAGE_SIZE, PAGEBLOCK_PAGES};
use mm::tier::{Area, Ground, HintGround, PageRange, Seen, Stayed};
use mm::vm::{SpaceId, Vpn};
use mm::{Knob, KnobUse, Machine, MigrateError, Nanos, Node, decide_by_sum_of_marks};
use sim::Path;

use super::program::Program;
use super::world::World;

/// Modelled pages that a scan goes over between two looks at the clock.
const STRIDE: usize = PAGEBLOCK_PAGES as usize;

impl World {
    /// Moves the page; what it stands for moves with it.
    pub(super) fn move_page(
        &self,
        program: &Program,
        page: usize,
        vpn: Vpn,
        node: Node,
    ) -> Result<u32, Stayed> {
        let machine = self.machine();
        let start = machine.now();
        let moved = self.stage.mm.rmap().move_page(&program.space, vpn, node);
        let took = machine.now().0 - start.0;
        machine.compute(Nanos(took * u64::from(self.grain - 1)));
        machine.charge_times(Path::Promote, self.grain);
        match moved {
            Ok(()) => {
                program.moved(page, node);
                self.note_moved();
                Ok(self.grain)
            }
            Err(MigrateError::NoMemory) => Err(Stayed::NoRoom),
            Err(MigrateError::Absent | MigrateError::Unmovable) => Err(Stayed::Gone),
            Err(MigrateError::Busy | MigrateError::Pinned) => Err(Stayed::Busy),
        }
    }

    /// Pays for a look at so many modelled pages.
    fn pay(&self, pages: usize, each: Path) {
        self.machine().charge_times(each, pages as u32 * self.grain);
    }
}

impl HintGround for World {
    fn knob_used(&self, knob: Knob, used: KnobUse) {
        self.machine().knob_used(knob, used);
    }

    fn now(&self) -> Nanos {
        self.machine().now()
    }

    fn area(&self, space: SpaceId, from: Vpn) -> Option<Area> {
        self.program(space)?.area(from)
    }

    fn mark(&self, space: SpaceId, range: PageRange, marks: impl Fn(Node) -> bool) -> u32 {
        let Some(program) = self.program(space) else { return 0 };
        let mut marked = 0;
        for (pages, start) in program.pages_of(range) {
            let first = pages.start;
            self.pay(pages.len(), Path::HintMark);
            let now = self.now();
            for page in pages {
                if !marks(Node(program.pages[page].node.get())) {
                    continue;
                }
                let vpn = Vpn(start.0 + (page - first) as u32);
                program.mark(page, vpn, now, &mut self.random.borrow_mut());
                marked += self.grain;
            }
        }
        marked
    }

    fn is_fast(&self, node: Node) -> bool {
        self.is_of_fast_tier(node)
    }

    fn room(&self, node: Node) -> u64 {
        let zones = self.stage.mm.zones().iter().filter(|zone| zone.node() == node);
        zones.map(|zone| self.room_of(zone, zone.watermarks())).sum()
    }

    fn has_room(&self, node: Node, bytes: u64) -> bool {
        let zones = || self.stage.mm.zones().iter().filter(|zone| zone.node() == node);
        let of = |zone: &mm::Zone<_>, marks| self.room_of(zone, marks);
        decide_by_sum_of_marks(self.machine(), zones, of, |room| room >= bytes)
    }

    fn size(&self, node: Node) -> u64 {
        let zones = self.stage.mm.zones().iter().filter(|zone| zone.node() == node);
        zones.map(|zone| u64::from(zone.managed())).sum::<u64>() * PAGE_SIZE * u64::from(self.grain)
    }
}

impl Ground for World {
    fn is_alive(&self, space: SpaceId) -> bool {
        self.program(space).is_some()
    }

    /// Nobody changes its map while it runs.
    fn may_look(&self, space: SpaceId) -> bool {
        self.is_alive(space)
    }

    fn look(&self, space: SpaceId, range: PageRange, mut seen: impl FnMut(Seen)) {
        let Some(program) = self.program(space) else { return };
        let is_probe = range.pages() == 1;
        for (pages, start) in program.pages_of(range) {
            let first = pages.start;
            for part in (pages.start..pages.end).step_by(STRIDE) {
                let end = pages.end.min(part + STRIDE);
                if is_probe {
                    self.machine().charge(Path::AccessProbe);
                } else {
                    self.pay(end - part, Path::AccessScan);
                }
                if !program.lives.get() {
                    return;
                }
                for page in part..end {
                    let vpn = Vpn((start.0 + (page - first) as u32) * self.grain);
                    let accessed = program.was_accessed(page, &mut self.random.borrow_mut());
                    let node = Node(program.pages[page].node.get());
                    seen(Seen { vpn, pages: self.grain, node, accessed });
                }
            }
        }
    }

    fn promote(&self, space: SpaceId, vpn: Vpn, node: Node) -> Result<u32, Stayed> {
        let program = self.program(space).ok_or(Stayed::Gone)?;
        let one = PageRange { start: vpn, end: vpn.add(1) };
        let found = program.pages_of(one).into_iter().next();
        let (pages, modelled) = found.ok_or(Stayed::Gone)?;
        let page = pages.start;
        if self.is_fast(Node(program.pages[page].node.get())) {
            return Err(Stayed::Gone);
        }
        self.move_page(&program, page, modelled, node)
    }

    /// A flush for each page where pages are moved one by one, and one for all of a batch: a modelled page by itself stands for
    /// as many flushes as for pages.
    fn flush(&self, _: SpaceId) {
        let flushes = if self.take_unflushed() <= 1 { self.grain } else { 1 };
        self.machine().charge_times(Path::TlbFlush, flushes);
    }

    fn nodes(&self) -> u16 {
        self.stage.mm.topology().nodes.len() as u16
    }

    fn threads_on(&self, space: SpaceId, node: Node) -> u32 {
        self.program(space).map_or(0, |program| program.threads_on(node))
    }
}
