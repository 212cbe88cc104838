//! Work that takes time and no memory, to stand between what is measured.

use std::hint::black_box;
use std::time::Instant;

use super::samples::Samples;

/// Keeps the CPU busy without memory: each multiplication waits for the one before.
pub(super) fn delay(steps: u32) {
    let mut value = black_box(1u64);
    for _ in 0..steps {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

/// Steps of [`delay`] that take `ns`, about.
pub(super) fn steps_of(ns: f64) -> u32 {
    const STEPS: u32 = 20_000;
    let once = Samples::take(9, || {
        let start = Instant::now();
        delay(STEPS);
        start.elapsed().as_nanos() as f64 / f64::from(STEPS)
    });
    (ns / once.median().max(0.01)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_takes_longer() {
        let (short, long) = (steps_of(100.0), steps_of(1000.0));
        assert!(short > 0 && (5 * short..20 * short).contains(&long), "{short} {long}");
    }
}
