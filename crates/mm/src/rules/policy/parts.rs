//! What a policy can have on top of a kernel's rules: patches that were never merged, and ideas that no kernel has. Each
//! is a part by itself, `+name`, so that its share can be seen; `freehold` is the default kernel with all that pay.

use super::{
    ArenaRule, BackgroundRule, BudgetRule, CaptureRule, CpuSlabRule, DeferRule, FailedPageRule, FindRule,
    GraceRule, IsolationRule, NodePartialRule, PcpOrders, PromotionRule, ReschedRule, Rules, ScaleRule,
    SecondTryRule, SheafRule, SlabScopeRule, StockRule, SuitableRule, TouchRule, YieldRule, ZonePriceRule,
    ZonesRule,
};

/// A part of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name, as it stands after a `+`.
    pub name: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Puts it in force.
    set: fn(&mut Rules),
    /// Whether `freehold` has it.
    pays: bool,
}

impl Part {
    /// Whether `freehold` has it: whether it pays.
    pub const fn is_in_freehold(&self) -> bool {
        self.pays
    }
}

/// Bytes of a descriptor that holds what the page allocator needs and no more: [`crate::Frame`] is that.
const SMALL_DESCRIPTOR_BYTES: u32 = 16;

/// All parts.
pub const PARTS: &[Part] = &[
    Part {
        name: "pcp_batch_scale_max",
        meaning: "Yafang Shao's series of three patches, as it was sent in July 2024",
        set: |rules| rules.scale = ScaleRule::Series,
        pays: false,
    },
    Part {
        name: "yield",
        meaning: "Refills and drains are one batch, whatever the scale; a longer hold of the zone lock ends when another \
                  CPU waits for it",
        set: |rules| rules.yields = YieldRule::ToWaiters,
        pays: true,
    },
    Part {
        name: "zones",
        meaning: "A large zone has parts at fixed addresses, each with free lists and a lock of its own; CPUs begin with \
                  different parts",
        set: |rules| rules.zones = ZonesRule::Divided,
        pays: false,
    },
    Part {
        name: "arenas",
        meaning: "A zone has several sets of free lists, each with a lock; CPUs spread over them, and whole free ranges of \
                  4 MiB move to where they are needed",
        set: |rules| rules.arenas = ArenaRule::Several,
        pays: true,
    },
    Part {
        name: "touch",
        meaning: "A drain brings its pages' descriptors and their buddies' into the cache before it takes the zone lock",
        set: |rules| rules.touch = TouchRule::Ahead,
        pays: true,
    },
    Part {
        name: "small-descriptors",
        meaning: "A frame descriptor has 16 bytes instead of 64: four share a cache line",
        set: |rules| rules.descriptor_bytes = SMALL_DESCRIPTOR_BYTES,
        pays: true,
    },
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
    Part {
        name: "zone-price",
        meaning: "Low zones keep free what requests that can use nothing else were seen to take of late; pages that could be \
                  elsewhere are moved out when they need more",
        set: |rules| rules.zone_price = ZonePriceRule::Learned,
        pays: true,
    },
    Part {
        name: "compact-whole-direct",
        meaning: "Rientjes 2014: direct compaction isolates all of a block of the wanted order before anything moves, and puts \
                  back what will not make one",
        set: |rules| rules.compact.isolation = IsolationRule::WholeDirect,
        pays: false,
    },
    Part {
        name: "compact-whole-async",
        meaning: "The same for all asynchronous compaction, kswapd's too: the thread's other reading",
        set: |rules| rules.compact.isolation = IsolationRule::WholeAsync,
        pays: false,
    },
    Part {
        name: "compact-skip",
        meaning: "Rientjes 2014: asynchronous compaction goes on at the next block of the wanted order when a page cannot be \
                  isolated",
        set: |rules| rules.compact.failed_page = FailedPageRule::NextBlock,
        pays: false,
    },
    Part {
        name: "compact-no-resched",
        meaning: "Rientjes 2014: compaction does not end because its time slice has",
        set: |rules| rules.compact.resched = ReschedRule::Ignored,
        pays: false,
    },
    Part {
        name: "compact-budget",
        meaning: "Rientjes 2014: a call scans freehold.compact_budget_mib at most",
        set: |rules| rules.compact.budget = BudgetRule::Fixed,
        pays: false,
    },
    Part {
        name: "compact-tuned-budget",
        meaning: "Rientjes 2014: what a call scans doubles with success and halves with failure; nothing is deferred",
        set: |rules| {
            rules.compact.budget = BudgetRule::Tuned;
            rules.compact.defer = DeferRule::None;
        },
        pays: false,
    },
    Part {
        name: "compact-defer-async",
        meaning: "Rientjes 2014: failures of asynchronous compaction put later attempts off, too",
        set: |rules| rules.compact.defer = DeferRule::All,
        pays: false,
    },
    Part {
        name: "compact-reclaim-second",
        meaning: "Rientjes 2014: a huge fault reclaims after compaction failed, and does not compact again",
        set: |rules| rules.compact.second_try = SecondTryRule::None,
        pays: false,
    },
    Part {
        name: "compact-kswapd-sync",
        meaning: "Rientjes 2014: kswapd waits for locks and pages when it compacts",
        set: |rules| rules.compact.background = BackgroundRule::KswapdSync,
        pays: false,
    },
    Part {
        name: "compact-capture",
        meaning: "Rientjes 2014: the block that compaction completes goes to the request that it was completed for (mainline \
                  since 5.1)",
        set: |rules| rules.compact.capture = CaptureRule::Captured,
        pays: false,
    },
    Part {
        name: "compact-free-lists",
        meaning: "Compaction looks at the free lists before it walks, and goes on when its time slice is over: Linux 5.1's \
                  series without capture",
        set: |rules| {
            rules.compact.find = FindRule::FreeLists;
            rules.compact.resched = ReschedRule::EndsWithZone;
        },
        pays: false,
    },
    Part {
        name: "compact-thp-suitable",
        meaning: "Rientjes 2014: for a huge fault a zone needs room for two blocks above its high mark, and no success is \
                  believed without a block",
        set: |rules| rules.compact.suitable = SuitableRule::KnowsFaults,
        pays: false,
    },
    Part {
        name: "compact-summary",
        meaning: "Allocation and freeing keep count of each pageblock's free and immovable pages; compaction empties the \
                  block that costs least, moves only what completes one, and fills the fullest",
        set: compact_summary,
        pays: true,
    },
    Part {
        name: "promote",
        meaning: "Pages of slow nodes are promoted by regions: a few pages of each are asked, the densest are swept, what two sweeps \
                  find in use moves",
        set: |rules| rules.promotion = PromotionRule::Regions,
        pays: true,
    },
];

/// The first patch as described: the largest order holds on any machine, the doubling on large ones.
fn slub_order(rules: &mut Rules) {
    rules.slab.max_order = 4;
    rules.slab.objects_scale = 2;
}

/// The counts say of a pageset's list whether its pages can move, so huge pages have two lists with it, as since 6.10.
fn compact_summary(rules: &mut Rules) {
    rules.compact.find = FindRule::Summary;
    if rules.pcp_orders == PcpOrders::WithHuge {
        rules.pcp_orders = PcpOrders::WithTwoHuge;
    }
}

/// `rules` with the part `name` on top; `None` if there is no such part.
pub(super) fn apply(rules: &Rules, name: &str) -> Option<Rules> {
    let part = PARTS.iter().find(|part| part.name == name)?;
    let mut rules = *rules;
    (part.set)(&mut rules);
    Some(rules)
}

/// The rules of `freehold`.
pub(super) fn freehold() -> Rules {
    let mut rules = Rules::linux(super::FREEHOLD_KERNEL);
    PARTS.iter().filter(|part| part.pays).for_each(|part| (part.set)(&mut rules));
    rules
}
