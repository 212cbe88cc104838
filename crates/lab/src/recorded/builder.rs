//! From a recording to a workload: each task's operations in order, its own time between them, its sleeps; frees matched
//! to their allocations. `object_steps` has the part of slab objects.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use mm::{Cpu, Order, Pfn, TaskId, ZoneKind};
use trace::{Event, EventKind, Gfp, ReadError, Reader, SlabPages, SwitchState, slab_pages};

use super::matching::{Matching, Returned};
use super::objects::Objects;
use super::timing::{Clock, HostCosts};
use crate::recorded::ops::{Action, BlockId, Kind, Op, Recorded, TaskOps, TaskRef, UrgencyKey};

/// The most blocks that the kernel frees together (a folio batch).
const FREE_BATCH_MAX: usize = 31;

/// Reads a recording into a workload called `name`. `costs` are those of the machine that was recorded.
///
/// # Errors
/// An event that is written wrongly. What is damaged or missing is left out, counted and said.
pub fn from_recording<R: Read + Seek>(
    reader: &mut Reader<R>,
    name: &str,
    costs: HostCosts,
) -> Result<Recorded, ReadError> {
    let tasks = reader.tasks().iter();
    let tasks =
        tasks.map(|task| NamedTask { name: task.name.clone(), in_workload: task.in_workload }).collect();
    let slab_pages = slab_pages(reader)?;
    let mut builder = Builder::new(name, tasks, costs).with_slabs(reader.names().to_vec(), slab_pages);
    let sampled = reader.outcome().and_then(|end| end.sampled.as_ref());
    builder.workload.omissions.page_events_sampled_away = sampled.map_or(0, |of| of.page_events_counted);
    if let Some(damage) = reader.damage() {
        builder.workload.omissions.unreadable_chunks = damage.chunks_at_least();
        builder.workload.damage = Some(damage.to_string());
    }
    for event in reader.events()? {
        builder.event(&event?);
    }
    Ok(builder.finish())
}

/// A free that waits to be seen as one of a batch or alone.
#[derive(Clone, Debug)]
struct Batch {
    blocks: Vec<BlockId>,
    batched: bool,
}

/// A task of the recording, on its way to becoming one of the workload.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) clock: Clock,
    ops: TaskOps,
    pending: Batch,
    /// Its index in the workload, once it has done something there.
    place: Option<TaskRef>,
    /// The CPU that it was on last.
    pub(super) cpu: Option<Cpu>,
}

/// A task of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedTask {
    /// Its name.
    pub name: String,
    /// Whether it is of the workload; others are only followed for what they free.
    pub in_workload: bool,
}

impl NamedTask {
    /// A task of the workload.
    pub fn inside(name: &str) -> Self {
        Self { name: name.to_owned(), in_workload: true }
    }

    /// One that is not.
    pub fn outside(name: &str) -> Self {
        Self { name: name.to_owned(), in_workload: false }
    }
}

/// Builds a workload event by event.
#[derive(Debug)]
pub struct Builder {
    pub(super) workload: Recorded,
    pub(super) costs: HostCosts,
    pub(super) tracks: Vec<Track>,
    in_workload: Vec<bool>,
    pub(super) outsiders: Track,
    matching: Matching,
    pub(super) objects: Objects,
    /// Page events that are the recorded kernel's slab allocator's.
    slab_pages: SlabPages,
    kinds: BTreeMap<Kind, u16>,
    /// Whether any event of the workload has been seen.
    begun: bool,
}

impl Builder {
    /// For a recording of these tasks.
    pub fn new(name: &str, tasks: Vec<NamedTask>, costs: HostCosts) -> Self {
        let in_workload = tasks.iter().map(|task| task.in_workload).collect();
        let tracks = tasks.into_iter().map(|task| Track::new(task.name)).collect();
        let mut outsiders = Track::new("outsiders".to_owned());
        outsiders.ops.outsiders = true;
        Self {
            workload: Recorded { name: name.to_owned(), ..Recorded::default() },
            costs,
            tracks,
            in_workload,
            outsiders,
            matching: Matching::default(),
            objects: Objects::default(),
            slab_pages: SlabPages::default(),
            kinds: BTreeMap::new(),
            begun: false,
        }
    }

    /// For a recording with slab events: caches are called so, and these page events are slabs'.
    #[must_use]
    pub fn with_slabs(mut self, names: Vec<String>, slab_pages: SlabPages) -> Self {
        self.objects = Objects::new(names, slab_pages.reclaimable.clone());
        self.slab_pages = slab_pages;
        self
    }

