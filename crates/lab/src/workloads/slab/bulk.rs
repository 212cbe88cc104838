//! Objects of one size allocated in batches and freed in batches, with nothing else between: what caches and locks can do
//! alone. Each task holds some batches and frees the oldest; objects may be shuffled, so that a batch of frees comes from as
//! many slabs as it has objects, and may be freed by the task next to the one that allocated them.
//!
//! An operation is an object allocated and freed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use mm::Nanos;
use mm::policy::Mechanism;
use mm::slab::{CacheId, CacheSpec};
use serde::Deserialize;
use sim::{Sim, TaskSpec};

use super::super::alloc_loop::{FreeOrder, Whose};
use super::objects::{self, Object};
use crate::reach::Brings;
use crate::stage::{Random, Stage};
use crate::workloads::workload::{Workload, WorkloadKind, number, within};

/// Parameters of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlabBulk {
    /// Tasks, from 1.
    pub tasks: u32,
    /// Bytes of an object.
    pub size: u32,
    /// Objects of a batch; 1: not in bulk.
    #[serde(default = "number::<1>")]
    pub batch: u32,
    /// Objects that each task holds, in whole batches.
    pub objects: u32,
    /// Order of the frees.
    #[serde(default)]
    pub free: FreeOrder,
    /// Whose objects a task frees.
    #[serde(default)]
    pub whose: Whose,
}

/// Batches that wait to be freed, by the task that will free them.
type Hands = Rc<[RefCell<VecDeque<Vec<Object>>>]>;

/// What the file of an experiment calls it.
pub(in crate::workloads) const KIND: WorkloadKind = WorkloadKind {
    name: "slab-bulk",
    tests: &[Mechanism::Slabs],
    brings: Brings::SLABS,
    groups: &["all"],
    read: WorkloadKind::read::<SlabBulk>,
    smallest: &[
        "tasks = 1\nsize = 8\nobjects = 1\n",
        "tasks = 2\nsize = 8\nobjects = 1\nwhose = 'neighbours'\nfree = 'shuffled'\n",
    ],
    largest: &["tasks = 2\nsize = 8192\nbatch = 4096\nobjects = 4096\n"],
};

impl Workload for SlabBulk {
    fn title(&self) -> String {
        let Self { tasks, size, batch, .. } = self;
        format!("slab loop, {tasks} tasks, objects of {size} bytes in batches of {batch}")
    }

    fn shrunk(&self, by: u32) -> Option<Arc<dyn Workload>> {
        Some(Arc::new(Self { objects: (self.objects / by).max(self.batch.min(self.objects)), ..*self }))
    }

    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("tasks", self.tasks.into(), 1..=100_000)?;
        within("size", self.size.into(), 8..=8192)?;
        within("batch", self.batch.into(), 1..=4096)?;
        within("objects", self.objects.into(), self.batch.into()..=1 << 24)?;
        let cache = objects::cache(stage, CacheSpec::new("slab_bulk", self.size))?;
        stage.tasks.set(self.tasks);
        let hands: Hands = (0..self.tasks).map(|_| RefCell::default()).collect();
        for number in 0..self.tasks {
            let mut random = Random::new(stage.machine());
            let start = random.time_below(Nanos(1_000_000));
            let task = Task {
                stage: Rc::clone(stage),
                spec: *self,
                cache,
                number: number as usize,
                hands: Rc::clone(&hands),
            };
            let spec = TaskSpec::new(format!("bulk/{number}")).on(stage.cpu(number)).at(start);
            sim.spawn(spec, move || task.run(&mut random));
        }
        Ok(())
    }
}

struct Task {
    stage: Rc<Stage>,
    spec: SlabBulk,
    cache: CacheId,
    number: usize,
    hands: Hands,
}

impl Task {
    fn run(&self, random: &mut Random) {
        let mut held = VecDeque::with_capacity(self.spec.objects as usize);
        while !self.stage.is_over() {
            while held.len() < self.spec.objects as usize {
                let mut batch = Vec::with_capacity(self.spec.batch as usize);
                if self.allocate(&mut batch).is_none() {
                    return;
                }
                held.extend(batch);
            }
            if self.spec.free == FreeOrder::Shuffled {
                random.shuffle(held.make_contiguous());
            }
            // Half of them, so that what is freed was not allocated last; a single one too, or the loop would do nothing.
            let batches = (held.len() / 2).div_ceil(self.spec.batch as usize).max(1);
            for _ in 0..batches {
                let some = held.len().min(self.spec.batch as usize);
                let batch = self.pass_on(held.drain(..some).collect());
                self.free(batch);
            }
        }
    }

    fn allocate(&self, batch: &mut Vec<Object>) -> Option<()> {
        if self.spec.batch > 1 {
            return objects::allocate_bulk(&self.stage, self.cache, self.spec.batch, batch);
        }
        batch.push(objects::allocate(&self.stage, self.cache)?);
        Some(())
    }

    /// What this task frees in place of `batch`; nothing if its neighbour is late.
    fn pass_on(&self, batch: Vec<Object>) -> Vec<Object> {
        if self.spec.whose == Whose::Own {
            return batch;
        }
        // Hands are shared data: they are swapped in order of simulated time.
        self.stage.machine().sync();
        self.hands[(self.number + 1) % self.hands.len()].borrow_mut().push_back(batch);
        self.hands[self.number].borrow_mut().pop_front().unwrap_or_default()
    }

    fn free(&self, mut batch: Vec<Object>) {
        self.stage.tally.did(batch.len() as u64);
        if self.spec.batch > 1 {
            objects::free_bulk(&self.stage, self.cache, &mut batch);
        } else {
            for object in batch {
                objects::free(&self.stage, self.cache, object);
            }
        }
    }
}
