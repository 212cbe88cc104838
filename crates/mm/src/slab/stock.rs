//! Freehold's own way with free objects: each CPU keeps a stock of them, linked through themselves, so that it costs no
//! memory, and as large as this CPU was seen to need. No kernel has this.
//!
//! ```text
//!   alloc, free ─▶ stock ── a bundle at a time ──▶ depot of the node ── when full or empty ──▶ slabs
//!                    │ objects of other nodes, a bundle at a time ──▶ depot of their node
//! ```
//!
//! What comes back at the end of a grace period is what the CPU will need during the next one. A stock of fixed size (a
//! sheaf and a spare one, some partial slabs) passes most of that on to its node, and fetches it back from there: two
//! trips under the node's lock. Here, a stock that has to fetch objects after it gave some away may keep that many more from
//! then on; one that was never empty between two ticks gives half of its surplus back to the slabs and keeps less.

use super::{SlabCx, SlabDoor, SlabGround, StockCx};
use alloc::boxed::Box;

use super::cache::Cache;
use super::chain::NONE;
use super::node::Wait;
use super::stat::SlabEvent;
use crate::ground::{
    Access, Addr, AtomicU32, Cpu, Guard, Line, LineKind, LockClass, Locked, Machine, Node, PAGE_SIZE, Pfn,
    Relaxed,
};
use crate::pages::AllocError;
use crate::rules::policy::StockRule;

/// Bundles that a depot holds.
const DEPOT: usize = 16;
/// A stock never grows beyond this part of memory, shared evenly by the CPUs.
const MEMORY_SHARE: u64 = 64;
/// Bundles that a stock may always hold.
const LEAST_BUNDLES: u32 = 2;

/// Free objects, linked.
#[derive(Clone, Copy, Debug)]
struct ObjectList {
    first: Addr,
    len: u32,
}

impl ObjectList {
    const EMPTY: Self = Self { first: NONE, len: 0 };

    #[inline]
    fn push<M: Machine>(&mut self, machine: &M, cache: &Cache<M>, object: Addr) {
        cache.set_next(machine, object, self.first);
        self.first = object;
        self.len += 1;
    }

    #[inline]
    fn pop<M: Machine>(&mut self, machine: &M, cache: &Cache<M>) -> Option<Addr> {
        if self.len == 0 {
            return None;
        }
        let object = self.first;
        self.len -= 1;
        self.first = if self.len == 0 { NONE } else { cache.next(machine, object) };
        Some(object)
    }

    /// Takes the first `count` objects off.
    fn cut<M: Machine>(&mut self, machine: &M, cache: &Cache<M>, count: u32) -> Self {
        let cut = Self { first: self.first, len: count.min(self.len) };
        if cut.len == 0 {
            return Self::EMPTY;
        }
        let mut last = self.first;
        for _ in 1..cut.len {
            last = cache.next(machine, last);
        }
        self.len -= cut.len;
        self.first = if self.len == 0 { NONE } else { cache.next(machine, last) };
        cache.set_next(machine, last, NONE);
        cut
    }
}

/// A CPU's stock of a cache.
#[derive(Debug)]
pub(super) struct Stock {
    free: ObjectList,
    /// Objects that it may hold.
    limit: u32,
    /// Objects given away that were not fetched back yet.
    given: u32,
    /// The least that it held since the last tick.
    low: u32,
    /// Objects of other nodes, by node.
    away: Box<[ObjectList]>,
}

impl Stock {
    /// An empty one; `nodes` is 0 where the policy has no stocks.
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            free: ObjectList::EMPTY,
            limit: 0,
            given: 0,
            low: 0,
            away: (0..nodes).map(|_| ObjectList::EMPTY).collect(),
        }
    }
}

/// A node's depot: bundles on their way from CPUs that free to CPUs that allocate.
#[derive(Debug)]
pub(super) struct Depot<M: Machine> {
    bundles: Locked<M, Bundles>,
    len: AtomicU32,
    line: u32,
}

#[derive(Debug)]
struct Bundles {
    lists: [ObjectList; DEPOT],
    len: usize,
    /// The least since the last tick that looked.
    low: usize,
}

