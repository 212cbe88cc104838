//! The memory manager: the rooms put together, and what they ask of each other upward.

use alloc::string::{String, ToString};

use crate::compact::Compaction;
use crate::ground::ids::{Cpu, Node, Order, Pfn, ZoneKind};
use crate::ground::machine::{LockClass, Machine};
use crate::ground::sync::Locked;
use crate::ground::topology::Topology;
use crate::lru::Lru;
use crate::lru::page::Page;
use crate::pages::alloc_path::Search;
use crate::pages::frame::MemMap;
use crate::pages::pageblock::Pageblocks;
use crate::pages::request::{AllocError, FreeError, Request};
use crate::pages::zone::{Zone, ZoneBlock};
use crate::pages::{Above, Pages};
use crate::reclaim::Reclaim;
use crate::rules::knobs::{KNOBS, Knob, KnobError, Knobs};
use crate::rules::policy::{Policy, Rules};
use crate::slab::{SlabAllocator, SlabDoor, SlabGround};
use crate::views::oom::OomReports;
use crate::vm::Vm;

/// A memory manager on a machine.
pub struct Mm<M: Machine> {
    pages: Pages<M>,
    slab_allocator: SlabAllocator<M>,
    pub(crate) lru: Lru<M>,
    pub(crate) vm: Vm<M>,
    pub(crate) compaction: Compaction,
    pub(crate) reclaim: Reclaim<M>,
    pub(crate) oom_reports: OomReports<M>,
    /// Held while knobs change: what follows from them is computed from one set of values.
    knobs_change: Locked<M, ()>,
}

impl<M: Machine> Mm<M> {
    /// A memory manager for `topology`, all of its managed pages free.
    ///
    /// # Errors
    /// If the topology is impossible, or the policy's kernel lacks a knob that is not at its default, or the value: what is wrong, in one line.
    pub fn new(machine: M, topology: Topology, policy: Policy, knobs: Knobs) -> Result<Self, String> {
        topology.validate()?;
        // A kernel that lacks a knob does what the knob's default stands for.
        for spec in KNOBS.iter().filter(|spec| knobs.get(spec.knob) != spec.default) {
            let check = policy.check_knob(spec.knob, knobs.get(spec.knob));
            check.map_err(|error| error.to_string())?;
        }
        let pages = Pages::new(machine, topology, policy, knobs);
        let (machine, topology) = (pages.machine(), pages.topology());
        let mm = Self {
            slab_allocator: SlabAllocator::new(machine, topology.cpus.len()),
            lru: Lru::new(&pages),
            vm: Vm::new(machine, topology.nodes.len(), pages.zones().len()),
            compaction: Compaction::new(topology.nodes.len(), pages.zones().iter().map(Zone::managed_span)),
            reclaim: Reclaim::new(machine, topology),
            oom_reports: OomReports::new(machine),
            knobs_change: Locked::new(machine, LockClass::Other, 0, ()),
            pages,
        };
        mm.slabs().resize_caches();
        Ok(mm)
    }

    /// Gives `value` to `knob`, as writing to the sysctl does; all that follows from it is computed anew.
    ///
    /// # Errors
    /// If the value is out of the knob's range, or the policy's kernel does not take it.
    pub fn set_knob(&self, knob: Knob, value: u64) -> Result<(), KnobError> {
        self.policy().check_knob(knob, value)?;
        let _change = self.knobs_change.lock(self.machine());
        self.knobs().set(knob, value)?;
        self.pages.apply_knobs();
        self.slabs().resize_caches();
        Ok(())
    }

    /// The page allocator.
    #[inline]
    pub fn pages(&self) -> &Pages<M> {
        &self.pages
    }