    /// The next event.
    pub fn event(&mut self, event: &Event) {
        let number = self.workload.recorded_events;
        self.workload.recorded_events += 1;
        if let EventKind::Lost { count } = event.kind {
            self.workload.omissions.lost_events += count;
            return;
        }
        let task = event.task.0 as usize;
        let in_workload = self.in_workload.get(task).copied().unwrap_or(false);
        if self.is_slab_page_event(number, &event.kind) {
            self.slab_page_event(event, in_workload.then_some(task));
            return;
        }
        if !in_workload {
            self.outsider_event(event);
            return;
        }
        self.begun = true;
        self.tracks[task].cpu = Some(event.cpu);
        if let EventKind::Switch { next, state } = event.kind {
            self.tracks[task].clock.leave(event.time.0, state, &self.costs);
            self.switch_in(event, next);
            return;
        }
        self.tracks[task].clock.event(event.time.0, &event.kind, &self.costs);
        match event.kind {
            EventKind::PageAlloc { pfn, order, migratetype, gfp } => {
                self.flush(task);
                let kind = self.kind(order, migratetype, gfp);
                let (block, displaced) = self.matching.alloc(pfn, order);
                self.workload.omissions.implied_frees += displaced.len() as u64;
                for block in displaced {
                    self.outsider_frees(event.time.0, None, &[block]);
                }
                self.step(task, Action::Alloc { block, kind });
            }
            EventKind::PageFree { pfn, order } => self.free(task, pfn, order),
            EventKind::PageFreeBatched { .. } => self.tracks[task].pending.batched = true,
            EventKind::PageAllocFailed { .. } => self.workload.omissions.failed_requests += 1,
            EventKind::Fork { child, .. } => self.fork(task, child),
            EventKind::SlabAlloc { .. } => self.object_alloc(task, event),
            EventKind::SlabFree { object, .. } => self.object_free(task, object),
            _ => {}
        }
    }

    fn is_slab_page_event(&self, number: u64, kind: &EventKind) -> bool {
        let is_page_event = matches!(kind, EventKind::PageAlloc { .. } | EventKind::PageFree { .. });
        is_page_event && self.slab_pages.contains(number)
    }

    /// Somebody else's event: a switch to a task of the workload, or a free of a page or an object of the workload's.
    fn outsider_event(&mut self, event: &Event) {
        match event.kind {
            EventKind::Switch { next, .. } => self.switch_in(event, next),
            EventKind::SlabAlloc { .. } | EventKind::SlabFree { .. } => self.outsiders_object(event),
            EventKind::PageFree { pfn, order } if self.matching.knows(pfn) => {
                let (split, blocks) = taken_apart(self.matching.free(pfn, order));
                self.outsider_frees(event.time.0, split, &blocks);
            }
            _ => {}
        }
    }

    /// Somebody outside of the workload frees. That is so long after the last such free is waiting, not work.
    fn outsider_frees(&mut self, time: u64, split: Option<Action>, blocks: &[BlockId]) {
        let track = &mut self.outsiders;
        let slept = track.clock.enter(time);
        track.push_sleep(slept);
        if let Some(split) = split {
            track.push(split);
        }
        track.push_free(blocks);
        track.clock.leave(time, SwitchState::Sleeping, &HostCosts::NONE);
        self.workload.operations += 1;
    }

    fn switch_in(&mut self, event: &Event, next: TaskId) {
        let next = next.0 as usize;
        if !self.in_workload.get(next).copied().unwrap_or(false) {
            return;
        }
        self.tracks[next].cpu = Some(event.cpu);
        let slept = self.tracks[next].clock.enter(event.time.0);
        if slept > 0 {
            self.flush(next);
            self.tracks[next].push_own();
            self.tracks[next].push_sleep(slept);
        }
    }

    fn fork(&mut self, task: usize, child: TaskId) {
        let child = child.0 as usize;
        if !self.in_workload.get(child).copied().unwrap_or(false) {
            return;
        }
        self.flush(task);
        let place = self.place(child);
        self.tracks[child].ops.started_by_other = true;
        self.step(task, Action::Start(place));
    }

    fn free(&mut self, task: usize, pfn: Pfn, order: Order) {
        match self.matching.free(pfn, order) {
            Returned::Unknown => self.workload.omissions.frees_without_allocation += 1,
            Returned::Whole(block) => {
                self.place(task);
                let full = self.tracks[task].pending.blocks.len() == FREE_BATCH_MAX;
                // Frees that were seen to be batched are complete; so is a lone one once another follows.
                if full || self.tracks[task].pending.batched {
                    self.flush(task);
                }
                self.tracks[task].pending.blocks.push(block);
                self.workload.operations += 1;
            }
            other => {
                self.flush(task);
                let (split, blocks) = taken_apart(other);
                if let Some(split) = split {
                    self.step(task, split);
                }
                self.tracks[task].push_free(&blocks);
                self.workload.operations += 1;
            }
        }
    }

    /// A step of `task`, with its own time before it.
    fn step(&mut self, task: usize, action: Action) {
        self.place(task);
        self.tracks[task].push(action);
        if matches!(action, Action::Alloc { .. }) {
            self.workload.operations += 1;
        }
    }

    /// Writes down the frees that were pending: as a batch if they were one, else one by one.
    pub(super) fn flush(&mut self, task: usize) {
        let track = &mut self.tracks[task];
        let pending = std::mem::replace(&mut track.pending, Batch { blocks: vec![], batched: false });
        if pending.batched {
            track.push_free(&pending.blocks);
        } else {
            for block in pending.blocks {
                track.push_free(&[block]);
            }
        }
    }

