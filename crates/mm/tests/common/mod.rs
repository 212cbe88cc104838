//! Small machines and a model of what an allocator owes its users, for property tests.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;

use freehold_mm::{
    AllocError, Bare, CpuSpec, Daemon, FreeError, Knob, Knobs, Mm, Node, NodeMask, NodeSpec, Order, Pfn,
    Policy, Request, TaskId, Topology, Urgency, WordSize, ZoneKind, ZoneSpec,
};
use proptest::prelude::*;

/// Plays the daemons that were woken: kswapd, and a disk that is done at once.
pub(crate) fn play(mm: &Mm<Bare>) {
    for daemon in mm.machine().take_woken() {
        match daemon {
            Daemon::Kswapd(node) => mm.reclaim().kswapd(node),
            Daemon::Flusher => loop {
                let pages = mm.files().take_dirty(64);
                mm.files().written(&pages);
                if pages.is_empty() {
                    break;
                }
            },
            Daemon::ZswapShrinker => mm.swap().shrink_zswap(),
            _ => {}
        }
    }
}

pub(crate) fn order(order: u8) -> Order {
    Order::new(order).expect("0 to 10")
}

/// Kernels on both sides of every rule's change, and what they can have on top.
pub(crate) const POLICIES: &[&str] = &[
    "linux-3.0",
    "linux-3.17",
    "linux-4.4",
    "linux-4.14",
    "linux-5.10",
    "linux-5.14",
    "linux-5.15",
    "linux-6.1",
    "linux-6.6",
    "linux-6.8",
    "linux-6.11",
    "linux-6.11+pcp_batch_scale_max",
    "linux-6.12",
    "linux-6.18",
    "linux-6.19",
    "linux-7.2",
    "linux-6.1+touch",
    "linux-6.11+yield+pcp_batch_scale_max",
    "linux-7.2+yield+touch",
    "linux-6.18+zones",
    "linux-5.15+compact-summary",
    "linux-6.18+compact-summary",
    "linux-6.6+zones+arenas+touch+compact-summary",
    "linux-6.18+arenas",
    "linux-4.14+arenas+touch",
    "linux-7.2+zones+arenas+yield",
    "freehold",
];

/// One Normal zone without a reserve: its last page can be had.
pub(crate) fn small(start: u32, pages: u32, cpus: usize, policy: &str) -> Model {
    small_divided(start, pages, cpus, policy, 0)
}

/// The same with so many arenas, if the policy has any.
pub(crate) fn small_divided(start: u32, pages: u32, cpus: usize, policy: &str, arenas: u64) -> Model {
    let topology = Topology {
        word: WordSize::Bits64,
        nodes: vec![NodeSpec { zones: vec![zone(ZoneKind::Normal, start, pages, 0)] }],
        cpus: vec![CpuSpec { node: Node(0), cache_slice: 0 }; cpus],
        distance: vec![vec![10]],
    };
    let knobs = Knobs::default();
    knobs.set(Knob::MinFreeKbytes, 1).unwrap();
    knobs.set(Knob::Arenas, arenas).unwrap();
    Model::new(Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap())
}

pub(crate) fn policies() -> impl Strategy<Value = Policy> {
    prop::sample::select(POLICIES).prop_map(|name| Policy::parse(name).expect("a policy of the list"))
}

/// Knobs that are read at boot.
pub(crate) fn boot_knobs() -> impl Strategy<Value = Knobs> {
    prop::sample::select(vec![0, 1, 2, 3, 5, 64]).prop_map(|arenas| {
        let knobs = Knobs::default();
        knobs.set(Knob::Arenas, arenas).expect("in range");
        knobs
    })
}

/// Gaps and sizes in pages of the zones of a node, by kind.
type Zones = Vec<(bool, u32, u32, u32)>;

fn zones() -> impl Strategy<Value = Zones> {
    // Whether it is there, the gap before it, its pages, the pages taken at boot.
    // Above 51,200 pages, pageblocks are kept for atomic requests.
    let pages = prop_oneof![9 => 1..3000u32, 3 => 3000..12_000u32, 1 => 50_000..150_000u32];
    // Zones that touch share blocks' buddies; those must not merge.
    let gap = prop_oneof![Just(0u32), 0..700u32];
    let zone = (prop::bool::weighted(0.6), gap, pages, prop_oneof![Just(0u32), 0..100u32]);
    prop::collection::vec(zone, WordSize::Bits64.zone_kinds().len())
}

/// One to three nodes with up to four zones each, at any frame, one to four CPUs anywhere, of either word size.
pub(crate) fn topologies() -> impl Strategy<Value = Topology> {
    let word = prop_oneof![3 => Just(WordSize::Bits64), 1 => Just(WordSize::Bits32)];
    let nodes = prop::collection::vec(zones(), 1..4);
    let cpus = prop::collection::vec((0..3u16, prop::sample::select(vec![0u64, 1 << 20, 64 << 20])), 1..5);
    let distances = prop::collection::vec(11..50u32, 9);
    (word, nodes, cpus, distances)
        .prop_map(|(word, nodes, cpus, distances)| topology(word, &nodes, &cpus, &distances))
}

