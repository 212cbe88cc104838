//! What a task's own time costs more or less because its pages are larger or smaller, more or fewer, than when it was recorded: walks of the
//! page tables between faults.
//!
//! The recording says how often the process walked to its pages. From its TLB, and the pages that it had, follows how often it accessed a page
//! that may or may not be in the TLB; from this machine's TLB and the pages as they are here, what that costs here. What it cost then
//! is in the task's recorded time and is taken out. Where both are alike the time is what it was, to the bit.

use mm::vm::AddressSpace;
use sim::{Profile, SimMachine, Tlb, Translations};

use crate::program::{Program, Walked};

/// Accesses are at most so many for each walk: a TLB that serves nearly all does not say how many there are.
const PER_WALK_MAX: f64 = 10.0;

/// TLBs there and here.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkPrices {
    there: Tlb,
    here: Tlb,
    /// Own time here over own time there.
    slowness: f64,
}

/// What a stretch of own time comes to, ns.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct WalkTime {
    /// Waiting for walks, here.
    pub(super) here_ns: f64,
    /// What the stretch takes longer than recorded, and scaled to this machine; less than 0 where it is shorter.
    pub(super) more_ns: f64,
}

impl WalkPrices {
    /// Those of a program on the machine of `profile`; `None` where nothing was looked at.
    pub(super) fn of(program: &Program, profile: &Profile) -> Option<Self> {
        let there = program.tlb.filter(|_| !program.walked.is_empty())?;
        Some(Self { there, here: Tlb::new(profile), slowness: 1.0 / profile.value("cpu.speed") })
    }

    /// Of `own_ns` as recorded, of a process that walked to its pages as a look found, and has `space` now.
    pub(super) fn price(&self, own_ns: u32, walked: Walked, space: &AddressSpace<SimMachine>) -> WalkTime {
        let huge = space.huge_pages();
        let small = space.resident_pages().saturating_sub(huge * u64::from(mm::ids::PAGEBLOCK_PAGES));
        self.price_of(own_ns, walked, Translations { small, huge })
    }

    fn price_of(&self, own_ns: u32, walked: Walked, now: Translations) -> WalkTime {
        let missed = self.there.miss_ratio(Translations { small: walked.resident, huge: 0 });
        if missed <= 0.0 {
            return WalkTime::default();
        }
        let accesses = f64::from(own_ns) * walked.per_second as f64 / 1e9 * (1.0 / missed).min(PER_WALK_MAX);
        // It was recorded without huge pages: looks that met any are not here.
        let there_ns = accesses * self.there.lookup_ns(now.in_small_pages());
        let here_ns = accesses * self.here.lookup_ns(now);
        WalkTime { here_ns, more_ns: here_ns - there_ns * self.slowness }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALKED: Walked = Walked { per_second: 5_000_000, resident: 25_000 };

    fn prices(machine: &str) -> WalkPrices {
        let there = Tlb::new(&Profile::load("kvm-genoa-2c").unwrap());
        let here = Profile::load(machine).unwrap();
        WalkPrices { there, here: Tlb::new(&here), slowness: 1.0 / here.value("cpu.speed") }
    }

    #[test]
    fn small_pages_on_the_recorded_machine_add_nothing_to_the_bit() {
        let prices = prices("kvm-genoa-2c");
        for small in [1, 5_000, 25_000, 1 << 20] {
            let time = prices.price_of(77_777, WALKED, Translations { small, huge: 0 });
            assert_eq!(time.more_ns.to_bits(), 0.0_f64.to_bits(), "{small}");
        }
    }

    #[test]
    fn huge_pages_save_no_more_than_walks_cost() {
        let prices = prices("kvm-genoa-2c");
        let small = prices.price_of(1_000_000, WALKED, Translations { small: 25_600, huge: 0 });
        let half = prices.price_of(1_000_000, WALKED, Translations { small: 12_800, huge: 25 });
        let huge = prices.price_of(1_000_000, WALKED, Translations { small: 0, huge: 50 });
        assert!(small.here_ns > half.here_ns && half.here_ns > 0.0, "{small:?} {half:?}");
        assert_eq!(huge, WalkTime { here_ns: 0.0, more_ns: -small.here_ns });
        assert!(small.here_ns < 1_000_000.0);
    }

    #[test]
    fn what_tlbs_held_says_nothing() {
        let prices = prices("xeon-8260");
        let few = Walked { resident: 3_000, ..WALKED };
        assert_eq!(prices.price_of(1_000, few, Translations { small: 9_000, huge: 0 }), WalkTime::default());
    }
}
