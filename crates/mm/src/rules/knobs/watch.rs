//! What a knob did. A rule that reads a knob decides something; on a machine that watches ([`Machine::WATCHES_KNOBS`]) it
//! also says whether the knob's default would have decided the same. On other machines nothing of this is compiled.
//!
//! Only knobs that somebody set are watched. Where a knob works through something that is computed ahead (marks, sizes
//! of page lists, limits of slab caches), the value that the default would have given is kept beside it and compared
//! where it decides: `zone_watch`, `pcp::twin`, `slab::watch`.

use super::{Knob, KnobUse, Knobs, Margin};
use crate::ground::Machine;

impl Knobs {
    /// Decides by the value of `knob`, and tells a machine that watches what the default would have decided. `decision`
    /// must have no effect: it may be asked twice.
    #[inline]
    pub fn decide<M: Machine, D: PartialEq>(
        &self,
        machine: &M,
        knob: Knob,
        decision: impl Fn(u64) -> D,
    ) -> D {
        let made = decision(self.get(knob));
        if M::WATCHES_KNOBS && self.is_set(knob) {
            machine.knob_used(knob, KnobUse::of(&made, &decision(self.default_of(knob))));
        }
        made
    }

    /// Decides by comparing `seen` with the mark that follows from the value of `knob`: `decision` gets the mark.
    #[inline]
    pub fn decide_by<M: Machine, D: PartialEq>(
        &self,
        machine: &M,
        (knob, seen): (Knob, u64),
        mark: impl Fn(u64) -> u64,
        decision: impl Fn(u64) -> D,
    ) -> D {
        let in_force = mark(self.get(knob));
        let made = decision(in_force);
        if M::WATCHES_KNOBS && self.is_set(knob) {
            let default_mark = mark(self.default_of(knob));
            let margin = Margin { seen, mark: in_force, default_mark };
            machine.knob_used(knob, KnobUse::of(&made, &decision(default_mark)).with(margin));
        }
        made
    }
}
