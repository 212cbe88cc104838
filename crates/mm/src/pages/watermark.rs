//! How much memory each zone keeps free, and for whom: `min_free_kbytes`, the min, low, high and promo marks, and what
//! a lower zone keeps from requests that could have used a higher one (docs/rules/watermarks-and-zonelists.md#marks).

use crate::ground::{NodeSpec, PAGEBLOCK_PAGES, Topology, WordSize, ZoneKind, ZoneSpec};
use crate::rules::knobs::{Knob, Knobs};
use crate::rules::policy::{MarkDistanceRule, MinFreeRule, MovableMarksRule, Rules};

/// A zone's marks, in pages, without boost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watermarks {
    /// Below this, only requests that cannot wait are served without reclaim.
    pub min: u32,
    /// Below this, kswapd is woken.
    pub low: u32,
    /// kswapd stops here.
    pub high: u32,
    /// Promotion from a slower tier stops kswapd here.
    pub promo: u32,
}

/// Columns of the protection table: our five kinds and Device. No kernel prints all of them.
pub const PROTECTION_COLUMNS: usize = ZoneKind::COUNT + 1;

/// The least that a zone which is not low memory keeps, and the most, in pages.
const HIGH_MIN: (u64, u64) = (32, 128);

/// Whether zones of `kind` are low memory: what the kernel's own structures can be in.
fn is_low(word: WordSize, rules: &Rules, kind: ZoneKind) -> bool {
    match kind {
        ZoneKind::HighMem => false,
        // On a 32-bit machine it is taken from high memory.
        ZoneKind::Movable => rules.zone.movable_marks == MovableMarksRule::Shared && word == WordSize::Bits64,
        ZoneKind::Dma | ZoneKind::Dma32 | ZoneKind::Normal => true,
    }
}

/// Managed pages of the zones that have `min_free_kbytes` among them.
fn sharing_pages(topology: &Topology, rules: &Rules) -> u64 {
    let zones = topology.nodes.iter().flat_map(|node| &node.zones);
    let shares = |zone: &&ZoneSpec| is_low(topology.word, rules, zone.kind);
    zones.filter(shares).map(|zone| u64::from(zone.managed)).sum()
}

/// Managed pages that kernel requests can use, whatever the marks hold to be low memory.
fn buffer_pages(topology: &Topology) -> u64 {
    let zones = topology.nodes.iter().flat_map(|node| &node.zones);
    zones.filter(|zone| zone.kind <= ZoneKind::Normal).map(|zone| u64::from(zone.managed)).sum()
}

/// What `min_free_kbytes` would be if nobody set it, in KiB: the root of 16 times low memory, 128 KiB to the rule's limit,
/// and at least what khugepaged asks for where it runs (5 % of low memory at most).
pub fn default_min_free_kbytes(topology: &Topology, knobs: &Knobs, rules: &Rules) -> u64 {
    let lowmem = buffer_pages(topology);
    let most = match rules.zone.min_free {
        MinFreeRule::UpTo64Mib => 65_536,
        MinFreeRule::UpTo256Mib => 262_144,
    };
    let by_size = (16 * lowmem * 4).isqrt().clamp(128, most);
    if knobs.get(Knob::TransparentHugepage) == 0 {
        return by_size;
    }
    let zones = topology.nodes.iter().flat_map(|node| &node.zones);
    let zones = zones.filter(|zone| zone.kind != ZoneKind::Movable).count() as u64;
    let wanted = u64::from(PAGEBLOCK_PAGES) * zones * (2 + 3 * 3);
    by_size.max(wanted.min(lowmem / 20) * 4)
}

/// `vm.min_free_kbytes` in force, in KiB.
pub fn min_free_kbytes(topology: &Topology, knobs: &Knobs, rules: &Rules) -> u64 {
    match knobs.get(Knob::MinFreeKbytes) {
        0 => default_min_free_kbytes(topology, knobs, rules),
        set => set,
    }
}

/// The marks of a zone of `kind` with `managed` pages (0: the zone is empty).
pub fn watermarks(
    topology: &Topology,
    knobs: &Knobs,
    rules: &Rules,
    kind: ZoneKind,
    managed: u32,
) -> Watermarks {
    let managed = u64::from(managed);
    let pages_min = min_free_kbytes(topology, knobs, rules) / 4;
    let share = pages_min * managed / sharing_pages(topology, rules).max(1);
    let min = if is_low(topology.word, rules, kind) {
        share
    } else {
        (managed / 1024).clamp(HIGH_MIN.0, HIGH_MIN.1)
    };
    let distances = match rules.zone.mark_distance {
        MarkDistanceRule::QuarterOfMin => [share / 4, share / 2, share * 3 / 4],
        MarkDistanceRule::Scaled => {
            let by_scale = managed * knobs.get(Knob::WatermarkScaleFactor) / 10_000;
            let distance = (share / 4).max(by_scale);
            [distance, 2 * distance, 3 * distance]
        }
    };
    let [low, high, promo] = distances.map(|distance| (min + distance) as u32);
    Watermarks { min: min as u32, low, high, promo }
}