impl<M: Machine> Depot<M> {
    pub(super) fn new(machine: &M, line: u32) -> Self {
        let bundles = Bundles { lists: [ObjectList::EMPTY; DEPOT], len: 0, low: 0 };
        let bundles = Locked::new(machine, LockClass::Barn, line, bundles);
        Self { bundles, len: AtomicU32::new(0), line }
    }

    fn lock<'a>(&'a self, machine: &'a M) -> Guard<'a, M, Bundles> {
        let guard = self.bundles.lock(machine);
        machine.touch(Line { kind: LineKind::Barn, index: self.line }, Access::Write);
        guard
    }

    /// Bundles, as of a moment ago.
    fn len(&self, machine: &M) -> usize {
        machine.touch(Line { kind: LineKind::Barn, index: self.line }, Access::Read);
        self.len.load(Relaxed) as usize
    }

    /// Puts a bundle in, unless it is full.
    fn put(&self, machine: &M, bundle: ObjectList) -> bool {
        if self.len(machine) == DEPOT {
            return false;
        }
        let mut bundles = self.lock(machine);
        let place = bundles.len;
        let fits = place < DEPOT;
        if fits {
            bundles.lists[place] = bundle;
            bundles.len += 1;
            self.len.store(bundles.len as u32, Relaxed);
        }
        fits
    }

    /// Takes the bundle out that came last.
    fn take(&self, machine: &M) -> Option<ObjectList> {
        if self.len(machine) == 0 {
            return None;
        }
        self.take_locked(&mut self.lock(machine))
    }

    fn take_locked(&self, bundles: &mut Bundles) -> Option<ObjectList> {
        bundles.len = bundles.len.checked_sub(1)?;
        bundles.low = bundles.low.min(bundles.len);
        self.len.store(bundles.len as u32, Relaxed);
        Some(bundles.lists[bundles.len])
    }

    /// Takes a bundle out if there was one all the time since the last call.
    fn take_idle(&self, machine: &M) -> Option<ObjectList> {
        if self.len(machine) == 0 {
            return None;
        }
        let mut bundles = self.lock(machine);
        let idle = bundles.low > 0;
        let taken = if idle { self.take_locked(&mut bundles) } else { None };
        bundles.low = bundles.len;
        taken
    }
}

/// Objects of a bundle: as many as sheaves of that size hold, about.
pub(super) const fn bundle(stride: u32) -> u32 {
    match stride {
        4096.. => 4,
        1024.. => 12,
        256.. => 32,
        _ => 64,
    }
}

impl<'a, M: Machine, G: SlabGround<M>> StockCx<'a, M, G> {
    /// An object from this CPU's stock, which is filled where it is dry.
    #[inline]
    pub(super) fn alloc_from_stock(self, node: Option<Node>) -> Result<Addr, AllocError> {
        if node.is_some_and(|node| node != self.slab.slabs.pages().local_node()) {
            return self.slab.sheaves().alloc_single(node);
        }
        let mut cpu = self.slab.lock_cpu();
        if let Some(object) = cpu.stock.free.pop(self.slab.machine(), self.slab.cache) {
            cpu.stock.low = cpu.stock.low.min(cpu.stock.free.len);
            cpu.fast_allocs += 1;
            return Ok(object);
        }
        drop(cpu);
        self.alloc_from_dry_stock()
    }

    #[inline(never)]
    fn alloc_from_dry_stock(self) -> Result<Addr, AllocError> {
        self.slab.count(SlabEvent::AllocSlowpath, 1);
        let list = match self.depot().take(self.slab.machine()) {
            Some(list) => list,
            None => self.list_from_slabs()?,
        };
        let mut cpu = self.slab.lock_cpu();
        let stock = &mut cpu.stock;
        // What was given away and had to be fetched back might have stayed here.
        let regretted = stock.given.min(list.len);
        stock.given -= regretted;
        stock.limit =
            (stock.limit + regretted).min(self.most()).max(LEAST_BUNDLES * bundle(self.slab.cache.stride));
        let mut list = list;
        let object = list.pop(self.slab.machine(), self.slab.cache);
        if stock.free.len == 0 {
            stock.free = list;
        } else {
            // This is another CPU by now, or others have freed to it.
            while let Some(more) = list.pop(self.slab.machine(), self.slab.cache) {
                stock.free.push(self.slab.machine(), self.slab.cache, more);
            }
        }
        drop(cpu);
        object.ok_or(AllocError::OutOfMemory)
    }

