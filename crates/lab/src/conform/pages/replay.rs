//! Takes mm through a run and holds each of its refills and drains against the kernel's.

mod blocks;
mod judge;
mod matching;
mod resync;
mod setup;

use mm::bare::Seen;
use mm::{Bare, Cpu, Knob, Mm, Node, Pressure, Setting, Span, Tuning, ZoneId, ZoneKind};

use self::blocks::Blocks;
use self::matching::Refills;
use self::resync::Ahead;
pub(super) use self::setup::{compare_sizes, prepare};
use super::counts::{DrainAt, SLACK, Telling};
use super::hidden::Hidden;
use super::lists::{ListId, PagesetId, Shape};
use super::story::{Actor, Cause, Story, What};
use crate::conform::outcome::{FileOutcome, PagesMoved};
use crate::conform::read::beside::Beside;
use crate::conform::read::sections::FormatError;
use crate::conform::read::trace_csv::PageTrace;

/// Pages that are freed together at most. Where a trace does not say when each reaches the pageset, what they cause shows
/// after them all.
const FREE_BATCH: u32 = 31;

/// Replays a run on mm and compares.
///
/// # Errors
/// If mm cannot be made for the run's machine.
pub(super) fn replay(
    telling: Telling<'_>,
    hidden: &Hidden,
    mm: &Mm<Bare>,
    outcome: &mut FileOutcome,
) -> Result<(), FormatError> {
    let mut replay = Replay::begin(telling, hidden, mm, outcome)?;
    let mut ticks = hidden.ticks().into_iter().peekable();
    for (number, step) in telling.story.steps.iter().enumerate() {
        let time_us = telling.trace.events[step.event as usize].time_us;
        while let Some(tick) = ticks.next_if(|tick| tick.at_us <= time_us) {
            if !(tick.idle && replay.would_drain(tick.cpu)) {
                replay.tick(tick.cpu, number as u32);
            }
        }
        replay.step(number as u32, step.page, step.what);
    }
    replay.finish();
    Ok(())
}

/// A pageset's drains on both sides.
#[derive(Clone, Debug, Default)]
struct Drains {
    frees: u32,
    freed: u32,
    kernel: Vec<DrainAt>,
    mm: Vec<DrainAt>,
    /// Pages that kswapd's frees drained, and that mm has not been told of yet.
    by_kswapd: i64,
}

impl Drains {
    /// A drain for room.
    fn at(&self, step: u32, pages: u32) -> DrainAt {
        DrainAt { step, frees: self.frees, freed: self.freed, pages, by_tick: false }
    }
}

struct Replay<'a> {
    trace: &'a PageTrace,
    beside: &'a Beside,
    story: &'a Story,
    mm: &'a Mm<Bare>,
    blocks: Blocks<'a>,
    refills: Refills,
    drains: Vec<Drains>,
    ahead: Ahead,
    /// How many frees later than it was a kernel's drain may show.
    blur: u32,
    /// The step of each CPU's last tick.
    last_tick: Vec<u32>,
    /// Requests for which a zone had no block left.
    starved: u64,
    outcome: &'a mut FileOutcome,
    pages: PagesMoved,
}

impl<'a> Replay<'a> {
    fn begin(
        telling: Telling<'a>,
        hidden: &Hidden,
        mm: &'a Mm<Bare>,
        outcome: &'a mut FileOutcome,
    ) -> Result<Self, FormatError> {
        let blocks = Blocks::begin(telling, hidden, mm)?;
        for (index, sizes) in telling.sizes.iter().enumerate() {
            let pageset = PagesetId(index as u32);
            let tuning = Tuning { alloc_factor: hidden.alloc_factor[index], ..*sizes };
            let shape = telling.story.shape;
            let zone = &mm.zones()[shape.zone(pageset)];
            zone.set_pageset_tuning(mm.machine(), Cpu(shape.cpu(pageset)), tuning);
        }
        mm.machine().take_seen();
        Ok(Self {
            trace: telling.trace,
            beside: telling.beside,
            story: telling.story,
            mm,
            blocks,
            refills: Refills::new(telling.story.shape.lists()),
            drains: vec![Drains::default(); telling.story.shape.pagesets()],
            ahead: Ahead::of(telling.story),
            blur: if telling.trace.has_commits() { 0 } else { FREE_BATCH },
            last_tick: vec![u32::MAX; telling.story.shape.cpus],
            starved: 0,
            outcome,
            pages: PagesMoved::default(),
        })
    }

