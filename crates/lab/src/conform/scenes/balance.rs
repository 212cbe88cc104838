//! NUMA balancing of a scene's processes: windows of their memory are made to fault as they run, and a hint fault may bring a page
//! to where it is used. What is decided is [`mm::tier`]'s; here is when. A process's CPU time is what its lines took, but for
//! `sleep`; a tick of it looks whether a window is due (`task_tick_numa`).

use std::cell::RefCell;
use std::collections::BTreeMap;

use mm::ids::{PAGE_SIZE, PAGEBLOCK_PAGES};
use mm::tier::{
    Area, AreaHistory, Balancing, BalancingSettings, HintFault, HintGround, HintScan, Looker, Mode, Moved,
    PageRange, Users,
};
use mm::vm::{AddressSpace, FaultError, FaultKind, PartOf, Residence, SpaceId, Touch, Vpn};
use mm::{Bare, Knob, Machine, Mm, Nanos, Node};

use super::play::Player;
use super::process::Process;

/// How often the scheduler looks whether a window is due, ns: CONFIG_HZ is 250 in Debian's kernels.
const TICK_NS: u64 = 4_000_000;

/// What balancing keeps of a process.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// When it began, and how long it waits from then on.
    born: Nanos,
    delay: Nanos,
    /// From the first window on, whose period is that of the settings at that moment.
    scan: Option<HintScan>,
    areas: AreaHistory,
    /// By page, the first of a huge one: the node of its last hint fault, and when it was marked.
    last: BTreeMap<u32, Node>,
    marked: BTreeMap<u32, Nanos>,
    /// CPU time, when it was last looked at, and at the last window; and the period of that.
    ran_ns: u64,
    seen: Nanos,
    stamp_ns: u64,
    period_ns: u64,
}

impl Hints {
    /// Those of a process that begins `now`: it waits for its first window as long as is set at this moment.
    pub(super) fn begin(mm: &Mm<Bare>, now: Nanos) -> Self {
        let delay = settings(mm).delay;
        Self { born: now, delay, seen: now, period_ns: delay.0, ..Self::default() }
    }

    /// The process did not run until `now`.
    pub(super) fn pass(&mut self, now: Nanos) {
        self.seen = now;
    }
}

/// Counts of vmstat's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HintCounts {
    updates: u64,
    huge_updates: u64,
    faults: u64,
    local: u64,
    migrated: u64,
}

impl HintCounts {
    /// Under vmstat's names.
    pub(super) fn named(self) -> [(&'static str, u64); 5] {
        [
            ("numa_pte_updates", self.updates),
            ("numa_huge_pte_updates", self.huge_updates),
            ("numa_hint_faults", self.faults),
            ("numa_hint_faults_local", self.local),
            ("numa_pages_migrated", self.migrated),
        ]
    }
}

impl Player {
    /// A process touches a page of its memory; of one that was marked it is found out first who uses it.
    pub(super) fn touch_at(&self, process: &mut Process, vpn: Vpn, touch: Touch) -> Result<(), FaultError> {
        let spaces = self.machine.mm.spaces();
        let (_, fault) = spaces.touch_page(&process.space, vpn, touch)?;
        if fault == Some(FaultKind::Hint) {
            self.hint_fault(process, vpn);
            spaces.touch_page(&process.space, vpn, touch)?;
        }
        Ok(())
    }

    /// What the process has run since this was last asked is its CPU time; each tick of it may mark a window.
    pub(super) fn ran(&self, process: &mut Process) {
        let now = process.at;
        let hints = &mut process.hints;
        let ticks = hints.ran_ns / TICK_NS;
        // Others on its CPU ran as long.
        let ran = now.0.saturating_sub(hints.seen.0) / self.sharers;
        hints.ran_ns = hints.ran_ns.saturating_add(ran);
        hints.seen = now;
        let is_due = hints.ran_ns >= hints.stamp_ns.saturating_add(hints.period_ns);
        if hints.ran_ns / TICK_NS > ticks && is_due && self.is_balanced() {
            self.mark_window(process);
        }
    }

    fn is_balanced(&self) -> bool {
        let mm = &self.machine.mm;
        let nodes = mm.topology().nodes.iter().filter(|node| !node.zones.is_empty());
        mm.knobs().get(Knob::NumaBalancing) > 0 && nodes.count() > 1
    }

    fn mark_window(&self, process: &mut Process) {
        let (mm, now) = (&self.machine.mm, self.clock.borrow().now());
        let Process { hints, space, .. } = process;
        hints.stamp_ns = hints.stamp_ns.saturating_add(hints.period_ns);
        let settings = settings(mm);
        let first = BalancingSettings { delay: hints.delay, ..settings };
        let scan = hints.scan.take();
        let mut scan = scan.unwrap_or_else(|| HintScan::new(space.id(), hints.born, &first));
        if scan.is_due(now) {
            let view = View { mm, space, now, marked: RefCell::default(), counts: &self.hint_counts };
            scan.mark_by(Looker { task: 0, threads: 1 }, &mut hints.areas, &view, &settings);
            hints.marked.extend(view.marked.into_inner());
        }
        hints.period_ns = scan.period().0.max(TICK_NS);
        hints.scan = Some(scan);
    }

