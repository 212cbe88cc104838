//! Which mainline kernels have a knob, and which of them take which of its values. Dates that stand in no table of facts
//! are from memory and unchecked; the lines say which.

use core::fmt;
use core::ops::RangeInclusive;

use super::Knob;
use crate::ground::version::Version;

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

/// Values that only some of the kernels take which have the knob.
#[derive(Clone, Debug)]
struct Limited {
    values: RangeInclusive<u64>,
    kernels: Kernels,
}

impl Knob {
    /// The kernels that take `value`, of those that have the knob.
    pub fn kernels_that_take(self, value: u64) -> Kernels {
        let mut limited = self.limited().into_iter().flatten();
        limited.rfind(|limited| limited.values.contains(&value)).map_or(Kernels::ALL, |it| it.kernels)
    }

    /// Where the range of values is not the same in all kernels.
    fn limited(self) -> [Option<Limited>; 2] {
        let limited = |values, kernels| Some(Limited { values, kernels });
        match self {
            // Commit c843966c556d, June 2020; from memory.
            Self::Swappiness => [limited(101..=200, Kernels::since(5, 8)), None],
            // docs/rules/watermarks-and-zonelists.md#zonelists: c9bff3eebc09 left the order by node alone.
            Self::NumaZonelistOrder => [limited(2..=2, Kernels::before(4, 14)), None],
            // `defer` is 444eb2a449ef, March 2016; `defer+madvise` 21440d7eb904, February 2017; both from memory.
            Self::HugeDefrag => [limited(2..=2, Kernels::since(4, 6)), limited(3..=3, Kernels::since(4, 11))],
            // Commit 39c65a94cd96, January 2022; from memory.
            Self::WatermarkScaleFactor => [limited(1001..=3000, Kernels::since(5, 17)), None],
            // Memory tiering, c574bbe917036, March 2022; from memory.
            Self::NumaBalancing => [limited(2..=3, Kernels::since(5, 18)), None],
            _ => [None, None],
        }
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
