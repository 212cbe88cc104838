//! will-it-scale's mmap1, mmap2 and brk1: a region is mapped and unmapped, or the heap grows by a page and shrinks again,
//! and nothing is touched. What the calls ask of the slab allocator is in [`super::calls`]; all else that they do is a time
//! of their own. mmap2 maps a file instead of anonymous memory, which is other work in the call and the same objects.
//!
//! An operation is what the original counts: a round of mmap and munmap, but each call of brk.
//!
//! Left out: what two regions that touch would share (threads of one address space get regions that do not), the part of
//! munmap that holds the address space's lock for reading only, and accounting to memory cgroups.

use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use mm::slab::{CacheFlags, CacheId, CacheSpec};
use mm::{Access, LockClass, Machine, Nanos};
use serde::Deserialize;
use sim::{Path, Sim, SimLock, TaskSpec};
use toml::Table;

use super::calls::{BRK_UP, Kernel, MAP, Step, UNMAP};
use super::objects::{self, Object};
use crate::daemons::rcu::{self, Ticks};
use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Sharing, Workload, WorkloadKind, number, within};

/// Parameters of all three.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Regions {
    /// Tasks, from 1.
    pub tasks: u32,
    /// Processes or threads.
    #[serde(default)]
    pub sharing: Sharing,
    /// The kernel whose calls these are, from 6.4 on.
    #[serde(default = "default_kernel")]
    pub kernel: String,
    /// Whether nodes that wait for a grace period are gathered in sheaves; as the kernel does it if nothing is said.
    #[serde(default)]
    pub gather: Option<bool>,
    /// What a round takes a CPU besides slabs, ns.
    pub round_ns: u32,
    /// From one end of a grace period to the next, us.
    #[serde(default = "number::<36_000>")]
    pub grace_us: u32,
    /// What a callback takes besides what it frees, ns.
    #[serde(default = "number::<10>")]
    pub callback_ns: u32,
}

fn default_kernel() -> String {
    "6.18".to_owned()
}

/// Bytes of a region's lock and of a node of the tree.
const LOCK_BYTES: u32 = 40;
const NODE_BYTES: u32 = 256;
/// Tasks start within this time, so that they never run in step.
const STAGGER: Nanos = Nanos(1_000_000);

/// One of the programs, with its parameters.
#[derive(Clone, Debug)]
struct WillItScale {
    name: &'static str,
    calls: Calls,
    regions: Regions,
}

impl WillItScale {
    fn read(
        name: &'static str,
        calls: Calls,
        parameters: Table,
    ) -> Result<Arc<dyn Workload>, toml::de::Error> {
        Ok(Arc::new(Self { name, calls, regions: parameters.try_into()? }))
    }
}

/// What the three have in common; its name is nobody's.
const PROGRAM: WorkloadKind = WorkloadKind {
    name: "",
    tests: &[Mechanism::Slabs],
    brings: Brings::SLABS,
    groups: &["all"],
    read: |parameters| WillItScale::read("", MAPS, parameters),
    smallest: &["tasks = 1\nround_ns = 0\ngrace_us = 100\ncallback_ns = 0\n"],
    largest: &[],
};

/// will-it-scale's mmap1: a region of anonymous memory comes and goes.
pub(in crate::workloads) const MMAP1: WorkloadKind = WorkloadKind {
    name: "mmap1",
    read: |parameters| WillItScale::read("mmap1", MAPS, parameters),
    largest: &["tasks = 1\nround_ns = 4294967295\ngrace_us = 10000000\n"],
    ..PROGRAM
};

/// will-it-scale's mmap2: a region of a file.
pub(in crate::workloads) const MMAP2: WorkloadKind = WorkloadKind {
    name: "mmap2",
    read: |parameters| WillItScale::read("mmap2", MAPS, parameters),
    ..PROGRAM
};

/// will-it-scale's brk1: the heap grows by a page and shrinks again.
pub(in crate::workloads) const BRK1: WorkloadKind =
    WorkloadKind { name: "brk1", read: |parameters| WillItScale::read("brk1", GROWS, parameters), ..PROGRAM };

impl Workload for WillItScale {
    fn title(&self) -> String {
        let sharing = match self.regions.sharing {
            Sharing::Processes => "processes",
            Sharing::Threads => "threads",
        };
        format!("{}, {} {sharing}, calls of {}", self.name, self.regions.tasks, self.regions.kernel)
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        self.regions.begin(sim, stage, self.calls)
    }
}

impl Regions {
    fn begin(&self, sim: &Sim, stage: &Rc<Stage>, calls: Calls) -> Result<(), String> {
        within("tasks", self.tasks.into(), 1..=100_000)?;
        let kernel = Kernel::of(&self.kernel)?;
        let gather = self.gather.unwrap_or_else(|| kernel.gathers_nodes());
        let caches = Caches::new(stage, kernel)?;
        let period = within("grace_us", self.grace_us.into(), 100..=10_000_000)? * 1000;
        rcu::start(sim, stage, Nanos(period));
        stage.tasks.set(self.tasks);
        let shared = stage.machine().new_lock(LockClass::Other, 1);
        for number in 0..self.tasks {
            let lock = match self.sharing {
                Sharing::Threads => shared,
                Sharing::Processes => stage.machine().new_lock(LockClass::Other, 2 + number),
            };
            let mut random = Random::new(stage.machine());
            let start = random.time_below(STAGGER);
            let call = Nanos(u64::from(self.round_ns) / 2);
            let mut space =
                Space { stage: Rc::clone(stage), kernel, gather, caches, lock, call, held: Held::default() };
            let (spec, callback) =
                (TaskSpec::new(format!("regions/{number}")), Nanos(self.callback_ns.into()));
            sim.spawn(spec.on(stage.cpu(number)).at(start), move || {
                let mut ticks = Ticks::new(&space.stage, callback);
                while !space.stage.is_over() && space.round(calls, &mut ticks).is_some() {}
            });
        }
        Ok(())
    }
}

