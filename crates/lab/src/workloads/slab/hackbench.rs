//! hackbench: groups of 20 senders and 20 receivers; each sender sends messages of 100 bytes to every receiver of its group in
//! turn, each receiver reads what comes. Over sockets a message is two objects (the buffer's head and its bytes), allocated
//! where the sender runs and freed where the receiver does. Over pipes messages are no objects, which leaves nothing to ask of
//! the slab allocator. A socket takes so many messages; a sender that finds it full, or a receiver that finds it empty,
//! sleeps.
//!
//! An operation is a message that was read.
//!
//! Left out: the scheduler is the simulator's own, so that who preempts whom is not as in CFS or EEVDF; the pages that pipes
//! hold; locks of sockets; accounting to memory cgroups.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use mm::policy::Mechanism;
use mm::slab::{CacheFlags, CacheId, CacheSpec};
use mm::{Access, Nanos};
use serde::Deserialize;
use sim::{Path, Sim, TaskSpec, WaitQueue};

use super::objects::{self, Object};
use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, number, within};

/// How messages travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ipc {
    /// Pairs of connected sockets.
    #[default]
    Sockets,
    /// Pipes.
    Pipes,
}

/// Parameters of hackbench.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hackbench {
    /// Groups of 20 senders and 20 receivers, from 1.
    pub groups: u32,
    /// How messages travel.
    #[serde(default)]
    pub ipc: Ipc,
    /// What a message takes the sender besides its objects, ns.
    pub send_ns: u32,
    /// What a message takes the receiver besides, ns.
    pub receive_ns: u32,
    /// Messages that a socket takes.
    /// 212,992 bytes of a socket's buffer, 768 a message.
    #[serde(default = "number::<277>")]
    pub in_flight: u32,
}

/// Bytes of a buffer's head, and of a message with the headers before it.
const HEAD_BYTES: u32 = 232;
const MESSAGE_BYTES: u32 = 128;
/// Senders of a group, and receivers.
const PEERS: u32 = 20;
/// Tasks start within this time.
const STAGGER: Nanos = Nanos(1_000_000);

/// What the file of an experiment calls it.
pub(in crate::workloads) const KIND: WorkloadKind = WorkloadKind {
    name: "hackbench",
    tests: &[Mechanism::Slabs],
    brings: Brings::SLABS,
    groups: &["all"],
    read: WorkloadKind::read::<Hackbench>,
    smallest: &[
        "groups = 1\nsend_ns = 0\nreceive_ns = 0\nin_flight = 1\n",
        "groups = 1\nipc = 'pipes'\nsend_ns = 0\nreceive_ns = 0\nin_flight = 1\n",
    ],
    largest: &[],
};

impl Workload for Hackbench {
    fn title(&self) -> String {
        let ipc = match self.ipc {
            Ipc::Sockets => "sockets",
            Ipc::Pipes => "pipes",
        };
        format!("hackbench, {} groups of {} tasks, {ipc}", self.groups, 2 * PEERS)
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("groups", self.groups.into(), 1..=1000)?;
        within("in_flight", self.in_flight.into(), 1..=1 << 20)?;
        let buffers = match self.ipc {
            Ipc::Sockets => Some(Buffers::new(stage)?),
            Ipc::Pipes => None,
        };
        stage.tasks.set(self.groups * 2 * PEERS);
        let anywhere: Rc<[mm::Cpu]> = stage.cpus.as_slice().into();
        for group in 0..self.groups {
            let sockets: Rc<[Socket]> = (0..PEERS).map(|_| Socket::default()).collect();
            for number in 0..PEERS {
                let peer = Peer {
                    stage: Rc::clone(stage),
                    spec: self.clone(),
                    buffers,
                    sockets: Rc::clone(&sockets),
                    number: number as usize,
                };
                let other = peer.clone();
                let mut random = Random::new(stage.machine());
                let mut task = |side: &str| {
                    TaskSpec::new(format!("{side}/{group}/{number}"))
                        .on_any(Rc::clone(&anywhere))
                        .at(random.time_below(STAGGER))
                };
                let (send, receive) = (task("send"), task("receive"));
                sim.spawn(send, move || peer.send());
                sim.spawn(receive, move || other.receive());
            }
        }
        Ok(())
    }
}

