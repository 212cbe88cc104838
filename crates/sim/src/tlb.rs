//! What it costs to find out where a page lies: walks of the page tables that TLBs do not spare.
//!
//! No access is simulated. [`Tlb::lookup_ns`] is the expected price of one access to a page that is any of the program's, each byte as likely as
//! the other. The second level holds as many translations as it has room for; huge pages come first, for each of them is accessed
//! as often as 512 small ones. What it lacks is walked to: the upper levels of the tables come out of the walker's own caches, the entry
//! out of the cache that has room for all entries of its kind. On a virtual machine the host's tables are walked as well.
//!
//! First levels are left out: what they miss and the second level has costs some cycles, most of which a CPU hides.

use crate::profile::Profile;

/// Bytes of an entry of a page table.
const ENTRY_BYTES: f64 = 8.0;
/// Small pages in the place of a huge one.
const HUGE_PAGES: f64 = 512.0;

/// Translations that a program needs: its resident pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Translations {
    /// Pages that have an entry each.
    pub small: u64,
    /// Huge pages, 512 small ones each.
    pub huge: u64,
}

impl Translations {
    /// The same memory in small pages alone.
    #[must_use]
    pub const fn in_small_pages(self) -> Self {
        Self { small: self.small + self.huge * HUGE_PAGES as u64, huge: 0 }
    }
}

/// A machine's second-level TLB and what a walk takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tlb {
    entries: f64,
    huge_entries: f64,
    /// What a walk takes besides the last entry's way.
    walk_ns: f64,
    /// Steps of a walk over those of a machine that is not virtual.
    nested: f64,
    /// Room for entries, and what one from there takes: the second-level cache, and with the last one.
    caches: [Cached; 2],
    memory_ns: f64,
}

/// A cache, and all that are nearer.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Cached {
    bytes: f64,
    ns: f64,
}

impl Tlb {
    /// The TLB of a machine.
    pub fn new(profile: &Profile) -> Self {
        let [l2, l3] = ["cache.l2_bytes", "cache.l3_bytes"].map(|key| profile.value(key));
        Self {
            entries: profile.value("tlb.entries"),
            huge_entries: profile.value("tlb.huge_entries"),
            walk_ns: profile.value("tlb.walk_ns"),
            nested: profile.value("tlb.nested_ratio"),
            caches: [
                Cached { bytes: l2, ns: profile.value("cache.l2_ns") },
                Cached { bytes: l2 + l3, ns: profile.value("cache.l3_ns") },
            ],
            memory_ns: profile.value("dram.local_ns"),
        }
    }

    /// Part of the accesses that no TLB serves: 0 to 1.
    pub fn miss_ratio(&self, of: Translations) -> f64 {
        let Parts { small, huge } = self.parts(of);
        small + huge
    }

    /// What looking up a translation takes on average, in ns an access: 0 where TLBs have room for all.
    pub fn lookup_ns(&self, of: Translations) -> f64 {
        let Parts { small, huge } = self.parts(of);
        small * self.walk_ns(of.small) + huge * self.walk_ns(of.huge)
    }

    /// Parts of all accesses that are walked for, by the size of their page.
    fn parts(&self, of: Translations) -> Parts {
        let (small, huge) = (of.small as f64, of.huge as f64);
        let all = small + HUGE_PAGES * huge;
        let missing = |pages: f64, room: f64| if pages > room { 1.0 - room / pages } else { 0.0 };
        let of_all = |pages: f64| if all > 0.0 { pages / all } else { 0.0 };
        let held = huge.min(self.huge_entries);
        Parts {
            small: of_all(small) * missing(small, (self.entries - held).max(0.0)),
            huge: of_all(HUGE_PAGES * huge) * missing(huge, self.huge_entries),
        }
    }

    /// A walk to one of so many entries, ns.
    pub fn walk_ns(&self, entries: u64) -> f64 {
        let bytes = ENTRY_BYTES * entries as f64;
        let (mut had, mut entry_ns) = (0.0, 0.0);
        for Cached { bytes: room, ns } in self.caches {
            let has = if bytes > room { room / bytes } else { 1.0 };
            entry_ns += (has - had) * ns;
            had = has;
        }
        entry_ns += (1.0 - had) * self.memory_ns;
        self.nested * (self.walk_ns + entry_ns)
    }
}

/// Parts of all accesses.
#[derive(Clone, Copy, Debug)]
struct Parts {
    small: f64,
    huge: f64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tlb() -> Tlb {
        Tlb::new(&Profile::load("kvm-genoa-2c").unwrap())
    }

    fn small(pages: u64) -> Translations {
        Translations { small: pages, huge: 0 }
    }

    #[test]
    fn what_has_room_is_not_walked_to() {
        let tlb = tlb();
        for pages in [0, 1, 3072] {
            assert!(tlb.lookup_ns(small(pages)) <= 0.0, "{pages}");
            assert!(tlb.miss_ratio(Translations { small: 0, huge: pages }) <= 0.0, "{pages}");
        }
        assert!(tlb.lookup_ns(small(3073)) > 0.0);
        assert!(tlb.lookup_ns(Translations { small: 1000, huge: 3000 }) > 0.0, "they share the room");
    }

    #[test]
    fn entries_that_no_cache_holds_come_from_memory() {
        let tlb = tlb();
        let steps: Vec<f64> = [1 << 16, 1 << 20, 1 << 26].map(|pages| tlb.walk_ns(pages)).into();
        assert!(steps[0] < steps[1] && steps[1] < steps[2], "{steps:?}");
        assert!((steps[0] - tlb.nested * (tlb.walk_ns + tlb.caches[0].ns)).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn more_pages_never_cost_less_and_huge_ones_never_more(
            pages in 0_u64..1 << 28, more in 0_u64..1 << 20, huge in 0_u64..1 << 16,
        ) {
            let tlb = tlb();
            prop_assert!(tlb.lookup_ns(small(pages)) <= tlb.lookup_ns(small(pages + more)));
            let mixed = Translations { small: pages, huge };
            prop_assert!(tlb.lookup_ns(mixed) <= tlb.lookup_ns(mixed.in_small_pages()) * (1.0 + 1e-12));
            prop_assert!((0.0..=1.0).contains(&tlb.miss_ratio(mixed)));
        }
    }
}
