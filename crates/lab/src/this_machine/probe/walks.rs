//! Figures of page walks settled by what they were seen to cost. A profile has a walk's steps, what a hypervisor makes of them, and the way of the
//! last entry, which follows from the caches; seen is the whole, from outside. On a guest the rest is the hypervisor's, elsewhere the steps'.
//!
//! Seen was a walk that everything waits for, and one of many at once. Programs have both, and no recording tells how many of each: the
//! figure is for the mean of the two.

use host::probe::{Grade, Measured, PageWalks, SampleSpread};
use sim::{Profile, Tlb};

/// A ratio of 1 would say that there is no hypervisor.
const NESTED_MIN: f64 = 1.1;

/// The figure of `profile` that takes up what `walks` cost; `profile` has a ratio of 1 where there is no hypervisor.
pub(super) fn settled(profile: &Profile, walks: &PageWalks) -> Measured {
    // A chase through more pages than the TLB has room for misses each time.
    let simulated = Tlb::new(profile).walk_ns(walks.pages);
    let [ratio, steps] = ["tlb.nested_ratio", "tlb.walk_ns"].map(|key| profile.value(key));
    let is_guest = ratio > 1.0;
    let key = if is_guest { "tlb.nested_ratio" } else { "tlb.walk_ns" };
    let figure = |ns: f64| {
        if is_guest { (ratio * ns / simulated).max(NESTED_MIN) } else { (steps + ns - simulated).max(0.0) }
    };
    let PageWalks { pages, in_turn, at_once } = *walks;
    let between = |of: fn(&SampleSpread) -> f64| figure(f64::midpoint(of(&in_turn), of(&at_once)));
    let how = format!(
        "reading a line of each of {pages} 4 KiB pages takes {:.1} ns longer than in 2 MiB pages where each waits for the one before, {:.1} ns where \
         none does: what makes a simulated walk the mean of both",
        in_turn.median, at_once.median
    );
    let spread = SampleSpread {
        min: between(|of| of.min),
        p25: between(|of| of.p25),
        median: between(|of| of.median),
        p75: between(|of| of.p75),
        max: between(|of| of.max),
        samples: in_turn.samples.min(at_once.samples),
    };
    Measured { key, spread, grade: Grade::Seen, how }
}

#[cfg(test)]
mod tests {
    use sim::{Figure, FigureKind};

    use super::*;

    fn around(ns: f64) -> SampleSpread {
        SampleSpread { min: ns * 0.8, p25: ns * 0.9, median: ns, p75: ns * 1.1, max: ns * 2.0, samples: 15 }
    }

    fn walks(in_turn: f64, at_once: f64) -> PageWalks {
        PageWalks { pages: 65_536, in_turn: around(in_turn), at_once: around(at_once) }
    }

    /// `kvm-genoa-2c` with a ratio of `nested`, and with what `walks` settle.
    fn with(nested: f64, walks: &PageWalks) -> Profile {
        let base = Profile::load("kvm-genoa-2c").unwrap();
        let changed = |profile: &Profile, key, value| {
            let figure = Figure::new(value, FigureKind::Measured, "a test");
            profile.with("settled", base.title(), base.shape().clone(), [(key, figure)]).unwrap()
        };
        let before = changed(&base, "tlb.nested_ratio", nested);
        let measured = settled(&before, walks);
        changed(&before, measured.key, measured.spread.median)
    }

    /// A walk over 256 MiB, ns.
    fn walk(profile: &Profile) -> f64 {
        Tlb::new(profile).walk_ns(65_536)
    }

    #[test]
    fn a_simulated_walk_is_the_mean_of_both_on_a_guest_and_elsewhere() {
        for nested in [4.0, 1.0] {
            let profile = with(nested, &walks(42.0, 9.0));
            assert!((walk(&profile) - 25.5).abs() < 0.1, "{nested}: {}", walk(&profile));
            assert!((profile.value("tlb.nested_ratio") > 1.0) == (nested > 1.0));
        }
    }

    #[test]
    fn walks_that_cost_next_to_nothing_leave_a_guest_a_guest() {
        let cheap = walks(2.0, 0.1);
        assert!((with(4.0, &cheap).value("tlb.nested_ratio") - NESTED_MIN).abs() < 1e-9);
        assert!(with(1.0, &cheap).value("tlb.walk_ns") <= 0.0);
    }
}
