//! A run retold in counts alone: mm's own tuning of each pageset, and how many blocks are on each list, without any
//! pages. It takes milliseconds, so that hidden figures can be found by trying.

use mm::{Node, Policy, Pressure, Setting, Tuning};

use super::hidden::Hidden;
use super::lists::{LISTS, ListId, PagesetId, Shape, list_order};
use super::story::{Actor, Cause, KernelDrain, Story, What};
use crate::conform::read::beside::Beside;
use crate::conform::read::trace_csv::PageTrace;

/// A drain, on either side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DrainAt {
    /// The step after which it came.
    pub(super) step: u32,
    /// Blocks that were freed to the pageset before.
    pub(super) frees: u32,
    /// Base pages of those.
    pub(super) freed: u32,
    /// Base pages.
    pub(super) pages: u32,
    /// A vmstat tick drained, not a free.
    pub(super) by_tick: bool,
}

/// Requests of a list, or pages freed to a pageset, that two events may be apart and still be the same: a batch.
pub(super) const SLACK: u32 = 64;

impl DrainAt {
    /// Whether the two can be the same: by the same cause, a batch of pages or a block apart.
    pub(super) fn is_near(&self, other: &Self) -> bool {
        let near = self.freed.abs_diff(other.freed) <= SLACK || self.frees.abs_diff(other.frees) <= 1;
        near && self.by_tick == other.by_tick
    }
}

/// What came of retelling a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Refills whose list was not empty, or whose size was another.
    pub(super) wrong_refills: u32,
    /// Blocks taken from a list that should have been empty.
    pub(super) missing: u32,
    /// Drains by the kernel and by the model, by pageset.
    pub(super) kernel: Vec<Vec<DrainAt>>,
    pub(super) model: Vec<Vec<DrainAt>>,
    /// Each pageset's tuning at the end.
    pub(super) tunings: Vec<Tuning>,
    /// What `alloc_factor` must have been at the beginning.
    pub(super) alloc_factor: Vec<u8>,
}

impl Told {
    /// Whether there are refills or drains that the model has otherwise, or not, or too many.
    pub(super) fn leaves_something(&self) -> bool {
        let apart = |(kernel, model): (&DrainAt, &DrainAt)| !kernel.is_near(model);
        let differs = |(kernel, model): (&Vec<DrainAt>, &Vec<DrainAt>)| {
            kernel.len() != model.len() || kernel.iter().zip(model).any(apart)
        };
        self.wrong_refills > 0 || self.missing > 0 || self.kernel.iter().zip(&self.model).any(differs)
    }
}

/// What a run is retold with.
#[derive(Clone, Copy)]
pub(super) struct Telling<'a> {
    pub(super) trace: &'a PageTrace,
    pub(super) beside: &'a Beside,
    pub(super) story: &'a Story,
    pub(super) policy: &'a Policy,
    /// Each pageset's sizes when the trace began, `high` as zoneinfo says.
    pub(super) sizes: &'a [Tuning],
    /// `vm.pcp_batch_scale_max` at the beginning.
    pub(super) scale: u32,
}

#[derive(Clone, Copy, Default)]
struct Counted {
    tuning: Tuning,
    lists: [u32; LISTS],
    frees: u32,
    freed: u32,
    refilled: bool,
}

struct Zone {
    free: i64,
    low_mark: i64,
    high_mark: i64,
    below_high: bool,
}

struct Counts<'a> {
    telling: Telling<'a>,
    scale: u32,
    pagesets: Vec<Counted>,
    zones: Vec<Zone>,
    /// The step of each CPU's last tick.
    last_tick: Vec<u32>,
    told: Told,
}

/// Retells a run.
pub(super) fn tell(telling: Telling<'_>, hidden: &Hidden) -> Told {
    let shape = telling.story.shape;
    let mut counts = Counts::begin(telling, hidden);
    let mut ticks = hidden.ticks().into_iter().peekable();
    for (number, step) in telling.story.steps.iter().enumerate() {
        let time_us = telling.trace.events[step.event as usize].time_us;
        while let Some(tick) = ticks.next_if(|tick| tick.at_us <= time_us) {
            if !(tick.idle && counts.would_drain(tick.cpu)) {
                counts.tick(tick.cpu, number as u32);
            }
        }
        counts.step(number as u32, step.what);
    }
    counts.told.tunings = (0..shape.pagesets()).map(|index| counts.pagesets[index].tuning).collect();
    counts.told
}

