//! What came of reading a tunable: what a machine hears of it through the seam. Which tunables there are, it need not know:
//! [`crate::knobs`] does.

/// A tunable, as its place in [`crate::KNOBS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KnobId(pub u8);

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
        self.seen.abs_diff(self.nearer_mark())
    }

    /// Whether it came nearer than `other` as a part of the mark. In pages the smallest zone would always be the nearest, for
    /// there are few from nothing to its marks.
    pub fn is_nearer_than(&self, other: &Self) -> bool {
        let weighed = |of: &Self, by: &Self| u128::from(of.distance()) * u128::from(by.nearer_mark().max(1));
        weighed(self, other) < weighed(other, self)
    }

    fn nearer_mark(&self) -> u64 {
        let is_own = self.seen.abs_diff(self.mark) <= self.seen.abs_diff(self.default_mark);
        if is_own { self.mark } else { self.default_mark }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_that_to_the_nearer_mark() {
        let margin = |seen| Margin { seen, mark: 100, default_mark: 40 }.distance();
        assert_eq!([10, 60, 90, 150].map(margin), [30, 20, 10, 50]);
    }

    #[test]
    fn an_empty_list_with_a_small_mark_is_not_the_nearest() {
        let [empty, half] =
            [(0, 7), (1000, 2000)].map(|(seen, mark)| Margin { seen, mark, default_mark: mark });
        assert!(half.is_nearer_than(&empty) && !empty.is_nearer_than(&half) && !half.is_nearer_than(&half));
    }
}
