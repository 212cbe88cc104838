//! How much memory each zone keeps free, and for whom: `min_free_kbytes`, the min, low, high and promo marks, and what
//! a lower zone keeps from requests that could have used a higher one (facts/ALGORITHMS.md 2.3 and 6).

use crate::ids::{PAGEBLOCK_PAGES, ZoneKind};
use crate::knobs::{Knob, Knobs};
use crate::policy::MovableMarksRule;
use crate::topology::{NodeSpec, Topology, ZoneSpec};

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

/// Columns of the kernel's protection table: our four kinds and Device.
pub const PROTECTION_COLUMNS: usize = ZoneKind::COUNT + 1;

/// The least that an all-movable zone keeps, and the most, in pages.
const MOVABLE_MIN: (u64, u64) = (32, 128);

/// Pages of the zones that have `min_free_kbytes` among them.
fn sharing_pages(topology: &Topology, rule: MovableMarksRule) -> u64 {
    let zones = topology.nodes.iter().flat_map(|node| &node.zones);
    let shares = |zone: &&ZoneSpec| rule == MovableMarksRule::Shared || zone.kind != ZoneKind::Movable;
    zones.filter(shares).map(|zone| u64::from(zone.managed)).sum()
}

/// What `min_free_kbytes` would be if nobody set it, in KiB: the root of 16 times low memory, 128 KiB to 256 MiB, and at
/// least what khugepaged asks for where it runs (5 % of low memory at most).
pub fn default_min_free_kbytes(topology: &Topology, knobs: &Knobs) -> u64 {
    let lowmem = sharing_pages(topology, MovableMarksRule::Own);
    let by_size = (16 * lowmem * 4).isqrt().clamp(128, 262_144);
    if knobs.get(Knob::TransparentHugepage) == 0 {
        return by_size;
    }
    let zones = topology.nodes.iter().flat_map(|node| &node.zones);
    let zones = zones.filter(|zone| zone.kind != ZoneKind::Movable).count() as u64;
    let wanted = u64::from(PAGEBLOCK_PAGES) * zones * (2 + 3 * 3);
    by_size.max(wanted.min(lowmem / 20) * 4)
}

/// `vm.min_free_kbytes` in force, in KiB.
pub fn min_free_kbytes(topology: &Topology, knobs: &Knobs) -> u64 {
    match knobs.get(Knob::MinFreeKbytes) {
        0 => default_min_free_kbytes(topology, knobs),
        set => set,
    }
}

/// The marks of a zone of `kind` with `managed` pages (0: the zone is empty).
pub fn watermarks(
    topology: &Topology,
    knobs: &Knobs,
    rule: MovableMarksRule,
    kind: ZoneKind,
    managed: u32,
) -> Watermarks {
    let managed = u64::from(managed);
    let pages_min = min_free_kbytes(topology, knobs) / 4;
    let share = pages_min * managed / sharing_pages(topology, rule).max(1);
    let min = match (kind, rule) {
        (ZoneKind::Movable, MovableMarksRule::Own) => (managed / 1024).clamp(MOVABLE_MIN.0, MOVABLE_MIN.1),
        _ => share,
    };
    let by_scale = managed * knobs.get(Knob::WatermarkScaleFactor) / 10_000;
    let distance = (share / 4).max(by_scale);
    Watermarks {
        min: min as u32,
        low: (min + distance) as u32,
        high: (min + 2 * distance) as u32,
        promo: (min + 3 * distance) as u32,
    }
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
        ZoneKind::Movable => 0,
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
    use crate::topology::NodeSize;

    fn one_node(bytes: u64) -> Topology {
        Topology::x86(&[NodeSize { bytes, cpus: 4 }], 1 << 20, vec![vec![10]]).unwrap()
    }

    #[test]
    fn min_free_grows_with_the_root_of_memory() {
        let knobs = Knobs::default();
        knobs.set(Knob::TransparentHugepage, 0).unwrap();
        let small = default_min_free_kbytes(&one_node(16 << 30), &knobs);
        let large = default_min_free_kbytes(&one_node(256 << 30), &knobs);
        assert!((16_000..16_400).contains(&small), "{small}");
        assert!((64_000..66_000).contains(&large), "{large}");
    }

    #[test]
    fn khugepaged_asks_for_blocks_of_every_zone() {
        let knobs = Knobs::default();
        assert_eq!(default_min_free_kbytes(&one_node(8 << 30), &knobs), 67_584);
    }

    #[test]
    fn an_empty_movable_zone_keeps_32() {
        let knobs = Knobs::default();
        let marks = |rule| watermarks(&one_node(8 << 30), &knobs, rule, ZoneKind::Movable, 0);
        assert_eq!(marks(MovableMarksRule::Own), Watermarks { min: 32, low: 32, high: 32, promo: 32 });
        assert_eq!(marks(MovableMarksRule::Shared), Watermarks::default());
    }
}