impl<'a> Counts<'a> {
    fn begin(telling: Telling<'a>, hidden: &Hidden) -> Self {
        let story = telling.story;
        let pagesets = (0..story.shape.pagesets()).map(|index| {
            let pageset = PagesetId(index as u32);
            let mut counted = Counted { tuning: telling.sizes[index], ..Counted::default() };
            counted.tuning.alloc_factor = hidden.alloc_factor[index];
            counted.tuning.count = 0;
            for (list, blocks) in
                initial_lists(story, pageset, telling.sizes[index].count, hidden.more(pageset))
            {
                counted.lists[list.within()] += blocks;
                counted.tuning.count += blocks << list.order().get();
            }
            counted
        });
        let zones = telling.beside.before.iter().map(|zone| Zone {
            free: zone.free as i64,
            low_mark: (zone.low + zone.protection.last().copied().unwrap_or(0)) as i64,
            high_mark: (zone.high + zone.protection.last().copied().unwrap_or(0)) as i64,
            below_high: false,
        });
        Self {
            telling,
            scale: telling.scale,
            pagesets: pagesets.collect(),
            zones: zones.collect(),
            last_tick: vec![u32::MAX; story.shape.cpus],
            told: Told {
                kernel: vec![vec![]; story.shape.pagesets()],
                model: vec![vec![]; story.shape.pagesets()],
                alloc_factor: hidden.alloc_factor.clone(),
                ..Told::default()
            },
        }
    }

    fn shape(&self) -> Shape {
        self.telling.story.shape
    }

    fn setting(&self, pageset: PagesetId, actor: Actor) -> Setting<'a> {
        let below_high = self.zones[self.shape().zone(pageset)].below_high;
        let pressure = Pressure { below_high, reclaim_active: actor == Actor::Kswapd };
        Setting { rules: self.telling.policy.rules(), scale: self.scale, pressure }
    }

    fn step(&mut self, number: u32, what: What) {
        match what {
            What::Take(list, refill) => {
                self.note_request(list.pageset());
                self.pagesets[list.pageset().index()].tuning.allocating(self.telling.policy.rules());
                self.take(list, refill);
            }
            What::TakeUnseen(list, refill) => self.take(list, refill),
            What::TakeBuddy(zone, order) => self.zones[usize::from(zone)].free -= i64::from(order.pages()),
            What::PutBuddy(zone, order) => self.zones[usize::from(zone)].free += i64::from(order.pages()),
            What::Put(list, actor) => self.put(list, actor, number),
            What::Tick(cpu) => self.tick(cpu, number),
            What::Drained(drain) => self.kernel_drained(drain, number),
            What::Knob(scale) => self.scale = u32::from(scale),
        }
    }

    fn note_request(&mut self, pageset: PagesetId) {
        let zone = self.shape().zone(pageset);
        let zone = &mut self.zones[zone];
        zone.below_high |= zone.free <= zone.high_mark;
        if zone.free <= zone.low_mark {
            // It found too few free pages there at first, and came by all others.
            for other in &mut self.zones {
                other.below_high |= other.free <= other.high_mark;
            }
        }
    }

    fn take(&mut self, list: ListId, refill: u32) {
        if refill > 0 {
            self.refill(list, refill - 1);
        }
        let counted = &mut self.pagesets[list.pageset().index()];
        if counted.lists[list.within()] == 0 {
            self.told.missing += 1;
            return;
        }
        counted.lists[list.within()] -= 1;
        counted.tuning.count -= list.order().pages();
    }

    fn refill(&mut self, list: ListId, refill: u32) {
        let pageset = list.pageset();
        let setting = self.setting(pageset, Actor::Task);
        let taken = self.telling.story.taken(refill);
        let order = list.order();
        let counted = &mut self.pagesets[pageset.index()];
        let left = std::mem::take(&mut counted.lists[list.within()]);
        counted.tuning.count -= left << order.get();
        if !counted.refilled && order == mm::Order::ZERO {
            counted.refilled = true;
            if let Some(factor) = grown(&counted.tuning, setting, &taken) {
                counted.tuning.alloc_factor = factor;
                let before = if counted.frees > 7 { 0 } else { factor << counted.frees };
                self.told.alloc_factor[pageset.index()] = before.min(setting.scale as u8);
            }
        }
        let blocks = counted.tuning.refill_size(setting, order);
        if left > 0 || !taken.contains(&blocks) {
            self.told.wrong_refills += 1;
        }
        let known = self.telling.story.refills[refill as usize].blocks();
        let blocks = if taken.contains(&blocks) { blocks } else { known };
        counted.lists[list.within()] += blocks;
        counted.tuning.count += blocks << order.get();
        self.zones[self.telling.story.shape.zone(pageset)].free -= i64::from(blocks << order.get());
    }

    fn put(&mut self, list: ListId, actor: Actor, number: u32) {
        let pageset = list.pageset();
        let setting = self.setting(pageset, actor);
        let counted = &mut self.pagesets[pageset.index()];
        counted.frees += 1;
        counted.freed = counted.freed.wrapping_add(list.order().pages());
        counted.lists[list.within()] += 1;
        let pages = counted.tuning.freed(setting, list.order());
        if pages > 0 && actor == Actor::Task {
            self.drain(pageset, pages, Some(list.within()), number);
            let zone = self.shape().zone(pageset);
            let zone = &mut self.zones[zone];
            zone.below_high &= zone.free <= zone.high_mark;
        }
    }

    /// The model drains `pages`, round-robin from list `freed_to`, or from the first if it is a tick that drains.
    fn drain(&mut self, pageset: PagesetId, pages: u32, freed_to: Option<usize>, number: u32) {
        let counted = &mut self.pagesets[pageset.index()];
        let pages = pages.min(counted.tuning.count);
        let (mut drained, mut list) = (0, freed_to.unwrap_or(0));
        for _ in 0..LISTS {
            let size = list_order(list).pages();
            let blocks = counted.lists[list].min((pages - drained).div_ceil(size));
            counted.lists[list] -= blocks;
            drained += blocks * size;
            if drained >= pages {
                break;
            }
            list = (list + 1) % LISTS;
        }
        counted.tuning.count = counted.tuning.count.saturating_sub(drained);
        let at = DrainAt {
            step: number,
            frees: counted.frees,
            freed: counted.freed,
            pages: drained,
            by_tick: freed_to.is_none(),
        };
        self.told.model[pageset.index()].push(at);
        let zone = self.shape().zone(pageset);
        self.zones[zone].free += i64::from(drained);
    }

    fn tick(&mut self, cpu: u16, number: u32) {
        self.last_tick[usize::from(cpu)] = number;
        for zone in 0..self.shape().zones {
            let pageset = self.shape().pageset(zone, cpu);
            let setting = self.setting(pageset, Actor::Task);
            let pages = self.pagesets[pageset.index()].tuning.decay(setting);
            if pages > 0 {
                self.drain(pageset, pages, None, number);
            }
        }
    }

    fn would_drain(&self, cpu: u16) -> bool {
        let pagesets = (0..self.shape().zones).map(|zone| self.shape().pageset(zone, cpu));
        let mut decayed = pagesets.map(|pageset| {
            let mut trial = self.pagesets[pageset.index()].tuning;
            trial.decay(self.setting(pageset, Actor::Task)) >= trial.batch
        });
        decayed.any(|drains| drains)
    }

    /// What the kernel drained: compared if mm has the cause, else taken over.
    fn kernel_drained(&mut self, drain: u32, number: u32) {
        let drain = &self.telling.story.drains[drain as usize];
        let foreseen = match drain.cause {
            Cause::Free => drain.pages,
            Cause::Tick => self.foreseen(drain),
            Cause::Kswapd | Cause::All => 0,
        };
        let counted = &mut self.pagesets[drain.pageset.index()];
        if foreseen > 0 {
            let at = DrainAt {
                step: number,
                frees: counted.frees,
                freed: counted.freed,
                pages: foreseen,
                by_tick: drain.cause == Cause::Tick,
            };
            self.told.kernel[drain.pageset.index()].push(at);
        }
        let mut left = drain.pages - foreseen;
        for (list, blocks) in &drain.blocks {
            let blocks = counted.lists[list.within()].min(*blocks).min(left >> list.order().get());
            left -= blocks << list.order().get();
            counted.lists[list.within()] -= blocks;
            counted.tuning.count = counted.tuning.count.saturating_sub(blocks << list.order().get());
        }
        let zone = self.telling.story.shape.zone(drain.pageset);
        self.zones[zone].free += i64::from(drain.pages - foreseen);
    }

    /// The part of a tick's drain that came of a falling `high`. A tick also takes a batch from idle lists of another
    /// node's zone; and one in the middle of a drain finds more than there is after it.
    fn foreseen(&self, drain: &KernelDrain) -> u32 {
        let (zone, cpu) = (self.shape().zone(drain.pageset), usize::from(self.shape().cpu(drain.pageset)));
        if Node(self.telling.beside.before[zone].node) == self.telling.beside.cpu_nodes[cpu] && !drain.amid {
            return drain.pages;
        }
        let model = self.told.model[drain.pageset.index()].last();
        model.filter(|last| last.step == self.last_tick[cpu]).map_or(0, |last| last.pages.min(drain.pages))
    }
}

