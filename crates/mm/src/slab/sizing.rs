//! How large a cache's slabs are and how much of them is kept where, from the stride of its objects, the policy and the
//! number of CPUs (docs/rules/slab.md).

use crate::ground::{Order, PAGE_SIZE, Topology};
use crate::rules::knobs::{Knob, Knobs};
use crate::rules::policy::{CpuSlabRule, NodePartialRule, Rules, SheafRule, SlabOrderRule, SlabScopeRule};
use crate::slab::kmalloc;
use crate::slab::spec::{CacheFlags, CacheSpec};

/// Objects that a slab's counters can count.
const OBJECTS_MAX: u32 = 32_767;
/// From so many CPUs on a system is a large one, to Feng Tang's patches (docs/published.md#tang-2023).
const LARGE_SYSTEM_CPUS: u32 = 32;
/// Partial slabs that a node keeps at least and at most.
const NODE_PARTIAL: (u32, u32) = (5, 10);
/// What Feng Tang's third patch computes on its machine: two nodes of 112 CPUs.
const NODE_PARTIAL_EVERYWHERE: u32 = 64;
/// Out of 1024 times that local slabs run out, how often other nodes are asked before the page allocator is.
const REMOTE_NODE_DEFRAG_RATIO: u32 = 1000;
/// Bytes of a sheaf before its objects, and of a pointer to one.
const SHEAF_HEADER: u32 = 32;
const POINTER: u32 = 8;

/// What the sizes of slabs depend on in a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlabSystem {
    /// CPUs that are present, whether online or not.
    pub cpus: u32,
    /// Nodes that have CPUs.
    pub cpu_nodes: u32,
}

impl SlabSystem {
    /// That of a machine.
    pub fn of(topology: &Topology) -> Self {
        let nodes = (0..topology.nodes.len()).map(|node| crate::ground::ids::Node(node as u16));
        let cpu_nodes = nodes.filter(|&node| topology.cpus_of(node) > 0).count();
        Self { cpus: topology.cpus.len() as u32, cpu_nodes: cpu_nodes as u32 }
    }

    fn is_large(self, scope: SlabScopeRule) -> bool {
        match scope {
            SlabScopeRule::LargeSystems => self.cpus >= LARGE_SYSTEM_CPUS,
            SlabScopeRule::Everywhere => true,
        }
    }
}

/// The sizes of a cache, most of them as /sys/kernel/slab prints them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheSizing {
    /// Order of a slab.
    pub order: Order,
    /// Order of a slab where memory is short: the smallest that holds an object.
    pub min_order: Order,
    /// Objects of a slab of `order` (`objs_per_slab`).
    pub objects: u32,
    /// Objects of a slab of `min_order`.
    pub min_objects: u32,
    /// Objects that a CPU's partial slabs should hold (`cpu_partial`); 0: there are no such slabs.
    pub cpu_partial_objects: u32,
    /// Slabs that this comes to, each half full.
    pub cpu_partial_slabs: u32,
    /// Partial slabs that a node keeps before it gives back empty ones.
    pub min_partial: u32,
    /// Objects of a sheaf; 0: the cache has no sheaves.
    pub sheaf_capacity: u32,
    /// Out of 1024 times that local slabs run out, how often other nodes are asked; sysfs prints a tenth of it.
    pub remote_node_defrag_ratio: u32,
}

impl CacheSizing {
    /// The sizes of a cache that passes [`CacheSpec::check`].
    pub fn compute(rules: &Rules, knobs: &Knobs, system: SlabSystem, spec: &CacheSpec) -> Self {
        let stride = spec.stride().max(1);
        let want = Want::of(rules, knobs, system, stride);
        let order = match rules.slab.order {
            SlabOrderRule::FewerObjects => order_by_fewer_objects(stride, want),
            SlabOrderRule::MoreWaste => order_by_more_waste(stride, want),
        };
        let (order, min_order) = (clamped(order), clamped(order_for(stride)));
        let objects = objects_of(order.get(), stride);
        let cpu_partial_objects = cpu_partial(rules, knobs, system, spec);
        Self {
            order,
            min_order,
            objects,
            min_objects: objects_of(min_order.get(), stride),
            cpu_partial_objects,
            cpu_partial_slabs: (2 * cpu_partial_objects).div_ceil(objects.max(1)),
            min_partial: min_partial(rules, knobs, system, stride),
            sheaf_capacity: sheaf_capacity(rules.slab.sheaves, spec),
            remote_node_defrag_ratio: REMOTE_NODE_DEFRAG_RATIO,
        }
    }
}

