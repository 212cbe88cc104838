//! The frame descriptor, `struct page` in the kernel, and the table of them.
//!
//! A descriptor is 16 bytes and is reached by pfn. Only the first frame of a block (its head) says anything; the
//! others are [`FrameKind::Tail`], which is also what zeroed memory reads as, so a table over terabytes costs nothing
//! until blocks are cut up. The fields are relaxed atomics: who may write them follows from the kind.
//!
//! ```text
//!   0        4        8        12       16
//!   ┌────────┬────────┬────────┬────────┐
//!   │ next   │ prev   │ state  │ owner  │   next, prev: pfns of neighbours on a free or pageset list
//!   └────────┴────────┴────────┴────────┘   owner: for whoever allocated the block; of a slab, its free list
//!   state:  kind 0–3 │ order 4–7 │ migratetype 8–11 │ zone 16–27
//!   of a slab:  kind 0–3 │ order 4–7 │ cache 8–15 and 28–31 │ zone 16–27
//! ```

use alloc::boxed::Box;

use crate::ground::{
    AcqRel, Acquire, AtomicU32, MigrateType, Order, Pfn, Relaxed, Zeroable, ZoneId, prefetch, zeroed,
};

/// "No frame", in a link.
pub(crate) const NONE: u32 = u32::MAX;

/// What the frame at the head of a block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// Inside a block that begins further down, or not memory at all.
    Tail,
    /// On a buddy free list; the zone lock protects it.
    Free,
    /// On a CPU's pageset; its pcp lock protects it.
    Pcp,
    /// Handed out; its owner may free it.
    Allocated,
    /// A slab: handed out to the slab allocator, which hands out its objects.
    Slab,
    /// Inside of a slab that begins further down, aligned to its order, which this frame tells.
    SlabTail,
}

/// A descriptor's state word, unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameState {
    /// What it is.
    pub kind: FrameKind,
    /// Order of the block that begins here.
    pub order: Order,
    /// Of a free block: the list that it is on. Of an allocated one: the type that was asked for.
    pub migratetype: MigrateType,
    /// The zone of the block.
    pub zone: ZoneId,
}

impl FrameState {
    const fn pack(self) -> u32 {
        let kind = match self.kind {
            FrameKind::Tail => 0,
            FrameKind::Free => 1,
            FrameKind::Pcp => 2,
            FrameKind::Allocated => 3,
            FrameKind::Slab => 4,
            FrameKind::SlabTail => 5,
        };
        kind | (self.order.get() as u32) << 4 | (self.migratetype as u32) << 8 | (self.zone.0 as u32) << 16
    }

    const fn unpack(word: u32) -> Self {
        Self {
            kind: match word & 0xf {
                1 => FrameKind::Free,
                2 => FrameKind::Pcp,
                3 => FrameKind::Allocated,
                4 => FrameKind::Slab,
                5 => FrameKind::SlabTail,
                _ => FrameKind::Tail,
            },
            order: match Order::new((word >> 4 & 0xf) as u8) {
                Some(order) => order,
                None => Order::ZERO,
            },
            migratetype: match MigrateType::from_index((word >> 8 & 0xf) as u8) {
                Some(migratetype) => migratetype,
                None => MigrateType::Unmovable,
            },
            zone: ZoneId((word >> 16 & 0xfff) as u16),
        }
    }
}

/// Whether a page that is not free could be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mobility {
    /// It was allocated to be movable, or waits on a list of such pages.
    Movable,
    /// It was not.
    Fixed,
}

impl Mobility {
    /// Of what was asked for as `migratetype`, or is on a list of that type.
    #[inline]
    pub(crate) fn of(migratetype: MigrateType) -> Self {
        if migratetype == MigrateType::Movable { Self::Movable } else { Self::Fixed }
    }
}

/// What a frame is to slabs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlabPart {
    /// A slab of `order` begins here, of the cache of this number.
    Head { cache: u16, order: Order },
    /// Inside of a slab of `order`.
    Tail { order: Order },
    /// Neither.
    None,
}

const fn cache_of(word: u32) -> u16 {
    (word >> 8 & 0xff | word >> 28 << 8) as u16
}

/// A frame descriptor.
#[derive(Debug, Default)]
pub struct Frame {
    pub(in crate::pages) next: AtomicU32,
    pub(in crate::pages) prev: AtomicU32,
    state: AtomicU32,
    owner: AtomicU32,
}

