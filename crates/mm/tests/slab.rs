//! Random lives of slab caches against a model of what an allocator of objects owes its users: no object is handed out
//! twice, what was written stays, every count is right, and nothing is lost in the end.

mod common;

use std::collections::BTreeMap;

use common::small;
use freehold_mm::slab::kmalloc::KmallocKind;
use freehold_mm::slab::{CacheFlags, CacheId, CacheSpec, SlabError, SlabEvent};
use freehold_mm::{
    Addr, Bare, Cpu, CpuSpec, Daemon, Knobs, Machine, Mm, Node, NodeSpec, Pfn, Policy, Topology, WordSize,
    ZoneKind, ZoneSpec,
};
use proptest::prelude::*;

/// On both sides of every rule's change.
const POLICIES: &[&str] = &[
    "linux-6.1",
    "linux-6.5",
    "linux-6.7",
    "linux-6.8",
    "linux-6.12",
    "linux-6.18",
    "linux-7.2",
    "linux-6.5+slub-order+slub-cpu-partial+slub-node-partial+slub-everywhere",
    "linux-6.5+slab-stock",
    "freehold",
];

const CPUS: u16 = 4;

/// Two nodes of `pages` pages with two CPUs each.
fn two_nodes(policy: &str, pages: u32) -> Mm<Bare> {
    let node = |start| {
        let zone = ZoneSpec {
            kind: ZoneKind::Normal,
            start: Pfn(start),
            spanned: pages,
            present: pages,
            managed: pages,
        };
        NodeSpec { zones: vec![zone] }
    };
    let topology = Topology {
        word: WordSize::Bits64,
        nodes: vec![node(0), node(pages)],
        cpus: (0..CPUS).map(|cpu| CpuSpec { node: Node(cpu / 2), cache_slice: 0 }).collect(),
        distance: vec![vec![10, 21], vec![21, 10]],
    };
    Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap()
}

/// The allocator and what its users know.
struct Life {
    mm: Mm<Bare>,
    caches: Vec<(CacheId, u32)>,
    /// Objects that are held: their cache, and what was written to them.
    held: BTreeMap<u64, (usize, u64)>,
    deferred: BTreeMap<u64, usize>,
    stamp: u64,
}

impl Life {
    fn new(policy: &str, pages: u32) -> Self {
        let mm = two_nodes(policy, pages);
        let specs = [
            CacheSpec::new("vm_area_struct", 168).with_sheaves(32),
            CacheSpec::new("maple_node", 256).aligned(256).with_sheaves(32),
            CacheSpec::new("large", 4000),
            CacheSpec::new("tiny", 8),
            CacheSpec::new("constructed", 104).with(CacheFlags::CONSTRUCTOR),
            CacheSpec::new("typesafe", 200).with(CacheFlags::TYPESAFE_BY_RCU),
        ];
        let caches = specs.into_iter().map(|spec| {
            let bytes = spec.object_size;
            (mm.slabs().create_cache(spec).unwrap(), bytes)
        });
        Self { caches: caches.collect(), mm, held: BTreeMap::new(), deferred: BTreeMap::new(), stamp: 0 }
    }

    fn hold(&mut self, cache: usize, object: Addr) {
        self.stamp += 1;
        let bytes = u64::from(self.caches[cache].1);
        if let Some((at, (other, _))) = self.held.range(..object.0 + bytes).next_back() {
            let end = at + u64::from(self.caches[*other].1);
            assert!(end <= object.0, "{object} overlaps the object at {at:#x}");
        }
        assert!(!self.deferred.contains_key(&object.0), "{object} waits for a grace period");
        self.mm.machine().store(object, self.stamp);
        assert!(self.held.insert(object.0, (cache, self.stamp)).is_none());
    }

    fn alloc(&mut self, cache: usize, node: Option<Node>) {
        match self.mm.slabs().kmem_cache_alloc_node(self.caches[cache].0, node) {
            Ok(object) => self.hold(cache, object),
            Err(error) => assert!(matches!(error, SlabError::Memory(_)), "{error}"),
        }
    }

    fn alloc_bulk(&mut self, cache: usize, count: u32) {
        let mut objects = vec![];
        // What there was before memory ran out is ours.
        let _ =
            self.mm.slabs().kmem_cache_alloc_bulk(self.caches[cache].0, count, |object| objects.push(object));
        for object in objects {
            self.hold(cache, object);
        }
    }

