//! Which mainline kernels have a knob, and which of them take which of its values. Some dates are
//! from memory and unchecked; the entries of the table say which.

use core::fmt;
use core::ops::RangeInclusive;

use super::Knob;
use crate::ground::Version;

/// A stretch of mainline kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernels {
    /// The first.
    pub since: Version,
    /// The first that is none of them any more; `None` if the newest is one.
    pub before: Option<Version>,
}

impl Kernels {
    /// Every kernel that has rules here.
    pub const ALL: Self = Self::since(3, 0);

    /// From `major.minor` on.
    pub const fn since(major: u8, minor: u8) -> Self {
        Self { since: Version::new(major, minor), before: None }
    }

    /// Those older than `major.minor`.
    pub const fn before(major: u8, minor: u8) -> Self {
        Self { since: Version::new(3, 0), before: Some(Version::new(major, minor)) }
    }

    /// Whether `version` is one of them.
    pub fn has(self, version: Version) -> bool {
        version >= self.since && self.before.is_none_or(|before| version < before)
    }
}

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before {
            None if *self == Self::ALL => write!(f, "every Linux since {}", self.since),
            None => write!(f, "Linux since {}", self.since),
            Some(before) => write!(f, "Linux before {before}"),
        }
    }
}

/// What distributions build into their kernels in the place of mainline's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Distributed {
    /// The kernels for which they do.
    pub kernels: Kernels,
    /// The value.
    pub value: u64,
}

/// Values that only some of the kernels take which have the knob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limited {
    first: u64,
    last: u64,
    kernels: Kernels,
}

impl Limited {
    /// Only `kernels` take `values`.
    pub(super) const fn of(values: RangeInclusive<u64>, kernels: Kernels) -> Self {
        Self { first: *values.start(), last: *values.end(), kernels }
    }
}

impl Knob {
    /// The kernels that take `value`, of those that have the knob.
    pub fn kernels_that_take(self, value: u64) -> Kernels {
        let mut limited = self.spec().limited.iter();
        let last = limited.rfind(|limited| (limited.first..=limited.last).contains(&value));
        last.map_or(Kernels::ALL, |limited| limited.kernels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_its_first_and_not_its_end() {
        assert!(
            Kernels::since(5, 9).has(Version::new(5, 9)) && !Kernels::since(5, 9).has(Version::new(5, 8))
        );
        assert!(Kernels::before(4, 14).has(Version::new(4, 13)));
        assert!(!Kernels::before(4, 14).has(Version::new(4, 14)));
    }

    #[test]
    fn values_have_their_kernels() {
        assert_eq!(Knob::Swappiness.kernels_that_take(100), Kernels::ALL);
        assert_eq!(Knob::Swappiness.kernels_that_take(101), Kernels::since(5, 8));
        assert_eq!(Knob::HugeDefrag.kernels_that_take(2), Kernels::since(4, 6));
        assert_eq!(Knob::HugeDefrag.kernels_that_take(3), Kernels::since(4, 11));
        assert_eq!(Knob::HugeDefrag.kernels_that_take(4), Kernels::ALL);
    }
}
