//! A JVM: touches its heap, lets its warehouses work for a while, and begins anew with the next number of them.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use mm::ids::{PAGE_SIZE, PAGEBLOCK_PAGES};
use mm::vm::{AddressSpace, FaultKind, MapSpec, Touch, Vpn};
use mm::{Cpu, Machine, Nanos, Node};
use sim::{AccessMix, Pattern, SimMachine, TaskSpec, WaitQueue};

use super::{Crew, Shared};
use crate::stage::Random;

/// Operations that a thread does in one go; it looks after the rest of the world in between.
const OPERATIONS: u64 = 16;
/// Of the time that a number of warehouses is measured, the part before which nothing counts: 1 in 8.
const RAMP: u64 = 8;
const LINE_BYTES: u64 = 64;
/// Threads start within this time, ns.
const STAGGER: u64 = 1_000_000;
/// What a thread does on its own between the first touches of two huge pages or 64 small ones, at most: threads do not
/// run in step.
const BETWEEN_TOUCHES: Nanos = Nanos(100_000);

pub(super) struct Jvm {
    run: Rc<Shared>,
    node: u16,
    cpus: Rc<[Cpu]>,
    /// For threads that the scheduler puts elsewhere.
    elsewhere: Rc<[Cpu]>,
    /// What is random for a number of warehouses follows from this alone, so that variants of one seed are alike in it.
    seed: u64,
}

/// A JVM's heap and collections, while it runs.
struct Heap {
    space: Arc<AddressSpace<SimMachine>>,
    /// Bytes of live data, and where the heap lies.
    live: u64,
    nodes: Vec<(Node, u64)>,
    /// Operations until the next collection.
    until_collection: Cell<u64>,
    /// Whether one is going on, for which threads stand still.
    collecting: Cell<bool>,
    waiting: WaitQueue,
    /// Lines that a collection reads, one after the other.
    collection: u64,
}

impl Jvm {
    pub(super) fn new(run: &Rc<Shared>, node: u16) -> Self {
        let stage = &run.stage;
        let (cpus, elsewhere): (Vec<Cpu>, Vec<Cpu>) =
            stage.cpus.iter().partition(|cpu| stage.places[usize::from(cpu.0)].node == node);
        let elsewhere = if elsewhere.is_empty() { cpus.clone() } else { elsewhere };
        let seed = stage.machine().random();
        Self { run: Rc::clone(run), node, cpus: cpus.into(), elsewhere: elsewhere.into(), seed }
    }

    /// Random numbers of the thread `thread` at so many warehouses.
    fn random(&self, warehouses: u32, thread: u32) -> Random {
        Random::of(self.seed.wrapping_add(u64::from(warehouses) << 32 | u64::from(thread)))
    }

    pub(super) fn cpus(&self) -> Rc<[Cpu]> {
        Rc::clone(&self.cpus)
    }

    /// The whole benchmark; then it idles until the run is over.
    pub(super) fn main(self) {
        let stage = Rc::clone(&self.run.stage);
        for &warehouses in &self.run.spec.warehouses {
            let space = stage.mm.spaces().new_space();
            self.touch_all(&space, warehouses);
            self.run.gate.pass(&stage);
            let heap = Rc::new(self.heap(&space, warehouses));
            let rate = self.measure(&heap, warehouses);
            stage.tally.sampled(&format!("warehouses-{warehouses}"), rate);
            self.run.gate.pass(&stage);
            stage.mm.spaces().exit(&space);
        }
        while !stage.is_over() {
            stage.machine().sleep(Nanos(10_000_000));
        }
    }

    /// Maps the heap and the rest, and has one thread for each CPU touch a part of them.
    fn touch_all(&self, space: &Arc<AddressSpace<SimMachine>>, warehouses: u32) {
        let (stage, spec) = (&self.run.stage, &self.run.spec);
        let threads = self.cpus.len() as u32;
        let crew = Crew::new(threads);
        let pages = |mib: u32| mib * 256;
        let maps =
            [MapSpec::anonymous(pages(spec.heap_mib)), MapSpec::anonymous(pages(spec.small_mib)).small()];
        let sizes = [pages(spec.heap_mib), pages(spec.small_mib)];
        let regions: Vec<(Vpn, u32)> = maps
            .into_iter()
            .zip(sizes)
            .filter(|(_, pages)| *pages > 0)
            .filter_map(|(map, pages)| Some((stage.mm.spaces().mmap(space, map).ok()?, pages)))
            .collect();
        let regions = Rc::new(regions);
        for thread in 0..threads {
            let (stage, crew) = (Rc::clone(stage), Rc::clone(&crew));
            let (space, regions) = (Arc::clone(space), Rc::clone(&regions));
            let mut random = self.random(warehouses, 1 << 16 | thread);
            let task = TaskSpec::new(format!("gc/{}/{thread}", self.node)).on(self.cpus[thread as usize]);
            self.run.stage.machine().spawn(task, move || {
                let touched = regions.iter().map(|&(start, pages)| {
                    let part = |nth: u32| (u64::from(pages) * u64::from(nth) / u64::from(threads)) as u32;
                    let pages = part(thread + 1) - part(thread);
                    touch(&stage, &space, (start.add(part(thread)), pages), &mut random)
                });
                let touched: u64 = touched.sum();
                crew.done(&stage, touched);
            });
        }
        crew.wait(stage);
    }

