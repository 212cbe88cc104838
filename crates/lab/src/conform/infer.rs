//! From a trace's events to a [`Story`]: each page is followed through lists and hands.
//!
//! - What was on a list at the beginning comes to light by look-ahead: it is allocated or drained before the list's first
//!   refill, and nothing in the trace put it there.
//! - After a list's first refill everything on it is known, for a refill finds it empty. A page that still appears from
//!   nowhere came with the last refill: a pageblock claimed whole gives its first page without an event.
//! - The list of a freed page is the type under which it is next allocated or drained, or else its pageblock's.
//! - A free went to the buddy lists if the page is next taken from there, or if it fell between a refill and its
//!   allocation: then the pageset was locked.
//! - Lists are last in, first out. A page above one that is taken, and that is freed next, was taken before by the bulk
//!   allocator, which leaves no event (kernel stacks).

use std::collections::HashMap;

use super::beside::Beside;
use super::life::{Lives, NONE};
use super::lists::{ListId, Shape};
use super::runs::{Run, Runs, list_of};
use super::story::{Actor, Cause, KernelDrain, KernelRefill, Step, Story, What, pageblock};
use super::trace_csv::{Event, EventKind, PageTrace};

/// Kworker drains further apart than this are of two ticks.
const TICK_GAP_US: u64 = 50_000;
/// What a kworker drains later than this after a free of its own has nothing to do with that.
const AFTER_FREE_US: u64 = 10_000;

/// Follows every page of `trace`.
pub(super) fn infer(trace: &PageTrace, beside: &Beside, shape: Shape) -> Story {
    let lives = Lives::of(trace);
    let runs = Runs::find(trace, beside, shape, &lives);
    let mut shut_out = vec![false; trace.events.len()];
    for &free in runs.all.iter().flat_map(|run| &run.shut_out) {
        shut_out[free as usize] = true;
    }
    let pages = trace.pfns.len();
    let mut inference = Inference {
        trace,
        beside,
        lives,
        runs,
        shut_out,
        types: block_types(trace),
        place: vec![NONE; pages],
        pushed: vec![NONE; pages],
        owned: vec![false; pages],
        latest: vec![NONE; pages],
        with_refill: vec![NONE; pages],
        last_refill: vec![NONE; shape.lists()],
        stacks: vec![vec![]; shape.lists()],
        direct: vec![false; trace.events.len()],
        done: vec![false; trace.events.len()],
        cpus: vec![CpuPast::default(); shape.cpus],
        story: Story {
            shape,
            steps: Vec::with_capacity(trace.events.len()),
            refills: vec![],
            drains: vec![],
            initial: vec![0; shape.lists()],
            refilled: vec![false; shape.lists()],
            in_use: vec![[0; 11]; shape.zones],
            homeless: 0,
        },
    };
    for index in 0..trace.events.len() as u32 {
        inference.event(index);
    }
    inference.name_knobs();
    inference.story
}

/// The first type under which a page of each pageblock goes through the zone lock.
fn block_types(trace: &PageTrace) -> HashMap<u32, u8> {
    let mut types = HashMap::new();
    for event in &trace.events {
        if matches!(event.kind, EventKind::Refill | EventKind::Drain) {
            types.entry(pageblock(event.pfn)).or_insert(event.migratetype);
        }
    }
    types
}

/// What a CPU did last.
#[derive(Clone, Copy, Debug, Default)]
struct CpuPast {
    /// The last event that was no drain.
    last: Option<u32>,
    /// The drain that the next page may belong to.
    drain: Option<u32>,
    /// When its vmstat tick was last seen to drain.
    tick_us: Option<u64>,
    /// When it was last heard of.
    at_us: u64,
}

