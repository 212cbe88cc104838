//! /proc/slabinfo and the files under /sys/kernel/slab, SLUB_STATS among them, in the kernel's own layout. To be called
//! while nothing else runs on a machine with real threads: counts of several CPUs are not of one moment otherwise.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::cache::{Cache, CacheId, NodeCache};
use super::node::Slabs;
use super::spec::CacheFlags;
use super::stat::SlabEvent;
use super::{ReadCx, SlabCx, SlabDoor, SlabError, SlabGround};
use crate::ground::{Machine, Pfn, Relaxed};
use crate::pages::List;
use crate::rules::policy::{CpuSlabRule, SheafRule};

/// A file of a cache under /sys/kernel/slab.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlabAttribute {
    /// Its name.
    pub name: &'static str,
    /// What it holds, without the end of the line.
    pub value: String,
}

/// What a node has of a cache.
#[derive(Clone, Copy, Debug, Default)]
struct NodeCounts {
    slabs: u64,
    objects: u64,
    partial: u64,
    partial_in_use: u64,
    partial_free: u64,
    cpu_slabs: u64,
}

/// The first two lines of /proc/slabinfo.
const HEADING: &str = "slabinfo - version: 2.1\n\
    # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> \
    <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n";

impl<M: Machine, G: SlabGround<M>> SlabDoor<'_, M, G> {
    /// /proc/slabinfo: a line for each cache, the newest first. As the kernel does, it counts as active what is not free
    /// in a node's partial slabs.
    pub fn slabinfo(self) -> String {
        let mut lines: Vec<String> = self.caches().map(|cache| self.slabinfo_line(cache)).collect();
        lines.reverse();
        HEADING.to_string() + &lines.concat()
    }

    fn slabinfo_line(self, cache: &Cache<M>) -> String {
        let counts = SlabCx { slabs: self, cache }.reading().node_counts();
        let sum = |of: fn(&NodeCounts) -> u64| counts.iter().map(of).sum::<u64>();
        let (slabs, objects) = (sum(|node| node.slabs), sum(|node| node.objects));
        let active = objects.saturating_sub(sum(|node| node.partial_free));
        format!(
            "{:<17} {active:>6} {objects:>6} {:>6} {:>4} {:>4} : tunables {:>4} {:>4} {:>4} : slabdata {slabs:>6} \
             {slabs:>6} {:>6}\n",
            cache.spec.name,
            cache.stride,
            cache.sizing.objects,
            cache.sizing.order.pages(),
            0,
            0,
            0,
            0,
        )
    }

    /// The files of cache `id`, by name. SLUB_STATS has those counters that there are under the policy.
    ///
    /// # Errors
    /// If there is no such cache.
    pub fn slab_attributes(self, id: CacheId) -> Result<Vec<SlabAttribute>, SlabError> {
        let cx = self.slab_cx(id)?;
        let mut attributes = sizes(cx);
        attributes.extend(flags(cx.cache.spec.flags));
        attributes.extend(states(cx));
        let events = SlabEvent::ALL.iter().filter(|event| cx.reading().counts(**event));
        attributes.extend(events.map(|&event| {
            let of_cpus = self.slab_events(id, event);
            attribute(event.name(), listed(of_cpus.iter().sum(), 'C', of_cpus.iter().copied()))
        }));
        attributes.sort_by_key(|attribute| attribute.name);
        Ok(attributes)
    }
}

/// What was computed when the cache was made.
fn sizes<M: Machine, G: SlabGround<M>>(cx: SlabCx<'_, M, G>) -> Vec<SlabAttribute> {
    let sizing = cx.cache.sizing();
    let numbers = [
        ("align", cx.cache.spec.alignment()),
        ("cpu_partial", sizing.cpu_partial_objects),
        ("min_partial", sizing.min_partial),
        ("object_size", cx.cache.spec.object_size),
        ("objs_per_slab", sizing.objects),
        ("order", sizing.order.get().into()),
        ("remote_node_defrag_ratio", sizing.remote_node_defrag_ratio / 10),
        ("slab_size", cx.cache.stride),
    ];
    let mut sizes: Vec<SlabAttribute> =
        numbers.into_iter().map(|(name, number)| attribute(name, number.to_string())).collect();
    if cx.rules().sheaves != SheafRule::None {
        sizes.push(attribute("sheaf_capacity", sizing.sheaf_capacity.to_string()));
    }
    sizes
}

fn flags(flags: CacheFlags) -> impl Iterator<Item = SlabAttribute> {
    let named = [
        ("cache_dma", CacheFlags::DMA),
        ("destroy_by_rcu", CacheFlags::TYPESAFE_BY_RCU),
        ("hwcache_align", CacheFlags::CACHE_ALIGNED),
        ("poison", CacheFlags::POISON),
        ("reclaim_account", CacheFlags::RECLAIMABLE),
        ("red_zone", CacheFlags::RED_ZONE),
        ("sanity_checks", CacheFlags::CHECKS),
        ("store_user", CacheFlags::STORE_USER),
    ];
    named.into_iter().map(move |(name, flag)| attribute(name, u32::from(flags.has(flag)).to_string()))
}

