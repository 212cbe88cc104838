//! McCalpin's STREAM: COPY, SCALE, ADD and TRIAD over three large arrays, one after the other, a thread to a core. Threads run on
//! CPUs of some nodes; each allocates its part of the arrays and touches it first, so that the parts lie where the memory
//! manager's fallback lists send its node's requests, among the nodes that the program is bound to (`numactl -m`), if it is.
//!
//! A kernel's rate is the bytes that STREAM counts (8 for each element read or written) by the time from the barrier before it
//! to the barrier behind it; all rounds of a phase together, where STREAM reports the best. Stores go past the caches, as
//! compilers make them for STREAM. Left out: arithmetic, page tables, TLB misses.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use mm::{Cpu, Machine, Nanos, Node, NodeMask, Order, Pfn, Request};
use serde::Deserialize;
use sim::{AccessMix, Pattern, Sim, TaskSpec, WaitQueue};

use crate::reach::Brings;
use crate::stage::Stage;
use crate::workloads::workload::{Workload, WorkloadKind, within};

/// Parameters of STREAM.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stream {
    /// Nodes whose CPUs the threads run on.
    pub nodes: Vec<u16>,
    /// Threads on each of them, from 1, on as many CPUs, cores first.
    pub threads_per_node: u32,
    /// The nodes that memory may come from; empty: all.
    #[serde(default)]
    pub memory_nodes: Vec<u16>,
    /// Size of each of the three arrays, MiB, from 1.
    pub mib: u32,
    /// Order of the blocks that arrays are made of: 9 for huge pages.
    #[serde(default = "default_order")]
    pub order: u8,
}

const fn default_order() -> u8 {
    9
}

const ARRAYS: u64 = 3;
const LINE_BYTES: u64 = 64;

/// One of the four.
struct Kernel {
    name: &'static str,
    /// Arrays that it reads; it writes one.
    reads: u64,
}

const KERNELS: [Kernel; 4] = [
    Kernel { name: "copy", reads: 1 },
    Kernel { name: "scale", reads: 1 },
    Kernel { name: "add", reads: 2 },
    Kernel { name: "triad", reads: 2 },
];

impl Kernel {
    /// Bytes that STREAM counts for arrays of `bytes`.
    const fn counted(&self, bytes: u64) -> u64 {
        (self.reads + 1) * bytes
    }
}

/// What the threads share.
struct Team {
    threads: u32,
    arrived: Cell<u32>,
    round: Cell<u64>,
    /// When the last of them arrived.
    since: Cell<Nanos>,
    over: Cell<bool>,
    queue: WaitQueue,
}

impl Team {
    fn new(threads: u32) -> Rc<Self> {
        let (arrived, round, since) = (Cell::new(0), Cell::new(0), Cell::new(Nanos(0)));
        Rc::new(Self { threads, arrived, round, since, over: Cell::new(false), queue: WaitQueue::default() })
    }

    /// Waits until all have arrived. The last one hears since when they were at work; nobody goes on before it is done.
    fn barrier(&self, stage: &Stage, last: impl FnOnce(Nanos)) {
        let machine = stage.machine();
        machine.sync();
        let round = self.round.get();
        self.arrived.set(self.arrived.get() + 1);
        if self.arrived.get() < self.threads {
            return machine.wait_until(&self.queue, || self.round.get() != round);
        }
        last(self.since.get());
        self.over.set(self.over.get() || stage.is_over());
        self.since.set(machine.now());
        self.arrived.set(0);
        self.round.set(round + 1);
        machine.notify_all(&self.queue);
    }
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "stream",
    tests: &[Mechanism::Zonelists],
    brings: Brings::PAGES,
    groups: &["all"],
    read: WorkloadKind::read::<Stream>,
    smallest: &["nodes = [0]\nthreads_per_node = 1\nmib = 1\norder = 0\n"],
    largest: &[],
};

