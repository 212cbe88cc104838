//! Sheaves are filled from slabs: through CPU slabs where there are any, else (from 7.0) from the node's partial slabs,
//! taken off its list in one hold for as many objects as are wanted (docs/rules/slab.md#sheaves).

use super::cache::NodeCache;
use super::chain::NONE;
use super::node::{End, Slabs, Wait};
use super::stat::SlabEvent;
use super::{SheafCx, SlabGround};
use crate::ground::{Addr, Machine, Pfn, Relaxed};
use crate::pages::AllocError;
use crate::rules::policy::{CpuSlabRule, RemoteRefillRule};

impl<'a, M: Machine, G: SlabGround<M>> SheafCx<'a, M, G> {
    /// Hands `want` objects to `put`.
    ///
    /// # Errors
    /// If memory ran out; those that there were were handed out.
    pub(super) fn refill_objects(self, want: u32, mut put: impl FnMut(Addr)) -> Result<(), AllocError> {
        if self.slab.rules().cpu_slabs == CpuSlabRule::WithPartials {
            return self.slab.alloc_many_from_slabs(want, put);
        }
        let local = self.slab.slabs.pages().local_node();
        let home = &self.slab.cache.nodes[usize::from(local.0)];
        let mut left = want;
        if self.slab.nr_partial(home) > 0 {
            left -= self.refill_from(home, left, Wait::AsLongAsNeeded, &mut put);
        }
        if left > 0 && self.slab.asks_elsewhere() {
            left -= self.refill_elsewhere(left, &mut put);
        }
        while left > 0 {
            left -= self.refill_from_new(left, &mut put)?;
        }
        Ok(())
    }

    fn refill_elsewhere(self, want: u32, put: &mut impl FnMut(Addr)) -> u32 {
        let local = self.slab.slabs.pages().local_node();
        let wait = match self.slab.rules().remote_refill {
            RemoteRefillRule::Waits => Wait::AsLongAsNeeded,
            RemoteRefillRule::Tries => Wait::Never,
        };
        let mut left = want;
        for node in self.slab.slabs.pages().fallback_order(local) {
            let node = &self.slab.cache.nodes[usize::from(node.0)];
            if left > 0 && self.slab.has_spare(node) {
                left -= self.refill_from(node, left, wait, put);
            }
        }
        want - left
    }

    /// Takes slabs off the list of `node` until they have `want` objects free, as their words say at the time; hands out
    /// up to `want`. How many it handed out.
    fn refill_from(self, node: &'a NodeCache<M>, want: u32, wait: Wait, put: &mut impl FnMut(Addr)) -> u32 {
        let mut slabs = self.take_for(node, want, wait);
        let mut left = want;
        while left > 0 {
            let Some(head) = slabs.pop(self.slab) else { break };
            let objects = self.slab.cache.objects(self.slab.order_of(head));
            let before = self.slab.change(head, |word| word.taken(objects));
            let mut next = before.first_free().map_or(NONE, |number| self.slab.cache.object(head, number));
            while left > 0 && next != NONE {
                let object = next;
                next = self.slab.cache.next(self.slab.machine(), object);
                put(object);
                left -= 1;
            }
            if let Some(rest) = self.slab.cache.chain_from(self.slab.machine(), next) {
                self.slab.free_slowly(head, rest);
            }
        }
        self.put_back(node, slabs);
        want - left
    }

    pub(super) fn take_for(self, node: &'a NodeCache<M>, want: u32, wait: Wait) -> Slabs {
        let mut slabs = Slabs::EMPTY;
        let Some(mut partials) = self.slab.lock_list_as(node, wait) else { return slabs };
        let mut free = 0;
        while free < want {
            let Some(head) = partials.list.first() else { break };
            let objects = self.slab.cache.objects(self.slab.order_of(head));
            free += objects - self.slab.look(head).in_use();
            self.slab.unlist(node, &mut partials, head);
            slabs.push(self.slab, head);
            self.slab.count(SlabEvent::AllocFromPartial, 1);
        }
        slabs
    }

