//! The rules of the slab allocator and their history (docs/rules/slab.md). Where a version is not said there,
//! the rule says where it is from.

use super::in_force::{List, Of};
use super::part::Part;
use super::{Mechanism, Rules, v};
use crate::ground::{Since, Version, at};

/// How a slab's order follows from the size of its objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlabOrderRule {
    /// For the wanted number of objects, then one less and so on: the smallest order that wastes a sixteenth, an eighth
    /// or a quarter at most.
    FewerObjects,
    /// For the wanted number of objects only: the smallest order that wastes a sixteenth, an eighth, a quarter or a half
    /// at most.
    MoreWaste,
}

const ORDER: &[Since<SlabOrderRule>] = &[
    Since(v(2, 6), SlabOrderRule::FewerObjects, ""),
    Since(v(6, 7), SlabOrderRule::MoreWaste, "5886fc82b6e3"),
];

/// Where slabs change between frozen (a CPU's own) and not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreezeRule {
    /// In the hold of the node's `list_lock` that takes them off its list or puts them there.
    UnderLock,
    /// After or before it; CPU partial slabs are not frozen at all.
    Outside,
}

const FREEZE: &[Since<FreezeRule>] =
    &[Since(v(2, 6), FreezeRule::UnderLock, ""), Since(v(6, 8), FreezeRule::Outside, "8cd3fa428b56")];

/// Whether each CPU has a slab that it allocates from, and a list of partial ones behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuSlabRule {
    /// Both.
    WithPartials,
    /// Neither: what is not in sheaves is in the nodes' lists.
    None,
}

impl CpuSlabRule {
    /// Whether CPUs have slabs.
    pub fn exist(self) -> bool {
        self != Self::None
    }
}

const CPU_SLABS: &[Since<CpuSlabRule>] =
    &[Since(v(2, 6), CpuSlabRule::WithPartials, ""), Since(v(7, 0), CpuSlabRule::None, "")];

/// Which caches have sheaves (arrays of free objects, a CPU's own) and barns (a node's stock of them).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SheafRule {
    /// None.
    None,
    /// Those that ask for them.
    OptIn,
    /// All, except the two that caches themselves are made of.
    All,
}

const SHEAVES: &[Since<SheafRule>] = &[
    Since(v(2, 6), SheafRule::None, ""),
    Since(v(6, 18), SheafRule::OptIn, "2d517aa09bbc"),
    Since(v(7, 0), SheafRule::All, ""),
];

/// How a refill from another node takes that node's `list_lock`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteRefillRule {
    /// It waits for it.
    Waits,
    /// It tries, and passes over the node if somebody else holds it. (Commit 40fd0acc45d0 of 29 January 2026, a repair
    /// of the series that 7.0 brought.)
    Tries,
}

const REMOTE_REFILL: &[Since<RemoteRefillRule>] =
    &[Since(v(2, 6), RemoteRefillRule::Waits, ""), Since(v(7, 0), RemoteRefillRule::Tries, "40fd0acc45d0")];

/// How the objects of `kmalloc` caches are aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KmallocAlignRule {
    /// To their size where it is a power of two, and to a word.
    PowersOnly,
    /// To the largest power of two that divides their size.
    LargestDivisor,
}

/// The captures of 6.1 and 6.12 differ in this; that it was 6.11 is from memory.
const KMALLOC_ALIGN: &[Since<KmallocAlignRule>] = &[
    Since(v(2, 6), KmallocAlignRule::PowersOnly, ""),
    Since(v(6, 11), KmallocAlignRule::LargestDivisor, "ad59baa31695"),
];

/// Whether each CPU has a stock of free objects of its own, in the place of sheaves and CPU slabs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StockRule {
    /// None.
    None,
    /// One, as large as the CPU was seen to need.
    Adaptive,
}

/// What is done about objects that pile up while a grace period lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraceRule {
    /// Nothing: RCU takes its time.
    Waits,
    /// A CPU that has more than some memory waiting asks for an expedited grace period.
    Hurries,
}

/// How many partial slabs a node keeps where it could give empty ones back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodePartialRule {
    /// 5 to 10, by the objects' size.
    BySize,
    /// From the number of CPUs a node has, rounded down to a power of two, to twice that; 5 to 10 at least. Feng Tang's
    /// third patch.
    ByCpus,
}

/// On which machines the settings of Feng Tang's patches hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlabScopeRule {
    /// On those with 32 CPUs or more, as the patches have it.
    LargeSystems,
    /// On all: the post's "bump them all together".
    Everywhere,
}

