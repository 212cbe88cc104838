//! A cache: what it is asked to be, and its parts on CPUs and nodes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::barn::Barn;
use super::cpu::CpuSlab;
use super::node::Partials;
use super::stat::{SlabEvent, SlabStats};
use super::stock::{Depot, Stock};
use super::watch::{CacheWatch, Limits};
use super::{CacheSizing, CacheSpec};
use crate::ground::{Addr, AtomicU32, Cpu, LockClass, Locked, Machine, Order, PAGE_SIZE, Pfn, Relaxed};

/// A cache's number; never used again for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CacheId(pub u16);

/// A cache of objects of one size.
pub struct Cache<M: Machine> {
    pub(super) id: CacheId,
    pub(super) spec: CacheSpec,
    pub(super) sizing: CacheSizing,
    /// Names of other caches that share these slabs.
    pub(super) aliases: Locked<M, Vec<alloc::string::String>>,
    /// Bytes from one object to the next.
    pub(super) stride: u32,
    /// Where in a free object the address of the next one lies.
    pub(super) link: u64,
    /// Partial slabs that a CPU keeps at most, and that a node keeps at least; they may change in mid-run.
    cpu_partial_slabs: AtomicU32,
    min_partial: AtomicU32,
    /// Held while an object of a cache that is debugged changes hands.
    pub(super) debug: Locked<M, ()>,
    /// Objects that were written to while they were free, and are kept out of use.
    pub(super) spoilt: AtomicU32,
    /// 2^32 / stride, rounded up: objects are numbered by a multiplication.
    reciprocal: u64,
    pub(super) cpus: Box<[CpuCache<M>]>,
    pub(super) nodes: Box<[NodeCache<M>]>,
    /// What limits would be with other knobs, where that is watched.
    pub(super) watch: Option<Box<CacheWatch>>,
}

/// A CPU's part of a cache.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct CpuCache<M: Machine> {
    pub(super) local: Locked<M, CpuSlab>,
    pub(super) stats: SlabStats,
}

/// A node's part of a cache.
#[derive(Debug)]
pub(super) struct NodeCache<M: Machine> {
    /// Partial slabs, under `list_lock`.
    pub(super) partial: Locked<M, Partials>,
    /// How many those are, for who looks without the lock.
    pub(super) nr_partial: AtomicU32,
    /// Slabs that live on the node.
    pub(super) slabs: AtomicU32,
    /// Pages of them.
    pub(super) pages: AtomicU32,
    pub(super) barn: Barn<M>,
    pub(super) depot: Depot<M>,
    /// What [`crate::LineKind::SlabNode`] calls it.
    pub(super) line: u32,
}

/// What a cache is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground<'a, M> {
    pub(super) machine: &'a M,
    pub(super) cpus: usize,
    pub(super) nodes: usize,
}

impl<M: Machine> Cache<M> {
    pub(super) fn new(
        ground: &Ground<'_, M>,
        id: CacheId,
        spec: CacheSpec,
        (sizing, watch): (CacheSizing, Option<Box<CacheWatch>>),
    ) -> Self {
        let &Ground { machine, cpus, nodes } = ground;
        let cpu = |cpu: usize| {
            let line = u32::from(id.0) * 1024 + cpu as u32;
            let local = Locked::new(machine, LockClass::CpuSlab, line, CpuSlab::new(line, Stock::new(nodes)));
            CpuCache { local, stats: SlabStats::default() }
        };
        let node = |node: usize| {
            let line = u32::from(id.0) * nodes as u32 + node as u32;
            NodeCache {
                partial: Locked::new(machine, LockClass::List, line, Partials::default()),
                nr_partial: AtomicU32::new(0),
                slabs: AtomicU32::new(0),
                pages: AtomicU32::new(0),
                barn: Barn::new(machine, line),
                depot: Depot::new(machine, line),
                line,
            }
        };
        Self {
            id,
            aliases: Locked::new(machine, LockClass::Other, u32::from(id.0), Vec::new()),
            debug: Locked::new(machine, LockClass::Other, u32::from(id.0), ()),
            spoilt: AtomicU32::new(0),
            reciprocal: (1u64 << 32).div_ceil(u64::from(spec.stride())),
            stride: spec.stride(),
            link: u64::from(spec.link()),
            cpu_partial_slabs: AtomicU32::new(sizing.cpu_partial_slabs),
            min_partial: AtomicU32::new(sizing.min_partial),
            cpus: (0..cpus).map(cpu).collect(),
            nodes: (0..nodes).map(node).collect(),
            spec,
            sizing,
            watch,
        }
    }

    /// Its number.
    pub fn id(&self) -> CacheId {
        self.id
    }

    /// What it was asked to be.
    pub fn spec(&self) -> &CacheSpec {
        &self.spec
    }

    /// Its sizes, with the limits that hold now.
    pub fn sizing(&self) -> CacheSizing {
        let Limits { cpu_partial_slabs, min_partial } = self.limits();
        CacheSizing { cpu_partial_slabs, min_partial, ..self.sizing }
    }

    /// The limits that follow from other knobs.
    pub(super) fn resize(&self, limits: Limits) {
        self.cpu_partial_slabs.store(limits.cpu_partial_slabs, Relaxed);
        self.min_partial.store(limits.min_partial, Relaxed);
    }

    #[inline]
    pub(super) fn limits(&self) -> Limits {
        Limits {
            cpu_partial_slabs: self.cpu_partial_slabs.load(Relaxed),
            min_partial: self.min_partial.load(Relaxed),
        }
    }

    #[inline]
    pub(super) fn has_cpu_partial(&self, machine: &M) -> bool {
        self.decide_cpu(machine, |most| most > 0)
    }

    /// Whether a node that has so many partial slabs gives back empty ones.
    #[inline]
    pub(super) fn is_enough_partial(&self, machine: &M, slabs: u32) -> bool {
        self.decide_node(machine, |least| slabs >= least)
    }

    #[inline]
    pub(super) fn has_sheaves(&self) -> bool {
        self.sizing.sheaf_capacity > 0
    }

    /// Objects of a slab of `order`.
    #[inline]
    pub(super) fn objects(&self, order: Order) -> u32 {
        if order == self.sizing.order { self.sizing.objects } else { objects_in(order, self.stride) }
    }

    /// Where object `number` of the slab at `head` is.
    #[inline]
    pub(super) fn object(&self, head: Pfn, number: u32) -> Addr {
        Addr::of(head).add(u64::from(number) * u64::from(self.stride))
    }

    /// The number of the object at `at` in the slab at `head`; `None` if none begins there.
    #[inline]
    pub(super) fn number(&self, head: Pfn, order: Order, at: Addr) -> Option<u32> {
        // Offsets are below 2^22, so that what rounding adds stays below one object.
        let offset = at.0 - Addr::of(head).0;
        let number = ((offset * self.reciprocal) >> 32) as u32;
        let begins = u64::from(number) * u64::from(self.stride) == offset;
        (begins && number < self.objects(order)).then_some(number)
    }

    #[inline]
    pub(super) fn count(&self, cpu: Cpu, event: SlabEvent, times: u32) {
        self.cpus[usize::from(cpu.0)].stats.add(event, times);
    }
}

impl<M: Machine> fmt::Debug for Cache<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("id", &self.id).field("spec", &self.spec).finish_non_exhaustive()
    }
}

fn objects_in(order: Order, stride: u32) -> u32 {
    order.pages() * PAGE_SIZE as u32 / stride
}