    /// The task's place in the workload; it gets one with its first step.
    pub(super) fn place(&mut self, task: usize) -> TaskRef {
        if let Some(place) = self.tracks[task].place {
            return place;
        }
        let place = TaskRef(self.workload.tasks.len() as u32);
        self.workload.tasks.push(TaskOps::default());
        self.tracks[task].place = Some(place);
        place
    }

    fn kind(&mut self, order: Order, migratetype: mm::MigrateType, gfp: Gfp) -> u16 {
        let kind = Kind {
            order,
            migratetype,
            highest: highest_zone(gfp),
            urgency: urgency(gfp),
            zero: gfp.contains(Gfp::ZERO),
            this_node: gfp.contains(Gfp::THISNODE),
        };
        let next = self.kinds.len() as u16;
        *self.kinds.entry(kind).or_insert(next)
    }

    /// The workload, complete.
    pub fn finish(mut self) -> Recorded {
        for task in 0..self.tracks.len() {
            self.flush(task);
        }
        for track in self.tracks {
            let Some(place) = track.place else { continue };
            self.workload.tasks[place.0 as usize] = track.finish();
        }
        if !self.outsiders.ops.ops.is_empty() {
            self.workload.tasks.push(self.outsiders.ops);
        }
        let mut kinds: Vec<(u16, Kind)> = self.kinds.into_iter().map(|(kind, index)| (index, kind)).collect();
        kinds.sort_unstable();
        self.workload.kinds = kinds.into_iter().map(|(_, kind)| kind).collect();
        self.workload.blocks = self.matching.blocks();
        (self.workload.caches, self.workload.objects) = self.objects.finish();
        self.workload
    }
}

impl Track {
    fn new(name: String) -> Self {
        let ops = TaskOps { name, ..TaskOps::default() };
        let pending = Batch { blocks: vec![], batched: false };
        Self { clock: Clock::NEW, ops, pending, place: None, cpu: None }
    }

    pub(super) fn push(&mut self, action: Action) {
        let own_ns = self.own_below_a_step();
        self.ops.ops.push(Op { own_ns, action });
    }

    /// Own time since the last step as far as a step can hold it; steps before it hold the rest.
    fn own_below_a_step(&mut self) -> u32 {
        let mut own = self.clock.take_own();
        while own > u64::from(u32::MAX) {
            self.ops.ops.push(Op { own_ns: u32::MAX, action: Action::Run });
            own -= u64::from(u32::MAX);
        }
        own as u32
    }

    pub(super) fn push_own(&mut self) {
        let own_ns = self.own_below_a_step();
        if own_ns > 0 {
            self.ops.ops.push(Op { own_ns, action: Action::Run });
        }
    }

    pub(super) fn push_sleep(&mut self, slept: u64) {
        let mut left = slept;
        while left > 0 {
            let part = left.min(u64::from(u32::MAX));
            self.ops.ops.push(Op { own_ns: 0, action: Action::Sleep(part as u32) });
            left -= part;
        }
    }

    fn push_free(&mut self, blocks: &[BlockId]) {
        for batch in blocks.chunks(FREE_BATCH_MAX) {
            let first = self.ops.frees.len() as u32;
            self.ops.frees.extend_from_slice(batch);
            self.push(Action::Free { first, count: batch.len() as u8 });
        }
    }

    fn finish(mut self) -> TaskOps {
        self.push_own();
        self.ops
    }
}

/// The step that splits a block, if one must, and the blocks that are then given back.
fn taken_apart(returned: Returned) -> (Option<Action>, Vec<BlockId>) {
    match returned {
        Returned::Whole(block) => (None, vec![block]),
        Returned::Split { block, parts, order, pages } => {
            (Some(Action::Split { block, parts, order }), pages)
        }
        Returned::Pages(pages) => (None, pages),
        Returned::Unknown => (None, vec![]),
    }
}

/// The highest zone that a request with these flags may use; a machine without HighMem has none to give.
fn highest_zone(gfp: Gfp) -> ZoneKind {
    if gfp.contains(Gfp::DMA) {
        ZoneKind::Dma
    } else if gfp.contains(Gfp::DMA32) {
        ZoneKind::Dma32
    } else if gfp.contains(Gfp::HIGHMEM) && gfp.contains(Gfp::MOVABLE) {
        ZoneKind::Movable
    } else if gfp.contains(Gfp::HIGHMEM) {
        ZoneKind::HighMem
    } else {
        ZoneKind::Normal
    }
}

fn urgency(gfp: Gfp) -> UrgencyKey {
    if gfp.contains(Gfp::DIRECT_RECLAIM) {
        UrgencyKey::Waits
    } else if gfp.contains(Gfp::HIGH) {
        UrgencyKey::Atomic
    } else if gfp.contains(Gfp::KSWAPD_RECLAIM) {
        UrgencyKey::NoWait
    } else {
        UrgencyKey::Never
    }
}
