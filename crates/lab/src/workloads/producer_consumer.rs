//! Messages between two tasks on two CPUs, as netperf's UDP_STREAM and SCTP_STREAM_MANY and lmbench's AF_UNIX bandwidth
//! make them: the sender allocates a message's blocks and fills them, the receiver empties and frees them. No page ever
//! goes back to the pageset that it came from, except by way of the buddy lists; or it always does, where the receiver
//! stands for the interrupt that ends a transmission on the CPU that sent.
//!
//! A message takes each side a time of its own, allocating and freeing apart. Socket buffers are a bound on messages on
//! the way: a side that finds the buffer full, or empty, sleeps until the other side wakes it.
//!
//! Left out: the sockets' own small allocations (slabs), acknowledgements, messages that UDP drops, and what it is worth
//! to copy into memory that is still in a cache: a message's time does not depend on which blocks it gets.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use mm::policy::Mechanism;
use mm::{Machine, Nanos, Order, Pfn, Request};
use serde::Deserialize;
use sim::{Path, Sim, TaskSpec, WaitQueue};

use super::mapping::get;
use crate::reach::Brings;
use crate::stage::placement::{Pairing, pairs};
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, within};

/// Parameters of the messages.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProducerConsumer {
    /// Pairs of a sender and a receiver, from 1.
    pub pairs: u32,
    /// A message's blocks: the order of each, 0 to 3, as they are allocated; at least one.
    pub orders: Vec<u8>,
    /// Messages that a pair has on the way at most, from 1.
    pub in_flight: u32,
    /// What a message takes the sender besides allocating, ns.
    pub send_ns: u32,
    /// What a message takes the receiver besides freeing, ns.
    pub receive_ns: u32,
    /// Messages that a sender sends a second at most; 0: as many as it can.
    #[serde(default)]
    pub per_second: u32,
    /// Where the two of a pair run.
    #[serde(default)]
    pub placement: Pairing,
}

/// Pairs start within this time, so that they never run in step.
const STAGGER: Nanos = Nanos(1_000_000);
/// The time of a message varies by this part of it, to either side.
const VARIES_BY: u64 = 10;

/// What the file of an experiment calls it.
pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "producer-consumer",
    tests: &[Mechanism::PageLists],
    brings: Brings::PAGES,
    groups: &["all"],
    read: WorkloadKind::read::<ProducerConsumer>,
    smallest: &["pairs = 1\norders = [0]\nin_flight = 1\nsend_ns = 0\nreceive_ns = 0\n"],
    largest: &["pairs = 1\norders = [3]\nin_flight = 1048576\nsend_ns = 0\nreceive_ns = 4294967295\n"],
};

impl Workload for ProducerConsumer {
    fn title(&self) -> String {
        format!("{} pairs ({}), messages of blocks of orders {:?}", self.pairs, self.placement, self.orders)
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("pairs", self.pairs.into(), 1..=50_000)?;
        within("blocks in orders", self.orders.len() as u64, 1..=1 << 16)?;
        self.orders.iter().try_for_each(|&order| within("an order", order.into(), 0..=3).map(drop))?;
        within("in_flight", self.in_flight.into(), 1..=1 << 20)?;
        let spec = Rc::new(self.clone());
        let places = pairs(&stage.places, &stage.cpus, self.placement)
            .map_err(|problem| format!("workload: placement: {problem}"))?;
        for number in 0..self.pairs {
            let socket = Rc::new(Socket::default());
            let start = Random::new(stage.machine()).time_below(STAGGER);
            let task = |side: &str, nth: usize| {
                let spec = TaskSpec::new(format!("{side}/{number}")).at(start);
                match places.get(number as usize % places.len().max(1)) {
                    Some(pair) => spec.on(pair[nth]),
                    None => spec.on_any(stage.cpus.as_slice().into()),
                }
            };
            let side = Side { stage: Rc::clone(stage), socket, spec: Rc::clone(&spec) };
            let (sender, receiver) = (side.clone(), side);
            sim.spawn(task("send", 0), move || sender.send());
            sim.spawn(task("receive", 1), move || receiver.receive());
        }
        Ok(())
    }
}

/// Blocks of a message.
type Message = Vec<(Pfn, Order)>;

/// What the two of a pair share.
#[derive(Default)]
struct Socket {
    messages: RefCell<VecDeque<Message>>,
    closed: Cell<bool>,
    /// Where the receiver waits for a message.
    filled: WaitQueue,
    /// Where the sender waits for room.
    emptied: WaitQueue,
}

/// One of a pair.
#[derive(Clone)]
struct Side {
    stage: Rc<Stage>,
    socket: Rc<Socket>,
    spec: Rc<ProducerConsumer>,
}

impl Side {
    /// Sends until it is over, or until there is no memory for a message.
    fn send(&self) {
        let (machine, socket) = (self.stage.machine(), &self.socket);
        let mut random = Random::new(machine);
        let mut next = self.stage.machine().now();
        while !self.stage.is_over() {
            machine.wait_until(&socket.emptied, || {
                socket.messages.borrow().len() < self.spec.in_flight as usize
            });
            self.keep_rate(&mut next);
            machine.charge(Path::Syscall);
            let message = self.message();
            if message.is_empty() {
                break;
            }
            machine.compute(about(self.spec.send_ns, &mut random));
            machine.sync();
            socket.messages.borrow_mut().push_back(message);
            machine.notify_one(&socket.filled);
        }
        machine.sync();
        socket.closed.set(true);
        machine.notify_one(&socket.filled);
    }

    /// A message's blocks, as far as there is memory for them.
    fn message(&self) -> Message {
        let one = |&order: &u8| {
            let order = Order::new(order)?;
            Some((get(&self.stage, Request::KERNEL.of_order(order))?, order))
        };
        self.spec.orders.iter().map_while(one).collect()
    }

    /// Waits for the time of the next message, where there is a rate.
    fn keep_rate(&self, next: &mut Nanos) {
        if let Some(gap) = 1_000_000_000_u64.checked_div(self.spec.per_second.into()) {
            self.stage.machine().sleep_until(*next);
            next.0 = self.stage.machine().now().0.max(next.0 + gap);
        }
    }

    /// Receives until the socket is closed and empty.
    fn receive(&self) {
        let (machine, socket) = (self.stage.machine(), &self.socket);
        let mut random = Random::new(machine);
        loop {
            machine
                .wait_until(&socket.filled, || !socket.messages.borrow().is_empty() || socket.closed.get());
            let Some(message) = socket.messages.borrow_mut().pop_front() else { return };
            machine.notify_one(&socket.emptied);
            machine.charge(Path::Syscall);
            machine.compute(about(self.spec.receive_ns, &mut random));
            for (pfn, order) in message {
                self.stage.mm.free(pfn, order).expect("a receiver frees only what was sent");
                self.stage.tally.gave(order.pages());
            }
        }
    }
}

/// A time near `nanos`.
fn about(nanos: u32, random: &mut Random) -> Nanos {
    let (nanos, spread) = (u64::from(nanos), u64::from(nanos) / VARIES_BY);
    Nanos(nanos - spread + random.below(2 * spread + 1))
}
