//! Controllers on a ground that the tests make up.

use super::ground::PageRange;
use super::regions::Regions;
use super::*;
use crate::ids::{Nanos, Node};
use crate::vm::{SpaceId, Vpn};

/// One address space of two areas, whose pages are all on node 1 and never accessed.
struct Still;

const AREAS: [(u32, u32); 2] = [(0, 4096), (8192, 12_288)];

impl Ground for Still {
    fn now(&self) -> Nanos {
        Nanos(0)
    }

    fn area(&self, _: SpaceId, from: Vpn) -> Option<Area> {
        let (start, end) = AREAS.into_iter().find(|(_, end)| *end > from.0)?;
        Some(Area { range: PageRange { start: Vpn(start), end: Vpn(end) }, is_scanned: true })
    }

    fn is_alive(&self, _: SpaceId) -> bool {
        true
    }

    fn may_look(&self, _: SpaceId) -> bool {
        true
    }

    fn look(&self, _: SpaceId, _: PageRange, _: impl FnMut(Seen)) {}

    fn mark(&self, _: SpaceId, _: PageRange, _: impl Fn(Node) -> bool) -> u32 {
        0
    }

    fn promote(&self, _: SpaceId, _: Vpn, _: Node) -> Result<u32, Stayed> {
        Err(Stayed::Gone)
    }

    fn flush(&self, _: SpaceId) {}

    fn nodes(&self) -> u16 {
        2
    }

    fn is_fast(&self, node: Node) -> bool {
        node == Node(0)
    }

    fn threads_on(&self, _: SpaceId, _: Node) -> u32 {
        0
    }

    fn room(&self, _: Node) -> u64 {
        u64::MAX
    }

    fn size(&self, _: Node) -> u64 {
        1 << 30
    }
}

#[test]
fn regions_cover_the_areas() {
    let mut regions = Regions::default();
    regions.follow(SpaceId(0), &Still, 1024);
    regions.check();
    let bounds: Vec<(u32, u32)> =
        regions.all.iter().map(|region| (region.range.start.0, region.range.end.0)).collect();
    assert_eq!(bounds.len(), 8);
    assert_eq!((bounds[0], bounds[3], bounds[4]), ((0, 1024), (3072, 4096), (8192, 9216)));
}
