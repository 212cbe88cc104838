//! Walking every invariant of the slab allocator, and counting what is where. To be called while nothing else runs.

use super::{ReadCx, SlabDoor, SlabGround};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use super::cache::{Cache, CacheId};
use super::chain::NONE;
use super::node::Slabs;
use super::stat::SlabEvent;
use super::word::SlabWord;
use crate::ground::{Addr, Machine, Pfn, Relaxed};
use crate::pages::{FrameKind, List};

/// Where a cache's memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlabUse {
    /// Slabs that it has.
    pub slabs: u64,
    /// Pages of them.
    pub pages: u64,
    /// Objects of them.
    pub objects: u64,
    /// Of these, objects that were handed out, or wait for a grace period.
    pub in_use: u64,
    /// Objects that wait for a grace period.
    pub deferred: u64,
    /// Free objects in sheaves, and in stocks.
    pub in_sheaves: u64,
    /// Free objects of slabs that are a CPU's, or on its list of partial ones.
    pub on_cpus: u64,
    /// Slabs on CPUs' lists of partial ones.
    pub cpu_partial_slabs: u64,
    /// Slabs on nodes' lists.
    pub node_partial_slabs: u64,
}

/// How a slab is found to be held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder {
    Cpu,
    CpuPartial,
    Node,
    /// Nobody any more; it waits for a grace period.
    Deferred,
}

/// What a walk over the places where slabs are held has seen.
#[derive(Default)]
struct Seen {
    holders: BTreeMap<u32, Holder>,
    /// Objects that are free, but in use by their slab's count.
    aside: BTreeMap<u32, u32>,
    used: SlabUse,
}

impl<M: Machine, G: SlabGround<M>> SlabDoor<'_, M, G> {
    /// Checks every invariant of a cache, and says where its memory is. Debugging and lent sheaves apart, an object that
    /// is in use by its slab's count and in no sheaf or CPU's hands is the user's.
    ///
    /// # Errors
    /// The first invariant that does not hold, in one line.
    pub fn check_cache(self, id: CacheId) -> Result<SlabUse, String> {
        let cx = self.slab_cx(id).map_err(|error| format!("{error}"))?;
        cx.reading().check().map_err(|what| format!("cache {}: {what}", cx.cache.spec().name))
    }

    /// Checks every cache.
    ///
    /// # Errors
    /// As [`SlabDoor::check_cache`].
    pub fn check_caches(self) -> Result<(), String> {
        self.caches().try_for_each(|cache| self.check_cache(cache.id()).map(drop))
    }

    /// Counter `event` of cache `id`, of each CPU.
    pub fn slab_events(self, id: CacheId, event: SlabEvent) -> alloc::vec::Vec<u64> {
        let Some(cache) = self.cache(id) else { return alloc::vec::Vec::new() };
        let of_cpu = |cpu: usize| {
            let local = cache.cpus[cpu].local.lock_local(self.machine());
            let beside = match event {
                SlabEvent::AllocFastpath => local.fast_allocs,
                SlabEvent::FreeFastpath => local.fast_frees,
                SlabEvent::AllocPcs => local.sheaves.allocs,
                SlabEvent::FreePcs => local.sheaves.frees,
                _ => 0,
            };
            cache.cpus[cpu].stats.get(event) + beside
        };
        (0..cache.cpus.len()).map(of_cpu).collect()
    }

    /// Pages of all slabs, as of a moment ago.
    pub fn slab_pages(self) -> u64 {
        let of = |cache: &Cache<M>| {
            cache.nodes.iter().map(|node| u64::from(node.pages.load(Relaxed))).sum::<u64>()
        };
        self.caches().map(of).sum()
    }
}

