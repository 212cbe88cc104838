//! Pages that go from lists to the buddy lists, and why.

use super::super::life::NONE;
use super::super::lists::ListId;
use super::super::runs::list_of;
use super::super::story::{Cause, KernelDrain, What};
use super::{AFTER_FREE_US, Inference, TICK_GAP_US};
use crate::conform::read::trace_csv::{Event, EventKind};

impl Inference<'_> {
    pub(super) fn drain(&mut self, index: u32, event: &Event) {
        let list = match self.place[event.page as usize] {
            NONE => {
                let Some(list) = list_of(event, self.beside, self.story.shape) else { return };
                self.appears(list, event);
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
        let interrupted = past.drain.replace(drain).map(|drain| &self.story.drains[drain as usize]);
        let amid = interrupted.is_some_and(|drain| {
            drain.cause == Cause::Free && cause == Cause::Tick && drain.pageset == list.pageset()
        });
        if cause == Cause::Tick {
            let begins = past.tick_us.is_none_or(|last| event.time_us > last + TICK_GAP_US);
            past.tick_us = Some(event.time_us);
            if begins {
                self.step(index, What::Tick(event.cpu));
            }
        }
        let pageset = list.pageset();
        self.story.drains.push(KernelDrain { event: index, pageset, cause, amid, pages: 0, blocks: vec![] });
        self.step(index, What::Drained(drain));
        drain
    }

    fn cause(&self, event: &Event, list: ListId) -> Cause {
        let past = self.cpus[usize::from(event.cpu)];
        if self.story.shape.cpu(list.pageset()) != event.cpu {
            return Cause::All;
        }
        let going_on = past.drain.filter(|_| past.task == event.task);
        let going_on = going_on.map(|drain| &self.story.drains[drain as usize]);
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
}