    /// All free objects of a slab: of the first of the node's list, or of a new one.
    fn list_from_slabs(self) -> Result<ObjectList, AllocError> {
        let home = &self.slab.cache.nodes[usize::from(self.slab.slabs.pages().local_node().0)];
        if self.slab.nr_partial(home) > 0 {
            let mut slabs = self.slab.sheaves().take_for(home, 1, Wait::AsLongAsNeeded);
            if let Some(head) = slabs.pop(self.slab) {
                let objects = self.slab.cache.objects(self.slab.order_of(head));
                let before = self.slab.change(head, |word| word.taken(objects));
                let first = before.first_free().map_or(NONE, |number| self.slab.cache.object(head, number));
                return Ok(ObjectList { first, len: objects - before.in_use() });
            }
        }
        let slab = self.slab.new_slab(None)?;
        Ok(ObjectList { first: slab.chain.first, len: slab.chain.len })
    }

    /// Objects that a stock may hold at most.
    fn most(self) -> u32 {
        let pages: u64 = self.slab.slabs.zones().iter().map(|zone| u64::from(zone.managed())).sum();
        let bytes = pages * PAGE_SIZE / MEMORY_SHARE / self.slab.cache.cpus.len() as u64;
        (bytes / u64::from(self.slab.cache.stride)).min(1 << 20) as u32
    }

    /// Frees an object to this CPU's stock; what is too much there goes on.
    #[inline]
    pub(super) fn free_to_stock(self, head: Pfn, object: Addr) {
        if self.slab.cache.nodes.len() > 1 && self.slab.node_of(head) != self.slab.slabs.pages().local_node()
        {
            return self.free_away(head, object);
        }
        let mut cpu = self.slab.lock_cpu();
        cpu.fast_frees += 1;
        cpu.stock.free.push(self.slab.machine(), self.slab.cache, object);
        if cpu.stock.free.len > cpu.stock.limit {
            self.give(cpu);
        }
    }

    #[inline(never)]
    fn give(self, mut cpu: Guard<'_, M, super::cpu::CpuSlab>) {
        let least = LEAST_BUNDLES * bundle(self.slab.cache.stride);
        if cpu.stock.free.len <= least {
            cpu.stock.limit = least;
            return;
        }
        let given = cpu.stock.free.cut(self.slab.machine(), self.slab.cache, bundle(self.slab.cache.stride));
        cpu.stock.given = cpu.stock.given.saturating_add(given.len);
        cpu.stock.low = cpu.stock.low.min(cpu.stock.free.len);
        drop(cpu);
        self.pass_on(self.depot(), given);
    }

    /// A bundle goes to a depot, or its objects to their slabs.
    fn pass_on(self, depot: &Depot<M>, list: ObjectList) {
        if list.len < bundle(self.slab.cache.stride) || !depot.put(self.slab.machine(), list) {
            self.list_to_slabs(list);
        }
    }

    fn free_away(self, head: Pfn, object: Addr) {
        let node = usize::from(self.slab.node_of(head).0);
        let mut cpu = self.slab.lock_cpu();
        cpu.fast_frees += 1;
        let list = &mut cpu.stock.away[node];
        list.push(self.slab.machine(), self.slab.cache, object);
        if list.len < bundle(self.slab.cache.stride) {
            return;
        }
        let list = core::mem::replace(list, ObjectList::EMPTY);
        drop(cpu);
        self.pass_on(&self.slab.cache.nodes[node].depot, list);
    }

    fn list_to_slabs(self, mut list: ObjectList) {
        self.slab.free_all_to_slabs(|| list.pop(self.slab.machine(), self.slab.cache));
    }

