//! A session's budget: what there was so far, and what is saved where that is too much.

use std::io;

use super::Session;
use crate::capture::accessed::AccessSampler;
use crate::capture::budget::{Saving, SoFar};
use crate::meta::Sampled;
use crate::stream::record::Origin;

impl Session<'_> {
    /// Whether recording costs more than it may.
    pub(super) fn look_at_budget(&mut self) -> io::Result<()> {
        let so_far = self.so_far();
        let time = self.assembler.counts().last_time;
        let saving = self.budget.as_mut().and_then(|budget| budget.look(time, so_far));
        let text = match saving {
            None => return Ok(()),
            Some(Saving::PagesOneIn(one_in)) => {
                self.events.sample_pages(one_in);
                format!("record.page_events=1/{one_in}")
            }
            Some(Saving::NoAccesses) => {
                let mut sampler = self.accessed.take();
                self.accessed_cost = sampler.as_mut().and_then(AccessSampler::stop);
                self.looks.extend(sampler.as_ref().into_iter().flat_map(AccessSampler::rounds));
                "record.accesses=off".into()
            }
        };
        self.assembler.mark(Origin { time, pid: 0, tid: 0, cpu: 0 }, &text)
    }

    /// What there was so far, for the budget.
    fn so_far(&self) -> SoFar {
        let counts = self.assembler.counts();
        let counts = self.assembler.counts_at(counts.last_time);
        let counted = self.events.counted().events - self.counted_before.events;
        SoFar { events: counts.events, counted, cpu_ns: counts.cpu_ns }
    }

    /// What came of the budget.
    pub(super) fn sampled(&self) -> Option<Sampled> {
        let user_pages = self.events.counted().user_pages - self.counted_before.user_pages;
        self.budget.as_ref().map(|budget| budget.account(self.so_far(), user_pages))
    }
}
