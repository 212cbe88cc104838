//! What mm did beside what the kernel did, put into words where they differ.

use super::super::counts::DrainAt;
use super::super::lists::{ListId, PagesetId};
use super::Replay;
use super::matching::{self, RefillMatch};

impl Replay<'_> {
    pub(super) fn judge_refill(&mut self, matched: RefillMatch) {
        match matched {
            RefillMatch::Both { kernel, mm } => {
                let refill = &self.story.refills[kernel as usize];
                let (known, order) = (refill.blocks(), refill.list.order());
                if self.story.taken(kernel).contains(&mm) {
                    // Pages that never came to light, or came with a neighbour, are known of now.
                    let pages = &mut self.pages.refills.kernel.pages;
                    *pages = (*pages + u64::from(mm << order.get()))
                        .saturating_sub(u64::from(known << order.get()));
                    self.outcome.agree();
                } else {
                    self.outcome.differ(format!("{}: blocks", self.name_refill(kernel)), known, mm);
                }
            }
            RefillMatch::Kernel { kernel } => {
                let blocks = self.story.refills[kernel as usize].blocks();
                self.outcome.differ(format!("{}: blocks", self.name_refill(kernel)), blocks, 0u32);
            }
            RefillMatch::Mm { list, mm } => {
                let what =
                    format!("a refill of {}, which the kernel did not do: blocks", self.name_list(list));
                self.outcome.differ(what, 0u32, mm);
            }
            RefillMatch::Excused => {}
        }
    }

    fn judge_drains(&mut self, pageset: PagesetId) {
        let drains = std::mem::take(&mut self.drains[pageset.index()]);
        for (kernel, mm) in matching::pair_drains(&drains.kernel, &drains.mm, self.blur) {
            let pages = |side: Option<DrainAt>| side.map_or(0, |drain| drain.pages);
            let same = kernel.zip(mm).is_some_and(|(kernel, mm)| matching::is_same(kernel, mm, self.blur));
            if same {
                self.outcome.agree();
                continue;
            }
            let step = kernel.or(mm).map_or(0, |drain| drain.step);
            let what = format!("line {}: a drain of {}: pages", self.line(step), self.name_pageset(pageset));
            self.outcome.differ(what, pages(kernel), pages(mm));
        }
    }

    pub(super) fn finish(mut self) {
        for matched in self.refills.finish() {
            self.judge_refill(matched);
        }
        for index in 0..self.drains.len() {
            self.judge_drains(PagesetId(index as u32));
        }
        if self.starved > 0 {
            self.outcome.notes.push(format!("{} requests found no block left in mm's zone", self.starved));
        }
        if self.story.homeless > 0 {
            self.outcome
                .notes
                .push(format!("{} events of frames in no zone were left out", self.story.homeless));
        }
        if self.beside.lost > 0 {
            let note =
                format!("the kernel lost {} events: what it shows is not the whole run", self.beside.lost);
            self.outcome.notes.push(note);
        }
        self.outcome.pages = Some(self.pages);
    }

    /// The line of the trace that a step came from.
    fn line(&self, step: u32) -> u32 {
        let step = self.story.steps.get(step as usize);
        step.map_or(0, |step| self.trace.events[step.event as usize].line)
    }

    fn name_pageset(&self, pageset: PagesetId) -> String {
        let zone = &self.beside.before[self.shape().zone(pageset)];
        format!("cpu {}'s pageset of node {} zone {}", self.shape().cpu(pageset), zone.node, zone.name)
    }

    fn name_list(&self, list: ListId) -> String {
        let kind = list.migratetype().name();
        format!("{} ({}, {kind})", self.name_pageset(list.pageset()), list.order())
    }

    pub(super) fn name_refill(&self, refill: u32) -> String {
        let refill = &self.story.refills[refill as usize];
        let line = self.trace.events[refill.event as usize].line;
        format!("line {line}: a refill of {}", self.name_list(refill.list))
    }
}