    fn shape(&self) -> Shape {
        self.story.shape
    }

    /// The zone and CPU of a pageset, as mm's doors take them.
    fn at(&self, pageset: PagesetId) -> (ZoneId, Cpu) {
        (ZoneId(self.shape().zone(pageset) as u16), Cpu(self.shape().cpu(pageset)))
    }

    fn step(&mut self, number: u32, page: u32, what: What) {
        match what {
            What::Take(list, refill) => {
                self.note_request(self.at(list.pageset()).0);
                self.take(list, refill, page);
            }
            What::TakeUnseen(list, refill) => self.take_unseen(list, refill, page),
            What::TakeBuddy(zone, order) => {
                let taken =
                    self.mm.pages().steps().rmqueue_buddy(ZoneId(zone), order, mm::MigrateType::Movable);
                self.keep(page, taken.map(|pfn| (pfn, order)));
            }
            What::Put(list, actor) => self.put(number, list, actor, page),
            What::PutBuddy(zone, order) => {
                if let Some(pfn) = self.blocks.release(self.mm, page, usize::from(zone), order) {
                    let freed = self.mm.pages().steps().free_past_pageset(pfn, order);
                    debug_assert!(freed.is_ok(), "{freed:?}");
                }
            }
            What::Tick(cpu) => self.tick(cpu, number),
            What::Drained(drain) => self.kernel_drained(drain, number),
            What::Knob(scale) => {
                let set = self.mm.set_knob(Knob::PcpBatchScaleMax, u64::from(scale));
                debug_assert!(set.is_ok(), "{set:?}");
                let note = format!("vm.pcp_batch_scale_max is {scale} from the mark on: its refills say so");
                self.outcome.notes.push(note);
            }
        }
    }

    /// A request came by `zone`; and by all others, if it found too few free pages there at first.
    fn note_request(&self, zone: ZoneId) {
        let served = &self.mm.zones()[usize::from(zone.0)];
        let kept = served.protection()[ZoneKind::Movable.index()];
        if served.free_pages() > served.watermarks().low + kept {
            self.mm.pages().steps().note_request(zone, ZoneKind::Movable);
            return;
        }
        for other in self.mm.zones() {
            self.mm.pages().steps().note_request(other.id(), ZoneKind::Movable);
        }
    }

    fn take(&mut self, list: ListId, refill: u32, page: u32) {
        if refill > 0 {
            self.kernel_refills(list, refill - 1);
        }
        let (zone, cpu) = self.at(list.pageset());
        self.mm.machine().set_cpu(cpu);
        let taken = self.mm.pages().steps().rmqueue(zone, list.order(), list.migratetype());
        self.keep(page, taken.map(|pfn| (pfn, list.order())));
        let mut refilled = None;
        for Seen { span, work, .. } in self.mm.machine().take_seen() {
            if span == Span::Refill {
                refilled = Some(work.count);
                self.pages.refills.freehold.add(u64::from(work.count << list.order().get()));
            }
        }
        let matched = self.refills.taken(list, (refill > 0).then(|| refill - 1), refilled);
        for matched in matched {
            self.judge_refill(matched);
        }
    }

