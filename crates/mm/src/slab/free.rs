//! Objects go back: to the calling CPU's slab if they are of it, else to their own slab's list, which mostly needs no
//! lock; the node's `list_lock` is taken when a slab gets onto its list or may leave it
//! (docs/rules/slab.md#paths-with-slabs-of-cpus).

use super::cache::NodeCache;
use super::chain::{Chain, NONE};
use super::node::{End, Partials};
use super::stat::SlabEvent;
use super::word::SlabWord;
use super::{SlabCx, SlabGround};
use crate::ground::{Addr, Guard, Machine, Pfn};
use crate::rules::policy::{CpuSlabRule, FreezeRule};

/// What a free found and made of a slab's word.
#[derive(Clone, Copy, Debug)]
struct Change {
    old: SlabWord,
    new: SlabWord,
}

impl Change {
    /// The slab had no free object before.
    fn was_full(self) -> bool {
        self.old.first_free().is_none()
    }

    fn is_empty(self) -> bool {
        self.new.in_use() == 0
    }
}

impl<'a, M: Machine, G: SlabGround<M>> SlabCx<'a, M, G> {
    /// Frees objects of the slab at `head`.
    #[inline]
    pub(super) fn free_to_slabs(self, head: Pfn, chain: Chain) {
        if self.rules().cpu_slabs == CpuSlabRule::WithPartials && !self.cache.spec.is_debug() {
            let mut cpu = self.lock_cpu();
            if cpu.slab == Some(head) {
                self.cache.set_next(self.machine(), chain.last, cpu.free);
                cpu.free = chain.first;
                cpu.fast_frees += u64::from(chain.len);
                return;
            }
        }
        self.free_slowly(head, chain);
    }

    #[inline(never)]
    pub(super) fn free_slowly(self, head: Pfn, chain: Chain) {
        self.count(SlabEvent::FreeSlowpath, chain.len);
        let order = self.order_of(head);
        let Some(first) = self.cache.number(head, order, chain.first) else { return };
        loop {
            let old = self.look(head);
            let next = old.first_free().map_or(NONE, |number| self.cache.object(head, number));
            self.cache.set_next(self.machine(), chain.last, next);
            let change = Change { old, new: old.freed(first, chain.len) };
            if self.try_free(head, change) {
                return;
            }
            self.count(SlabEvent::CmpxchgDoubleFail, 1);
        }
    }

    /// Carries out a change, unless the slab's word has changed in the meantime.
    fn try_free(self, head: Pfn, change: Change) -> bool {
        let Change { old, new } = change;
        if old.is_frozen() {
            let done = self.exchange(head, old, new);
            self.count(SlabEvent::FreeFrozen, u32::from(done));
            return done;
        }
        if !change.was_full() && !change.is_empty() {
            return self.exchange(head, old, new);
        }
        if change.was_full() && self.cache.has_cpu_partial(self.machine()) {
            let to_cpu = new.frozen(self.rules().freeze == FreezeRule::UnderLock);
            let done = self.exchange(head, old, to_cpu);
            if done {
                self.put_cpu_partial(head);
                self.count(SlabEvent::CpuPartialFree, 1);
            }
            return done;
        }
        let node = self.home(head);
        let partials = self.lock_list(node);
        let done = self.exchange(head, old, new);
        if done {
            self.relist(node, partials, head, change);
        }
        done
    }

    /// The slab gets onto its node's list or leaves it, as its change asks for.
    fn relist(self, node: &'a NodeCache<M>, mut partials: Guard<'_, M, Partials>, head: Pfn, change: Change) {
        let listed = change.old.is_listed();
        if !change.was_full() && !listed {
            // It is on some CPU's list of partial slabs; who drains that will see to it.
            return;
        }
        if change.is_empty() && self.cache.is_enough_partial(self.machine(), partials.list.len()) {
            if listed {
                self.unlist(node, &mut partials, head);
                self.count(SlabEvent::FreeRemovePartial, 1);
            }
            drop(partials);
            self.discard(head);
        } else if change.was_full() {
            self.list(node, &mut partials, head, End::Tail);
            self.count(SlabEvent::FreeAddPartial, 1);
        }
    }

    /// Frees `objects` of this cache, those of one slab together as far as they lie near each other in the row. The order
    /// in which they are looked at is from the last to the first, as in the kernel.
    pub(super) fn free_many_to_slabs(self, objects: &mut [Addr]) {
        let mut left = objects.len();
        while let Some((head, chain)) = self.gather(&mut objects[..left]) {
            self.free_to_slabs(head, chain);
            while left > 0 && objects[left - 1] == NONE {
                left -= 1;
            }
        }
    }

    /// Frees all that `next` gives, so many at a time as the kernel flushes a sheaf.
    pub(super) fn free_all_to_slabs(self, mut next: impl FnMut() -> Option<Addr>) {
        const BATCH: usize = 32;
        let mut objects = [NONE; BATCH];
        loop {
            let mut filled = 0;
            while filled < BATCH {
                let Some(object) = next() else { break };
                objects[filled] = object;
                filled += 1;
            }
            self.free_many_to_slabs(&mut objects[..filled]);
            if filled < BATCH {
                return;
            }
        }
    }

    /// Takes the last object of the row and others of its slab, leaving [`NONE`] in their place; it gives up after three
    /// in a row of other slabs.
    fn gather(self, objects: &mut [Addr]) -> Option<(Pfn, Chain)> {
        const LOOK_AHEAD: u32 = 3;
        let (last, others) = objects.split_last_mut()?;
        let head = self.slabs.slab_head(*last)?;
        let mut chain = Chain::one(*last);
        *last = NONE;
        let mut strangers = 0;
        for object in others.iter_mut().rev().filter(|object| **object != NONE) {
            if self.slabs.slab_head(*object) == Some(head) {
                chain.push(self.machine(), self.cache, *object);
                *object = NONE;
            } else {
                strangers += 1;
                if strangers == LOOK_AHEAD {
                    break;
                }
            }
        }
        Some((head, chain))
    }
}
