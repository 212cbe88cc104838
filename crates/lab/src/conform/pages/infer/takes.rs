//! Pages that leave lists: refills and the requests behind them, allocations, and what the bulk allocator takes unseen.

use super::super::life::NONE;
use super::super::lists::ListId;
use super::super::runs::{PageRun, list_of};
use super::super::story::{KernelRefill, Step, What};
use super::Inference;
use crate::conform::read::trace_csv::{Event, EventKind};

impl Inference<'_> {
    pub(super) fn refill(&mut self, index: u32, event: &Event) {
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
        let (seen, silent) = (run.events.len() as u32, self.silent_claims(&run));
        let (list, revealed, revealed_near) = (run.list, 0, 0);
        self.story.refills.push(KernelRefill { event: index, list, seen, revealed, revealed_near, silent });
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
    fn was_direct(&mut self, run: &PageRun, event: &Event) -> bool {
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
    fn take_for_refill(&mut self, run: &PageRun, index: u32, link: u32) {
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
            self.story.refills[link as usize - 1].revealed += 1;
        }
        self.take_off(page);
    }

    pub(super) fn alloc(&mut self, index: u32, event: &Event, zone: usize) {
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
            self.appears(list, event);
        }
        self.step(index, What::Take(list, 0));
        self.take_off(event.page);
    }

    /// A page that nothing put on `list` was on it at the beginning, or came with a refill unseen.
    pub(super) fn appears(&mut self, list: ListId, event: &Event) {
        if !self.story.refilled[list.index()] {
            self.story.initial[list.index()] += 1;
            return;
        }
        let neighbour = event.pfn.add(event.order.pages());
        let beside = self.trace.pfns.binary_search(&neighbour).map_or(NONE, |page| self.with_refill[page]);
        let of_list = |refill: u32| refill != NONE && self.story.refills[refill as usize].list == list;
        let refill = if of_list(beside) { beside } else { self.last_refill[list.index()] };
        self.story.refills[refill as usize].revealed += 1;
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
    fn silent_claims(&self, run: &PageRun) -> u32 {
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
}