    /// Takes a held object, the `choice`-th.
    fn take(&mut self, choice: usize) -> Option<(Addr, usize)> {
        let at = *self.held.keys().nth(choice % self.held.len().max(1))?;
        let (cache, stamp) = self.held.remove(&at).unwrap();
        assert_eq!(self.mm.machine().load(Addr(at)), stamp, "somebody wrote to {at:#x}");
        Some((Addr(at), cache))
    }

    fn free(&mut self, choice: usize) {
        if let Some((object, cache)) = self.take(choice) {
            self.mm.slabs().kmem_cache_free(self.caches[cache].0, object).unwrap();
        }
    }

    fn free_bulk(&mut self, choice: usize, count: usize) {
        let Some((first, cache)) = self.take(choice) else { return };
        let mut objects = vec![first];
        while objects.len() < count {
            let same = self.held.iter().position(|(_, (other, _))| *other == cache);
            let Some((object, _)) = same.and_then(|choice| self.take(choice)) else { break };
            objects.push(object);
        }
        self.mm.slabs().kmem_cache_free_bulk(self.caches[cache].0, &mut objects).unwrap();
    }

    fn defer(&mut self, choice: usize, in_sheaf: bool) {
        let Some((object, cache)) = self.take(choice) else { return };
        let id = self.caches[cache].0;
        if in_sheaf {
            self.mm.slabs().kfree_rcu(id, object).unwrap();
        } else {
            self.mm.slabs().free_deferred(id, object).unwrap();
        }
        self.deferred.insert(object.0, cache);
    }

    fn run_deferred(&mut self) {
        self.mm.slabs().end_grace_period();
        self.mm.slabs().end_grace_period();
        self.mm.slabs().run_all_deferred();
        // Those in sheaves that are not full yet still wait; the model learns of it when they are handed out.
        self.deferred.clear();
    }

    fn lend(&mut self, cache: usize, count: u32, used: u32) {
        let Ok(mut lent) = self.mm.slabs().prefill_sheaf(self.caches[cache].0, count) else { return };
        assert!(lent.len() >= count);
        for _ in 0..used.min(count) {
            let object = self.mm.slabs().alloc_from_sheaf(&mut lent).expect("as many as were asked for");
            self.hold(cache, object);
        }
        self.mm.slabs().return_sheaf(lent);
    }

    fn check(&self) {
        self.mm.slabs().check_caches().unwrap();
        self.mm.views().check().unwrap();
        let in_use: u64 = self
            .caches
            .iter()
            .map(|(id, _)| self.mm.slabs().check_cache(*id).unwrap())
            .map(|used| used.in_use - used.deferred)
            .sum();
        assert_eq!(in_use, self.held.len() as u64);
    }

    /// Everything goes back, and every page with it.
    fn end(mut self) {
        while !self.held.is_empty() {
            self.free(0);
        }
        self.run_deferred();
        self.mm.slabs().shrink_all();
        self.run_deferred();
        // Slabs whose objects waited in sheaves that the first round flushed.
        self.mm.slabs().shrink_all();
        self.run_deferred();
        for (id, _) in &self.caches {
            assert_eq!(self.mm.slabs().check_cache(*id).unwrap().slabs, 0, "slabs of {id:?} stayed");
        }
        // Main sheaves are what remains, one for each CPU and cache that has them.
        let sheaves = self.mm.views().memory_use().held();
        assert_eq!(self.mm.slabs().slab_pages(), sheaves);
        assert_eq!(self.mm.views().check().unwrap().allocated, sheaves);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Move(u16),
    Alloc(usize, Option<u16>),
    AllocBulk(usize, u32),
    Free(usize),
    FreeBulk(usize, usize),
    Defer(usize, bool),
    RunDeferred,
    Lend(usize, u32, u32),
    Shrink(usize),
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..CPUS).prop_map(Step::Move),
        6 => (0..6usize, prop::option::weighted(0.2, 0..2u16)).prop_map(|(cache, node)| Step::Alloc(cache, node)),
        3 => (0..6usize, 1..150u32).prop_map(|(cache, count)| Step::AllocBulk(cache, count)),
        6 => any::<usize>().prop_map(Step::Free),
        3 => (any::<usize>(), 1..150usize).prop_map(|(choice, count)| Step::FreeBulk(choice, count)),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(choice, in_sheaf)| Step::Defer(choice, in_sheaf)),
        1 => Just(Step::RunDeferred),
        1 => (0..2usize, 1..50u32, 0..50u32).prop_map(|(cache, count, used)| Step::Lend(cache, count, used)),
        1 => (0..6usize).prop_map(Step::Shrink),
        1 => Just(Step::Tick),
    ]
}

