//! The memory manager: the rooms put together, and what they ask of each other upward.

use alloc::string::{String, ToString};

use crate::cache::{Asker, FileSlots, FilesDoor, FilesGround, InSlot, PageCache, SlotsAround};
use crate::compact::{CompactDoor, CompactGround, Compaction, EmptyDoor, OfflineDoor};
use crate::ground::{Cpu, LockClass, Locked, Machine, Node, Order, Pfn, SwapIo, Topology, ZoneKind};
use crate::lru::{GenDoor, Lru, LruDoor, LruGround, MigrateError, Owners, Shadow};
use crate::memcg::{GroupAsk, GroupId, MemcgDoor, MemcgGround, Memcgs};
use crate::pages::{
    Above, AllocError, FreeError, MemMap, Pages, PagesGround, Request, Search, Zone, ZoneBlock,
};
use crate::reclaim::{NodeReclaimDoor, PageOutDoor, Reclaim, ReclaimDoor, ReclaimGround};
use crate::rules::knobs::{KNOBS, Knob, KnobError, Knobs};
use crate::rules::policy::Policy;
use crate::slab::{SlabAllocator, SlabDoor, SlabGround};
use crate::views::oom::OomReports;
use crate::views::{ViewsDoor, ViewsGround};
use crate::vm::{AddressSpace, AheadDoor, CollapseDoor, RmapDoor, SpacesDoor, SpacesGround, SwapDoor, Vm};

/// A memory manager on a machine.
pub struct Mm<M: Machine> {
    pages: Pages<M>,
    slab_allocator: SlabAllocator<M>,
    memcgs: Memcgs<M>,
    lru: Lru<M>,
    page_cache: PageCache<M, AddressSpace<M>>,
    vm: Vm<M>,
    compaction: Compaction,
    reclaim: Reclaim<M>,
    oom_reports: OomReports<M>,
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
        for spec in KNOBS.iter().filter(|spec| knobs.get(spec.knob) != policy.default_of(spec.knob)) {
            let check = policy.check_knob(spec.knob, knobs.get(spec.knob));
            check.map_err(|error| error.to_string())?;
        }
        let pages = Pages::new(machine, topology, policy, knobs);
        let (machine, topology) = (pages.machine(), pages.topology());
        let mm = Self {
            slab_allocator: SlabAllocator::new(machine, topology.cpus.len()),
            memcgs: Memcgs::new(machine, topology.cpus.len()),
            lru: Lru::new(&pages),
            page_cache: PageCache::new(machine, pages.zones().len()),
            vm: Vm::new(machine, topology.nodes.len()),
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
        GenDoor::on(self).switch_generations(self.knobs().get(Knob::LruGenEnabled));
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

    /// Memory cgroups.
    #[inline]
    pub fn memcg(&self) -> MemcgDoor<'_, M, Self> {
        MemcgDoor::on(self)
    }

    /// The lists that reclaim looks through.
    #[inline]
    pub fn lru(&self) -> LruDoor<'_, M, Self> {
        LruDoor::on(self)
    }

    /// Files and their pages.
    #[inline]
    pub fn files(&self) -> FilesDoor<'_, M, Self> {
        FilesDoor::on(self)
    }

    /// Address spaces.
    #[inline]
    pub fn spaces(&self) -> SpacesDoor<'_, M, Self> {
        SpacesDoor::on(self)
    }

    /// Slots of swap.
    #[inline]
    pub fn swap(&self) -> SwapDoor<'_, M, Self> {
        SwapDoor::on(self)
    }

    fn swap_ahead(&self) -> AheadDoor<'_, M, Self> {
        AheadDoor::on(self)
    }

    /// Pages and those who map them.
    #[inline]
    pub fn rmap(&self) -> RmapDoor<'_, M, Self> {
        RmapDoor::on(self)
    }

    /// khugepaged.
    #[inline]
    pub fn collapses(&self) -> CollapseDoor<'_, M, Self> {
        CollapseDoor::on(self)
    }

    /// Compaction.
    #[inline]
    pub fn compaction(&self) -> CompactDoor<'_, M, Self> {
        CompactDoor::on(self)
    }

    /// Emptying single pageblocks.
    #[inline]
    pub fn emptying(&self) -> EmptyDoor<'_, M, Self> {
        EmptyDoor::on(self)
    }

    /// Nodes out of use.
    #[inline]
    pub fn offlining(&self) -> OfflineDoor<'_, M, Self> {
        OfflineDoor::on(self)
    }

    /// Reclaim.
    #[inline]
    pub fn reclaim(&self) -> ReclaimDoor<'_, M, Self> {
        ReclaimDoor::on(self)
    }

    /// Room on a request's own node before others are asked.
    #[inline]
    pub fn node_reclaim(&self) -> NodeReclaimDoor<'_, M, Self> {
        NodeReclaimDoor::on(self)
    }

    /// Pages that programs send out by themselves.
    #[inline]
    pub fn pages_out(&self) -> PageOutDoor<'_, M, Self> {
        PageOutDoor::on(self)
    }

    /// What others see: files of /proc, counters, the walk over all invariants.
    #[inline]
    pub fn views(&self) -> ViewsDoor<'_, M, Self> {
        ViewsDoor::on(self)
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
        self.compaction().tick_compaction(cpu);
        self.slabs().tick_stocks(cpu);
        self.lru().flush_due_stats();
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
    fn wake_kswapd(&self, node: Node, kind: ZoneKind) {
        self.reclaim().wake_kswapd_for(node, Order::ZERO, kind);
    }

    fn has_users(&self) -> bool {
        self.lru.has_pages()
    }

    fn reclaim_on_node(&self, search: Search<'_>, zone: &Zone<M>, preferred: &Zone<M>) -> bool {
        self.node_reclaim().reclaim_for(search, zone, preferred)
    }

    fn alloc_slow(&self, search: Search<'_>) -> Result<ZoneBlock, AllocError> {
        self.reclaim().make_room_for(search)
    }
}