/// What an order is looked for with.
#[derive(Clone, Copy, Debug)]
struct Want {
    /// Objects that a slab should hold.
    objects: u32,
    /// The largest order.
    max_order: u8,
}

impl Want {
    fn of(rules: &Rules, knobs: &Knobs, system: SlabSystem, stride: u32) -> Self {
        let max_order = match knobs.get(Knob::SlabMaxOrder) {
            0 => rules.slab.max_order,
            set => (set as u8).min(Order::MAX.get()),
        };
        let objects = match knobs.get(Knob::SlabMinObjects) as u32 {
            0 => {
                let by_cpus = 4 * (system.cpus.max(1).ilog2() + 2);
                let scale = if system.is_large(rules.slab.scope) { rules.slab.objects_scale } else { 1 };
                by_cpus * scale
            }
            set => set,
        };
        Self { objects: objects.min(objects_of(max_order, stride).max(1)), max_order }
    }
}

/// The smallest order from that of `objects` on which wastes at most one part in `fraction` of a slab.
fn order_with_waste(stride: u32, objects: u32, fraction: u32, max_order: u8) -> Option<u8> {
    let first = order_for(objects.saturating_mul(stride));
    (first..=max_order).find(|&order| slab_bytes(order) % stride <= slab_bytes(order) / fraction)
}

/// A slab so small that its counters can count its objects.
fn order_of_many(stride: u32, objects: u32) -> Option<u8> {
    let first = order_for(objects.saturating_mul(stride));
    (slab_bytes(first) / stride > OBJECTS_MAX).then(|| order_for(stride * OBJECTS_MAX).saturating_sub(1))
}

fn order_by_more_waste(stride: u32, want: Want) -> u8 {
    let found =
        [16, 8, 4, 2].iter().find_map(|&part| order_with_waste(stride, want.objects, part, want.max_order));
    order_of_many(stride, want.objects).or(found).unwrap_or(order_for(stride))
}

fn order_by_fewer_objects(stride: u32, want: Want) -> u8 {
    let found = (2..=want.objects).rev().find_map(|objects| {
        [16, 8, 4].iter().find_map(|&part| order_with_waste(stride, objects, part, want.max_order))
    });
    order_of_many(stride, want.objects).or(found).unwrap_or(order_for(stride))
}

fn slab_bytes(order: u8) -> u32 {
    (PAGE_SIZE as u32) << order.min(Order::MAX.get())
}

fn objects_of(order: u8, stride: u32) -> u32 {
    slab_bytes(order) / stride
}

/// The smallest order of `bytes`, which may be larger than the buddy allocator's largest.
fn order_for(bytes: u32) -> u8 {
    let pages = bytes.div_ceil(PAGE_SIZE as u32).max(1);
    pages.next_power_of_two().trailing_zeros() as u8
}

fn clamped(order: u8) -> Order {
    Order::new(order).unwrap_or(Order::MAX)
}

/// Objects that a CPU's partial slabs should hold.
fn cpu_partial(rules: &Rules, knobs: &Knobs, system: SlabSystem, spec: &CacheSpec) -> u32 {
    if rules.slab.cpu_slabs == CpuSlabRule::None || spec.is_debug() {
        return 0;
    }
    let objects = match spec.stride() {
        4096.. => 6,
        1024.. => 24,
        256.. => 52,
        _ => 120,
    };
    let scale = if system.is_large(rules.slab.scope) { rules.slab.cpu_partial_scale } else { 1 };
    objects * scale * knobs.get(Knob::CpuPartialScale) as u32
}