/// The rules of the slab allocator that a policy puts in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is documented at its type")]
pub struct SlabRules {
    pub order: SlabOrderRule,
    pub freeze: FreezeRule,
    pub cpu_slabs: CpuSlabRule,
    pub sheaves: SheafRule,
    pub remote_refill: RemoteRefillRule,
    pub kmalloc_align: KmallocAlignRule,
    pub node_partial: NodePartialRule,
    pub stock: StockRule,
    pub grace: GraceRule,
    /// The largest order for the sake of which more than one object is put into a slab.
    pub max_order: u8,
    /// Wanted objects a slab are multiplied by this where `scope` says so.
    pub objects_scale: u32,
    /// Objects that CPU partial slabs may hold are multiplied by this where `scope` says so.
    pub cpu_partial_scale: u32,
    pub scope: SlabScopeRule,
}

/// Mainline's `slab_max_order`.
const MAX_ORDER: u8 = 3;

impl SlabRules {
    /// The rules of mainline Linux `version`.
    pub fn linux(version: Version) -> Self {
        Self {
            order: at(ORDER, version),
            freeze: at(FREEZE, version),
            cpu_slabs: at(CPU_SLABS, version),
            sheaves: at(SHEAVES, version),
            remote_refill: at(REMOTE_REFILL, version),
            kmalloc_align: at(KMALLOC_ALIGN, version),
            node_partial: NodePartialRule::BySize,
            stock: StockRule::None,
            grace: GraceRule::Waits,
            max_order: MAX_ORDER,
            objects_scale: 1,
            cpu_partial_scale: 1,
            scope: SlabScopeRule::LargeSystems,
        }
    }

    pub(super) fn visit(&mut self, other: &Self, to: &mut List) {
        const OURS: &[Mechanism] = &[Mechanism::Slabs];
        #[rustfmt::skip]
        let Self {
            order, freeze, cpu_slabs, sheaves, remote_refill, kmalloc_align, node_partial,
            stock, grace, max_order, objects_scale, cpu_partial_scale, scope,
        } = self;
        to.add(
            Of("slab-order", OURS, "how a slab's order follows from its objects"),
            ORDER,
            order,
            other.order,
        );
        to.add(Of("freeze", OURS, "where slabs are frozen and thawed"), FREEZE, freeze, other.freeze);
        to.add(Of("cpu-slabs", OURS, "slabs of a CPU's own"), CPU_SLABS, cpu_slabs, other.cpu_slabs);
        to.add(Of("sheaves", OURS, "caches with sheaves and barns"), SHEAVES, sheaves, other.sheaves);
        to.add(
            Of("remote-refill", OURS, "how another node's lock is taken"),
            REMOTE_REFILL,
            remote_refill,
            other.remote_refill,
        );
        to.add(
            Of("kmalloc-align", OURS, "how kmalloc's objects are aligned"),
            KMALLOC_ALIGN,
            kmalloc_align,
            other.kmalloc_align,
        );
        let partial = Of("node-partial", OURS, "partial slabs that a node keeps");
        to.constant(partial, NodePartialRule::BySize, node_partial, other.node_partial);
        to.constant(
            Of("stock", OURS, "objects that a CPU keeps by need"),
            StockRule::None,
            stock,
            other.stock,
        );
        to.constant(
            Of("grace", OURS, "what is done while objects wait for RCU"),
            GraceRule::Waits,
            grace,
            other.grace,
        );
        to.constant(
            Of("slab-max-order", OURS, "largest order for more objects a slab"),
            MAX_ORDER,
            max_order,
            other.max_order,
        );
        to.constant(
            Of("objects-scale", OURS, "times the wanted objects a slab"),
            1,
            objects_scale,
            other.objects_scale,
        );
        let cpu_partial = Of("cpu-partial-scale", OURS, "times the objects of CPU partial slabs");
        to.constant(cpu_partial, 1, cpu_partial_scale, other.cpu_partial_scale);
        let where_ = Of("slab-scope", OURS, "machines on which those scales hold");
        to.constant(where_, SlabScopeRule::LargeSystems, scope, other.scope);
    }
}

