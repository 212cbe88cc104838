//! The machine that shuttle explores, and how a test runs on it.
#![allow(dead_code, reason = "each file of tests uses a part")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use freehold_mm::vm::{AddressSpace, FaultError, Touch, Vpn};
use freehold_mm::{
    Access, Addr, Cpu, CpuSpec, Daemon, Knob, Knobs, Line, LockClass, Machine, Mm, Nanos, Node, NodeSpec,
    Order, Pfn, Policy, Span, TaskId, Topology, WordSize, Work, ZoneKind, ZoneSpec,
};
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::{Config, Runner, thread};

/// Random schedules of each test; a quarter as many by PCT. `FREEHOLD_SHUTTLE_SCHEDULES` sets another number.
const SCHEDULES: usize = 4000;
const SEED: u64 = 1;

shuttle::thread_local!(static CPU: Cell<u16> = const { Cell::new(0) });

/// Where threads run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cpus {
    /// Each on the CPU that it was spawned on.
    Pinned,
    /// On a CPU that may be another at every look, as threads of a process do.
    Roaming,
}

pub(crate) struct ShuttleMachine {
    cpus: Cpus,
    /// Who owns each frame: 0 for nobody, else a thread's number. Not an atomic of shuttle's: looking is no step.
    pub(crate) owners: Vec<AtomicU32>,
    /// Who owns each object that is held, by address; likewise.
    pub(crate) holders: std::sync::Mutex<BTreeMap<u64, u32>>,
    /// What each frame holds: one number; likewise no step.
    pub(crate) contents: Vec<AtomicU32>,
    /// Words of memory; likewise no step.
    words: std::sync::Mutex<BTreeMap<u64, u64>>,
}

#[derive(Default)]
pub(crate) struct ShuttleLock {
    taken: Mutex<bool>,
    freed: Condvar,
    waiters: AtomicU32,
}

// SAFETY: `taken` is only changed under its mutex, which orders as an acquire and release do. CPU numbers are 0 and 1,
// and the topology below has two CPUs.
unsafe impl Machine for ShuttleMachine {
    type Lock = ShuttleLock;
    type Irq = ();

    fn cpu(&self) -> Cpu {
        match self.cpus {
            Cpus::Pinned => Cpu(CPU.with(Cell::get)),
            Cpus::Roaming => Cpu(shuttle::rand::thread_rng().gen_range(0..2)),
        }
    }

    fn task(&self) -> TaskId {
        TaskId(0)
    }

    fn now(&self) -> Nanos {
        Nanos(0)
    }

    fn random(&self) -> u64 {
        shuttle::rand::thread_rng().r#gen()
    }

    fn new_lock(&self, _class: LockClass, _index: u32) -> ShuttleLock {
        ShuttleLock::default()
    }

    fn lock(&self, lock: &ShuttleLock) {
        let mut taken = lock.taken.lock().unwrap();
        lock.waiters.fetch_add(1, Ordering::Relaxed);
        while *taken {
            taken = lock.freed.wait(taken).unwrap();
        }
        lock.waiters.fetch_sub(1, Ordering::Relaxed);
        *taken = true;
    }

    fn try_lock(&self, lock: &ShuttleLock) -> bool {
        !std::mem::replace(&mut *lock.taken.lock().unwrap(), true)
    }

    fn unlock(&self, lock: &ShuttleLock) {
        let was_taken = std::mem::replace(&mut *lock.taken.lock().unwrap(), false);
        assert!(was_taken, "a lock was given back that nobody held");
        lock.freed.notify_one();
    }

    fn is_contended(&self, lock: &ShuttleLock) -> bool {
        lock.waiters.load(Ordering::Relaxed) > 0
    }

    fn irq_save(&self) {}
    fn irq_restore(&self, (): ()) {}
    fn touch(&self, _line: Line, _access: Access) {}
    fn load(&self, at: Addr) -> u64 {
        self.words.lock().unwrap().get(&at.0).copied().unwrap_or(0)
    }

    fn store(&self, at: Addr, word: u64) {
        self.words.lock().unwrap().insert(at.0, word);
    }

    fn clear(&self, block: Pfn, order: Order) {
        (0..order.pages())
            .for_each(|page| self.contents[block.add(page).0 as usize].store(0, Ordering::Relaxed));
    }

    fn copy(&self, from: Pfn, to: Pfn, order: Order) {
        for page in 0..order.pages() {
            let number = self.contents[from.add(page).0 as usize].load(Ordering::Relaxed);
            // What is copied may change meanwhile: the one half of a copy is not the other.
            if page == 0 {
                thread::yield_now();
            }
            self.contents[to.add(page).0 as usize].store(number, Ordering::Relaxed);
        }
    }

    fn block(&self, _at_most: Nanos) {
        thread::yield_now();
    }

    fn wake(&self, _daemon: Daemon) {}

    fn enter(&self, _span: Span) -> Nanos {
        Nanos(0)
    }

    fn leave(&self, _span: Span, _since: Nanos, _work: Work) {}
}

pub(crate) type Tiny = Mm<ShuttleMachine>;
pub(crate) type Space = std::sync::Arc<AddressSpace<ShuttleMachine>>;

