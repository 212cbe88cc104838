//! Simulated time inside the engine: ticks of 1/1024 ns in a `u64`, so that costs such as 1.3 ns do not vanish and
//! converting to nanoseconds is a shift. A `u64` of ticks lasts 208 days.

use mm::Nanos;

/// Simulated time or a duration, in units of 1/1024 ns.
pub(crate) type Ticks = u64;

const SHIFT: u32 = 10;

/// A figure in nanoseconds, rounded to the nearest tick. Exact on every machine: one multiplication by a power of
/// two and one rounding, both fixed by IEEE 754.
pub(crate) fn from_f64(ns: f64) -> Ticks {
    (ns * f64::from(1u32 << SHIFT)).round() as Ticks
}

/// Whole nanoseconds to ticks; what lies beyond the end of time becomes it.
#[inline]
pub(crate) fn from_nanos(time: Nanos) -> Ticks {
    if time.0 >> (64 - SHIFT) == 0 { time.0 << SHIFT } else { Ticks::MAX }
}

/// Ticks to whole nanoseconds, rounded down.
#[inline]
pub(crate) fn to_nanos(ticks: Ticks) -> Nanos {
    Nanos(ticks >> SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_nanosecond_survive() {
        assert_eq!(from_f64(1.3) * 1000, 1_331_000);
        assert_eq!(to_nanos(from_f64(1.3) * 1000), Nanos(1299));
        assert_eq!(to_nanos(from_nanos(Nanos(77))), Nanos(77));
    }

    #[test]
    fn forever_stays_forever() {
        assert_eq!(from_nanos(Nanos(u64::MAX)), Ticks::MAX);
    }
}