    /// The bulk allocator takes pages without the pageset noting that somebody allocates.
    fn take_unseen(&mut self, list: ListId, refill: u32, page: u32) {
        let (zone, cpu) = self.at(list.pageset());
        let zone = &self.mm.zones()[usize::from(zone.0)];
        let before = zone.pageset_tuning(self.mm.machine(), cpu);
        self.take(list, refill, page);
        let now = zone.pageset_tuning(self.mm.machine(), cpu);
        let tuning = Tuning { free_count: before.free_count, free_factor: before.free_factor, ..now };
        zone.set_pageset_tuning(self.mm.machine(), cpu, tuning);
    }

    fn keep(&mut self, page: u32, block: Option<(mm::Pfn, mm::Order)>) {
        match block {
            Some(block) => self.blocks.keep(page, block),
            None => self.starved += 1,
        }
    }

    /// The kernel refilled a list, which was therefore empty. A few blocks that mm has left may be ones of which the
    /// trace said nothing; more are a disagreement, and leave mm's list too, lest it repeat itself.
    fn kernel_refills(&mut self, list: ListId, refill: u32) {
        let kernel = &self.story.refills[refill as usize];
        self.pages.refills.kernel.add(u64::from(kernel.blocks() << list.order().get()));
        if self.refills.came_early(list) {
            return;
        }
        let at = self.at(list.pageset());
        let (order, kind) = (list.order(), list.migratetype());
        let left = self.mm.pages().steps().take_off_pageset(at, order, kind, u32::MAX);
        if left > 0 && left <= SLACK {
            self.mm.pages().steps().place_on_pageset(at, order, kind, left);
            self.mm.machine().take_seen();
        } else if left > 0 {
            let what = format!("{}: blocks left on the list", self.name_refill(refill));
            self.outcome.differ(what, 0u32, left);
            self.refills.excuse(list);
        }
    }

    fn put(&mut self, number: u32, list: ListId, actor: Actor, page: u32) {
        let pageset = list.pageset();
        let (zone, cpu) = self.at(pageset);
        let Some(pfn) = self.blocks.release(self.mm, page, usize::from(zone.0), list.order()) else { return };
        self.mm.machine().set_cpu(cpu);
        let node = self.mm.zones()[usize::from(zone.0)].node();
        if actor == Actor::Kswapd {
            self.mm.pages().set_reclaim_active(node, mm::ReclaimState::Active);
        }
        let freed = self.mm.pages().steps().free_to_list(pfn, list.order(), list.migratetype());
        debug_assert!(freed.is_ok(), "{freed:?}");
        if actor == Actor::Kswapd {
            self.mm.pages().set_reclaim_active(node, mm::ReclaimState::Idle);
        }
        let drains = &mut self.drains[pageset.index()];
        drains.frees += 1;
        drains.freed = drains.freed.wrapping_add(list.order().pages());
        let pages = self.mm_drained(pageset, number, Some(actor));
        if actor == Actor::Task {
            self.resync(list, pages);
        }
    }

    /// Notes what mm has just drained from `pageset`, because of a free by `freed` or of a tick, and gives the pages.
    fn mm_drained(&mut self, pageset: PagesetId, number: u32, freed: Option<Actor>) -> u32 {
        let seen = self.mm.machine().take_seen();
        let pages: u32 =
            seen.iter().filter(|seen| seen.span == Span::Drain).map(|seen| seen.work.count).sum();
        if pages == 0 {
            return 0;
        }
        let drains = &mut self.drains[pageset.index()];
        if freed == Some(Actor::Kswapd) {
            drains.by_kswapd -= i64::from(pages);
            self.pages.drains_by_kswapd.freehold.add(u64::from(pages));
        } else {
            let at = DrainAt { by_tick: freed.is_none(), ..drains.at(number, pages) };
            drains.mm.push(at);
            self.pages.drains.freehold.add(u64::from(pages));
        }
        pages
    }

    fn tick(&mut self, cpu: u16, number: u32) {
        self.mm.machine().set_cpu(Cpu(cpu));
        self.last_tick[usize::from(cpu)] = number;
        for zone in 0..self.shape().zones {
            self.mm.pages().decay_pageset(ZoneId(zone as u16), Cpu(cpu));
            self.mm_drained(self.shape().pageset(zone, cpu), number, None);
        }
    }