/// The `alloc_factor` with which a first refill takes as many blocks as it did, if 0 is not the one.
fn grown(tuning: &Tuning, setting: Setting<'_>, taken: &std::ops::RangeInclusive<u32>) -> Option<u8> {
    let fits = |factor: u8| {
        let mut trial = Tuning { alloc_factor: factor, ..*tuning };
        taken.contains(&trial.refill_size(setting, mm::Order::ZERO))
    };
    if fits(tuning.alloc_factor) {
        return None;
    }
    (0..=setting.scale as u8).find(|factor| fits(*factor))
}

/// What was on a pageset's lists at the beginning: what came to light, and the rest of `count` on a list that was never
/// refilled.
pub(super) fn initial_lists(story: &Story, pageset: PagesetId, count: u32, more: i32) -> Vec<(ListId, u32)> {
    let lists = (0..LISTS).map(|within| pageset.list(within));
    let mut initial: Vec<(ListId, u32)> =
        lists.map(|list| (list, story.initial[list.index()])).filter(|(_, blocks)| *blocks > 0).collect();
    let seen: u32 = initial.iter().map(|(list, blocks)| blocks << list.order().get()).sum();
    let rest = i64::from(count) + i64::from(more) - i64::from(seen);
    let mut single = [2, 0, 1].into_iter().map(|within| pageset.list(within));
    if let (Some(list), 1..) = (single.find(|list| !story.refilled[list.index()]), rest) {
        initial.push((list, rest as u32));
    }
    initial
}
