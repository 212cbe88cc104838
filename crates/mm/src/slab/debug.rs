//! Debugging of a cache: known bytes in free objects and around all, and a look at every free for what is freed twice.
//! Each object is handed out and taken back under one lock of the cache, which is what debugging costs in Linux too.
//!
//! ```text
//!   | object …                | red zone | link |
//!   free:  0x6b … 0x6b 0xa5    0xbb …
//!   used:  the user's          0xcc …
//! ```

use super::chain::{Chain, NONE};
use super::{CacheFlags, CacheSpec, DebugCx, SlabError, SlabGround};
use crate::ground::{Addr, Machine, Node, Pfn, Relaxed};
use crate::pages::AllocError;

const POISON_FREE: u8 = 0x6b;
const POISON_END: u8 = 0xa5;
const RED_FREE: u8 = 0xbb;
const RED_USED: u8 = 0xcc;
const WORD: u32 = 8;

/// Where a cache's red zone lies in an object: from the end of what the user may write.
fn red_zone(spec: &CacheSpec) -> core::ops::Range<u32> {
    let end = spec.object_size.next_multiple_of(WORD);
    if !spec.flags.has(CacheFlags::RED_ZONE) {
        return end..end;
    }
    let end = if end == spec.object_size { end + WORD } else { end };
    spec.object_size..end
}

/// Bytes of an object that its user may write and those of its red zone.
pub(super) fn marked_bytes(spec: &CacheSpec) -> u32 {
    red_zone(spec).end
}

impl<M: Machine, G: SlabGround<M>> DebugCx<'_, M, G> {
    /// An object, after a look at whether anybody wrote to it while it was free. One that was written to is kept out of
    /// use, and the next is tried.
    pub(super) fn alloc_debug(self, node: Option<Node>) -> Result<Addr, AllocError> {
        let _one_at_a_time = self.slab.cache.debug.lock(self.slab.machine());
        loop {
            let object = self.slab.sheaves().alloc_single(node)?;
            let clean = self.is_clean(object);
            self.mark(object, RED_USED);
            if clean {
                return Ok(object);
            }
            self.slab.cache.spoilt.fetch_add(1, Relaxed);
        }
    }

    /// Frees an object, after a look at whether it is in use and whether its user wrote beyond its end.
    pub(super) fn free_debug(self, head: Pfn, object: Addr) -> Result<(), SlabError> {
        let _one_at_a_time = self.slab.cache.debug.lock(self.slab.machine());
        if self.is_free(head, object) {
            return Err(SlabError::DoubleFree(object));
        }
        if !self.holds(object, red_zone(&self.slab.cache.spec), RED_USED) {
            return Err(SlabError::RedZone(object));
        }
        self.mark(object, RED_FREE);
        self.poison(object);
        self.slab.free_slowly(head, Chain::one(object));
        Ok(())
    }

    /// Whether nobody wrote to an object since it was freed.
    fn is_clean(self, object: Addr) -> bool {
        let spec = &self.slab.cache.spec;
        if !self.holds(object, red_zone(spec), RED_FREE) {
            return false;
        }
        if !spec.flags.has(CacheFlags::POISON) {
            return true;
        }
        let last = spec.object_size - 1;
        self.holds(object, 0..last, POISON_FREE) && self.byte(object, last) == POISON_END
    }

    /// Whether an object is on its slab's list of free ones.
    fn is_free(self, head: Pfn, object: Addr) -> bool {
        let objects = self.slab.cache.objects(self.slab.order_of(head));
        let first = self.slab.look(head).first_free();
        let mut at = first.map_or(NONE, |number| self.slab.cache.object(head, number));
        for _ in 0..objects {
            if at == NONE || at == object {
                break;
            }
            at = self.slab.cache.next(self.slab.machine(), at);
        }
        at == object
    }

    fn poison(self, object: Addr) {
        let spec = &self.slab.cache.spec;
        if spec.flags.has(CacheFlags::POISON) {
            self.fill(object, 0..spec.object_size - 1, POISON_FREE);
            self.fill(object, spec.object_size - 1..spec.object_size, POISON_END);
        }
    }

    fn mark(self, object: Addr, byte: u8) {
        self.fill(object, red_zone(&self.slab.cache.spec), byte);
    }

    /// Marks all objects of a new slab as free ones.
    pub(super) fn mark_new(self, head: Pfn) {
        if self.slab.cache.spec.is_debug() {
            for number in 0..self.slab.cache.objects(self.slab.order_of(head)) {
                let object = self.slab.cache.object(head, number);
                self.mark(object, RED_FREE);
                self.poison(object);
            }
        }
    }

    fn holds(self, object: Addr, mut bytes: core::ops::Range<u32>, wanted: u8) -> bool {
        bytes.all(|offset| self.byte(object, offset) == wanted)
    }

    fn byte(self, object: Addr, offset: u32) -> u8 {
        let word = self.slab.machine().load(object.add(u64::from(offset / WORD * WORD)));
        word.to_le_bytes()[(offset % WORD) as usize]
    }

    fn fill(self, object: Addr, bytes: core::ops::Range<u32>, byte: u8) {
        for offset in bytes {
            let at = object.add(u64::from(offset / WORD * WORD));
            let mut word = self.slab.machine().load(at).to_le_bytes();
            word[(offset % WORD) as usize] = byte;
            self.slab.machine().store(at, u64::from_le_bytes(word));
        }
    }
}