/// Parts of the slab allocator.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "slab-stock",
        meaning: "Each CPU keeps as many free objects of a cache as it was seen to need, linked through themselves, in \
                  the place of sheaves, CPU slabs and CPU partial slabs",
        set: |rules| {
            rules.slab.cpu_slabs = CpuSlabRule::None;
            rules.slab.sheaves = SheafRule::None;
            rules.slab.stock = StockRule::Adaptive;
        },
        pays: true,
    },
    Part {
        name: "rcu-hurry",
        meaning: "A CPU with more than 128 KiB of objects waiting for a grace period asks for an expedited one",
        set: |rules| rules.slab.grace = GraceRule::Hurries,
        pays: true,
    },
    Part {
        name: "slub-order",
        meaning: "Tang 2023, first patch as its text has it: slabs of order 4 at most instead of 3, and twice the objects \
                  where there are 32 CPUs or more",
        set: slub_order,
        pays: false,
    },
    Part {
        name: "slub-order-mailed",
        meaning: "The same as the diff has it, which doubles what CPU partial slabs may hold too",
        set: |rules| {
            slub_order(rules);
            rules.slab.cpu_partial_scale *= 2;
        },
        pays: false,
    },
    Part {
        name: "slub-cpu-partial",
        meaning: "Tang 2023, second patch: CPU partial slabs may hold twice the objects where there are 32 CPUs or more",
        set: |rules| rules.slab.cpu_partial_scale *= 2,
        pays: false,
    },
    Part {
        name: "slub-cpu-partial-4x",
        meaning: "The same with four times the objects, which the post measured too",
        set: |rules| rules.slab.cpu_partial_scale *= 4,
        pays: false,
    },
    Part {
        name: "slub-node-partial",
        meaning: "Tang 2023, third patch: a node keeps as many partial slabs as it has CPUs, to twice that, instead of 5 to \
                  10",
        set: |rules| rules.slab.node_partial = NodePartialRule::ByCpus,
        pays: false,
    },
    Part {
        name: "slub-everywhere",
        meaning: "What the slub parts above set for large machines holds on every one; nodes keep 64 to 128 partial slabs",
        set: |rules| rules.slab.scope = SlabScopeRule::Everywhere,
        pays: false,
    },
];

/// The first patch as described: the largest order holds on any machine, the doubling on large ones.
fn slub_order(rules: &mut Rules) {
    rules.slab.max_order = 4;
    rules.slab.objects_scale = 2;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::policy::Policy;

    fn rules(name: &str) -> SlabRules {
        Policy::parse(name).unwrap().rules().slab
    }

    #[test]
    fn versions_pick_rules() {
        assert_eq!(rules("linux-6.6").order, SlabOrderRule::FewerObjects);
        assert_eq!(rules("linux-6.7").order, SlabOrderRule::MoreWaste);
        assert_eq!(rules("linux-6.7").freeze, FreezeRule::UnderLock);
        assert_eq!(rules("linux-6.8").freeze, FreezeRule::Outside);
        assert_eq!(rules("linux-6.17").sheaves, SheafRule::None);
        assert_eq!(rules("linux-6.19").sheaves, SheafRule::OptIn);
        assert_eq!(rules("linux-6.19").cpu_slabs, CpuSlabRule::WithPartials);
        assert_eq!(rules("linux-7.0").sheaves, SheafRule::All);
        assert_eq!(rules("linux-7.0").cpu_slabs, CpuSlabRule::None);
        assert_eq!(rules("linux-6.19").remote_refill, RemoteRefillRule::Waits);
        assert_eq!(rules("linux-7.2").remote_refill, RemoteRefillRule::Tries);
    }

    #[test]
    fn the_posts_patches_are_parts() {
        let base = rules("linux-6.5");
        assert_eq!((base.max_order, base.objects_scale, base.cpu_partial_scale), (3, 1, 1));
        let described = rules("linux-6.5+slub-order");
        assert_eq!((described.max_order, described.objects_scale, described.cpu_partial_scale), (4, 2, 1));
        assert_eq!(rules("linux-6.5+slub-order-mailed"), rules("linux-6.5+slub-order+slub-cpu-partial"));
        assert_eq!(rules("linux-6.5+slub-cpu-partial-4x").cpu_partial_scale, 4);
        assert_eq!(rules("linux-6.5+slub-node-partial").node_partial, NodePartialRule::ByCpus);
        let all = rules("linux-6.5+slub-node-partial+slub-order-mailed+slub-cpu-partial+slub-everywhere");
        assert_eq!((all.cpu_partial_scale, all.scope), (4, SlabScopeRule::Everywhere));
    }
}