#[cfg(not(shuttle))]
const _: () = assert!(size_of::<Frame>() == 16);

impl Frame {
    /// What its owner chained to it, while it is on no list of free pages.
    #[inline]
    pub(crate) fn chained(&self) -> u32 {
        self.next.load(Relaxed)
    }

    #[inline]
    pub(crate) fn chain(&self, next: u32) {
        self.next.store(next, Relaxed);
    }

    /// The state as it is now; stable only under the lock that the kind names.
    #[inline]
    pub fn state(&self) -> FrameState {
        FrameState::unpack(self.state.load(Relaxed))
    }

    /// The state, if this is the head of an allocated block of `order`; one comparison, for the path of every free.
    #[inline]
    pub(crate) fn allocated(&self, order: Order) -> Option<FrameState> {
        const KIND_AND_ORDER: u32 = 0xff;
        let word = self.state.load(Relaxed);
        let wanted = FrameState { kind: FrameKind::Allocated, order, ..FrameState::unpack(0) }.pack();
        (word & KIND_AND_ORDER == wanted).then(|| FrameState {
            kind: FrameKind::Allocated,
            order,
            ..FrameState::unpack(word)
        })
    }

    /// Whether the state, not a slab's, names this type.
    #[inline]
    pub(crate) fn is_of(&self, migratetype: MigrateType) -> bool {
        const TYPE: u32 = 0xf00;
        self.state.load(Relaxed) & TYPE == (migratetype as u32) << 8
    }

    /// Of a block that is not free and not a slab's: its type tells.
    #[inline]
    pub(crate) fn mobility(&self) -> Mobility {
        if self.is_of(MigrateType::Movable) { Mobility::Movable } else { Mobility::Fixed }
    }

    #[inline]
    pub(crate) fn set_state(&self, state: FrameState) {
        self.state.store(state.pack(), Relaxed);
    }

    /// The frame begins a slab of the cache numbered `cache`, below [`Self::MAX_CACHES`]; order and zone as `block` says.
    pub(crate) fn set_slab(&self, block: FrameState, cache: u16) {
        let word = FrameState { kind: FrameKind::Slab, migratetype: MigrateType::Unmovable, ..block }.pack();
        let (low, high) = (u32::from(cache & 0xff), u32::from(cache >> 8));
        self.state.store(word & !0xff00 | low << 8 | high << 28, Relaxed);
    }

    /// The number of the cache of the slab that begins here, if one does.
    #[inline]
    pub(crate) fn slab_cache(&self) -> Option<u16> {
        let word = self.state.load(Relaxed);
        (word & 0xf == 4).then_some(cache_of(word))
    }

    /// What the frame is to slabs, from one look at its state: for the path of every free.
    #[inline]
    pub(crate) fn slab_part(&self) -> SlabPart {
        let word = self.state.load(Relaxed);
        let FrameState { kind, order, .. } = FrameState::unpack(word);
        match kind {
            FrameKind::Slab => SlabPart::Head { cache: cache_of(word), order },
            FrameKind::SlabTail => SlabPart::Tail { order },
            _ => SlabPart::None,
        }
    }

    /// Numbers of caches that a descriptor can tell.
    pub(crate) const MAX_CACHES: usize = 1 << 12;

    #[inline]
    pub(crate) fn owner_acquire(&self) -> u32 {
        self.owner.load(Acquire)
    }

    /// Puts `new` in the place of `old` in the owner's word; what it is, where it is not `old`.
    #[inline]
    pub(crate) fn exchange_owner(&self, old: u32, new: u32) -> Result<u32, u32> {
        self.owner.compare_exchange(old, new, AcqRel, Acquire)
    }

    #[inline]
    pub(crate) fn set_tail(&self) {
        self.state.store(0, Relaxed);
    }

    /// A word for whoever allocated the block.
    #[inline]
    pub fn owner(&self) -> u32 {
        self.owner.load(Relaxed)
    }

    /// Sets the word for whoever allocated the block.
    #[inline]
    pub fn set_owner(&self, owner: u32) {
        self.owner.store(owner, Relaxed);
    }
}

/// The descriptors of all frames, by pfn.
///
/// Those of frames that a block of the largest order may begin at stand side by side behind all others: at first free memory is
/// such blocks, and setting up its lists writes to each. Sixteen KiB apart, a quarter of the table's pages, or all of its huge pages,
/// would have to be made for memory that is never used.
#[derive(Debug)]
pub struct MemMap {
    frames: Box<[Frame]>,
    end: Pfn,
}

