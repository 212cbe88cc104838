//! Each event's place in the life of its page: what happened to the page before and after, and when a page that was
//! freed together with others reached the pageset.

use crate::conform::read::trace_csv::{EventKind, PageTrace};

/// No such event.
pub(super) const NONE: u32 = u32::MAX;

/// Links between events of one page. `free_batched` and marks are not part of a page's life.
#[derive(Clone, Debug)]
pub(super) struct Lives {
    /// The event before, by event.
    pub(super) before: Vec<u32>,
    /// The event after, by event.
    pub(super) after: Vec<u32>,
    /// The first event, by page.
    pub(super) first: Vec<u32>,
    /// For a free that reached the pageset later: the `free_batched` that says so.
    pub(super) commit: Vec<u32>,
    /// For a `free_batched`: its free.
    pub(super) freed: Vec<u32>,
}

impl Lives {
    pub(super) fn of(trace: &PageTrace) -> Self {
        let events = trace.events.len();
        let mut lives = Self {
            before: vec![NONE; events],
            after: vec![NONE; events],
            first: vec![NONE; trace.pfns.len()],
            commit: vec![NONE; events],
            freed: vec![NONE; events],
        };
        let mut latest = vec![NONE; trace.pfns.len()];
        for (index, event) in trace.events.iter().enumerate() {
            let last = &mut latest[event.page as usize];
            match event.kind {
                EventKind::Mark => {}
                EventKind::FreeBatched => {
                    let free = *last;
                    let waits = free != NONE
                        && trace.events[free as usize].kind == EventKind::Free
                        && lives.commit[free as usize] == NONE;
                    if waits {
                        lives.commit[free as usize] = index as u32;
                        lives.freed[index] = free;
                    }
                }
                _ => {
                    lives.before[index] = *last;
                    match *last {
                        NONE => lives.first[event.page as usize] = index as u32,
                        last => lives.after[last as usize] = index as u32,
                    }
                    *last = index as u32;
                }
            }
        }
        lives
    }
}