/// The two calls of a round, the second of which is [`UNMAP`].
#[derive(Clone, Copy, Debug)]
struct Calls {
    up: &'static [Step],
    /// Operations that a round counts for.
    operations: u64,
}

/// mmap and munmap.
const MAPS: Calls = Calls { up: MAP, operations: 1 };
/// brk up and down.
const GROWS: Calls = Calls { up: BRK_UP, operations: 2 };

/// The caches of a kernel.
#[derive(Clone, Copy)]
struct Caches {
    region: CacheId,
    lock: Option<CacheId>,
    node: CacheId,
}

impl Caches {
    fn new(stage: &Stage, kernel: Kernel) -> Result<Self, String> {
        let with_sheaves = |spec: CacheSpec| match kernel.sheaf {
            0 => spec,
            capacity => spec.with_sheaves(capacity),
        };
        let mut region = CacheSpec::new("vm_area_struct", kernel.region_bytes).with(CacheFlags::ACCOUNTED);
        if !kernel.region_by_rcu {
            let typesafe = CacheFlags::TYPESAFE_BY_RCU.with(CacheFlags::POINTER_INSIDE);
            region = region.with(typesafe).with(CacheFlags::CACHE_ALIGNED);
        }
        let lock = CacheSpec::new("vma_lock", LOCK_BYTES).with(CacheFlags::ACCOUNTED);
        Ok(Self {
            region: objects::cache(stage, with_sheaves(region))?,
            lock: if kernel.own_lock { Some(objects::cache(stage, lock)?) } else { None },
            node: objects::cache(
                stage,
                with_sheaves(CacheSpec::new("maple_node", NODE_BYTES).aligned(NODE_BYTES)),
            )?,
        })
    }
}

/// Objects that the task holds.
#[derive(Default)]
struct Held {
    region: Option<Object>,
    lock: Option<Object>,
    leaf: Option<Object>,
    list: Option<Object>,
    spare: Vec<Object>,
}

/// An address space, as one task sees it.
struct Space {
    stage: Rc<Stage>,
    kernel: Kernel,
    /// Whether nodes that wait for a grace period are gathered.
    gather: bool,
    caches: Caches,
    lock: SimLock,
    /// What each of a round's two calls takes besides.
    call: Nanos,
    held: Held,
}

impl Space {
    /// A round; `None` if memory ran out.
    fn round(&mut self, calls: Calls, ticks: &mut Ticks) -> Option<()> {
        self.call(calls.up)?;
        ticks.look(&self.stage);
        self.call(UNMAP)?;
        ticks.look(&self.stage);
        self.stage.tally.did(calls.operations);
        Some(())
    }

    fn call(&mut self, steps: &[Step]) -> Option<()> {
        let stage = Rc::clone(&self.stage);
        let machine = stage.machine();
        machine.charge(Path::Syscall);
        machine.lock(&self.lock);
        machine.compute(self.call);
        let done = steps.iter().try_for_each(|&step| self.step(&stage, step));
        machine.unlock(&self.lock);
        done
    }

    fn step(&mut self, stage: &Stage, step: Step) -> Option<()> {
        let (caches, held) = (self.caches, &mut self.held);
        match step {
            Step::AllocateRegion => {
                let region = objects::allocate(stage, caches.region)?;
                stage.machine().use_object(region, self.kernel.region_bytes, Access::Write);
                held.region = Some(region);
                if let Some(cache) = caches.lock {
                    let lock = objects::allocate(stage, cache)?;
                    stage.machine().use_object(lock, LOCK_BYTES, Access::Write);
                    held.lock = Some(lock);
                }
            }
            Step::Preallocate => {
                held.spare.push(objects::allocate(stage, caches.node)?);
                objects::allocate_bulk(stage, caches.node, self.kernel.preallocated - 1, &mut held.spare)?;
            }
            Step::ReplaceLeaf => {
                let new = match held.spare.pop() {
                    Some(node) => node,
                    None => objects::allocate(stage, caches.node)?,
                };
                stage.machine().use_object(new, NODE_BYTES, Access::Write);
                if let Some(old) = held.leaf.replace(new) {
                    if self.gather {
                        objects::kfree_rcu(stage, caches.node, old);
                    } else {
                        objects::free_deferred(stage, caches.node, old);
                    }
                }
            }
            Step::GiveBack => {
                let last = held.spare.pop();
                objects::free_bulk(stage, caches.node, &mut held.spare);
                if let Some(node) = last {
                    objects::free(stage, caches.node, node);
                }
            }
            Step::AllocateList if self.kernel.list_node => {
                held.list = Some(objects::allocate(stage, caches.node)?);
            }
            Step::AllocateList => {}
            Step::FreeList => {
                if let Some(node) = held.list.take() {
                    objects::free(stage, caches.node, node);
                }
            }
            Step::FreeRegion => self.free_region(stage),
        }
        Some(())
    }

    fn free_region(&mut self, stage: &Stage) {
        let (caches, held) = (self.caches, &mut self.held);
        let lock = caches.lock.zip(held.lock.take());
        let parts = lock.into_iter().chain(held.region.take().map(|region| (caches.region, region)));
        for (cache, object) in parts {
            if self.kernel.region_by_rcu {
                objects::free_deferred(stage, cache, object);
            } else {
                objects::free(stage, cache, object);
            }
        }
    }
}