/// Partial slabs that a node keeps.
fn min_partial(rules: &Rules, knobs: &Knobs, system: SlabSystem, stride: u32) -> u32 {
    let (least, most) = match (rules.slab.node_partial, rules.slab.scope) {
        (NodePartialRule::BySize, _) => NODE_PARTIAL,
        (NodePartialRule::ByCpus, SlabScopeRule::LargeSystems) => {
            let cpus = (system.cpus / system.cpu_nodes.max(1)).max(1);
            let base = NODE_PARTIAL.0.max(1 << cpus.ilog2());
            (base, 2 * base)
        }
        (NodePartialRule::ByCpus, SlabScopeRule::Everywhere) => {
            (NODE_PARTIAL_EVERYWHERE, 2 * NODE_PARTIAL_EVERYWHERE)
        }
    };
    let scale = knobs.get(Knob::NodePartialScale) as u32;
    (stride.ilog2() / 2).clamp(least * scale, most * scale)
}

/// Objects of a sheaf.
fn sheaf_capacity(rule: SheafRule, spec: &CacheSpec) -> u32 {
    if spec.is_debug() || spec.flags.has(CacheFlags::BOOTSTRAP) {
        return 0;
    }
    let asked = spec.sheaf_capacity.unwrap_or(0);
    match rule {
        SheafRule::None => 0,
        SheafRule::OptIn => asked,
        SheafRule::All => asked.max(sheaf_capacity_by_size(spec.stride())),
    }
}