    /// The slab allocator.
    #[inline]
    pub fn slabs(&self) -> SlabDoor<'_, M, Self> {
        SlabDoor::on(self)
    }

    /// Allocates a block and gives its first frame.
    ///
    /// # Errors
    /// If there is no block and there will not be one; see [`AllocError`].
    #[inline]
    pub fn alloc(&self, request: Request) -> Result<Pfn, AllocError> {
        self.pages.alloc(self, request)
    }

    /// Frees the block of `order` at `pfn`.
    ///
    /// # Errors
    /// If that block is not allocated; then nothing was changed.
    #[inline]
    pub fn free(&self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        self.pages.free(pfn, order)
    }

    /// Frees blocks together: [`Pages::free_batch`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn free_batch(&self, blocks: &[(Pfn, Order)]) -> Result<(), FreeError> {
        self.pages.free_batch(blocks)
    }

    /// Empties every pageset of every CPU (the kernel's `drain_all_pages`).
    pub fn drain_all(&self) {
        self.pages.drain_all();
    }

    /// The vmstat tick of `cpu`, to be called every [`Pages::stat_interval_ns`]: folds its counters, lets what it keeps decay.
    pub fn vmstat_tick(&self, cpu: Cpu) {
        self.pages.vmstat_tick(self, cpu);
        self.tick_compaction(cpu);
        self.slabs().tick_stocks(cpu);
    }

    /// The machine that this runs on.
    #[inline]
    pub fn machine(&self) -> &M {
        self.pages.machine()
    }

    /// What this was told of the machine.
    #[inline]
    pub fn topology(&self) -> &Topology {
        self.pages.topology()
    }

    /// The policy in force.
    #[inline]
    pub fn policy(&self) -> &Policy {
        self.pages.policy()
    }

    /// The rules of that policy.
    #[inline]
    pub(crate) fn rules(&self) -> &Rules {
        self.pages.policy().rules()
    }

    /// The knobs' values; [`Mm::set_knob`] changes them.
    #[inline]
    pub fn knobs(&self) -> &Knobs {
        self.pages.knobs()
    }

    /// The frame descriptors.
    #[inline]
    pub fn map(&self) -> &MemMap {
        self.pages.map()
    }

    #[inline]
    pub(crate) fn blocks(&self) -> &Pageblocks {
        self.pages.blocks()
    }

    /// What is known of the page at `pfn` besides its descriptor.
    #[inline]
    pub(crate) fn page(&self, pfn: Pfn) -> &Page {
        self.lru.page(pfn)
    }

    /// Whether some address space or file has been made: there are pages that could be reclaimed.
    #[inline]
    pub(crate) fn has_pages(&self) -> bool {
        self.lru.has_pages()
    }

    /// The populated zones, by [`crate::ZoneId`].
    #[inline]
    pub fn zones(&self) -> &[Zone<M>] {
        self.pages.zones()
    }

    /// The zone of `kind` on `node`, if it is populated.
    pub fn zone(&self, node: Node, kind: ZoneKind) -> Option<&Zone<M>> {
        self.pages.zone(node, kind)
    }

    /// The zone whose span `pfn` is in.
    pub fn zone_of(&self, pfn: Pfn) -> Option<&Zone<M>> {
        self.pages.zone_of(pfn)
    }
}

impl<M: Machine> Above<M> for Mm<M> {
    fn wake_kswapd(&self, node: Node) {
        self.wake_kswapd_for(node, Order::ZERO, ZoneKind::Movable);
    }

    fn has_users(&self) -> bool {
        self.has_pages()
    }

    fn alloc_slow(&self, search: Search<'_>) -> Result<ZoneBlock, AllocError> {
        self.make_room_for(search)
    }
}

impl<M: Machine> SlabGround<M> for Mm<M> {
    #[inline]
    fn pages(&self) -> &Pages<M> {
        &self.pages
    }

    #[inline]
    fn slab_allocator(&self) -> &SlabAllocator<M> {
        &self.slab_allocator
    }
}

impl<M: Machine> core::fmt::Debug for Mm<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Mm")
            .field("policy", &self.policy().name())
            .field("zones", &self.zones())
            .finish_non_exhaustive()
    }
}