    /// Slabs that were not needed go back to their list; empty ones beyond what the node keeps, to the page allocator.
    fn put_back(self, node: &'a NodeCache<M>, mut slabs: Slabs) {
        if slabs.len == 0 {
            return;
        }
        let mut empty = Slabs::EMPTY;
        let mut partials = self.slab.lock_list(node);
        while let Some(head) = slabs.pop(self.slab) {
            if self.slab.look(head).in_use() == 0
                && self.slab.cache.is_enough_partial(self.slab.machine(), partials.list.len())
            {
                empty.push(self.slab, head);
            } else {
                self.slab.list(node, &mut partials, head, End::Head);
            }
        }
        drop(partials);
        while let Some(head) = empty.pop(self.slab) {
            self.slab.discard(head);
        }
    }

    /// Hands out up to `want` objects of a new slab; the rest of it goes on its node's list.
    fn refill_from_new(self, want: u32, put: &mut impl FnMut(Addr)) -> Result<u32, AllocError> {
        let slab = self.slab.new_slab(None)?;
        let mut next = slab.chain.first;
        let mut given = 0;
        while given < want && next != NONE {
            let object = next;
            next = self.slab.cache.next(self.slab.machine(), object);
            put(object);
            given += 1;
        }
        self.put_rest(slab.head, next);
        Ok(given)
    }

    /// The objects of a new slab from `first` on are free; it goes on its node's list if there are any.
    fn put_rest(self, head: Pfn, first: Addr) {
        if let Some(rest) = self.slab.cache.chain_from(self.slab.machine(), first) {
            let number = self.slab.cache.number(head, self.slab.order_of(head), rest.first).unwrap_or(0);
            self.slab.change(head, |word| word.freed(number, rest.len));
            let node = self.slab.home(head);
            let mut partials = self.slab.lock_list(node);
            self.slab.list(node, &mut partials, head, End::Head);
            self.slab.count(SlabEvent::FreeAddPartial, 1);
        }
    }

    /// One object without CPU slabs or sheaves: from the node's list, another's, or a new slab.
    pub(super) fn alloc_single(self, node: Option<crate::ground::ids::Node>) -> Result<Addr, AllocError> {
        self.slab.count(SlabEvent::AllocSlowpath, 1);
        let local = node.unwrap_or_else(|| self.slab.slabs.pages().local_node());
        let home = &self.slab.cache.nodes[usize::from(local.0)];
        if self.slab.nr_partial(home) > 0 {
            if let Some(object) = self.take_single(home) {
                return Ok(object);
            }
        }
        let slab = self.slab.new_slab(node)?;
        let object = slab.chain.first;
        self.put_rest(slab.head, self.slab.cache.next(self.slab.machine(), object));
        Ok(object)
    }

    /// An object of the first slab of the list of `node`, all in one hold.
    fn take_single(self, node: &'a NodeCache<M>) -> Option<Addr> {
        let mut partials = self.slab.lock_list(node);
        let head = partials.list.first()?;
        loop {
            let word = self.slab.look(head);
            let number = word.first_free()?;
            let object = self.slab.cache.object(head, number);
            let next = self.slab.cache.next(self.slab.machine(), object);
            let order = self.slab.order_of(head);
            let new =
                word.popped(if next == NONE { None } else { self.slab.cache.number(head, order, next) });
            if self.slab.exchange(head, word, new) {
                if new.first_free().is_none() {
                    self.slab.unlist(node, &mut partials, head);
                }
                self.slab.count(SlabEvent::AllocFromPartial, 1);
                return Some(object);
            }
        }
    }

    /// Slabs of all nodes, as of a moment ago.
    pub(super) fn slabs(self) -> u32 {
        self.slab.cache.nodes.iter().map(|node| node.slabs.load(Relaxed)).sum()
    }
}