impl<M: Machine, G: SlabGround<M>> ReadCx<'_, M, G> {
    fn check(self) -> Result<SlabUse, String> {
        let mut seen = Seen::default();
        self.walk_cpus(&mut seen)?;
        self.walk_nodes(&mut seen)?;
        let mut waiting = alloc::vec::Vec::new();
        self.slab.slabs.own().deferred.each_deferred_slab(self.slab.slabs, |head| waiting.push(head));
        waiting
            .into_iter()
            .filter(|head| self.slab.owns(*head))
            .try_for_each(|head| seen.hold(head, Holder::Deferred))?;
        self.walk_sheaves(&mut seen)?;
        self.walk_slabs(&mut seen)?;
        Ok(seen.used)
    }

    fn walk_cpus(self, seen: &mut Seen) -> Result<(), String> {
        for (number, cpu) in self.slab.cache.cpus.iter().enumerate() {
            let local = cpu.local.lock_local(self.slab.machine());
            if let Some(head) = local.slab {
                let chain = self.slab.cache.chain_from(self.slab.machine(), local.free);
                let free = chain.map_or(0, |chain| chain.len);
                seen.hold(head, Holder::Cpu)?;
                *seen.aside.entry(head.0).or_default() += free;
                seen.used.on_cpus += u64::from(free);
                if !self.slab.look(head).is_frozen() {
                    return Err(format!("the slab of cpu {number} at {head} is not frozen"));
                }
            } else if local.free != NONE {
                return Err(format!("cpu {number} has free objects, but no slab"));
            }
            let Slabs { first, len } = local.partial;
            let mut partial = Slabs { first, len };
            while let Some(head) = partial.pop(self.slab) {
                seen.hold(head, Holder::CpuPartial)?;
                seen.used.cpu_partial_slabs += 1;
            }
            if partial.len != 0 {
                return Err(format!("cpu {number} counts {len} partial slabs, but has others"));
            }
        }
        Ok(())
    }

    fn walk_nodes(self, seen: &mut Seen) -> Result<(), String> {
        for (number, node) in self.slab.cache.nodes.iter().enumerate() {
            let partials = self.slab.lock_list(node);
            let mut next = partials.list.first();
            let mut count = 0;
            while let Some(head) = next {
                seen.hold(head, Holder::Node)?;
                let word = self.slab.look(head);
                if !word.is_listed() || word.first_free().is_none() || word.is_frozen() {
                    return Err(format!(
                        "{head} is on the list of node {number}, but its word says {word:?}"
                    ));
                }
                if usize::from(self.slab.node_of(head).0) != number {
                    return Err(format!("{head} is on the list of node {number}, but of another"));
                }
                count += 1;
                next = List::after(self.slab.map(), head);
            }
            if count != partials.list.len() || count != node.nr_partial.load(Relaxed) {
                return Err(format!("node {number} has {count} partial slabs, but counts others"));
            }
            seen.used.node_partial_slabs += u64::from(count);
        }
        Ok(())
    }

    fn walk_sheaves(self, seen: &mut Seen) -> Result<(), String> {
        let mut objects = alloc::vec::Vec::new();
        let mut full = alloc::vec::Vec::new();
        for cpu in &self.slab.cache.cpus {
            let local = cpu.local.lock_local(self.slab.machine());
            full.extend([local.sheaves.main, local.sheaves.spare].into_iter().flatten());
            if let Some(spare) =
                local.sheaves.spare.filter(|spare| spare.len % self.slab.sheaves().capacity().max(1) != 0)
            {
                return Err(format!("a spare sheaf has {} objects: it must be full or empty", spare.len));
            }
            // What waits for a grace period is its user's no more, but not free either.
            if let Some(rcu) = local.sheaves.rcu {
                seen.used.deferred += u64::from(rcu.len);
            }
        }
        for node in &self.slab.cache.nodes {
            node.barn.each_full(self.slab.machine(), |at| {
                full.push(super::sheaf::Sheaf { at, len: self.slab.sheaves().capacity() });
            });
        }
        for sheaf in full {
            objects.extend((0..sheaf.len).map(|number| sheaf.get(self.slab.machine(), number)));
        }
        self.slab.stock().each_in_stock(|object| objects.push(object));
        objects.sort_unstable();
        if objects.windows(2).any(|two| two[0] == two[1]) {
            return Err(String::from("an object is in sheaves or stocks twice"));
        }
        for object in &objects {
            let head = self.slab.slabs.slab_head(*object).filter(|head| self.slab.owns(*head));
            let head =
                head.ok_or_else(|| format!("{object} is in a sheaf or stock, but of no slab of the cache"))?;
            *seen.aside.entry(head.0).or_default() += 1;
        }
        seen.used.in_sheaves = objects.len() as u64;
        let mut deferred = 0;
        self.slab.slabs.own().deferred.each_deferred(self.slab.slabs, |object| {
            deferred += u64::from(self.slab.slabs.slab_head(object).is_some_and(|head| self.slab.owns(head)));
        });
        seen.used.deferred += deferred;
        Ok(())
    }

    /// Goes over all frames of the machine for slabs of the cache.
    fn walk_slabs(self, seen: &mut Seen) -> Result<(), String> {
        for zone in self.slab.slabs.zones() {
            let span = zone.managed_span();
            let mut pfn = span.start;
            while pfn < span.end {
                let state = self.slab.map().frame(Pfn(pfn)).state();
                if state.kind == FrameKind::Slab && self.slab.owns(Pfn(pfn)) {
                    self.check_slab(seen, Pfn(pfn))?;
                }
                pfn += state.order.pages();
            }
        }
        let (slabs, pages) = (
            u64::from(self.slab.sheaves().slabs()),
            self.slab.cache.nodes.iter().map(|node| u64::from(node.pages.load(Relaxed))).sum::<u64>(),
        );
        if (slabs, pages) != (seen.used.slabs, seen.used.pages) {
            return Err(format!(
                "{} slabs in {} pages, but {slabs} and {pages} are counted",
                seen.used.slabs, seen.used.pages
            ));
        }
        Ok(())
    }

    fn check_slab(self, seen: &mut Seen, head: Pfn) -> Result<(), String> {
        let (word, order) = (self.slab.look(head), self.slab.order_of(head));
        let objects = self.slab.cache.objects(order);
        let free = self.free_of(head, word)?;
        let holder = seen.holders.get(&head.0).copied();
        if free + word.in_use() != objects {
            return Err(format!("{head}: {free} free and {} in use, of {objects}", word.in_use()));
        }
        if word.is_listed() != (holder == Some(Holder::Node)) {
            return Err(format!("{head}: its word says {word:?}, but it is held by {holder:?}"));
        }
        if free > 0 && holder.is_none() {
            return Err(format!("{head} has free objects, but is on no list"));
        }
        let aside = seen.aside.get(&head.0).copied().unwrap_or(0);
        if aside > word.in_use() {
            return Err(format!(
                "{head}: {aside} objects are in sheaves or a CPU's, but {} in use",
                word.in_use()
            ));
        }
        if matches!(holder, Some(Holder::CpuPartial)) {
            seen.used.on_cpus += u64::from(free);
        }
        seen.used.slabs += 1;
        seen.used.pages += u64::from(order.pages());
        seen.used.objects += u64::from(objects);
        seen.used.in_use += u64::from(word.in_use() - aside);
        Ok(())
    }

    /// Objects on a slab's own list of free ones.
    fn free_of(self, head: Pfn, word: SlabWord) -> Result<u32, String> {
        let order = self.slab.order_of(head);
        let mut at = word.first_free().map_or(NONE, |number| self.slab.cache.object(head, number));
        let mut met = alloc::vec![false; self.slab.cache.objects(order) as usize];
        let mut free = 0;
        while at != NONE {
            let number = if self.slab.slabs.slab_head(at) == Some(head) {
                self.slab.cache.number(head, order, at)
            } else {
                None
            };
            let number = number.ok_or_else(|| format!("{head}: its free list leads to {at}"))?;
            if core::mem::replace(&mut met[number as usize], true) {
                return Err(format!("{head}: object {number} is on its free list twice"));
            }
            free += 1;
            at = Addr(self.slab.cache.next(self.slab.machine(), at).0);
        }
        Ok(free)
    }
}

impl Seen {
    fn hold(&mut self, head: Pfn, holder: Holder) -> Result<(), String> {
        match self.holders.insert(head.0, holder) {
            Some(other) => Err(format!("{head} is held by {holder:?} and by {other:?}")),
            None => Ok(()),
        }
    }
}