impl MemMap {
    /// Descriptors of the frames below `end`, all tails.
    pub(crate) fn new(end: Pfn) -> Self {
        let heads = end.0.div_ceil(Order::MAX.pages()) as usize;
        Self { frames: zeroed(end.0 as usize + heads), end }
    }

    /// Just behind the last frame.
    pub(crate) fn end(&self) -> Pfn {
        self.end
    }

    /// Where the descriptor of `pfn` is. Chosen without a branch: with one that has a block's first frame out of the way, experiment
    /// `thp-fault` takes 2 % longer, and `pcp-batch` as long.
    #[inline]
    fn place(&self, pfn: Pfn) -> usize {
        let head = self.end.0 as usize + (pfn.0 >> Order::MAX.get()) as usize;
        if pfn.0 & (Order::MAX.pages() - 1) == 0 { head } else { pfn.0 as usize }
    }

    /// The descriptor of `pfn`.
    ///
    /// # Panics
    /// If there is no such frame; in a build without debug assertions a pfn just behind the end may have another one's.
    #[inline]
    pub fn frame(&self, pfn: Pfn) -> &Frame {
        debug_assert!(pfn < self.end, "{pfn} is behind the last frame");
        &self.frames[self.place(pfn)]
    }

    /// The descriptor of `pfn` will be needed soon, if there is such a frame.
    #[inline]
    pub(crate) fn prefetch(&self, pfn: Pfn) {
        if let Some(frame) = self.get(pfn) {
            prefetch(frame);
        }
    }

    /// The descriptor of `pfn`, if there is such a frame.
    #[inline]
    pub fn get(&self, pfn: Pfn) -> Option<&Frame> {
        if pfn < self.end { self.frames.get(self.place(pfn)) } else { None }
    }
}

// SAFETY: a descriptor is four integer atomics, which begin as zeros.
unsafe impl Zeroable for Frame {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_survives_packing() {
        let kinds =
            [FrameKind::Tail, FrameKind::Free, FrameKind::Pcp, FrameKind::Allocated, FrameKind::SlabTail];
        for kind in kinds {
            for order in Order::ZERO.to(Order::MAX) {
                for migratetype in MigrateType::ALL {
                    for zone in [ZoneId(0), ZoneId(1), ZoneId(1023)] {
                        let state = FrameState { kind, order, migratetype, zone };
                        assert_eq!(FrameState::unpack(state.pack()), state);
                    }
                }
            }
        }
    }

    #[test]
    fn a_slab_tells_its_cache_and_its_block() {
        let frame = Frame::default();
        let order = Order::new(3).unwrap();
        let block = FrameState {
            kind: FrameKind::Allocated,
            order,
            migratetype: MigrateType::Movable,
            zone: ZoneId(9),
        };
        for cache in [0, 1, 255, 256, Frame::MAX_CACHES as u16 - 1] {
            frame.set_slab(block, cache);
            assert_eq!(frame.slab_cache(), Some(cache));
            assert_eq!(frame.slab_part(), SlabPart::Head { cache, order });
            let state = frame.state();
            assert_eq!((state.kind, state.order, state.zone), (FrameKind::Slab, order, ZoneId(9)));
        }
        frame.set_state(FrameState { kind: FrameKind::SlabTail, ..block });
        assert_eq!((frame.slab_cache(), frame.slab_part()), (None, SlabPart::Tail { order }));
        frame.set_state(block);
        assert_eq!((frame.slab_cache(), frame.slab_part()), (None, SlabPart::None));
    }

    #[test]
    fn every_frame_has_a_descriptor_of_its_own() {
        let map = MemMap::new(Pfn(5000));
        (0..5000).for_each(|pfn| map.frame(Pfn(pfn)).set_owner(pfn));
        assert!((0..5000).all(|pfn| map.get(Pfn(pfn)).is_some_and(|frame| frame.owner() == pfn)));
        assert!([5000, 5001, 5120, 6144].iter().all(|&pfn| map.get(Pfn(pfn)).is_none()));
        assert_eq!(map.end(), Pfn(5000));
    }

    #[test]
    fn zeroed_memory_reads_as_tails() {
        let map = MemMap::new(Pfn(4096));
        assert_eq!(map.frame(Pfn(4095)).state().kind, FrameKind::Tail);
        assert!(map.get(Pfn(4096)).is_none());
    }
}
