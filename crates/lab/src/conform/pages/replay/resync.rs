//! After a drain on which mm and the kernel disagree, mm is brought to where the kernel is, so that one cause is one
//! disagreement and not one with every drain that follows. What counts is how far a pageset is from `high`: the kernel's
//! was at it when it drained.

use mm::{Cpu, Tuning};

use super::super::counts::SLACK;
use super::super::lists::{ListId, PagesetId};
use super::super::story::{Cause, Story, What};
use super::Replay;

/// A drain that a free of the kernel's caused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// Blocks, and base pages, freed to the pageset before.
    frees: u32,
    freed: u32,
    /// Its number in the story.
    drain: u32,
}

/// The drains by frees that are still to come, by pageset.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    by_pageset: Vec<Vec<Expected>>,
    next: Vec<usize>,
    /// Base pages freed to each pageset when mm last drained and the kernel did not.
    taken_back: Vec<Option<u32>>,
}

impl Ahead {
    pub(super) fn of(story: &Story) -> Self {
        let pagesets = story.shape.pagesets();
        let mut before = vec![(0u32, 0u32); pagesets];
        let mut by_pageset = vec![vec![]; pagesets];
        for step in &story.steps {
            match step.what {
                What::Put(list, _) => {
                    let (frees, freed) = &mut before[list.pageset().index()];
                    *frees += 1;
                    *freed = freed.wrapping_add(list.order().pages());
                }
                What::Drained(number) => {
                    let drain = &story.drains[number as usize];
                    let (frees, freed) = before[drain.pageset.index()];
                    if drain.cause == Cause::Free {
                        by_pageset[drain.pageset.index()].push(Expected { frees, freed, drain: number });
                    }
                }
                _ => {}
            }
        }
        Self { by_pageset, next: vec![0; pagesets], taken_back: vec![None; pagesets] }
    }
}

impl Replay<'_> {
    /// After a free to `list` that made mm drain `pages`, 0 for none: takes back a drain that the kernel does not do, and
    /// does one that mm has let pass.
    pub(super) fn resync(&mut self, list: ListId, pages: u32) {
        let index = list.pageset().index();
        let (frees, freed) = (self.drains[index].frees, self.drains[index].freed);
        let (slack, blur) = (SLACK + self.blur, self.blur);
        let is_near = |expected: &&Expected| {
            expected.freed.abs_diff(freed) <= slack || expected.frees.abs_diff(frees) <= 1 + blur
        };
        let next = self.ahead.next[index];
        let expected = &self.ahead.by_pageset[index];
        if pages > 0 {
            let of_next = expected.get(next).as_ref().is_some_and(is_near);
            let of_last = next > 0 && expected.get(next - 1).as_ref().is_some_and(is_near);
            if of_next {
                self.ahead.next[index] += 1;
            } else if !of_last {
                // Where one follows the other, the zone is short of memory for mm and not for the kernel: the lists empty.
                let alone = self.ahead.taken_back[index].is_none_or(|last| freed - last > slack);
                self.ahead.taken_back[index] = Some(freed);
                if alone {
                    self.even_out(list.pageset(), -i64::from(pages), &[(list, pages)]);
                    self.set_high(list.pageset(), u32::MAX);
                }
            }
        } else if let Some(missed) = expected.get(next).filter(|next| next.freed + slack < freed).copied() {
            self.ahead.next[index] += 1;
            self.catch_up(missed, freed - missed.freed);
        }
    }

    /// Does a drain that mm let pass `since` freed pages ago.
    fn catch_up(&mut self, missed: Expected, since: u32) {
        let drain = &self.story.drains[missed.drain as usize];
        let (zone, cpu) = self.at(drain.pageset);
        let zone = &self.mm.zones()[usize::from(zone.0)];
        let now = zone.pageset_sizing(self.mm.machine(), cpu);
        // Whatever it was, the kernel's pageset was no smaller than `high` can be.
        let then = now.count.saturating_sub(since).max(now.high_min.min(now.high_max));
        let lacking = (then + since).saturating_sub(now.count);
        self.even_out(drain.pageset, i64::from(drain.pages) - i64::from(lacking), &drain.blocks);
        self.set_high(drain.pageset, then);
    }

    /// Gives a pageset's `high` a value, within its bounds.
    fn set_high(&self, pageset: PagesetId, high: u32) {
        let (zone, Cpu(cpu)) = self.at(pageset);
        let zone = &self.mm.zones()[usize::from(zone.0)];
        let now = zone.pageset_tuning(self.mm.machine(), Cpu(cpu));
        zone.set_pageset_tuning(self.mm.machine(), Cpu(cpu), Tuning { high, ..now });
    }
}
