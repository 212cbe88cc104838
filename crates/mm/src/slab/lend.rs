//! Sheaves lent to a caller that must not fail later: it borrows one with enough objects in it, takes from it as it goes,
//! and brings the rest back (`kmem_cache_prefill_sheaf`; maple trees do so from 6.18 on).

use super::cache::CacheId;
use super::sheaf::Sheaf;
use super::stat::SlabEvent;
use super::{SheafCx, SlabDoor, SlabError, SlabGround};
use crate::ground::{Addr, Machine, Span, Work};
use crate::pages::AllocError;

/// A sheaf that was lent; to be brought back by [`SlabDoor::return_sheaf`].
#[derive(Debug)]
#[must_use = "its objects are lost if it is not brought back"]
pub struct LentSheaf {
    cache: CacheId,
    sheaf: Sheaf,
    /// Objects that it has room for.
    capacity: u32,
}

impl LentSheaf {
    /// Objects in it.
    pub fn len(&self) -> u32 {
        self.sheaf.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sheaf.len == 0
    }
}

impl<M: Machine, G: SlabGround<M>> SlabDoor<'_, M, G> {
    /// Borrows a sheaf of cache `id` with at least `count` objects in it.
    ///
    /// # Errors
    /// If there is no memory, no such cache, or the cache has no sheaves.
    pub fn prefill_sheaf(self, id: CacheId, count: u32) -> Result<LentSheaf, SlabError> {
        let cx = self.slab_cx(id)?;
        if !cx.cache.has_sheaves() {
            return Err(SlabError::NoSheaves(id));
        }
        let since = self.machine().enter(Span::SlabAlloc);
        let lent = cx.sheaves().lend(count);
        let work = Work { count: lent.as_ref().map_or(0, LentSheaf::len), ..Work::default() };
        self.machine().leave(Span::SlabAlloc, since, work);
        Ok(lent?)
    }

    /// An object from a borrowed sheaf, `None` once it is empty.
    pub fn alloc_from_sheaf(self, lent: &mut LentSheaf) -> Option<Addr> {
        lent.sheaf.pop(self.machine())
    }

    /// Brings a borrowed sheaf back, with what is left in it.
    #[allow(clippy::needless_pass_by_value, reason = "nobody may use it afterwards")]
    pub fn return_sheaf(self, lent: LentSheaf) {
        if let Ok(cx) = self.slab_cx(lent.cache) {
            let since = self.machine().enter(Span::SlabFree);
            let count = lent.sheaf.len;
            cx.sheaves().take_back(&lent);
            self.machine().leave(Span::SlabFree, since, Work { count, ..Work::default() });
        }
    }
}

impl<M: Machine, G: SlabGround<M>> SheafCx<'_, M, G> {
    fn lend(self, count: u32) -> Result<LentSheaf, AllocError> {
        let capacity = self.capacity().max(count);
        let mut sheaf = if count > self.capacity() {
            self.slab.count(SlabEvent::SheafPrefillOversize, 1);
            Sheaf::empty(self.new_sheaf_of(count).ok_or(AllocError::OutOfMemory)?)
        } else {
            self.any_sheaf().ok_or(AllocError::OutOfMemory)?
        };
        if sheaf.len < count {
            self.refill_sheaf(&mut sheaf, capacity);
        }
        let lent = LentSheaf { cache: self.slab.cache.id, sheaf, capacity };
        if lent.sheaf.len < count {
            self.take_back(&lent);
            return Err(AllocError::OutOfMemory);
        }
        Ok(lent)
    }

    /// The CPU's spare one, one of the barn's, or a new one.
    fn any_sheaf(self) -> Option<Sheaf> {
        let mut cpu = self.slab.lock_cpu();
        let spare = cpu.sheaves.spare.take();
        drop(cpu);
        if spare.is_some() {
            self.slab.count(SlabEvent::SheafPrefillFast, 1);
            return spare;
        }
        if let Some((at, is_full)) = self.barn_take_any() {
            self.slab.count(SlabEvent::SheafPrefillFast, 1);
            return Some(Sheaf { at, len: if is_full { self.capacity() } else { 0 } });
        }
        self.slab.count(SlabEvent::SheafPrefillSlow, 1);
        self.new_sheaf().map(Sheaf::empty)
    }

    fn take_back(self, lent: &LentSheaf) {
        let &LentSheaf { cache: _, mut sheaf, capacity } = lent;
        if capacity > self.capacity() {
            self.flush(&mut sheaf);
            self.free_sheaf(sheaf.at);
            return;
        }
        let usable = sheaf.len == 0 || sheaf.len == self.capacity();
        let mut cpu = self.slab.lock_cpu();
        if cpu.sheaves.spare.is_none() && cpu.sheaves.main.is_some() && usable {
            cpu.sheaves.spare = Some(sheaf);
            drop(cpu);
            self.slab.count(SlabEvent::SheafReturnFast, 1);
            return;
        }
        drop(cpu);
        self.slab.count(SlabEvent::SheafReturnSlow, 1);
        // One that is neither full nor empty is filled up, if the barn has room for it.
        if sheaf.len > 0 && self.barn_has_room() {
            self.refill_sheaf(&mut sheaf, self.capacity());
        }
        self.put_away(sheaf);
    }
}
