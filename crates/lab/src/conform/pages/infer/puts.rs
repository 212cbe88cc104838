//! Pages that are freed: to which list, or past it.

use super::super::life::NONE;
use super::super::story::{Actor, Step, What, pageblock};
use super::Inference;
use crate::conform::read::trace_csv::{Event, EventKind};

impl Inference<'_> {
    pub(super) fn free(&mut self, index: u32, event: &Event, zone: usize) {
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
    pub(super) fn put(&mut self, index: u32, free: u32, zone: usize) {
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
}