    /// Whether a tick of `cpu` would drain a batch or more now.
    fn would_drain(&self, cpu: u16) -> bool {
        let rules = self.mm.policy().rules();
        let scale = self.mm.knobs().get(Knob::PcpBatchScaleMax) as u32;
        let setting = Setting { rules, scale, pressure: Pressure::default() };
        self.mm.zones().iter().any(|zone| {
            let mut trial = zone.pageset_tuning(self.mm.machine(), Cpu(cpu));
            trial.decay(setting) >= trial.batch
        })
    }

    fn kernel_drained(&mut self, number_of_drain: u32, number: u32) {
        let drain = &self.story.drains[number_of_drain as usize];
        let pages = u64::from(drain.pages);
        let drains = &mut self.drains[drain.pageset.index()];
        match drain.cause {
            Cause::Free => {
                self.pages.drains.kernel.add(pages);
                let at = drains.at(number, drain.pages);
                drains.kernel.push(at);
            }
            Cause::Tick => self.kernel_ticked(number_of_drain, number),
            Cause::Kswapd => {
                self.pages.drains_by_kswapd.kernel.add(pages);
                drains.by_kswapd += i64::from(drain.pages);
                let behind = std::mem::take(&mut drains.by_kswapd);
                self.even_out(drain.pageset, behind, &drain.blocks);
            }
            Cause::All => {
                self.pages.drains_of_all.add(pages);
                self.even_out(drain.pageset, i64::from(drain.pages), &drain.blocks);
            }
        }
    }

    /// What a tick drained. Of another node's zone it also takes a batch when the lists were idle for three ticks, which
    /// began before the trace; and in the middle of a drain it finds more than mm has left, whose drains are not
    /// interrupted here.
    fn kernel_ticked(&mut self, number_of_drain: u32, number: u32) {
        let drain = &self.story.drains[number_of_drain as usize];
        let (zone, cpu) = (self.shape().zone(drain.pageset), self.shape().cpu(drain.pageset));
        let drains = &mut self.drains[drain.pageset.index()];
        let by_mm = drains.mm.last().filter(|last| last.step == self.last_tick[usize::from(cpu)]);
        let remote = Node(self.beside.before[zone].node) != self.beside.cpu_nodes[usize::from(cpu)];
        let decayed = if remote || drain.amid {
            drain.pages.min(by_mm.map_or(0, |last| last.pages))
        } else {
            drain.pages
        };
        if decayed > 0 {
            self.pages.drains.kernel.add(u64::from(decayed));
            let at = DrainAt { by_tick: true, ..drains.at(number, decayed) };
            drains.kernel.push(at);
        }
        let idle = drain.pages - decayed;
        if idle > 0 {
            self.pages.drains_of_idle.add(u64::from(idle));
            self.even_out(drain.pageset, i64::from(idle), &drain.blocks);
        }
    }

    /// Makes mm's lists as short as the kernel's after a drain that mm cannot foresee: `behind` pages shorter.
    fn even_out(&mut self, pageset: PagesetId, behind: i64, blocks: &[(ListId, u32)]) {
        let at = self.at(pageset);
        let mut left = behind;
        for (list, blocks) in blocks {
            let (order, kind) = (list.order(), list.migratetype());
            let pages = i64::from(order.pages());
            if left > 0 {
                let wanted = i64::from(*blocks).min(left / pages) as u32;
                left -= i64::from(self.mm.pages().steps().take_off_pageset(at, order, kind, wanted)) * pages;
            } else if left < 0 {
                let wanted = i64::from(*blocks).min(-left / pages) as u32;
                left += i64::from(self.mm.pages().steps().place_on_pageset(at, order, kind, wanted)) * pages;
            }
        }
        self.mm.machine().take_seen();
    }
}