/// Where its memory is.
fn states<M: Machine, G: SlabGround<M>>(cx: SlabCx<'_, M, G>) -> Vec<SlabAttribute> {
    let counts = cx.reading().node_counts();
    let by_node = |name, of: fn(&NodeCounts) -> u64| {
        attribute(name, listed(counts.iter().map(of).sum(), 'N', counts.iter().map(of)))
    };
    let mut states = [
        by_node("cpu_slabs", |node| node.cpu_slabs),
        by_node("objects", |node| node.objects.saturating_sub(node.partial_free)),
        by_node("objects_partial", |node| node.partial_in_use),
        by_node("partial", |node| node.partial),
        by_node("slabs", |node| node.slabs),
        by_node("total_objects", |node| node.objects),
    ]
    .to_vec();
    states.push(attribute("slabs_cpu_partial", cx.reading().cpu_partials_text()));
    states
}

fn attribute(name: &'static str, value: String) -> SlabAttribute {
    SlabAttribute { name, value }
}

/// `48 N0=24 N1=24`: a sum, and each part that is not 0 under a letter and its number.
fn listed(sum: u64, letter: char, parts: impl Iterator<Item = u64>) -> String {
    let mut text = sum.to_string();
    for (number, part) in parts.enumerate().filter(|(_, part)| *part > 0) {
        let _ = write!(text, " {letter}{number}={part}");
    }
    text
}

impl<M: Machine, G: SlabGround<M>> ReadCx<'_, M, G> {
    /// Whether a kernel with these rules has such a counter.
    fn counts(self, event: SlabEvent) -> bool {
        if event.is_of_sheaves() {
            return self.slab.rules().sheaves != SheafRule::None;
        }
        !event.is_of_cpu_slabs() || self.slab.rules().cpu_slabs == CpuSlabRule::WithPartials
    }

    fn node_counts(self) -> Vec<NodeCounts> {
        let mut counts: Vec<NodeCounts> =
            self.slab.cache.nodes.iter().map(|node| self.counts_of(node)).collect();
        for cpu in &self.slab.cache.cpus {
            let local = cpu.local.lock_local(self.slab.machine());
            if let Some(head) = local.slab {
                counts[usize::from(self.slab.node_of(head).0)].cpu_slabs += 1;
            }
            // As the kernel does, which looks at the first one and the count that this one carries
            // (`show_slab_objects`): all of a CPU's partial slabs count where the first lies.
            let Slabs { first, len } = local.partial;
            if len > 0 {
                counts[usize::from(self.slab.node_of(Pfn(first)).0)].cpu_slabs += u64::from(len);
            }
        }
        counts
    }

    fn counts_of(self, node: &NodeCache<M>) -> NodeCounts {
        let slabs = u64::from(node.slabs.load(Relaxed));
        let mut counts = NodeCounts { slabs, objects: self.objects_in(node), ..NodeCounts::default() };
        let partials = self.slab.lock_list(node);
        let mut next = partials.list.first();
        while let Some(head) = next {
            let in_use = u64::from(self.slab.look(head).in_use());
            counts.partial += 1;
            counts.partial_in_use += in_use;
            counts.partial_free += u64::from(self.slab.cache.objects(self.slab.order_of(head))) - in_use;
            next = List::after(self.slab.map(), head);
        }
        counts
    }

    /// Objects of a node's slabs. Where memory was short some are of the smaller order; how many follows from the pages.
    fn objects_in(self, node: &NodeCache<M>) -> u64 {
        let sizing = &self.slab.cache.sizing;
        let (slabs, pages) = (u64::from(node.slabs.load(Relaxed)), u64::from(node.pages.load(Relaxed)));
        let (large, small) = (u64::from(sizing.order.pages()), u64::from(sizing.min_order.pages()));
        let missing = (slabs * large).saturating_sub(pages);
        let fallen_back = missing.checked_div(large - small).unwrap_or(0);
        slabs.saturating_sub(fallen_back) * u64::from(sizing.objects)
            + fallen_back * u64::from(sizing.min_objects)
    }

    /// `156(13) C0=48(4) C1=108(9)`: objects that the CPUs' partial slabs hold if each is half full, and slabs.
    fn cpu_partials_text(self) -> String {
        let slabs: Vec<u64> = self
            .slab
            .cache
            .cpus
            .iter()
            .map(|cpu| u64::from(cpu.local.lock_local(self.slab.machine()).partial.len))
            .collect();
        let objects = |slabs: u64| slabs * u64::from(self.slab.cache.sizing.objects) / 2;
        let sum = slabs.iter().sum();
        let mut text = format!("{}({sum})", objects(sum));
        for (cpu, &slabs) in slabs.iter().enumerate().filter(|(_, slabs)| **slabs > 0) {
            let _ = write!(text, " C{cpu}={}({slabs})", objects(slabs));
        }
        text
    }
}