/// As many objects as fit into the `kmalloc` class that a sheaf of the least capacity takes.
fn sheaf_capacity_by_size(stride: u32) -> u32 {
    let least = match stride {
        4096.. => 4,
        1024.. => 12,
        256.. => 26,
        _ => 60,
    };
    (kmalloc::bucket(SHEAF_HEADER + POINTER * least) - SHEAF_HEADER) / POINTER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::policy::Policy;

    fn sizing(policy: &str, cpus: u32, size: u32) -> CacheSizing {
        let policy = Policy::parse(policy).unwrap();
        let system = SlabSystem { cpus, cpu_nodes: 2 };
        CacheSizing::compute(policy.rules(), &Knobs::default(), system, &CacheSpec::new("x", size))
    }

    /// The examples of docs/rules/slab.md, on the post's machine.
    #[test]
    fn the_posts_machine() {
        let base = sizing("linux-6.5", 224, 256);
        assert_eq!((base.order.get(), base.objects, base.cpu_partial_objects), (2, 64, 52));
        assert_eq!((base.cpu_partial_slabs, base.min_partial, base.sheaf_capacity), (2, 5, 0));
        let patched = sizing("linux-6.5+slub-order", 224, 256);
        assert_eq!((patched.order.get(), patched.objects, patched.cpu_partial_objects), (3, 128, 52));
        let mailed = sizing("linux-6.5+slub-order-mailed", 224, 256);
        assert_eq!((mailed.objects, mailed.cpu_partial_objects, mailed.cpu_partial_slabs), (128, 104, 2));
        let partial = sizing("linux-6.5+slub-cpu-partial", 224, 256);
        assert_eq!((partial.cpu_partial_slabs, partial.order), (4, base.order));
        assert_eq!(sizing("linux-6.5+slub-node-partial", 224, 256).min_partial, 64);
    }

    #[test]
    fn nodes_keep_five_to_ten_partial_slabs() {
        let kept = |size| sizing("linux-6.12", 8, size).min_partial;
        assert_eq!([8, 2048, 4096, 16_384, 65_536, 1 << 20, 2 << 20].map(kept), [5, 5, 6, 7, 8, 10, 10]);
    }

    #[test]
    fn small_machines_keep_their_settings_unless_everywhere() {
        let all = "+slub-order+slub-cpu-partial+slub-node-partial";
        let base = sizing("linux-6.5", 8, 256);
        assert_eq!(sizing(&alloc::format!("linux-6.5{all}"), 8, 256), base);
        let everywhere = sizing(&alloc::format!("linux-6.5{all}+slub-everywhere"), 8, 256);
        assert_eq!((base.objects, everywhere.objects), (32, 64));
        assert_eq!((everywhere.cpu_partial_objects, everywhere.min_partial), (104, 64));
    }

    #[test]
    fn the_order_rules_differ_where_memory_is_wasted() {
        // Two objects of 11,000 bytes leave a third of 32 KiB; only the newer rule puts up with that.
        assert_eq!(sizing("linux-6.6", 8, 11_000).order.get(), 2);
        assert_eq!(sizing("linux-6.7", 8, 11_000).order.get(), 3);
        // Six of 4688 leave a seventh of 32 KiB, which a quarter allows and an eighth does not.
        assert_eq!(sizing("linux-6.6", 8, 4688).order.get(), 3);
        // 344 bytes at one CPU: a page would be left with a thirteenth, two are with a twenty-ninth.
        assert_eq!(sizing("linux-6.6", 1, 344).order.get(), 1);
    }

    #[test]
    fn sheaves_fill_their_kmalloc_class() {
        let capacity = |size| sizing("linux-7.2", 2, size).sheaf_capacity;
        assert_eq!([8, 192, 256, 1000, 1024, 4096].map(capacity), [60, 60, 28, 28, 12, 4]);
        assert_eq!(sizing("linux-6.18", 2, 256).sheaf_capacity, 0);
        let policy = Policy::parse("linux-7.2").unwrap();
        let of = |spec: &CacheSpec| {
            let system = SlabSystem { cpus: 2, cpu_nodes: 1 };
            CacheSizing::compute(policy.rules(), &Knobs::default(), system, spec)
        };
        let node = CacheSpec::new("maple_node", 256).with_sheaves(32);
        assert_eq!(of(&node).sheaf_capacity, 32);
        let debug = of(&node.clone().with(CacheFlags::POISON));
        assert_eq!((debug.sheaf_capacity, debug.cpu_partial_objects), (0, 0));
        assert_eq!(of(&CacheSpec::new("kmem_cache", 256).with(CacheFlags::BOOTSTRAP)).sheaf_capacity, 0);
    }

    #[test]
    fn knobs_go_before_the_rules() {
        let knobs = Knobs::default();
        let policy = Policy::parse("linux-6.5").unwrap();
        let system = SlabSystem { cpus: 8, cpu_nodes: 1 };
        let spec = CacheSpec::new("x", 256);
        let sizing = |knobs: &Knobs| CacheSizing::compute(policy.rules(), knobs, system, &spec);
        knobs.set(Knob::SlabMinObjects, 200).unwrap();
        assert_eq!(sizing(&knobs).objects, 128, "the largest order is 3");
        knobs.set(Knob::SlabMaxOrder, 4).unwrap();
        assert_eq!(sizing(&knobs).objects, 256);
        knobs.set(Knob::CpuPartialScale, 0).unwrap();
        knobs.set(Knob::NodePartialScale, 3).unwrap();
        let sizing = sizing(&knobs);
        assert_eq!((sizing.cpu_partial_objects, sizing.cpu_partial_slabs, sizing.min_partial), (0, 0, 15));
    }

    /// Any size gives a slab that holds an object and that the counters can count.
    #[test]
    fn every_size_has_a_slab() {
        for policy in ["linux-6.1", "linux-6.18", "linux-6.5+slub-order"] {
            for size in (1..=20_000).chain((1 << 20..=2 << 20).step_by(65_536)) {
                let sizing = sizing(policy, 512, size);
                assert!((1..=OBJECTS_MAX).contains(&sizing.objects), "{policy} {size}: {sizing:?}");
                assert!(sizing.min_order <= sizing.order && sizing.min_objects >= 1, "{policy} {size}");
            }
        }
    }
}