/// Writes `number` to the page at `vpn`, if it can be had.
pub(crate) fn write(mm: &Tiny, space: &Space, vpn: Vpn, number: u32) {
    if let Ok(pinned) = mm.rmap().pin_page(space, vpn, Touch::Write) {
        mm.machine().contents[pinned.frame().0 as usize].store(number, Ordering::Relaxed);
        mm.rmap().unpin_page(pinned);
    }
}

/// `spaces`, which are all that there are, end, and every reference is counted before and after.
pub(crate) fn exit_all(mm: &Tiny, spaces: &[&Space]) {
    mm.spaces().check_vm().unwrap();
    for space in spaces {
        mm.spaces().exit(space);
    }
    mm.lru().lru_drain_all();
    mm.spaces().check_vm().unwrap();
    assert_eq!((mm.spaces().all_spaces().len(), mm.spaces().committed_pages()), (0, 0));
}

/// What the page at `vpn` holds.
pub(crate) fn read(mm: &Tiny, space: &Space, vpn: Vpn) -> Result<u32, FaultError> {
    let pinned = mm.rmap().pin_page(space, vpn, Touch::Read)?;
    let number = mm.machine().contents[pinned.frame().0 as usize].load(Ordering::Relaxed);
    mm.rmap().unpin_page(pinned);
    Ok(number)
}

/// One Normal zone of `frames`, two CPUs, and two arenas if the policy has any and there are frames enough.
pub(crate) fn tiny(frames: u32, cpus: Cpus, policy: &str) -> Arc<Tiny> {
    on_nodes(&[frames], cpus, policy)
}

/// Nodes of one Normal zone each, of so many frames; the first CPU is on the first node, the second one on the last.
pub(crate) fn on_nodes(frames: &[u32], cpus: Cpus, policy: &str) -> Arc<Tiny> {
    let mut start = 0;
    let node = |&frames: &u32| {
        let (kind, first) = (ZoneKind::Normal, Pfn(start));
        start += frames;
        NodeSpec {
            zones: vec![ZoneSpec { kind, start: first, spanned: frames, present: frames, managed: frames }],
        }
    };
    let nodes: Vec<NodeSpec> = frames.iter().map(node).collect();
    let cpu = |node| CpuSpec { node: Node(node as u16), cache_slice: 1 << 20 };
    let far = |from, to| if from == to { 10 } else { 21 };
    let topology = Topology {
        word: WordSize::Bits64,
        cpus: vec![cpu(0), cpu(nodes.len() - 1)],
        distance: (0..nodes.len()).map(|from| (0..nodes.len()).map(|to| far(from, to)).collect()).collect(),
        nodes,
    };
    let knobs = Knobs::default();
    // A few pages of reserve, so that small zones can be used up.
    knobs.set(Knob::MinFreeKbytes, 16).unwrap();
    knobs.set(Knob::Arenas, 2).unwrap();
    let numbers = || (0..start).map(|_| AtomicU32::new(0)).collect();
    let (owners, contents) = (numbers(), numbers());
    let machine =
        ShuttleMachine { cpus, owners, contents, holders: Default::default(), words: Default::default() };
    Arc::new(Mm::new(machine, topology, Policy::parse(policy).unwrap(), knobs).unwrap())
}

pub(crate) fn order(order: u8) -> Order {
    Order::new(order).unwrap()
}

pub(crate) fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

pub(crate) fn on_cpu(cpu: u16, run: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        CPU.with(|slot| slot.set(cpu));
        run();
    })
}

/// Everything was freed: the allocator is whole, and all memory is back after a drain.
pub(crate) fn check_whole(mm: &Tiny) {
    let pages = mm.views().check().unwrap();
    assert_eq!(pages.allocated, 0, "{pages:?}");
    mm.drain_all();
    let managed = mm.zones().iter().map(|zone| u64::from(zone.managed())).sum();
    let pages = mm.views().check().unwrap();
    assert_eq!((pages.free, pages.pcp), (managed, 0));
    assert_eq!(mm.zones().iter().map(|zone| zone.free_pages_exact()).sum::<u64>(), managed);
    let counters = mm.views().counters();
    assert_eq!(counters.get("pgalloc_normal"), counters.get("pgfree"));
}

pub(crate) fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    explore_some(1, test);
}

/// How many random schedules were asked for.
fn asked() -> usize {
    let asked = std::env::var("FREEHOLD_SHUTTLE_SCHEDULES").ok().and_then(|number| number.parse().ok());
    asked.unwrap_or(SCHEDULES)
}

/// Some schedule came to what its test is about (`seen` of it were counted). Only chance leads there: a short run may miss
/// it, and still holds what must hold in every schedule.
#[track_caller]
pub(crate) fn assert_met(seen: u64) {
    assert!(seen > 0 || asked() < SCHEDULES, "no schedule came to what this test is about");
}

/// A `part`th of the schedules, where each takes that much longer.
pub(crate) fn explore_some(part: usize, test: impl Fn() + Send + Sync + Clone + 'static) {
    let schedules = (asked() / part).max(4);
    run(RandomScheduler::new_from_seed(SEED, schedules), test.clone());
    run(PctScheduler::new_from_seed(SEED, 3, schedules / 4), test);
}

fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test);
}
