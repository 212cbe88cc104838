//! Two kinds of program on one host, the production case of docs/published.md#shao-2024: services that want short
//! latencies, and a throughput job one of whose parts exits with all its memory. Tasks of the services are the group
//! `latency`, the job's `throughput`.
//!
//! Each service is two tasks on two CPUs: one takes requests at a steady rate and allocates some blocks for each, the
//! other frees them when the request is done, as a thread that reads from a socket frees what the CPU that the network
//! interrupts had allocated. Each of them also takes a page for itself at each request and frees it at once, so that neither
//! only allocates or only frees. So there is a refill, and a drain, every few requests. The job's processes fault in their
//! memory, wait for each other, and exit at once (18 of 6 GiB each in the report); then they start again.
//!
//! Left out: what the services compute and what else they allocate, and everything but memory that an exit tears down.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use mm::{Machine, Nanos, Order, Pfn, Request};
use serde::Deserialize;
use sim::{Path, Sim, TaskSpec, WaitQueue};

use super::mapping::{Backing, Mapping, get};
use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, within};

/// Names of the groups, by number.
pub(super) const GROUPS: &[&str] = &["latency", "throughput"];

/// Parameters of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Colocated {
    /// Services, two tasks each, from 1.
    pub services: u32,
    /// Time from one request of a service to the next, us, from 1.
    pub every_us: u32,
    /// Blocks of a request, from 1.
    pub blocks: u32,
    /// Their order, 0 to 3.
    #[serde(default)]
    pub order: u8,
    /// Processes of the throughput job that exit together; 0 for none.
    pub processes: u32,
    /// Memory of each, MiB, from 1.
    pub mib: u32,
}

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "colocated",
    tests: &[Mechanism::PageLists],
    brings: Brings::PAGES,
    groups: GROUPS,
    read: WorkloadKind::read::<Colocated>,
    smallest: &["services = 1\nevery_us = 1\nblocks = 1\nprocesses = 0\nmib = 1\n"],
    largest: &["services = 1\nevery_us = 1000000000\nblocks = 1048576\norder = 3\nprocesses = 0\nmib = 1\n"],
};

impl Workload for Colocated {
    fn title(&self) -> String {
        format!(
            "{} services, {} blocks every {} us, beside {} processes of {} MiB",
            self.services, self.blocks, self.every_us, self.processes, self.mib
        )
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        Some(Arc::new(Self { mib: (self.mib / by).max(1), ..*self }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("services", self.services.into(), 1..=50_000)?;
        within("every_us", self.every_us.into(), 1..=1_000_000_000)?;
        within("blocks", self.blocks.into(), 1..=1 << 20)?;
        within("order", self.order.into(), 0..=3)?;
        within("processes", self.processes.into(), 0..=50_000)?;
        within("mib", self.mib.into(), 1..=1 << 24)?;
        let order = Order::new(self.order).expect("an order that was checked");
        for number in 0..self.services {
            let service = Rc::new(Service {
                stage: Rc::clone(stage),
                spec: *self,
                order,
                requests: Requests::default(),
            });
            let start = Random::new(stage.machine()).time_below(service.every());
            let task = |side: &str, nth| {
                TaskSpec::new(format!("{side}/{number}"))
                    .on(stage.cpu(2 * number + nth))
                    .at(start)
                    .in_group(0)
            };
            let other = Rc::clone(&service);
            sim.spawn(task("take", 0), move || service.take());
            sim.spawn(task("finish", 1), move || other.finish());
        }
        let gate = Rc::new(Gate { of: self.processes, ..Gate::default() });
        for number in 0..self.processes {
            let (stage, gate, pages) = (Rc::clone(stage), Rc::clone(&gate), self.mib as usize * 256);
            let cpu = stage.cpu(2 * self.services + number);
            let task = TaskSpec::new(format!("job/{number}")).on(cpu).in_group(1);
            sim.spawn(task, move || {
                while !stage.is_over() {
                    round(&stage, &gate, pages);
                }
                // Nobody is to wait for one that comes no more.
                stage.machine().notify_all(&gate.waiting);
            });
        }
        Ok(())
    }
}

struct Service {
    stage: Rc<Stage>,
    spec: Colocated,
    order: Order,
    requests: Requests,
}

/// Requests on their way from one task of a service to the other.
#[derive(Default)]
struct Requests {
    taken: RefCell<VecDeque<Vec<Pfn>>>,
    closed: Cell<bool>,
    waiting: WaitQueue,
}

impl Service {
    fn every(&self) -> Nanos {
        Nanos(u64::from(self.spec.every_us) * 1000)
    }

    /// Takes a page and gives it back.
    fn page_of_its_own(&self) {
        if let Some(page) = get(&self.stage, Request::KERNEL) {
            self.stage.mm.free(page, Order::ZERO).expect("the page was just got");
            self.stage.tally.gave(1);
        }
    }

    /// Takes requests until it is over.
    fn take(&self) {
        let (machine, requests) = (self.stage.machine(), &self.requests);
        let request = Request::KERNEL.of_order(self.order);
        let mut next = machine.now();
        while !self.stage.is_over() {
            machine.charge(Path::Syscall);
            self.page_of_its_own();
            let blocks = (0..self.spec.blocks).filter_map(|_| get(&self.stage, request)).collect();
            machine.sync();
            requests.taken.borrow_mut().push_back(blocks);
            machine.notify_one(&requests.waiting);
            // Requests come whether the last one is done or not; one that is late is taken at once.
            next.0 += self.every().0;
            machine.sleep_until(next);
        }
        machine.sync();
        requests.closed.set(true);
        machine.notify_one(&requests.waiting);
    }

    /// Finishes requests until no more come.
    fn finish(&self) {
        let (machine, requests) = (self.stage.machine(), &self.requests);
        loop {
            let ready = || !requests.taken.borrow().is_empty() || requests.closed.get();
            machine.wait_until(&requests.waiting, ready);
            let Some(blocks) = requests.taken.borrow_mut().pop_front() else { return };
            machine.charge(Path::Syscall);
            self.page_of_its_own();
            for pfn in blocks {
                self.stage.mm.free(pfn, self.order).expect("a service frees only what it took");
                self.stage.tally.gave(self.order.pages());
            }
        }
    }
}

/// Where processes wait until all of them have come.
#[derive(Default)]
struct Gate {
    of: u32,
    come: Cell<u32>,
    opened: Cell<u64>,
    waiting: WaitQueue,
}

impl Gate {
    fn pass(&self, stage: &Stage) {
        let machine = stage.machine();
        machine.sync();
        let before = self.opened.get();
        self.come.set(self.come.get() + 1);
        if self.come.get() == self.of {
            self.come.set(0);
            self.opened.set(before + 1);
            machine.notify_all(&self.waiting);
        }
        machine.wait_until(&self.waiting, || self.opened.get() > before || stage.is_over());
    }
}

/// A process of the job, from start to exit. Where memory runs out it has less of it.
fn round(stage: &Stage, gate: &Gate, pages: usize) {
    let mut mapping = Mapping::new(stage, Backing::Anonymous, pages);
    while mapping.pages().len() < pages && !stage.is_over() && mapping.fault(stage) {}
    gate.pass(stage);
    mapping.unmap(stage);
}
