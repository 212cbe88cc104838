//! A task's stretch of modelled accesses, piece by piece. Each piece takes time as computing does, so other tasks run
//! meanwhile. Load that they add or remove counts from the next piece on.

use super::Core;
use crate::accesses::AccessMix;
use crate::lines::Stretch;
use crate::time::Ticks;

impl Core {
    /// The running task makes the accesses of `mix`.
    pub(crate) fn access(&self, mix: AccessMix<'_>) {
        self.go_through(Stretch::new(mix));
    }

    /// The same in pieces of `longest`.
    pub(crate) fn access_coarsely(&self, mix: AccessMix<'_>, longest: Ticks) {
        self.go_through(Stretch::coarse(mix, longest));
    }

    fn go_through(&self, mut stretch: Stretch<'_>) {
        while !stretch.is_over() {
            let time = self.lines.borrow_mut().go_on(&mut stretch, self.toucher(), &self.costs);
            self.meter.borrow_mut().memory(self.span(), time);
            self.compute(time);
        }
        self.lines.borrow_mut().end_stretch(&stretch, &self.costs);
    }
}
