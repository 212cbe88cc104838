//! What promotion sees of a machine, and what it asks of it.

use crate::ground::{Nanos, Node, PAGE_SIZE, SpaceId, Vpn};
use crate::rules::knobs::{Knob, KnobUse};

/// Pages of an address space, from `start` to before `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRange {
    /// The first.
    pub start: Vpn,
    /// The one behind the last.
    pub end: Vpn,
}

impl PageRange {
    /// How many pages.
    pub const fn pages(self) -> u32 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Bytes.
    pub const fn bytes(self) -> u64 {
        self.pages() as u64 * PAGE_SIZE
    }

    /// The first `pages` of it, as far as there are so many.
    #[must_use]
    pub const fn first(self, pages: u32) -> Self {
        let pages = if pages < self.pages() { pages } else { self.pages() };
        Self { start: self.start, end: self.start.add(pages) }
    }
}

/// A mapping of an address space (`vm_area_struct`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Area {
    /// Its pages, mapped or not.
    pub range: PageRange,
    /// Whether its pages may move and are worth it: not hugetlb, no device's, not a file's that is only read.
    pub is_scanned: bool,
}

/// A page as a look finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Where it is mapped; the first page of one that is larger than 4 KiB.
    pub vpn: Vpn,
    /// How many pages of 4 KiB it is.
    pub pages: u32,
    /// Where its memory is.
    pub node: Node,
    /// Whether it was accessed since the last look.
    pub accessed: bool,
}

/// Why a page that was to be promoted stayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stayed {
    /// It is not mapped any more, or where it should be already.
    Gone,
    /// It is pinned, or somebody works on it.
    Busy,
    /// The node has no room.
    NoRoom,
}

/// The machine under NUMA balancing, and what any controller knows of it. Marking takes the time that it takes; nothing else may.
pub trait HintGround {
    /// The time.
    fn now(&self) -> Nanos;

    /// The lowest area of `space` that ends above `from`, if there is one; `None` too if the address space is gone.
    fn area(&self, space: SpaceId, from: Vpn) -> Option<Area>;

    /// Makes the next access to each mapped page of `range` fault that is on one of the nodes that `marks` says yes to.
    /// Gives the pages marked.
    fn mark(&self, space: SpaceId, range: PageRange, marks: impl Fn(Node) -> bool) -> u32;

    /// Whether `node` is of the fast tier.
    fn is_fast(&self, node: Node) -> bool;

    /// Bytes free on `node` above the mark up to which promotion may fill it.
    fn room(&self, node: Node) -> u64;

    /// Whether `node` has so many bytes of [`HintGround::room`].
    fn has_room(&self, node: Node, bytes: u64) -> bool {
        self.room(node) >= bytes
    }

    /// Bytes of memory that `node` has.
    fn size(&self, node: Node) -> u64;

    /// Something was decided by `knob`; `used` says what its default would have decided. Of use where that is watched.
    fn knob_used(&self, knob: Knob, used: KnobUse) {
        let _ = (knob, used);
    }
}

/// The machine under a controller that looks at pages and moves them. Looking and moving take the time that they take; nothing
/// else may.
pub trait Ground: HintGround {
    /// Whether `space` is still there.
    fn is_alive(&self, space: SpaceId) -> bool;

    /// Whether its map can be looked at now (`mmap_read_trylock`).
    fn may_look(&self, space: SpaceId) -> bool;

    /// Looks at the mapped pages of `range`, upwards, and takes their accessed marks away.
    fn look(&self, space: SpaceId, range: PageRange, seen: impl FnMut(Seen));

    /// Moves the page at `vpn` to `node`; gives the pages moved.
    ///
    /// # Errors
    /// Why it stayed.
    fn promote(&self, space: SpaceId, vpn: Vpn, node: Node) -> Result<u32, Stayed>;

    /// Pages that were promoted since the last call become visible to all CPUs: one interrupt for all of them. Whoever does not
    /// batch calls this after each page.
    fn flush(&self, space: SpaceId);

    /// How many nodes there are.
    fn nodes(&self) -> u16;

    /// Threads of `space` that ran on CPUs of `node` of late.
    fn threads_on(&self, space: SpaceId, node: Node) -> u32;
}

/// The areas of `space`, upwards.
pub(super) fn areas(ground: &impl Ground, space: SpaceId) -> impl Iterator<Item = Area> {
    let mut from = Vpn(0);
    core::iter::from_fn(move || {
        let area = ground.area(space, from)?;
        from = area.range.end;
        Some(area)
    })
}