fn topology(word: WordSize, nodes: &[Zones], cpus: &[(u16, u64)], distances: &[u32]) -> Topology {
    let count = nodes.len();
    let mut next = 0;
    let mut specs: Vec<NodeSpec> = nodes.iter().map(|zones| node(word, zones, &mut next)).collect();
    if specs.iter().all(|node| node.zones.is_empty()) {
        specs[0].zones.push(zone(ZoneKind::Normal, next, 1500, 0));
    }
    let distance = |from: usize, to: usize| if from == to { 10 } else { distances[(from * 3 + to) % 9] };
    Topology {
        word,
        nodes: specs,
        cpus: cpus
            .iter()
            .map(|&(node, cache_slice)| CpuSpec { node: Node(node % count as u16), cache_slice })
            .collect(),
        distance: (0..count).map(|from| (0..count).map(|to| distance(from, to)).collect()).collect(),
    }
}

fn node(word: WordSize, zones: &Zones, next: &mut u32) -> NodeSpec {
    let mut spec = NodeSpec::default();
    for (&(there, gap, pages, taken), kind) in zones.iter().zip(word.zone_kinds()) {
        if there {
            spec.zones.push(zone(*kind, *next + gap, pages, taken));
            *next += gap + pages;
        }
    }
    spec
}

fn zone(kind: ZoneKind, start: u32, pages: u32, taken: u32) -> ZoneSpec {
    let managed = pages.saturating_sub(taken).max(1);
    ZoneSpec { kind, start: Pfn(start), spanned: pages, present: pages, managed }
}

/// The allocator with what its user knows: who owns which frame.
pub(crate) struct Model {
    pub(crate) mm: Mm<Bare>,
    /// Orders of the blocks that are held, by first frame.
    pub(crate) held: BTreeMap<u32, Order>,
    owned: Vec<bool>,
    /// Blocks that were freed, for freeing them once more.
    freed: Vec<(Pfn, Order)>,
    pub(crate) allocations: u64,
    pub(crate) pages_allocated: u64,
    pub(crate) pages_freed: u64,
}

impl Model {
    pub(crate) fn new(mm: Mm<Bare>) -> Self {
        let end = mm.zones().iter().map(|zone| zone.span().end).max().unwrap_or(0);
        let owned = vec![false; end as usize];
        Self {
            mm,
            held: BTreeMap::new(),
            owned,
            freed: vec![],
            allocations: 0,
            pages_allocated: 0,
            pages_freed: 0,
        }
    }

    /// Asks for a block, and looks whether it is one that may be given.
    pub(crate) fn alloc(&mut self, request: Request) -> Result<Pfn, AllocError> {
        let node = request.node.unwrap_or_else(|| self.mm.pages().local_node());
        let result = self.mm.alloc(request);
        match result {
            Ok(pfn) => self.take(pfn, request, node),
            Err(AllocError::NoZone) if usize::from(node.0) >= self.mm.topology().nodes.len() => {}
            Err(AllocError::NoZone) => {
                let serves = |kind, at| {
                    kind <= request.highest
                        && request.allowed.contains(at)
                        && (at == node || !request.this_node)
                };
                assert!(!self.mm.zones().iter().any(|zone| serves(zone.kind(), zone.node())), "{request:?}");
            }
            Err(AllocError::OutOfMemory) => assert_eq!(request.urgency, Urgency::Waits),
            Err(AllocError::WouldWait) => assert_ne!(request.urgency, Urgency::Waits),
            Err(AllocError::Killed) => assert!(self.mm.pages().is_killed(TaskId(0))),
        }
        result
    }

    fn take(&mut self, pfn: Pfn, request: Request, node: Node) {
        let pages = request.order.pages();
        let zone = self.mm.zone_of(pfn).unwrap_or_else(|| panic!("{pfn} is in no zone"));
        assert!(pfn.0 % pages == 0, "{pfn} is not aligned to {}", request.order);
        let managed = zone.managed_span();
        assert!(
            managed.start <= pfn.0 && pfn.0 + pages <= managed.end,
            "{pfn} is not managed memory of {zone:?}"
        );
        assert!(zone.kind() <= request.highest, "{zone:?} for {request:?}");
        assert!(request.allowed.contains(zone.node()), "{zone:?} for {request:?}");
        assert!(!request.this_node || zone.node() == node, "{zone:?} for {request:?} on {node:?}");
        for page in pfn.0..pfn.0 + pages {
            assert!(!self.owned[page as usize], "{} is handed out twice", Pfn(page));
            self.owned[page as usize] = true;
        }
        self.held.insert(pfn.0, request.order);
        self.allocations += 1;
        self.pages_allocated += u64::from(pages);
    }