impl Workload for Stream {
    fn title(&self) -> String {
        let (nodes, mib) = (list(&self.nodes), self.mib);
        let bound = if self.memory_nodes.is_empty() {
            String::new()
        } else {
            format!(", memory of nodes {}", list(&self.memory_nodes))
        };
        format!(
            "STREAM, {} threads on each of nodes {nodes}{bound}, arrays of {mib} MiB",
            self.threads_per_node
        )
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        Some(Arc::new(Self { mib: (self.mib / by).max(1), ..self.clone() }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("threads_per_node", self.threads_per_node.into(), 1..=1024)?;
        within("mib", self.mib.into(), 1..=1 << 20)?;
        within("order", self.order.into(), 0..=Order::MAX.get().into())?;
        let memory = self.memory(stage)?;
        self.fits(stage, memory)?;
        let mut cpus = vec![];
        for &node in &self.nodes {
            cpus.extend(self.cpus_of(stage, node)?);
        }
        if cpus.is_empty() {
            return Err("workload: nodes is empty; name a node whose CPUs are to run threads".into());
        }
        let blocks = self.blocks_per_array(cpus.len() as u64);
        let team = Team::new(cpus.len() as u32);
        stage.tasks.set(team.threads);
        for (number, &cpu) in cpus.iter().enumerate() {
            let (stage, team, spec) = (Rc::clone(stage), Rc::clone(&team), self.clone());
            let task = TaskSpec::new(format!("stream/{number}")).on(cpu);
            sim.spawn(task, move || spec.thread(&stage, &team, blocks, memory));
        }
        Ok(())
    }
}

impl Stream {
    /// The nodes that memory may come from.
    fn memory(&self, stage: &Stage) -> Result<NodeMask, String> {
        let nodes = &stage.mm.topology().nodes;
        let has_memory =
            |node: &u16| nodes.get(usize::from(*node)).is_some_and(|node| !node.zones.is_empty());
        if let Some(node) = self.memory_nodes.iter().find(|node| !has_memory(node)) {
            return Err(format!("workload: memory_nodes: the machine has no node {node} with memory"));
        }
        if self.memory_nodes.is_empty() {
            return Ok(stage.allowed);
        }
        Ok(self.memory_nodes.iter().map(|&node| Node(node)).collect())
    }

    /// Refuses arrays that are larger than all memory they may come from; those that are nearly so may end a run early.
    fn fits(&self, stage: &Stage, memory: NodeMask) -> Result<(), String> {
        let zones = stage.mm.zones().iter().filter(|zone| memory.contains(zone.node()));
        let mib = zones.map(|zone| u64::from(zone.managed())).sum::<u64>() >> 8;
        if ARRAYS * u64::from(self.mib) > mib {
            return Err(format!(
                "workload: mib is {}, but three arrays must fit into the {mib} MiB that they may come from",
                self.mib
            ));
        }
        Ok(())
    }

    fn cpus_of(&self, stage: &Stage, node: u16) -> Result<Vec<Cpu>, String> {
        let on_node = |cpu: &&Cpu| stage.places[usize::from(cpu.0)].node == node;
        let cpus: Vec<Cpu> = stage.cpus.iter().filter(on_node).copied().collect();
        let wanted = self.threads_per_node as usize;
        if cpus.len() < wanted {
            return Err(format!(
                "workload: node {node} has {} CPUs for {wanted} threads; set threads_per_node or nodes",
                cpus.len()
            ));
        }
        Ok(cpus[..wanted].to_vec())
    }

    /// Blocks of one thread's part of an array, at least one.
    fn blocks_per_array(&self, threads: u64) -> u64 {
        let pages = (u64::from(self.mib) << 20) / mm::ids::PAGE_SIZE;
        (pages >> self.order).div_ceil(threads).max(1)
    }

    fn thread(&self, stage: &Stage, team: &Team, blocks: u64, memory: NodeMask) {
        let order = Order::new(self.order).expect("the range was checked");
        let arrays = allocate(stage, Request { order, zero: true, allowed: memory, ..Request::USER }, blocks);
        if (arrays.len() as u64) < ARRAYS * blocks {
            // The program would not start; that it ends early is said, and that a request failed is counted.
            team.over.set(true);
        }
        let places = by_node(stage, &arrays);
        let part = blocks * u64::from(order.pages()) * mm::ids::PAGE_SIZE;
        team.barrier(stage, |_| {});
        while !team.over.get() {
            for kernel in &KERNELS {
                let lines = part / LINE_BYTES;
                stage.machine().access(AccessMix {
                    reads: kernel.reads * lines,
                    writes: lines,
                    pattern: Pattern::Streaming,
                    working_set: ARRAYS * part,
                    nodes: &places,
                });
                team.barrier(stage, |since| {
                    let counted = kernel.counted(part * u64::from(team.threads));
                    stage.tally.moved(kernel.name, counted, Nanos(stage.machine().now().0 - since.0));
                });
            }
        }
        for block in arrays {
            stage.mm.free(block, order).expect("a thread frees only what it holds");
            stage.tally.gave(order.pages());
        }
    }
}

/// As many blocks as there are to be had, of those for three arrays.
fn allocate(stage: &Stage, request: Request, blocks: u64) -> Vec<Pfn> {
    let mut got = vec![];
    for _ in 0..ARRAYS * blocks {
        let Ok(block) = stage.mm.alloc(request) else {
            stage.tally.could_not_get();
            break;
        };
        stage.tally.got(request.order.pages());
        got.push(block);
    }
    got
}

/// How many of the blocks lie on each node.
fn by_node(stage: &Stage, blocks: &[Pfn]) -> Vec<(Node, u64)> {
    let nodes = stage.mm.topology().nodes.len() as u16;
    let mut counts: Vec<(Node, u64)> = (0..nodes).map(|node| (Node(node), 0)).collect();
    for node in blocks.iter().filter_map(|&block| stage.mm.zone_of(block)).map(mm::Zone::node) {
        counts[usize::from(node.0)].1 += 1;
    }
    counts
}

fn list(nodes: &[u16]) -> String {
    let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    names.join(", ")
}