    fn hint_fault(&self, process: &mut Process, vpn: Vpn) {
        let (mm, now) = (&self.machine.mm, self.clock.borrow().now());
        let Process { hints, space, .. } = process;
        let huge = matches!(mm.spaces().residence(space, vpn), Residence::Page(_, PartOf::Huge));
        let (page, pages) =
            if huge { (Vpn(vpn.0 - vpn.0 % PAGEBLOCK_PAGES), PAGEBLOCK_PAGES) } else { (vpn, 1) };
        let Some(from) = mm.spaces().node_at(space, page) else { return };
        let by = here(mm);
        let marked = hints.marked.remove(&page.0).unwrap_or(now);
        let last_by = hints.last.insert(page.0, by);
        let passes = hints.scan.as_ref().map_or(0, HintScan::passes);
        let users = Users::Tasks { space: space.id(), passes, sharing: false };
        let fault = HintFault { from, by, last_by, is_private: true, marked, users };
        if let Some(area) = mm.spaces().hint_area(space, page) {
            hints.areas.note_fault(area.start, 0);
        }
        let settings = settings(mm);
        let view = View { mm, space, now, marked: RefCell::default(), counts: &self.hint_counts };
        let mut balancing = self.balancing.borrow_mut();
        let stale = balancing.as_ref().is_none_or(|balancing| *balancing.settings() != settings);
        if stale {
            *balancing = Some(Balancing::new(settings, mm.topology().nodes.len() as u16));
        }
        let Some(balancing) = balancing.as_mut() else { return };
        let to = balancing.fault(fault, PAGE_SIZE * u64::from(pages), &view);
        let moved = match to {
            None => Moved::Stayed,
            Some(to) if mm.reclaim().has_room_above_high(to) => {
                let moved = mm.rmap().move_page(space, page, to);
                if moved.is_ok() { Moved::Moved } else { Moved::Failed }
            }
            Some(_) => Moved::Failed,
        };
        let counts = self.hint_counts.take();
        self.hint_counts.set(HintCounts {
            faults: counts.faults + 1,
            local: counts.local + u64::from(from == by),
            migrated: counts.migrated + if moved == Moved::Moved { u64::from(pages) } else { 0 },
            ..counts
        });
        if balancing.counts(fault, &view) {
            if let Some(scan) = &mut hints.scan {
                scan.note(fault, moved, space.resident_pages() * PAGE_SIZE, &settings);
            }
        }
    }
}

/// The node of the CPU that runs.
fn here(mm: &Mm<Bare>) -> Node {
    mm.topology().cpus[usize::from(mm.machine().cpu().0)].node
}

fn settings(mm: &Mm<Bare>) -> BalancingSettings {
    let knob = |of: Knob| mm.knobs().get(of);
    let ms = |of: Knob| Nanos(knob(of) * 1_000_000);
    BalancingSettings {
        mode: match knob(Knob::NumaBalancing) {
            0 | 1 => Mode::Normal,
            2 => Mode::Tiering,
            _ => Mode::Both,
        },
        // The process's own, said when it began.
        delay: ms(Knob::BalancingScanDelay),
        period_min: ms(Knob::BalancingPeriodMin),
        period_max: ms(Knob::BalancingPeriodMax),
        window: knob(Knob::BalancingScanSize) << 20,
        // Of slow nodes' pages; scenes' nodes all have CPUs.
        hot: Nanos(0),
        rate_limit: 0,
    }
}

/// A process as balancing sees it.
struct View<'a> {
    mm: &'a Mm<Bare>,
    space: &'a AddressSpace<Bare>,
    now: Nanos,
    marked: RefCell<Vec<(u32, Nanos)>>,
    counts: &'a std::cell::Cell<HintCounts>,
}

impl View<'_> {
    fn zones(&self, node: Node) -> impl Iterator<Item = &mm::Zone<Bare>> {
        self.mm.zones().iter().filter(move |zone| zone.node() == node)
    }
}

impl HintGround for View<'_> {
    fn now(&self) -> Nanos {
        self.now
    }

    fn area(&self, _: SpaceId, from: Vpn) -> Option<Area> {
        let found = self.mm.spaces().hint_area(self.space, from)?;
        let range = PageRange { start: found.start, end: found.end };
        Some(Area { range, is_scanned: found.is_scanned })
    }

    fn mark(&self, _: SpaceId, range: PageRange, marks: impl Fn(Node) -> bool) -> u32 {
        // What the only task of a process uses is at home where it runs.
        let home = Some(here(self.mm));
        let hinted = self.mm.spaces().hint(self.space, (range.start, range.end), home, marks);
        self.marked.borrow_mut().extend(hinted.pages.iter().map(|page| (page.0, self.now)));
        let counts = self.counts.take();
        self.counts.set(HintCounts {
            updates: counts.updates + u64::from(hinted.updates()),
            huge_updates: counts.huge_updates + u64::from(hinted.huge),
            ..counts
        });
        hinted.updates()
    }

    fn is_fast(&self, node: Node) -> bool {
        self.mm.topology().cpus_of(node) > 0
    }

    fn room(&self, node: Node) -> u64 {
        let free = |zone: &mm::Zone<Bare>| zone.free_pages().saturating_sub(zone.watermarks().promo);
        self.zones(node).map(|zone| u64::from(free(zone)) * PAGE_SIZE).sum()
    }

    fn size(&self, node: Node) -> u64 {
        self.zones(node).map(|zone| u64::from(zone.managed())).sum::<u64>() * PAGE_SIZE
    }
}
