//! SPECjbb with several JVMs, as mmtests runs it and docs/published.md#gorman-2014 shows it: each JVM has so many
//! warehouses, a thread each, and what counts is how many operations a JVM does in a second. It is measured with 1, 10,
//! 19 … warehouses, one after the other.
//!
//! A JVM's heap is touched by its collector's threads before it begins (huge pages where there are any), then its
//! warehouses work. An operation is time of the thread's own, dependent reads over the warehouses' live data, which lie
//! where the heap's pages lie ([`AccessMix`]), and new objects written in sequence. After so many operations of a JVM
//! all of its threads stop for a collection, which reads live data: the more, the more warehouses there are. Threads run on the CPUs of
//! their JVM's node, except for some that the scheduler has put elsewhere.
//!
//! Left out: locks between warehouses, tenured space (a collection's length stands for all of it), threads that move while
//! they run, automatic NUMA balancing (the post had it off).

mod jvm;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use serde::Deserialize;
use sim::{Sim, TaskSpec, WaitQueue};

use crate::reach::Brings;
use crate::stage::Stage;
use crate::workloads::workload::{Workload, WorkloadKind, within};
use jvm::Jvm;

/// Parameters of SPECjbb.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Specjbb {
    /// The nodes on whose CPUs JVMs start, one JVM each; empty: one on every node with CPUs.
    #[serde(default)]
    pub nodes: Vec<u16>,
    /// Numbers of warehouses, in order; a JVM starts anew for each.
    pub warehouses: Vec<u32>,
    /// How long each number is measured, ms.
    pub measure_ms: u32,
    /// Heap of a JVM, MiB, in huge pages where there are any.
    pub heap_mib: u32,
    /// What else a JVM touches, page by page (code, stacks, what it reads of files), MiB.
    #[serde(default)]
    pub small_mib: u32,
    /// Live data of a warehouse, MiB, of the heap.
    pub live_mib: u32,
    /// What an operation takes apart from its accesses, ns.
    pub own_ns: u32,
    /// Lines of live data that an operation reads, one after the other.
    pub reads: u32,
    /// Bytes of new objects of an operation.
    pub new_bytes: u32,
    /// Operations of a JVM from one collection to the next.
    pub collect_every: u32,
    /// Lines of live data that a collection reads one after the other, apart from those for each warehouse.
    pub collect_reads: u32,
    /// Those for each warehouse.
    pub collect_warehouse_reads: u32,
    /// How many of 100 threads the scheduler has put on some other node.
    #[serde(default)]
    pub stray_percent: u32,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "specjbb",
    tests: &[Mechanism::Zonelists],
    brings: Brings::SPACES,
    groups: &["all"],
    read: WorkloadKind::read::<Specjbb>,
    smallest: &[
        "warehouses = [1]\nmeasure_ms = 1\nheap_mib = 64\nlive_mib = 1\nown_ns = 1\nreads = 0\nnew_bytes = 0\ncollect_every = 1\ncollect_reads = 0\ncollect_warehouse_reads = 0\n",
    ],
    largest: &[],
};

impl Workload for Specjbb {
    fn title(&self) -> String {
        let jvms = if self.nodes.is_empty() {
            "a JVM on each node".to_owned()
        } else {
            let nodes: Vec<String> = self.nodes.iter().map(u16::to_string).collect();
            format!("JVMs on nodes {}", nodes.join(", "))
        };
        let last = self.warehouses.last().copied().unwrap_or_default();
        format!("SPECjbb, {jvms}, up to {last} warehouses, heaps of {} MiB", self.heap_mib)
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        let less = |mib: u32| (mib / by).max(1);
        Some(Arc::new(Self {
            heap_mib: less(self.heap_mib),
            live_mib: less(self.live_mib),
            small_mib: self.small_mib / by,
            ..self.clone()
        }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        self.check()?;
        let nodes = self.start_nodes(stage)?;
        let run = Rc::new(Shared {
            stage: Rc::clone(stage),
            spec: self.clone(),
            gate: Gate { of: nodes.len() as u32, ..Gate::default() },
        });
        for node in nodes {
            let jvm = Jvm::new(&run, node);
            let task = TaskSpec::new(format!("jvm/{node}")).on_any(jvm.cpus());
            sim.spawn(task, move || jvm.main());
        }
        Ok(())
    }
}

impl Specjbb {
    fn check(&self) -> Result<(), String> {
        if self.warehouses.is_empty() {
            return Err("workload: warehouses is empty; give one number or more".into());
        }
        for &warehouses in &self.warehouses {
            within("warehouses", warehouses.into(), 1..=4096)?;
        }
        within("measure_ms", self.measure_ms.into(), 1..=1_000_000)?;
        within("heap_mib", self.heap_mib.into(), 1..=1 << 22)?;
        within("small_mib", self.small_mib.into(), 0..=1 << 22)?;
        within("live_mib", self.live_mib.into(), 1..=1 << 16)?;
        within("own_ns", self.own_ns.into(), 1..=1_000_000_000)?;
        within("reads", self.reads.into(), 0..=1 << 20)?;
        within("new_bytes", self.new_bytes.into(), 0..=1 << 24)?;
        within("collect_every", self.collect_every.into(), 1..=1 << 30)?;
        within("stray_percent", self.stray_percent.into(), 0..=100)?;
        Ok(())
    }

    /// The nodes that JVMs start on; each must have CPUs that tasks may use.
    fn start_nodes(&self, stage: &Stage) -> Result<Vec<u16>, String> {
        let of = |node: u16| stage.cpus.iter().any(|cpu| stage.places[usize::from(cpu.0)].node == node);
        if let Some(node) = self.nodes.iter().find(|node| !of(**node)) {
            return Err(format!("workload: nodes: the machine has no CPUs on node {node} for a JVM"));
        }
        if !self.nodes.is_empty() {
            return Ok(self.nodes.clone());
        }
        Ok((0..stage.mm.topology().nodes.len() as u16).filter(|node| of(*node)).collect())
    }
}

/// What all JVMs share.
struct Shared {
    stage: Rc<Stage>,
    spec: Specjbb,
    gate: Gate,
}

/// Where JVMs wait until all of them are ready to be measured.
#[derive(Default)]
struct Gate {
    of: u32,
    come: Cell<u32>,
    opened: Cell<u32>,
    waiting: WaitQueue,
}

impl Gate {
    fn pass(&self, stage: &Stage) {
        let machine = stage.machine();
        machine.sync();
        let before = self.opened.get();
        self.come.set(self.come.get() + 1);
        if self.come.get() < self.of {
            return machine.wait_until(&self.waiting, || self.opened.get() > before);
        }
        self.come.set(0);
        self.opened.set(before + 1);
        machine.notify_all(&self.waiting);
    }
}

/// Tasks of which somebody waits for the last.
#[derive(Default)]
struct Crew {
    left: Cell<u32>,
    waiting: WaitQueue,
    /// What its tasks came to, in the order in which they ended.
    results: RefCell<Vec<u64>>,
}

impl Crew {
    fn new(tasks: u32) -> Rc<Self> {
        Rc::new(Self { left: Cell::new(tasks), ..Self::default() })
    }

    fn done(&self, stage: &Stage, result: u64) {
        stage.machine().sync();
        self.results.borrow_mut().push(result);
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            stage.machine().notify_all(&self.waiting);
        }
    }

    /// The sum of what they came to, when all have ended.
    fn wait(&self, stage: &Stage) -> u64 {
        stage.machine().wait_until(&self.waiting, || self.left.get() == 0);
        self.results.borrow().iter().sum()
    }
}
