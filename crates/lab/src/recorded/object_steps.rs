//! What slab events become: objects handed out and freed, each on the task that does it.
//!
//! A free on the time of a task of the workload is that task's, softirqs in its time included. One on somebody else's
//! time (the idle task's, RCU's, a kernel thread's) goes to the task that got the object, if it was on this very CPU last
//! and is away from it now: what was a free on the object's own CPU stays one, on whatever machine the replay runs. All
//! others go to the outsiders. Grace periods are in the recorded times already.

use mm::Nanos;
use trace::{Event, EventKind, SwitchState};

use super::objects::{Asked, Freed, Held, is_large};
use super::ops::Action;
use super::timing::{HostCosts, SlabPages};
use crate::recorded::builder::Builder;

impl Builder {
    /// A page event of the recorded kernel's slab allocator, in the midst of what `task` does, if it is of the workload.
    pub(super) fn slab_page_event(&mut self, event: &Event, task: Option<usize>) {
        self.workload.omissions.page_events_of_slabs += 1;
        if let Some(task) = task {
            let pages = match event.kind {
                EventKind::PageFree { .. } => SlabPages::GivenBack,
                _ => SlabPages::Taken,
            };
            self.tracks[task].clock.slab_pages(event.time.0, pages, &self.costs);
        }
    }

    /// `task` of the workload gets an object.
    pub(super) fn object_alloc(&mut self, task: usize, event: &Event) {
        let Some((address, asked)) = asked(&event.kind) else { return };
        if address == 0 {
            self.workload.omissions.failed_requests += 1;
            return;
        }
        if is_large(asked) {
            self.objects.alloc_large(address);
            return;
        }
        let Some(cache) = self.objects.cache(asked, &mut self.workload.omissions) else { return };
        self.flush(task);
        let (object, displaced) = self.objects.alloc(address, task);
        if let Some(held) = displaced {
            self.workload.omissions.implied_object_frees += 1;
            if held.owner == task || !self.free_while_away(event, held) {
                self.object_step(task, Action::FreeObject(held.object));
            }
        }
        self.object_step(task, Action::AllocObject { object, cache });
    }

    /// `task` of the workload frees an object.
    pub(super) fn object_free(&mut self, task: usize, address: u64) {
        match self.objects.free(address) {
            Freed::Object(held) => {
                self.flush(task);
                self.object_step(task, Action::FreeObject(held.object));
            }
            Freed::Nothing => {}
            Freed::Unknown => self.workload.omissions.object_frees_without_allocation += 1,
        }
    }

    /// Somebody else gets or frees an object.
    pub(super) fn outsiders_object(&mut self, event: &Event) {
        let held = match event.kind {
            EventKind::SlabFree { object, .. } => match self.objects.free(object) {
                Freed::Object(held) => held,
                Freed::Nothing | Freed::Unknown => return,
            },
            EventKind::SlabAlloc { object, .. } => match self.objects.forget(object) {
                Some(held) => {
                    self.workload.omissions.implied_object_frees += 1;
                    held
                }
                None => return,
            },
            _ => return,
        };
        if !self.free_while_away(event, held) {
            self.outsiders_free(event.time, held);
        }
    }

    /// The task that got the object frees it, if it was on the event's CPU last and is not on it now.
    fn free_while_away(&mut self, event: &Event, held: Held) -> bool {
        if self.tracks[held.owner].cpu != Some(event.cpu) {
            return false;
        }
        let Some(slept) = self.tracks[held.owner].clock.while_away(event.time.0) else { return false };
        self.flush(held.owner);
        if slept > 0 {
            self.tracks[held.owner].push_own();
            self.tracks[held.owner].push_sleep(slept);
        }
        self.object_step(held.owner, Action::FreeObject(held.object));
        true
    }

    fn outsiders_free(&mut self, time: Nanos, held: Held) {
        let track = &mut self.outsiders;
        let slept = track.clock.enter(time.0);
        track.push_sleep(slept);
        track.push(Action::FreeObject(held.object));
        track.clock.leave(time.0, SwitchState::Sleeping, &HostCosts::NONE);
        self.workload.operations += 1;
    }

    fn object_step(&mut self, task: usize, action: Action) {
        self.place(task);
        self.tracks[task].push(action);
        self.workload.operations += 1;
    }
}

/// The address of an object that is handed out, and what was asked for.
fn asked(kind: &EventKind) -> Option<(u64, Asked)> {
    match *kind {
        EventKind::SlabAlloc { object, cache, requested, allocated, gfp, node: _ } => {
            Some((object, Asked { cache, requested, allocated, gfp }))
        }
        _ => None,
    }
}
