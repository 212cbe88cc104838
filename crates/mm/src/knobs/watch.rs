//! What a knob did. A rule that reads a knob decides something; on a machine that watches ([`Machine::WATCHES_KNOBS`]) it
//! also says whether the knob's default would have decided the same. On other machines nothing of this is compiled.
//!
//! Only knobs that somebody set are watched. Where a knob works through something that is computed ahead (marks, sizes
//! of page lists, limits of slab caches), the value that the default would have given is kept beside it and compared
//! where it decides: `zone_watch`, `pcp::twin`, `slab::watch`.

use super::{Knob, Knobs};
use crate::machine::Machine;

/// What came of one reading of a knob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnobUse {
    /// Whether the knob's default would have decided the same.
    pub verdict: Verdict,
    /// How near the decision was, where it compares figures.
    pub margin: Option<Margin>,
}

/// What the knob's default would have decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The same.
    Same,
    /// Something else.
    Otherwise,
}

/// What a decision compares: a figure that was seen with a mark that follows from the knob, both in the unit of the
/// mechanism (pages, for marks and limits of memory).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Margin {
    /// What was seen.
    pub seen: u64,
    /// The mark in force.
    pub mark: u64,
    /// The mark with the knob's default.
    pub default_mark: u64,
}

impl Margin {
    /// How far what was seen is from where the decision would turn: from the nearer of the two marks.
    pub fn distance(&self) -> u64 {
        self.seen.abs_diff(self.mark).min(self.seen.abs_diff(self.default_mark))
    }
}

impl KnobUse {
    /// `made` was decided; the default would have decided `by_default`.
    pub fn of<D: PartialEq>(made: &D, by_default: &D) -> Self {
        let verdict = if made == by_default { Verdict::Same } else { Verdict::Otherwise };
        Self { verdict, margin: None }
    }

    /// The same, with what was compared.
    #[must_use]
    pub fn with(self, margin: Margin) -> Self {
        Self { margin: Some(margin), ..self }
    }
}

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
            machine.knob_used(knob, KnobUse::of(&made, &decision(knob.spec().default)));
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
            let default_mark = mark(knob.spec().default);
            let margin = Margin { seen, mark: in_force, default_mark };
            machine.knob_used(knob, KnobUse::of(&made, &decision(default_mark)).with(margin));
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_that_to_the_nearer_mark() {
        let margin = |seen| Margin { seen, mark: 100, default_mark: 40 }.distance();
        assert_eq!([10, 60, 90, 150].map(margin), [30, 20, 10, 50]);
    }
}
