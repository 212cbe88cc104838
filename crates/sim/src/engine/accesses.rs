//! A task's stretch of modelled accesses, piece by piece: each takes time as any computing does, so that others run
//! meanwhile, and loads that they change count from the next piece on.

use super::Core;
use crate::accesses::AccessMix;
use crate::lines::Stretch;

impl Core {
    /// The running task makes the accesses of `mix`.
    pub(crate) fn access(&self, mix: AccessMix<'_>) {
        let mut stretch = Stretch::new(mix);
        while !stretch.is_over() {
            let time = self.lines.borrow_mut().go_on(&mut stretch, self.toucher(), &self.costs);
            self.meter.borrow_mut().memory(self.span(), time);
            self.compute(time);
        }
        self.lines.borrow_mut().end_stretch(&stretch, &self.costs);
    }
}
