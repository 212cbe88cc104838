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

mod drains;
mod puts;
mod takes;

use std::collections::HashMap;

use super::life::{Lives, NONE};
use super::lists::{ListId, Shape};
use super::runs::Runs;
use super::story::{Step, Story, What, pageblock};
use crate::conform::read::beside::Beside;
use crate::conform::read::trace_csv::{EventKind, PageTrace};

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
    inference.story.add_up_revealed();
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
    /// The task that was last heard of.
    task: u16,
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
        past.task = event.task;
    }

    /// Whether the text beside the trace knows the CPU of an event.
    fn has_cpu(&self, event: u32) -> bool {
        usize::from(self.trace.events[event as usize].cpu) < self.story.shape.cpus
    }

    fn step(&mut self, event: u32, what: What) {
        let page = self.trace.events[event as usize].page;
        self.story.steps.push(Step { event, page, what });
    }

    /// What each change of the knob set it to is not said: it shows in the largest refill that follows.
    fn name_knobs(&mut self) {
        let mut largest = 0u32;
        for at in (0..self.story.steps.len()).rev() {
            match self.story.steps[at].what {
                What::Take(list, link) | What::TakeUnseen(list, link)
                    if link > 0 && list.order() == mm::Order::ZERO =>
                {
                    let blocks = self.story.refills[link as usize - 1].blocks();
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
