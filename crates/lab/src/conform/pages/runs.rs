//! Refills, as a trace shows them: runs of pages taken from the buddy lists on one CPU, and the allocation that each was
//! for.

use super::life::{Lives, NONE};
use super::lists::{ListId, Shape};
use crate::conform::read::beside::Beside;
use crate::conform::read::trace_csv::{Event, EventKind, PageTrace};

/// A run of pages taken under one hold of the zone lock.
#[derive(Clone, Debug)]
pub(super) struct PageRun {
    /// The list that they went to.
    pub(super) list: ListId,
    pub(super) events: Vec<u32>,
    /// The allocation that caused it; [`NONE`] for one of the bulk allocator, which leaves no event.
    pub(super) request: u32,
    /// Frees between the run and that allocation, on the account of the same task: they came from interrupts, found the
    /// pageset locked, and went to the buddy lists. (Another task can only run once the pageset is unlocked.)
    pub(super) shut_out: Vec<u32>,
}

/// The runs of a trace.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub(super) all: Vec<PageRun>,
    /// The run of each event, [`NONE`] for most.
    pub(super) of_event: Vec<u32>,
}

/// A run on its CPU that waits for its allocation.
#[derive(Clone, Copy)]
struct Open {
    run: u32,
    /// The next page may still belong to it.
    growing: bool,
}

impl Runs {
    pub(super) fn find(trace: &PageTrace, beside: &Beside, shape: Shape, lives: &Lives) -> Self {
        let mut runs = Self { all: vec![], of_event: vec![NONE; trace.events.len()] };
        let mut open: Vec<Vec<Open>> = vec![vec![]; shape.cpus];
        for (index, event) in trace.events.iter().enumerate() {
            let Some(open) = open.get_mut(usize::from(event.cpu)) else { continue };
            let index = index as u32;
            match event.kind {
                EventKind::Refill => runs.extend(index, event, list_of(event, beside, shape), open),
                EventKind::Alloc => {
                    let list = list_of(event, beside, shape);
                    stop_growing(open);
                    if let Some(at) = open.iter().position(|open| Some(runs.list(*open)) == list) {
                        let run = open.swap_remove(at).run;
                        runs.close(run, index, trace, lives);
                    }
                }
                EventKind::Free => {
                    for open in open.iter_mut() {
                        open.growing = false;
                        let run = &mut runs.all[open.run as usize];
                        if trace.events[run.events[0] as usize].task == event.task {
                            run.shut_out.push(index);
                        }
                    }
                }
                _ => stop_growing(open),
            }
        }
        for run in &mut runs.all {
            if run.request == NONE {
                run.shut_out.clear();
            }
        }
        runs
    }

    fn list(&self, open: Open) -> ListId {
        self.all[open.run as usize].list
    }

    fn extend(&mut self, index: u32, event: &Event, list: Option<ListId>, open: &mut Vec<Open>) {
        let Some(list) = list else { return };
        debug_assert_eq!(event.kind, EventKind::Refill);
        let grows = open.iter().position(|open| open.growing && self.list(*open) == list);
        let run = if let Some(at) = grows {
            open[at].run
        } else {
            // A list that is refilled again had its first refill used up unseen.
            open.retain(|open| self.all[open.run as usize].list != list);
            stop_growing(open);
            let run = self.all.len() as u32;
            self.all.push(PageRun { list, events: vec![], request: NONE, shut_out: vec![] });
            open.push(Open { run, growing: true });
            run
        };
        self.all[run as usize].events.push(index);
        self.of_event[index as usize] = run;
    }

    /// The next allocation from the list of `run` took a page of it, or one that came with it unseen; else the page that
    /// the refill was for had gone without an event.
    fn close(&mut self, run: u32, index: u32, trace: &PageTrace, lives: &Lives) {
        let before = lives.before[index as usize];
        let of_run = before != NONE && self.of_event[before as usize] == run;
        let from_nowhere = before == NONE || trace.events[before as usize].kind == EventKind::Drain;
        if of_run || from_nowhere {
            self.all[run as usize].request = index;
        }
    }
}

fn stop_growing(open: &mut [Open]) {
    for open in open {
        open.growing = false;
    }
}

/// The list of an event's own CPU for its order and type.
pub(super) fn list_of(event: &Event, beside: &Beside, shape: Shape) -> Option<ListId> {
    let zone = beside.zone_of(event.pfn)?;
    shape.list(shape.pageset(zone, event.cpu), event.order, event.migratetype)
}
