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
//!   └────────┴────────┴────────┴────────┘   owner: for whoever allocated the block
//!   state:  kind 0–3 │ order 4–7 │ migratetype 8–11 │ zone 16–27
//! ```

use alloc::boxed::Box;

use crate::ids::{MigrateType, Order, Pfn, ZoneId};
use crate::sync::{AtomicU32, Relaxed};

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
        };
        kind | (self.order.get() as u32) << 4 | (self.migratetype as u32) << 8 | (self.zone.0 as u32) << 16
    }

    const fn unpack(word: u32) -> Self {
        Self {
            kind: match word & 0xf {
                1 => FrameKind::Free,
                2 => FrameKind::Pcp,
                3 => FrameKind::Allocated,
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
            zone: ZoneId((word >> 16) as u16),
        }
    }
}

/// A frame descriptor.
#[derive(Debug, Default)]
pub struct Frame {
    pub(crate) next: AtomicU32,
    pub(crate) prev: AtomicU32,
    state: AtomicU32,
    owner: AtomicU32,
}

#[cfg(not(shuttle))]
const _: () = assert!(size_of::<Frame>() == 16);

impl Frame {
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

    #[inline]
    pub(crate) fn set_state(&self, state: FrameState) {
        self.state.store(state.pack(), Relaxed);
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

/// The descriptors of all frames, by pfn, and the type of every pageblock.
#[derive(Debug)]
pub struct MemMap {
    frames: Box<[Frame]>,
}

impl MemMap {
    /// Descriptors of the frames below `end`, all tails.
    pub(crate) fn new(end: Pfn) -> Self {
        Self { frames: zeroed_frames(end.0 as usize) }
    }

    /// The descriptor of `pfn`.
    ///
    /// # Panics
    /// If there is no such frame.
    #[inline]
    pub fn frame(&self, pfn: Pfn) -> &Frame {
        &self.frames[pfn.0 as usize]
    }

    /// The descriptor of `pfn`, if there is such a frame.
    #[inline]
    pub fn get(&self, pfn: Pfn) -> Option<&Frame> {
        self.frames.get(pfn.0 as usize)
    }
}

#[cfg(not(shuttle))]
fn zeroed_frames(count: usize) -> Box<[Frame]> {
    use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
    if count == 0 {
        return Box::default();
    }
    let layout = Layout::array::<Frame>(count).expect("fewer than 2^32 descriptors of 16 bytes");
    // SAFETY: the layout's size is not zero, since `count` is not.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: `memory` was allocated just now with the layout of `[Frame; count]`, and all-zero bytes are a valid
    // `Frame`, which is four integer atomics.
    #[allow(clippy::cast_ptr_alignment, reason = "the layout is that of Frames")]
    unsafe {
        Box::from_raw(core::ptr::slice_from_raw_parts_mut(memory.cast::<Frame>(), count))
    }
}

#[cfg(shuttle)]
fn zeroed_frames(count: usize) -> Box<[Frame]> {
    (0..count).map(|_| Frame::default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_survives_packing() {
        for kind in [FrameKind::Tail, FrameKind::Free, FrameKind::Pcp, FrameKind::Allocated] {
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
    fn zeroed_memory_reads_as_tails() {
        let map = MemMap::new(Pfn(4096));
        assert_eq!(map.frame(Pfn(4095)).state().kind, FrameKind::Tail);
        assert!(map.get(Pfn(4096)).is_none());
    }
}