fn live(policy: &str, pages: u32, steps: &[Step]) {
    let mut life = Life::new(policy, pages);
    for step in steps {
        match *step {
            Step::Move(cpu) => life.mm.machine().set_cpu(Cpu(cpu)),
            Step::Alloc(cache, node) => life.alloc(cache, node.map(Node)),
            Step::AllocBulk(cache, count) => life.alloc_bulk(cache, count),
            Step::Free(choice) => life.free(choice),
            Step::FreeBulk(choice, count) => life.free_bulk(choice, count),
            Step::Defer(choice, in_sheaf) => life.defer(choice, in_sheaf),
            Step::RunDeferred => life.run_deferred(),
            Step::Lend(cache, count, used) => life.lend(cache, count, used),
            Step::Shrink(cache) => {
                life.mm.slabs().shrink_cache(life.caches[cache].0).unwrap();
            }
            Step::Tick => life.mm.vmstat_tick(life.mm.machine().cpu()),
        }
        life.check();
    }
    life.end();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn objects_are_handed_out_once_and_come_back(
        policy in prop::sample::select(POLICIES),
        // From too little for the caches' first needs to enough for all.
        pages in prop::sample::select(vec![24u32, 120, 2000]),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        live(policy, pages, &steps);
    }
}

fn one_cpu(policy: &str) -> Mm<Bare> {
    small(0, 4096, 1, policy).mm
}

#[test]
fn what_is_no_object_is_refused() {
    let mm = one_cpu("linux-6.18");
    let (one, other) = (
        mm.slabs().create_cache(CacheSpec::new("one", 64)).unwrap(),
        mm.slabs().create_cache(CacheSpec::new("other", 72)).unwrap(),
    );
    let object = mm.slabs().kmem_cache_alloc(one).unwrap();
    assert_eq!(mm.slabs().kmem_cache_free(other, object), Err(SlabError::WrongCache(object, one)));
    assert_eq!(mm.slabs().kmem_cache_free(one, object.add(8)), Err(SlabError::NotAnObject(object.add(8))));
    assert_eq!(mm.slabs().kfree(Addr(u64::MAX)), Err(SlabError::NotAnObject(Addr(u64::MAX))));
    assert_eq!(mm.slabs().kmem_cache_alloc(CacheId(999)), Err(SlabError::NoCache(CacheId(999))));
    assert_eq!(mm.slabs().kmalloc(KmallocKind::Normal, 8193), Err(SlabError::Size(8193)));
    mm.slabs().kmem_cache_free(one, object).unwrap();
}

#[test]
fn debugging_finds_misuse() {
    for policy in POLICIES {
        let mm = one_cpu(policy);
        let id = mm.slabs().create_cache(CacheSpec::new("watched", 60).with(CacheFlags::DEBUG)).unwrap();
        let object = mm.slabs().kmem_cache_alloc(id).unwrap();
        let word = object.add(56);
        let mine = mm.machine().load(word);
        mm.machine().store(word, 0);
        assert_eq!(mm.slabs().kmem_cache_free(id, object), Err(SlabError::RedZone(object)), "{policy}");
        mm.machine().store(word, mine);
        mm.slabs().kmem_cache_free(id, object).unwrap();
        assert_eq!(mm.slabs().kmem_cache_free(id, object), Err(SlabError::DoubleFree(object)), "{policy}");
        // Written to while free: it does not come back.
        mm.machine().store(object, 1);
        let next = mm.slabs().kmem_cache_alloc(id).unwrap();
        assert_ne!(next, object, "{policy}");
        mm.slabs().kmem_cache_free(id, next).unwrap();
        mm.slabs().check_caches().unwrap();
    }
}