/// What the zone of `kind` on `node` keeps from requests whose highest zone is each of the columns, in pages.
pub fn protection(node: &NodeSpec, knobs: &Knobs, kind: ZoneKind) -> [u32; PROTECTION_COLUMNS] {
    let managed = |kind: ZoneKind| {
        node.zones.iter().find(|zone| zone.kind == kind).map_or(0, |zone| u64::from(zone.managed))
    };
    let ratio = match kind {
        ZoneKind::Dma => knobs.get(Knob::LowmemReserveDma),
        ZoneKind::Dma32 => knobs.get(Knob::LowmemReserveDma32),
        ZoneKind::Normal => knobs.get(Knob::LowmemReserveNormal),
        ZoneKind::HighMem | ZoneKind::Movable => 0,
    };
    let mut reserve = [0; PROTECTION_COLUMNS];
    if ratio == 0 || managed(kind) == 0 {
        return reserve;
    }
    let mut above = 0;
    for (column, pages) in reserve.iter_mut().enumerate().skip(kind.index() + 1) {
        above += ZoneKind::ALL.get(column).map_or(0, |&kind| managed(kind));
        *pages = (above / ratio) as u32;
    }
    reserve
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::ground::topology::NodeSize;
    use crate::rules::policy::Policy;

    fn rules(policy: &str) -> Rules {
        *Policy::parse(policy).unwrap().rules()
    }

    fn one_node(bytes: u64) -> Topology {
        Topology::x86(&[NodeSize { bytes, cpus: 4 }], 1 << 20, vec![vec![10]]).unwrap()
    }

    fn min_free(bytes: u64, thp: u64, policy: &str) -> u64 {
        let knobs = Knobs::default();
        knobs.set(Knob::TransparentHugepage, thp).unwrap();
        default_min_free_kbytes(&one_node(bytes), &knobs, &rules(policy))
    }

    #[test]
    fn min_free_grows_with_the_root_of_memory() {
        let (small, large) = (min_free(16 << 30, 0, "linux-6.18"), min_free(256 << 30, 0, "linux-6.18"));
        assert!((16_000..16_400).contains(&small), "{small}");
        assert!((64_000..66_000).contains(&large), "{large}");
        assert_eq!(min_free(1 << 40, 0, "linux-5.7"), 65_536);
        assert!(min_free(1 << 40, 0, "linux-5.8") > 120_000);
    }

    #[test]
    fn khugepaged_asks_for_blocks_of_every_zone() {
        assert_eq!(min_free(8 << 30, 1, "linux-6.18"), 67_584);
    }

    #[test]
    fn an_empty_movable_zone_keeps_32() {
        let knobs = Knobs::default();
        let marks = |policy| watermarks(&one_node(8 << 30), &knobs, &rules(policy), ZoneKind::Movable, 0);
        assert_eq!(marks("linux-6.6"), Watermarks { min: 32, low: 32, high: 32, promo: 32 });
        assert_eq!(marks("linux-6.5"), Watermarks::default());
    }

    #[test]
    fn before_4_6_the_marks_are_a_quarter_of_min_apart() {
        let (topology, knobs) = (one_node(8 << 30), Knobs::default());
        let marks = |policy| watermarks(&topology, &knobs, &rules(policy), ZoneKind::Normal, 1_500_000);
        let (old, new) = (marks("linux-4.5"), marks("linux-4.6"));
        assert_eq!((old.low, old.high), (old.min + old.min / 4, old.min + old.min / 2));
        knobs.set(Knob::WatermarkScaleFactor, 1000).unwrap();
        assert_eq!((marks("linux-4.5"), new.min), (old, old.min));
        assert!(marks("linux-4.6").low > new.low);
    }

    #[test]
    fn high_memory_has_no_part_in_min_free() {
        let nodes = [NodeSize { bytes: 4 << 30, cpus: 2 }; 2];
        let distance = vec![vec![10, 20], vec![20, 10]];
        let topology = Topology::x86_32(&nodes, 1 << 20, distance).unwrap();
        let (knobs, rules) = (Knobs::default(), rules("linux-3.17"));
        let marks = |kind, managed| watermarks(&topology, &knobs, &rules, kind, managed).min;
        let low: u32 = topology.nodes[0]
            .zones
            .iter()
            .filter(|zone| zone.kind != ZoneKind::HighMem)
            .map(|zone| marks(zone.kind, zone.managed))
            .sum();
        let wanted = min_free_kbytes(&topology, &knobs, &rules) as u32 / 4;
        assert!((wanted - 2..=wanted).contains(&low), "{low} of {wanted}");
        assert_eq!([10_000, 100_000, 900_000].map(|pages| marks(ZoneKind::HighMem, pages)), [32, 97, 128]);
    }

    #[test]
    fn normal_keeps_a_32nd_of_what_is_high_and_high_memory_nothing() {
        let topology = Topology::x86_32(&[NodeSize { bytes: 4 << 30, cpus: 1 }], 0, vec![vec![10]]).unwrap();
        let node = &topology.nodes[0];
        let high = node.zones.iter().find(|zone| zone.kind == ZoneKind::HighMem).unwrap().managed;
        let of = |kind| protection(node, &Knobs::default(), kind);
        assert_eq!(of(ZoneKind::Normal)[ZoneKind::HighMem.index()], high / 32);
        assert_eq!(of(ZoneKind::Normal)[ZoneKind::Normal.index()], 0);
        assert_eq!(of(ZoneKind::HighMem), [0; PROTECTION_COLUMNS]);
    }
}