/// The caches of a message's objects.
#[derive(Clone, Copy)]
struct Buffers {
    head: CacheId,
    bytes: CacheId,
}

impl Buffers {
    fn new(stage: &Stage) -> Result<Self, String> {
        let head = CacheSpec::new("skbuff_head_cache", HEAD_BYTES).with(CacheFlags::CACHE_ALIGNED);
        let bytes = CacheSpec::new("kmalloc-cg-512", 512).aligned(512).with(CacheFlags::ACCOUNTED);
        Ok(Self { head: objects::cache(stage, head)?, bytes: objects::cache(stage, bytes)? })
    }
}

/// A message's objects, head first; none of one over a pipe.
type Message = Option<[Object; 2]>;

/// What the tasks of a pair share.
#[derive(Default)]
struct Socket {
    messages: RefCell<VecDeque<Message>>,
    /// Where the receiver waits for a message.
    filled: WaitQueue,
    /// Where senders wait for room.
    emptied: WaitQueue,
}

/// One sender or receiver.
#[derive(Clone)]
struct Peer {
    stage: Rc<Stage>,
    spec: Hackbench,
    buffers: Option<Buffers>,
    sockets: Rc<[Socket]>,
    number: usize,
}

impl Peer {
    /// Sends to each receiver in turn until it is over.
    fn send(&self) {
        let machine = self.stage.machine();
        'all: loop {
            for socket in self.sockets.iter() {
                if self.stage.is_over() {
                    break 'all;
                }
                machine.charge(Path::Syscall);
                let Some(message) = self.message() else { break 'all };
                machine.compute(Nanos(self.spec.send_ns.into()));
                let has_room = || {
                    let waiting = socket.messages.borrow().len();
                    waiting < self.spec.in_flight as usize || self.stage.is_over()
                };
                machine.wait_until(&socket.emptied, has_room);
                socket.messages.borrow_mut().push_back(message);
                machine.notify_one(&socket.filled);
            }
        }
        self.sockets.iter().for_each(|socket| self.wake_all(socket));
    }

    /// A message; `None` if there is no memory for it.
    fn message(&self) -> Option<Message> {
        let Some(buffers) = self.buffers else { return Some(None) };
        let head = objects::allocate(&self.stage, buffers.head)?;
        let Some(bytes) = objects::allocate(&self.stage, buffers.bytes) else {
            objects::free(&self.stage, buffers.head, head);
            return None;
        };
        // The head is filled in, and so are the message and what the buffer ends with.
        self.stage.machine().use_object(head, HEAD_BYTES, Access::Write);
        self.stage.machine().use_object(bytes, MESSAGE_BYTES, Access::Write);
        Some(Some([head, bytes]))
    }

    /// Receives until it is over and no more messages wait.
    fn receive(&self) {
        let (machine, socket) = (self.stage.machine(), &self.sockets[self.number]);
        loop {
            let ready = || !socket.messages.borrow().is_empty() || self.stage.is_over();
            machine.wait_until(&socket.filled, ready);
            let Some(message) = socket.messages.borrow_mut().pop_front() else { break };
            machine.notify_one(&socket.emptied);
            machine.charge(Path::Syscall);
            machine.compute(Nanos(self.spec.receive_ns.into()));
            if let Some((buffers, [head, bytes])) = self.buffers.zip(message) {
                machine.use_object(head, HEAD_BYTES, Access::Write);
                machine.use_object(bytes, MESSAGE_BYTES, Access::Read);
                objects::free(&self.stage, buffers.bytes, bytes);
                objects::free(&self.stage, buffers.head, head);
            }
            self.stage.tally.did(1);
        }
        self.wake_all(socket);
    }

    /// Nobody is to wait for what comes no more.
    fn wake_all(&self, socket: &Socket) {
        self.stage.machine().notify_all(&socket.filled);
        self.stage.machine().notify_all(&socket.emptied);
    }
}