impl<M: Machine> PagesGround<M> for Mm<M> {
    #[inline]
    fn pages(&self) -> &Pages<M> {
        &self.pages
    }
}

impl<M: Machine> SlabGround<M> for Mm<M> {
    #[inline]
    fn slab_allocator(&self) -> &SlabAllocator<M> {
        &self.slab_allocator
    }
}

impl<M: Machine> MemcgGround<M> for Mm<M> {
    #[inline]
    fn memcgs(&self) -> &Memcgs<M> {
        &self.memcgs
    }

    fn reclaim_in_group(&self, ask: GroupAsk) -> u32 {
        self.reclaim().reclaim_in_group(ask)
    }

    fn drain_batches(&self) {
        self.lru().lru_drain_all();
    }
}

impl<M: Machine> LruGround<M> for Mm<M> {
    #[inline]
    fn lru_lists(&self) -> &Lru<M> {
        &self.lru
    }
}

impl<M: Machine> Owners<M> for Mm<M> {
    fn move_to(&self, from: Pfn, request: Request) -> Result<(), MigrateError> {
        self.rmap().migrate_to(from, request)
    }

    fn move_into(&self, from: Pfn, to: Pfn) -> Result<(), MigrateError> {
        self.rmap().migrate_page(from, to)
    }

    fn move_out(&self, from: Pfn, to: Pfn) -> Result<(), MigrateError> {
        self.rmap().migrate_away(from, to)
    }
}

impl<M: Machine> FileSlots for Mm<M> {
    fn has_swap_for(&self, group: GroupId) -> bool {
        self.swap().has_swap(group)
    }

    fn in_slot(&self, slot: u32) -> Option<InSlot> {
        self.swap().of_file(slot)
    }

    fn brings_folios(&self) -> bool {
        self.swap().brings_folios()
    }

    fn slots_around(&self, slot: u32) -> SlotsAround {
        self.swap().slots_around_shared(slot)
    }

    fn start_plug(&self) -> Option<Cpu> {
        self.swap().start_plug()
    }

    fn finish_plug(&self, plug: Option<Cpu>) {
        self.swap().finish_plug(plug);
    }

    fn read_private(&self, slot: u32, from: Asker) {
        self.swap_ahead().read_private(slot, from);
    }

    fn slot_read(&self, slot: u32, pfn: Pfn) {
        self.swap().count_read(slot, pfn);
    }

    fn bring(&self, slot: u32, io: SwapIo) {
        self.swap().bring(slot, io);
    }

    fn send_again(&self, slot: u32, pfn: Pfn) {
        self.swap().send_shared_again(slot, pfn);
    }

    fn ahead_was_wanted(&self) {
        self.swap().note_hit();
    }

    fn left_again(&self, slot: u32, shadow: Shadow) {
        self.swap().leave_shadow(slot, Order::ZERO, shadow);
    }

    fn free_slot(&self, slot: u32) {
        self.swap().swap_free(slot);
    }
}

impl<M: Machine> FilesGround<M> for Mm<M> {
    type Space = AddressSpace<M>;

    #[inline]
    fn page_cache(&self) -> &PageCache<M, AddressSpace<M>> {
        &self.page_cache
    }
}

impl<M: Machine> SpacesGround<M> for Mm<M> {
    #[inline]
    fn address_spaces(&self) -> &Vm<M> {
        &self.vm
    }
}

impl<M: Machine> CompactGround<M> for Mm<M> {
    #[inline]
    fn compaction_state(&self) -> &Compaction {
        &self.compaction
    }
}

impl<M: Machine> ReclaimGround<M> for Mm<M> {
    #[inline]
    fn reclaim_state(&self) -> &Reclaim<M> {
        &self.reclaim
    }

    fn out_of_memory(&self, search: Search<'_>) {
        self.views().report_out_of_memory(search);
    }
}

impl<M: Machine> ViewsGround<M> for Mm<M> {
    #[inline]
    fn oom_reports(&self) -> &OomReports<M> {
        &self.oom_reports
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
