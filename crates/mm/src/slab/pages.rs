//! Slabs come from the page allocator and go back to it.

use super::cache::NodeCache;
use super::chain::{Chain, NONE};
use super::stat::SlabEvent;
use super::word::SlabWord;
use super::{SlabCx, SlabGround};
use crate::ground::{
    Access, Addr, Line, LineKind, Machine, MigrateType, Node, Order, Pfn, Relaxed, ZoneKind,
};
use crate::pages::{AllocError, FrameKind, FrameState, Request, Urgency};

/// A slab that nobody else knows of yet, and its objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewSlab {
    pub(super) head: Pfn,
    pub(super) chain: Chain,
}

impl<'a, M: Machine, G: SlabGround<M>> SlabCx<'a, M, G> {
    /// A slab from the page allocator, from `node` if it can be; its word says that all of its objects are in use.
    pub(super) fn new_slab(self, node: Option<Node>) -> Result<NewSlab, AllocError> {
        let cache = self.cache;
        let (head, order) = self.slab_pages(node)?;
        self.name_frames(head, order);
        self.map().frame(head).set_owner(SlabWord::full(cache.objects(order)).0);
        let home = self.counted_at(head);
        home.slabs.fetch_add(1, Relaxed);
        home.pages.fetch_add(order.pages(), Relaxed);
        self.count(SlabEvent::AllocSlab, 1);
        self.debugging().mark_new(head);
        Ok(NewSlab { head, chain: self.link_all(head, order) })
    }

    /// The node's part where a slab is counted: two atomic counters beside `list_lock` (with SLUB_DEBUG, which kernels
    /// have on).
    fn counted_at(self, head: Pfn) -> &'a NodeCache<M> {
        let home = self.home(head);
        for _counter in ["nr_slabs", "total_objects"] {
            self.machine().touch(Line { kind: LineKind::SlabNode, index: home.line }, Access::Atomic);
        }
        home
    }

    /// Of the wanted order if that is to be had at once, else of the least.
    fn slab_pages(self, node: Option<Node>) -> Result<(Pfn, Order), AllocError> {
        let sizing = &self.cache.sizing;
        let request = self.page_request(node);
        let higher = sizing.order > sizing.min_order;
        self.watch_order();
        if higher {
            let patient = Request { urgency: Urgency::NoWait, ..request };
            if let Ok(head) = self.slabs.alloc(patient.of_order(sizing.order)) {
                return Ok((head, sizing.order));
            }
        }
        let head = self.slabs.alloc(request.of_order(sizing.min_order))?;
        if higher {
            self.count(SlabEvent::OrderFallback, 1);
        }
        Ok((head, sizing.min_order))
    }

    fn page_request(self, node: Option<Node>) -> Request {
        let spec = &self.cache.spec;
        let reclaimable = spec.flags.has(super::CacheFlags::RECLAIMABLE);
        let dma = spec.flags.has(super::CacheFlags::DMA);
        Request {
            node,
            migratetype: if reclaimable { MigrateType::Reclaimable } else { MigrateType::Unmovable },
            highest: if dma { ZoneKind::Dma } else { ZoneKind::Normal },
            ..Request::KERNEL
        }
    }

    /// Says on the slab's frames whose they are.
    fn name_frames(self, head: Pfn, order: Order) {
        let block = self.map().frame(head).state();
        self.mem().touch(head, Access::Write);
        self.map().frame(head).set_slab(block, self.cache.id.0);
        let tail = FrameState { kind: FrameKind::SlabTail, ..block };
        for page in 1..order.pages() {
            self.mem().touch(head.add(page), Access::Store);
            self.map().frame(head.add(page)).set_state(tail);
        }
    }

    fn link_all(self, head: Pfn, order: Order) -> Chain {
        let cache = self.cache;
        let objects = cache.objects(order);
        for number in 0..objects {
            let next = if number + 1 < objects { cache.object(head, number + 1) } else { NONE };
            cache.set_next(self.machine(), cache.object(head, number), next);
        }
        Chain { first: Addr::of(head), last: cache.object(head, objects - 1), len: objects }
    }

    /// Gives a slab back of which no object is in use and that is on no list.
    pub(super) fn discard(self, head: Pfn) {
        self.count(SlabEvent::FreeSlab, 1);
        if self.cache.spec.flags.has(super::CacheFlags::TYPESAFE_BY_RCU) {
            self.slabs.own().deferred.defer_slab(self.slabs, head);
        } else {
            self.free_pages(head);
        }
    }

    pub(super) fn free_pages(self, head: Pfn) {
        let state = self.map().frame(head).state();
        let home = self.counted_at(head);
        home.slabs.fetch_sub(1, Relaxed);
        home.pages.fetch_sub(state.order.pages(), Relaxed);
        self.mem().touch(head, Access::Write);
        for page in 1..state.order.pages() {
            self.mem().touch(head.add(page), Access::Store);
            self.map().frame(head.add(page)).set_tail();
        }
        let migratetype = self.page_request(None).migratetype;
        let block = FrameState { kind: FrameKind::Allocated, migratetype, ..state };
        self.map().frame(head).set_state(block);
        let freed = self.slabs.pages().free(head, state.order);
        debug_assert!(freed.is_ok(), "a slab's block was just marked as allocated");
    }
}