struct Inference<'a> {
    trace: &'a PageTrace,
    beside: &'a Beside,
    lives: Lives,
    runs: Runs,
    shut_out: Vec<bool>,
    /// The type of a pageblock, as of now.
    types: HashMap<u32, u8>,
    /// The list that each page is on, [`NONE`] for none.
    place: Vec<u32>,
    /// The event that put it there.
    pushed: Vec<u32>,
    /// Pages that the replay has a block for.
    owned: Vec<bool>,
    /// The last event of each page so far.
    latest: Vec<u32>,
    /// The refill that each page came with last.
    with_refill: Vec<u32>,
    last_refill: Vec<u32>,
    /// Pages with the events that put them there, the top last; those that left in the meantime are still in it.
    stacks: Vec<Vec<(u32, u32)>>,
    /// Refill events that were for a request itself, whose pageset was locked.
    direct: Vec<bool>,
    /// Allocations that were dealt with at their refill.
    done: Vec<bool>,
    cpus: Vec<CpuPast>,
    story: Story,
}

impl Inference<'_> {
    fn event(&mut self, index: u32) {
        let event = self.trace.events[index as usize];
        if event.kind == EventKind::Mark {
            self.step(index, What::Knob(0));
            return;
        }
        let Some(zone) = self.beside.zone_of(event.pfn).filter(|_| self.has_cpu(index)) else {
            self.story.homeless += 1;
            return;
        };
        match event.kind {
            EventKind::Refill => self.refill(index, &event),
            EventKind::Alloc => self.alloc(index, &event, zone),
            EventKind::Free => self.free(index, &event, zone),
            EventKind::FreeBatched => {
                let freed = self.lives.freed[index as usize];
                if freed != NONE && self.has_cpu(freed) {
                    self.put(index, freed, zone);
                }
            }
            EventKind::Drain => self.drain(index, &event),
            EventKind::ZoneLocked | EventKind::Mark => {}
        }
        if event.kind != EventKind::FreeBatched {
            self.latest[event.page as usize] = index;
        }
        if matches!(event.kind, EventKind::Refill | EventKind::Drain) {
            self.types.insert(pageblock(event.pfn), event.migratetype);
        }
        let past = &mut self.cpus[usize::from(event.cpu)];
        if event.kind != EventKind::Drain {
            *past = CpuPast { last: Some(index), drain: None, ..*past };
        }
        past.at_us = event.time_us;
    }

    /// Whether the text beside the trace knows the CPU of an event.
    fn has_cpu(&self, event: u32) -> bool {
        usize::from(self.trace.events[event as usize].cpu) < self.story.shape.cpus
    }

    fn step(&mut self, event: u32, what: What) {
        let page = self.trace.events[event as usize].page;
        self.story.steps.push(Step { event, page, what });
    }

    fn refill(&mut self, index: u32, event: &Event) {
        let number = self.runs.of_event[index as usize];
        if number == NONE || self.runs.all[number as usize].events[0] != index {
            return;
        }
        let run = self.runs.all[number as usize].clone();
        if self.was_direct(&run, event) {
            self.direct[index as usize] = true;
            return;
        }
        self.settle(run.list, None, index);
        let refill = self.story.refills.len() as u32;
        let (blocks, silent) = (run.events.len() as u32, self.silent_claims(&run));
        self.story.refills.push(KernelRefill { event: index, list: run.list, blocks, silent });
        self.story.refilled[run.list.index()] = true;
        self.last_refill[run.list.index()] = refill;
        for &event in run.events.iter().rev() {
            let page = self.trace.events[event as usize].page;
            self.push(run.list, page, event);
            self.with_refill[page as usize] = refill;
        }
        self.take_for_refill(&run, index, refill + 1);
    }

    /// A single page that its request got although the list was not empty: the pageset was locked.
    fn was_direct(&mut self, run: &Run, event: &Event) -> bool {
        if run.events.len() != 1 || run.request == NONE {
            return false;
        }
        let request = &self.trace.events[run.request as usize];
        request.page == event.page && self.has_more(run.list)
    }

    /// Whether a page on `list` will be allocated from it or drained.
    fn has_more(&self, list: ListId) -> bool {
        let stack = self.stacks[list.index()].iter().rev();
        let mut live = stack.filter(|(page, event)| self.is_on(list, *page, *event));
        live.any(|(_, event)| matches!(self.next_kind(*event), Some(EventKind::Alloc | EventKind::Drain)))
    }

    /// The step of the allocation that a refill was for.
    fn take_for_refill(&mut self, run: &Run, index: u32, link: u32) {
        if run.request == NONE {
            // Of the bulk allocator: the first page of the refill, if that is freed without being seen allocated.
            let top = self.stacks[run.list.index()].last().copied();
            let unseen =
                top.filter(|(_, event)| matches!(self.next_kind(*event), None | Some(EventKind::Free)));
            let page = unseen.map_or(NONE, |(page, _)| page);
            self.story.steps.push(Step { event: index, page, what: What::TakeUnseen(run.list, link) });
            if page != NONE {
                self.take_off(page);
            }
            return;
        }
        self.done[run.request as usize] = true;
        let page = self.trace.events[run.request as usize].page;
        self.story.steps.push(Step { event: index, page, what: What::Take(run.list, link) });
        if self.place[page as usize] == NONE {
            self.story.refills[link as usize - 1].blocks += 1;
        }
        self.take_off(page);
    }

    fn alloc(&mut self, index: u32, event: &Event, zone: usize) {
        if self.done[index as usize] {
            return;
        }
        let page = event.page as usize;
        let before = self.lives.before[index as usize];
        let list = list_of(event, self.beside, self.story.shape);
        let by_request = before != NONE
            && (self.direct[before as usize]
                || self.trace.events[before as usize].kind == EventKind::ZoneLocked);
        let Some(list) = list.filter(|_| !by_request) else {
            self.step(index, What::TakeBuddy(zone as u16, event.order));
            self.owned[page] = true;
            return;
        };
        if self.place[page] == list.index() as u32 {
            self.settle(list, Some(event.page), index);
        } else if self.place[page] == NONE {
            self.from_nowhere(list, event);
        }
        self.step(index, What::Take(list, 0));
        self.take_off(event.page);
    }

    /// A page that nothing put on `list` was on it at the beginning, or came with a refill unseen.
    fn from_nowhere(&mut self, list: ListId, event: &Event) {
        if !self.story.refilled[list.index()] {
            self.story.initial[list.index()] += 1;
            return;
        }
        let neighbour = event.pfn.add(event.order.pages());
        let beside = self.trace.pfns.binary_search(&neighbour).map_or(NONE, |page| self.with_refill[page]);
        let of_list = |refill: u32| refill != NONE && self.story.refills[refill as usize].list == list;
        let refill = if of_list(beside) { beside } else { self.last_refill[list.index()] };
        self.story.refills[refill as usize].blocks += 1;
    }

    fn free(&mut self, index: u32, event: &Event, zone: usize) {
        if self.place[event.page as usize] != NONE {
            // It left its list unseen, and nothing showed it before.
            let list = self.list_at(event.page);
            self.step(index, What::TakeUnseen(list, 0));
            self.take_off(event.page);
        }
        if self.lives.commit[index as usize] == NONE {
            self.put(index, index, zone);
        }
    }

    /// The block freed at `free` reaches its pageset, or the buddy lists, at `index`.
    fn put(&mut self, index: u32, free: u32, zone: usize) {
        let event = self.trace.events[free as usize];
        let page = event.page as usize;
        if !std::mem::replace(&mut self.owned[page], false) && !self.is_part(&event) {
            self.story.in_use[zone][event.order.index()] += 1;
        }
        let after = self.lives.after[free as usize];
        let next = (after != NONE).then(|| self.trace.events[after as usize]);
        let shape = self.story.shape;
        let list =
            shape.list(shape.pageset(zone, event.cpu), event.order, self.type_of_freed(free, next.as_ref()));
        let past_pageset = match next {
            Some(next) => match next.kind {
                EventKind::Refill | EventKind::ZoneLocked => true,
                EventKind::Alloc => next.cpu != event.cpu,
                EventKind::Drain => false,
                _ => self.shut_out[free as usize],
            },
            None => self.shut_out[free as usize],
        };
        let Some(list) = list.filter(|_| !past_pageset) else {
            self.story.steps.push(Step {
                event: index,
                page: event.page,
                what: What::PutBuddy(zone as u16, event.order),
            });
            return;
        };
        let kswapd = self.trace.tasks[usize::from(event.task)].starts_with("kswapd");
        let actor = if kswapd { Actor::Kswapd } else { Actor::Task };
        self.story.steps.push(Step { event: index, page: event.page, what: What::Put(list, actor) });
        self.push(list, event.page, free);
    }

    fn type_of_freed(&self, free: u32, next: Option<&Event>) -> u8 {
        if let Some(next) = next.filter(|next| matches!(next.kind, EventKind::Alloc | EventKind::Drain)) {
            return next.migratetype;
        }
        let event = &self.trace.events[free as usize];
        if let Some(&known) = self.types.get(&pageblock(event.pfn)) {
            return known;
        }
        match self.lives.before[free as usize] {
            NONE => mm::MigrateType::Movable as u8,
            before => self.trace.events[before as usize].migratetype,
        }
    }

    /// Whether a block is part of a larger one that was allocated in the trace and is now freed piecemeal.
    fn is_part(&self, event: &Event) -> bool {
        let larger = event.order.up().map(|order| order.to(mm::Order::MAX)).into_iter().flatten();
        let mut heads = larger.map(|order| (order, event.pfn.align_down(order)));
        heads.any(|(order, head)| {
            let Ok(page) = self.trace.pfns.binary_search(&head) else { return false };
            let latest = self.latest[page];
            let covers = |event: &Event| event.kind == EventKind::Alloc && event.order >= order;
            latest != NONE && covers(&self.trace.events[latest as usize])
        })
    }

    fn drain(&mut self, index: u32, event: &Event) {
        let list = match self.place[event.page as usize] {
            NONE => {
                let Some(list) = list_of(event, self.beside, self.story.shape) else { return };
                self.from_nowhere(list, event);
                list
            }
            _ => self.list_at(event.page),
        };
        self.place[event.page as usize] = NONE;
        let cause = self.cause(event, list);
        let past = self.cpus[usize::from(event.cpu)];
        let soon = event.time_us < past.at_us + TICK_GAP_US;
        let same = |drain: &u32| {
            let drain = &self.story.drains[*drain as usize];
            drain.pageset == list.pageset() && drain.cause == cause && (soon || cause != Cause::Tick)
        };
        let drain = past.drain.filter(same).unwrap_or_else(|| self.open_drain(index, event, list, cause));
        let drain = &mut self.story.drains[drain as usize];
        drain.pages += event.order.pages();
        match drain.blocks.last_mut() {
            Some((of, blocks)) if *of == list => *blocks += 1,
            _ => drain.blocks.push((list, 1)),
        }
    }

    fn open_drain(&mut self, index: u32, event: &Event, list: ListId, cause: Cause) -> u32 {
        let past = &mut self.cpus[usize::from(event.cpu)];
        let drain = self.story.drains.len() as u32;
        past.drain = Some(drain);
        if cause == Cause::Tick {
            let begins = past.tick_us.is_none_or(|last| event.time_us > last + TICK_GAP_US);
            past.tick_us = Some(event.time_us);
            if begins {
                self.step(index, What::Tick(event.cpu));
            }
        }
        let pageset = list.pageset();
        self.story.drains.push(KernelDrain { event: index, pageset, cause, pages: 0, blocks: vec![] });
        self.step(index, What::Drained(drain));
        drain
    }

    fn cause(&self, event: &Event, list: ListId) -> Cause {
        let past = self.cpus[usize::from(event.cpu)];
        if self.story.shape.cpu(list.pageset()) != event.cpu {
            return Cause::All;
        }
        let going_on = past.drain.map(|drain| &self.story.drains[drain as usize]);
        if let Some(drain) =
            going_on.filter(|drain| drain.pageset == list.pageset() || drain.cause == Cause::Tick)
        {
            return drain.cause;
        }
        let last = past.last.map(|last| &self.trace.events[last as usize]);
        let after_free = last.is_some_and(|last| {
            last.task == event.task && matches!(last.kind, EventKind::Free | EventKind::FreeBatched)
        });
        let soon = event.time_us < past.at_us + AFTER_FREE_US;
        let task = self.trace.tasks[usize::from(event.task)].as_str();
        match (after_free, task) {
            (_, task) if task.starts_with("kswapd") => Cause::Kswapd,
            (true, task) if soon || !task.starts_with("kworker") => Cause::Free,
            (_, task) if task.starts_with("kworker") => Cause::Tick,
            _ => Cause::All,
        }
    }

    /// Pages above `page` on `list`, or all of them, that are freed next or never heard of again, have left it unseen.
    fn settle(&mut self, list: ListId, page: Option<u32>, index: u32) {
        let mut stack = std::mem::take(&mut self.stacks[list.index()]);
        let mut stay = vec![];
        while let Some(&(above, event)) = stack.last() {
            if Some(above) == page && self.is_on(list, above, event) {
                break;
            }
            stack.pop();
            if !self.is_on(list, above, event) {
                continue;
            }
            if matches!(self.next_kind(event), None | Some(EventKind::Free)) {
                self.story.steps.push(Step { event: index, page: above, what: What::TakeUnseen(list, 0) });
                self.take_off(above);
            } else if page.is_some() {
                stay.push((above, event));
            } else {
                self.place[above as usize] = NONE;
            }
        }
        if page.is_some() {
            stack.pop();
        }
        stack.extend(stay.into_iter().rev());
        self.stacks[list.index()] = stack;
    }

    /// First blocks of pageblocks that the run claimed whole: the kernel has no event for them. Those that come to light
    /// later are not among them.
    fn silent_claims(&self, run: &Run) -> u32 {
        let order = run.list.order();
        let size = order.pages();
        let mut silent = 0;
        let mut previous = None;
        for &event in &run.events {
            let pfn = self.trace.events[event as usize].pfn;
            let second = pfn.0 % mm::ids::PAGEBLOCK_PAGES == size && previous != Some(pfn.0 - size);
            if second && self.was_free_for_good(mm::Pfn(pfn.0 - size)) {
                silent += 1;
            }
            previous = Some(pfn.0);
        }
        silent
    }

    /// Whether nothing is known of a frame, or only that it is on the buddy lists and never heard of again.
    fn was_free_for_good(&self, pfn: mm::Pfn) -> bool {
        let Ok(page) = self.trace.pfns.binary_search(&pfn) else { return true };
        let latest = self.latest[page];
        latest != NONE
            && self.trace.events[latest as usize].kind == EventKind::Drain
            && self.lives.after[latest as usize] == NONE
    }

    /// What each change of the knob set it to is not said: it shows in the largest refill that follows.
    fn name_knobs(&mut self) {
        let mut largest = 0u32;
        for at in (0..self.story.steps.len()).rev() {
            match self.story.steps[at].what {
                What::Take(list, link) | What::TakeUnseen(list, link)
                    if link > 0 && list.order() == mm::Order::ZERO =>
                {
                    let blocks = self.story.refills[link as usize - 1].blocks;
                    largest = largest.max(blocks.div_ceil(self.batch(list)));
                }
                What::Knob(_) => {
                    let scale = largest.max(1).next_power_of_two().ilog2().min(6);
                    self.story.steps[at].what = What::Knob(scale as u8);
                    largest = 0;
                }
                _ => {}
            }
        }
    }

    fn batch(&self, list: ListId) -> u32 {
        let zone = &self.beside.before[self.story.shape.zone(list.pageset())];
        zone.pagesets.first().map_or(1, |pageset| pageset.batch.max(1))
    }

    fn push(&mut self, list: ListId, page: u32, event: u32) {
        self.place[page as usize] = list.index() as u32;
        self.pushed[page as usize] = event;
        self.stacks[list.index()].push((page, event));
    }

    /// `page` is in somebody's hands. Its entry in the stack stays behind.
    fn take_off(&mut self, page: u32) {
        self.place[page as usize] = NONE;
        self.owned[page as usize] = true;
    }

    fn is_on(&self, list: ListId, page: u32, event: u32) -> bool {
        self.place[page as usize] == list.index() as u32 && self.pushed[page as usize] == event
    }

    fn list_at(&self, page: u32) -> ListId {
        ListId::from_index(self.place[page as usize])
    }

    /// What happens to a page after `event`.
    fn next_kind(&self, event: u32) -> Option<EventKind> {
        let after = self.lives.after[event as usize];
        (after != NONE).then(|| self.trace.events[after as usize].kind)
    }
}