/// A CPU's first slab, its refill from what another CPU freed, and its partial slabs, as SLUB_STATS counts them.
#[test]
fn slow_paths_are_counted_as_the_kernel_does() {
    let mm = small(0, 4096, 2, "linux-6.12").mm;
    let spec = CacheSpec { slab_size: Some(168), ..CacheSpec::new("vm_area_struct", 168) };
    let id = mm.slabs().create_cache(spec).unwrap();
    let count = |event| mm.slabs().slab_events(id, event);
    let objects: Vec<Addr> = (0..48).map(|_| mm.slabs().kmem_cache_alloc(id).unwrap()).collect();
    assert_eq!(count(SlabEvent::AllocSlab), [2, 0]);
    assert_eq!(count(SlabEvent::AllocSlowpath), [2, 0]);
    assert_eq!(count(SlabEvent::AllocFastpath), [46, 0]);
    mm.machine().set_cpu(Cpu(1));
    // The second slab is CPU 0's own: frozen. The first is full, and joins the partial slabs of CPU 1.
    mm.slabs().kmem_cache_free(id, objects[47]).unwrap();
    mm.slabs().kmem_cache_free(id, objects[0]).unwrap();
    assert_eq!(count(SlabEvent::FreeFrozen), [0, 1]);
    assert_eq!(count(SlabEvent::CpuPartialFree), [0, 1]);
    assert_eq!(mm.slabs().kmem_cache_alloc(id).unwrap(), objects[0]);
    assert_eq!(count(SlabEvent::CpuPartialAlloc), [0, 1]);
    mm.machine().set_cpu(Cpu(0));
    assert_eq!(mm.slabs().kmem_cache_alloc(id).unwrap(), objects[47]);
    assert_eq!(count(SlabEvent::AllocRefill), [1, 0]);
    mm.slabs().check_caches().unwrap();
}

/// Bursts of frees, as grace periods bring them: after one of them a stock keeps all that the next round needs, and ticks
/// in which it needed nothing make it small again.
#[test]
fn a_stock_keeps_what_its_cpu_needs() {
    // Less than its share of a small machine's memory.
    const BURST: usize = 900;
    let mm = one_cpu("freehold");
    let id = mm.slabs().create_cache(CacheSpec::new("node", 256)).unwrap();
    let burst = || {
        let objects: Vec<Addr> = (0..BURST).map(|_| mm.slabs().kmem_cache_alloc(id).unwrap()).collect();
        let slow = mm.slabs().slab_events(id, SlabEvent::FreeSlowpath)[0];
        for object in objects {
            mm.slabs().kmem_cache_free(id, object).unwrap();
        }
        mm.slabs().slab_events(id, SlabEvent::FreeSlowpath)[0] - slow
    };
    assert!(burst() > 0, "at first a stock is small");
    burst();
    assert_eq!(burst(), 0, "by now it holds all of it");
    let slabs = mm.slabs().check_cache(id).unwrap().slabs;
    let slow = |event| mm.slabs().slab_events(id, event)[0];
    let before = slow(SlabEvent::AllocSlab);
    burst();
    assert_eq!(slow(SlabEvent::AllocSlab), before);
    for _ in 0..16 {
        mm.vmstat_tick(Cpu(0));
    }
    let idle = mm.slabs().check_cache(id).unwrap();
    assert!(idle.slabs * 4 < slabs, "{} slabs stay of {slabs}", idle.slabs);
}

/// A backlog asks for a grace period, once; the next one may be asked for when it has ended.
#[test]
fn a_backlog_asks_for_a_grace_period() {
    let asked = |policy| {
        let mm = one_cpu(policy);
        let id = mm.slabs().create_cache(CacheSpec::new("node", 256)).unwrap();
        let defer = |count: u32| {
            for _ in 0..count {
                mm.slabs().free_deferred(id, mm.slabs().kmem_cache_alloc(id).unwrap()).unwrap();
            }
            mm.machine().take_woken().iter().filter(|daemon| **daemon == Daemon::Rcu).count()
        };
        let few = defer(512);
        let many = defer(512);
        mm.slabs().end_grace_period();
        (few, many, defer(1), mm.slabs().grace_period_wanted())
    };
    assert_eq!(asked("freehold"), (0, 1, 1, true));
    assert_eq!(asked("linux-6.18"), (0, 0, 0, false));
}