    /// The depot of the CPU's node.
    fn depot(self) -> &'a Depot<M> {
        &self.slab.cache.nodes[usize::from(self.slab.slabs.pages().local_node().0)].depot
    }

    /// A tick of CPU number `cpu`: half of what it did not need since the last one goes back to slabs, and so does a
    /// bundle that nobody fetched from its node's depot.
    fn tick_stock(self, cpu: usize) {
        let mut local = self.slab.cache.cpus[cpu].local.lock_local(self.slab.machine());
        let stock = &mut local.stock;
        let surplus = stock.low / 2;
        let list = stock.free.cut(self.slab.machine(), self.slab.cache, surplus);
        stock.limit = stock.limit.saturating_sub(surplus);
        stock.low = stock.free.len;
        drop(local);
        self.list_to_slabs(list);
        self.send_away(cpu);
        if let Some(bundle) = self.depot().take_idle(self.slab.machine()) {
            self.list_to_slabs(bundle);
        }
    }

    fn send_away(self, cpu: usize) {
        for node in 0..self.slab.cache.nodes.len() {
            let mut local = self.slab.cache.cpus[cpu].local.lock_local(self.slab.machine());
            let Some(list) = local.stock.away.get_mut(node) else { return };
            let list = core::mem::replace(list, ObjectList::EMPTY);
            drop(local);
            self.list_to_slabs(list);
        }
    }

    /// Puts all of CPU number `cpu`'s stock back into slabs.
    pub(super) fn flush_stock(self, cpu: usize) {
        let mut local = self.slab.cache.cpus[cpu].local.lock_local(self.slab.machine());
        let list = core::mem::replace(&mut local.stock.free, ObjectList::EMPTY);
        (local.stock.low, local.stock.limit) = (0, 0);
        drop(local);
        self.list_to_slabs(list);
        self.send_away(cpu);
    }

    /// Empties the depots into slabs.
    pub(super) fn flush_depots(self) {
        for node in &self.slab.cache.nodes {
            while let Some(list) = node.depot.take(self.slab.machine()) {
                self.list_to_slabs(list);
            }
        }
    }

    /// Looks at every object in stocks and depots.
    pub(super) fn each_in_stock(self, mut look: impl FnMut(Addr)) {
        let mut walk = |mut list: ObjectList| {
            while let Some(object) = list.pop(self.slab.machine(), self.slab.cache) {
                look(object);
            }
        };
        for cpu in &self.slab.cache.cpus {
            let local = cpu.local.lock_local(self.slab.machine());
            walk(local.stock.free);
            local.stock.away.iter().for_each(|list| walk(*list));
        }
        for node in &self.slab.cache.nodes {
            let bundles = node.depot.lock(self.slab.machine());
            bundles.lists[..bundles.len].iter().for_each(|list| walk(*list));
        }
    }

    /// Whether the cache has stocks.
    #[inline]
    pub(super) fn stock_serves(self) -> bool {
        self.slab.rules().stock == StockRule::Adaptive && !self.slab.cache.spec.is_debug()
    }
}

impl<M: Machine, G: SlabGround<M>> SlabDoor<'_, M, G> {
    /// What a tick of `cpu` does to its stocks.
    pub(crate) fn tick_stocks(self, cpu: Cpu) {
        for cache in self.caches() {
            let cx = SlabCx { slabs: self, cache }.stock();
            if cx.stock_serves() {
                cx.tick_stock(usize::from(cpu.0));
            }
        }
    }

    /// Puts all stocks back into slabs, and empty slabs back among the pages: memory is short. Whether there were any.
    pub(crate) fn give_up_stocks(self) -> bool {
        let stocked = |cache: &&Cache<M>| SlabCx { slabs: self, cache: *cache }.stock().stock_serves();
        let pages = self.slab_pages();
        for cache in self.caches().filter(stocked) {
            // Only a cache that there is not could fail.
            let _ = self.shrink_cache(cache.id());
        }
        self.slab_pages() < pages
    }
}