    /// The block at the `index`-th place of those that are held, counted round.
    pub(crate) fn pick(&self, index: usize) -> Option<(Pfn, Order)> {
        let index = index.checked_rem(self.held.len())?;
        self.held.iter().nth(index).map(|(&pfn, &order)| (Pfn(pfn), order))
    }

    /// Takes a block off the books.
    pub(crate) fn give_up(&mut self, (pfn, order): (Pfn, Order)) {
        assert_eq!(self.held.remove(&pfn.0), Some(order));
        self.owned[pfn.0 as usize..(pfn.0 + order.pages()) as usize].fill(false);
        self.pages_freed += u64::from(order.pages());
        self.freed.push((pfn, order));
    }

    pub(crate) fn free(&mut self, block: (Pfn, Order)) {
        self.give_up(block);
        assert_eq!(self.mm.free(block.0, block.1), Ok(()));
    }

    /// Frees what may not be held; it must be refused unless it is.
    pub(crate) fn free_anything(&mut self, pfn: Pfn, order: Order) {
        if self.held.get(&pfn.0) == Some(&order) {
            return self.free((pfn, order));
        }
        let error = self.mm.free(pfn, order).expect_err("a block that is not held");
        match (error, self.held.get(&pfn.0)) {
            (FreeError::WrongOrder(_, actual), Some(&held)) => assert_eq!(actual, held),
            (FreeError::WrongOrder(..), None) | (_, Some(_)) => panic!("{pfn}: {error}"),
            (FreeError::NoFrame(_), None) => assert!(pfn.0 as usize >= self.owned.len()),
            (FreeError::NotAllocated(_), None) => {}
        }
    }

    /// Frees once more what was freed before; it must be refused unless it is held again.
    pub(crate) fn free_again(&mut self, index: usize) {
        if let Some(index) = index.checked_rem(self.freed.len()) {
            let (pfn, order) = self.freed[index];
            self.free_anything(pfn, order);
        }
    }

    pub(crate) fn split(&mut self, (pfn, order): (Pfn, Order)) {
        assert_eq!(self.mm.pages().split(pfn, order), Ok(()));
        self.held.remove(&pfn.0);
        self.held.extend((0..order.pages()).map(|page| (pfn.0 + page, Order::ZERO)));
    }

    pub(crate) fn free_all(&mut self) {
        while let Some(block) = self.pick(0) {
            self.free(block);
        }
    }

    /// Every invariant, and that the allocator's books are those of this model.
    pub(crate) fn check(&self) {
        let pages = self.mm.views().check().unwrap_or_else(|what| panic!("{what}"));
        assert_eq!(pages.allocated, self.pages_allocated - self.pages_freed);
        let counters = self.mm.views().counters();
        let sum = |prefix: &str| -> u64 {
            counters.0.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, value)| value).sum()
        };
        assert_eq!(sum("pgalloc_"), self.pages_allocated);
        assert_eq!(counters.get("pgfree"), self.pages_freed);
        assert_eq!(counters.get("numa_hit") + counters.get("numa_miss"), self.allocations);
        assert_eq!(counters.get("numa_local") + counters.get("numa_other"), self.allocations);
        assert_eq!(counters.get("numa_miss"), counters.get("numa_foreign"));
        assert_eq!(counters.get("nr_free_pages"), pages.free);
        let used = self.mm.views().memory_use();
        assert_eq!((used.free, used.pcp, used.held()), (pages.free, pages.pcp, pages.allocated));
    }
}

/// Free blocks of each zone by order, as buddyinfo says.
pub(crate) fn free_blocks(mm: &Mm<Bare>) -> Vec<[u64; 11]> {
    let row = |line: &str| {
        let numbers: Vec<u64> =
            line.split_whitespace().skip(4).map(|number| number.parse().unwrap()).collect();
        numbers.try_into().expect("eleven orders")
    };
    mm.views().buddyinfo().lines().map(row).collect()
}

/// All memory is back as it was after boot: the same blocks below a pageblock, the same pages above. (Larger ones may
/// be halves of what they were: a pageblock that changed its type merges again only when a neighbour is freed.)
pub(crate) fn assert_as_after_boot(now: &[[u64; 11]], boot: &[[u64; 11]]) {
    for (now, boot) in now.iter().zip(boot) {
        assert_eq!(now[..9], boot[..9], "{now:?} after boot's {boot:?}");
        assert_eq!(now[9] + 2 * now[10], boot[9] + 2 * boot[10], "{now:?} after boot's {boot:?}");
    }
}

pub(crate) fn masks() -> impl Strategy<Value = NodeMask> {
    prop_oneof![
        3 => Just(NodeMask::ALL),
        1 => (1..8u16).prop_map(|bits| (0..3).filter(|node| bits >> node & 1 == 1).map(Node).collect()),
    ]
}
