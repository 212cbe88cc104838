//! Which levers are on the second side: a set of small numbers.

/// A mixture of the two sides: levers that are moved, and perhaps one more that is on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Mixture {
    /// Those that are where the second side has them.
    pub(super) taken: Taken,
    /// A rule that says what it said after some of the steps between the sides.
    pub(super) midway: Option<Midway>,
}

/// A rule between the first side's version of it and the second's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Midway {
    /// The rule, by its lever's number.
    pub(super) lever: usize,
    /// How many of its steps are gone, from 1 and fewer than there are.
    pub(super) steps: usize,
}

impl From<Taken> for Mixture {
    fn from(taken: Taken) -> Self {
        Self { taken, midway: None }
    }
}

/// A set of levers, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Taken(u128);

impl Taken {
    /// How many levers there can be.
    pub(super) const MOST: usize = 120;
    /// None: the first side.
    pub(super) const NONE: Self = Self(0);

    /// The lever `index` alone, from 0 and below [`Self::MOST`].
    pub(super) const fn one(index: usize) -> Self {
        Self(1 << index)
    }

    /// The first `count` levers, at most [`Self::MOST`].
    pub(super) fn first(count: usize) -> Self {
        (0..count).map(Self::one).fold(Self::NONE, Self::and)
    }

    /// Those of both together.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that `other` does not have.
    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the lever `index` is among them.
    pub(super) const fn has(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }

    /// How many.
    pub(super) const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Their numbers, ascending.
    pub(super) fn indices(self) -> impl Iterator<Item = usize> {
        (0..128).filter(move |&index| self.has(index))
    }

    /// The first half of them, and the rest.
    pub(super) fn halves(self) -> [Self; 2] {
        let first = self.indices().take(self.len().div_ceil(2)).map(Self::one).fold(Self::NONE, Self::and);
        [first, self.without(first)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_put_together_and_halved() {
        let five = Taken::first(5);
        assert_eq!((five.len(), five.has(4), five.has(5)), (5, true, false));
        let [one, other] = five.halves();
        assert_eq!((one.len(), other.len(), one.and(other)), (3, 2, five));
        assert_eq!(five.without(one), other);
        assert_eq!(Taken::first(Taken::MOST).len(), Taken::MOST);
        assert_eq!(Taken::one(119).indices().collect::<Vec<_>>(), [119]);
    }
}