    fn heap(&self, space: &Arc<AddressSpace<SimMachine>>, warehouses: u32) -> Heap {
        let spec = &self.run.spec;
        let nodes = (0..self.run.stage.mm.topology().nodes.len() as u16).map(Node);
        Heap {
            space: Arc::clone(space),
            live: (u64::from(spec.live_mib) << 20) * u64::from(warehouses),
            nodes: nodes.map(|node| (node, space.pages_on(node))).filter(|(_, pages)| *pages > 0).collect(),
            until_collection: Cell::new(u64::from(spec.collect_every)),
            collecting: Cell::new(false),
            waiting: WaitQueue::default(),
            collection: u64::from(spec.collect_reads)
                + u64::from(spec.collect_warehouse_reads) * u64::from(warehouses),
        }
    }

    /// Operations a second of all `warehouses` together.
    fn measure(&self, heap: &Rc<Heap>, warehouses: u32) -> f64 {
        let stage = &self.run.stage;
        let now = stage.machine().now();
        let length = u64::from(self.run.spec.measure_ms) * 1_000_000;
        let (from, to) = (Nanos(now.0 + length / RAMP), Nanos(now.0 + length));
        let crew = Crew::new(warehouses);
        let mut random = self.random(warehouses, 1 << 17);
        for warehouse in 0..warehouses {
            let strays = random.below(100) < u64::from(self.run.spec.stray_percent);
            let cpus = if strays { Rc::clone(&self.elsewhere) } else { self.cpus() };
            let start = Nanos(now.0 + random.below(STAGGER));
            let task = TaskSpec::new(format!("warehouse/{}/{warehouse}", self.node)).on_any(cpus).at(start);
            let (run, heap, crew) = (Rc::clone(&self.run), Rc::clone(heap), Rc::clone(&crew));
            let own = self.random(warehouses, warehouse);
            stage.machine().spawn(task, move || {
                let done = work(&run, &heap, from..to, own);
                crew.done(&run.stage, done);
            });
        }
        let done = crew.wait(stage);
        done as f64 * 1e9 / (to.0 - from.0) as f64
    }
}

/// Writes to every page; gives how many it could.
fn touch(
    stage: &crate::stage::Stage,
    space: &AddressSpace<SimMachine>,
    (start, pages): (Vpn, u32),
    random: &mut Random,
) -> u64 {
    stage.machine().sleep(random.time_below(Nanos(STAGGER)));
    let mut next = 0;
    while next < pages {
        if next % 64 == 0 {
            stage.machine().compute(random.time_below(BETWEEN_TOUCHES));
        }
        let vpn = start.add(next);
        let done = match stage.mm.spaces().touch_page(space, vpn, Touch::Write) {
            // To the end of the huge page.
            Ok((_, Some(FaultKind::Huge))) => PAGEBLOCK_PAGES - vpn.0 % PAGEBLOCK_PAGES,
            Ok(_) => 1,
            Err(_) => {
                stage.tally.could_not_get();
                1
            }
        };
        next += done;
    }
    u64::from(pages)
}

/// A warehouse's thread, until the end of `window`; gives the operations done in it.
fn work(run: &Shared, heap: &Heap, window: Range<Nanos>, mut random: Random) -> u64 {
    let (machine, spec, mut done) = (run.stage.machine(), &run.spec, 0);
    let own = Nanos(u64::from(spec.own_ns) * OPERATIONS);
    let new = AccessMix {
        reads: 0,
        writes: u64::from(spec.new_bytes) / LINE_BYTES * OPERATIONS,
        pattern: Pattern::Sequential,
        working_set: heap.space.resident_pages() * PAGE_SIZE / 4,
        nodes: &heap.nodes,
    };
    while machine.now() < window.end {
        machine.wait_until(&heap.waiting, || !heap.collecting.get());
        machine.compute(own);
        machine.access(heap.reads(u64::from(spec.reads) * OPERATIONS));
        machine.access(new);
        machine.sync();
        let now = machine.now();
        done += if window.contains(&now) { OPERATIONS } else { 0 };
        run.stage.tally.did(OPERATIONS);
        let left = heap.until_collection.get();
        heap.until_collection.set(left.saturating_sub(OPERATIONS));
        if left <= OPERATIONS && !heap.collecting.get() {
            heap.collect(run, &mut random);
        }
    }
    done
}

impl Heap {
    /// Dependent reads over the live data.
    fn reads(&self, reads: u64) -> AccessMix<'_> {
        AccessMix {
            reads,
            writes: 0,
            pattern: Pattern::Dependent,
            working_set: self.live,
            nodes: &self.nodes,
        }
    }

    /// Threads stand still while this one reads through live data; the next collection comes after about as many
    /// operations as the last one, to an eighth either way.
    fn collect(&self, run: &Shared, random: &mut Random) {
        let machine = run.stage.machine();
        self.collecting.set(true);
        machine.access(self.reads(self.collection));
        machine.sync();
        let every = u64::from(run.spec.collect_every);
        self.until_collection.set(every - every / 8 + random.below(every / 4 + 1));
        self.collecting.set(false);
        machine.notify_all(&self.waiting);
    }
}
