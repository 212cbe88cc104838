//! A task of a workload as a task of the simulated machine: goes through its steps, waits for what others must do first.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::slab::CacheId;
use mm::{Nanos, Order, Pfn, Request};
use sim::{SimMachine, TaskSpec, WaitQueue};

use super::objects::Objects;
use crate::recorded::{Action, BlockId, Recorded, TaskRef};
use crate::stage::{Random, Stage};

/// A block of this pass that nobody has asked for yet.
const NOT_YET: u32 = u32::MAX;
/// A block that was asked for in vain.
const FAILED: u32 = u32::MAX - 1;
/// A block that was given back, or cut up.
const GONE: u32 = u32::MAX - 2;

/// What all copies share.
pub(super) struct Play {
    pub(super) stage: Rc<Stage>,
    pub(super) workload: std::sync::Arc<Recorded>,
    /// For each of the workload's slab caches the one that was made, if it could be.
    pub(super) caches: Vec<Option<CacheId>>,
    /// Times that each copy goes through the workload.
    pub(super) passes: u32,
    /// The workload's own time is multiplied by this / 65536: speed of the recorded machine over that of this one.
    pub(super) slowness: u64,
}

/// A copy of the workload.
pub(super) struct Copy {
    play: Rc<Play>,
    number: u32,
    /// Frame of each block, or one of the markers.
    blocks: RefCell<Vec<u32>>,
    /// Who waits for a block that is still to be asked for.
    awaited: RefCell<BTreeMap<BlockKey, WaitQueue>>,
    objects: Objects,
    /// Tasks that are through with this pass, and passes that all are through with.
    through: Cell<u32>,
    pass: Cell<u32>,
    pass_ended: WaitQueue,
}

/// A block's number, in an order.
type BlockKey = u32;

impl Copy {
    pub(super) fn new(play: &Rc<Play>, number: u32) -> Rc<Self> {
        Rc::new(Self {
            play: Rc::clone(play),
            number,
            blocks: RefCell::new(vec![NOT_YET; play.workload.blocks as usize]),
            awaited: RefCell::default(),
            objects: Objects::new(&play.workload),
            through: Cell::new(0),
            pass: Cell::new(0),
            pass_ended: WaitQueue::default(),
        })
    }

    /// Starts a task of this copy at `start`.
    pub(super) fn spawn(self: &Rc<Self>, task: TaskRef, start: Nanos) {
        let tasks = &self.play.workload.tasks;
        let ops = &tasks[task.0 as usize];
        let place = self.number as usize * tasks.len() + task.0 as usize;
        let cpu = self.play.stage.cpu(place as u32);
        let spec = TaskSpec::new(format!("{}/{}", ops.name, self.number)).on(cpu).at(start);
        let (copy, jitter) = (Rc::clone(self), Random::new(self.machine()));
        self.machine().spawn(spec, move || copy.play(task, jitter));
    }

    /// The body of a task. One that another starts goes through the workload once, for it is started in each pass.
    fn play(self: &Rc<Self>, task: TaskRef, mut jitter: Random) {
        let workload = std::sync::Arc::clone(&self.play.workload);
        let ops = &workload.tasks[task.0 as usize];
        loop {
            let pass = self.pass.get();
            for op in &ops.ops {
                self.compute(op.own_ns, &mut jitter);
                match op.action {
                    Action::Run => {}
                    Action::Sleep(ns) => self.machine().sleep(Nanos(u64::from(ns))),
                    Action::Alloc { block, kind } => self.alloc(block, kind),
                    Action::Free { first, count } => {
                        let first = first as usize;
                        self.free(&ops.frees[first..first + usize::from(count)]);
                    }
                    Action::Split { block, parts, order } => self.split(block, parts, order),
                    Action::Start(other) => self.spawn(other, Nanos(0)),
                    Action::AllocObject { object, cache } => {
                        let cache = self.play.caches[usize::from(cache)];
                        self.objects.alloc(self.stage(), object, cache);
                    }
                    Action::FreeObject(object) => self.objects.free(self.stage(), object),
                }
            }
            self.finish_pass();
            if ops.started_by_other || pass + 1 == self.play.passes {
                return;
            }
            self.machine().wait_until(&self.pass_ended, || self.pass.get() > pass);
        }
    }

    fn stage(&self) -> &Stage {
        &self.play.stage
    }

    fn machine(&self) -> &SimMachine {
        self.play.stage.machine()
    }

    #[inline]
    fn compute(&self, own_ns: u32, jitter: &mut Random) {
        let scaled = (u64::from(own_ns) * self.play.slowness) >> 16;
        if scaled > 0 {
            self.machine().compute(Nanos(jitter.around(scaled)));
        }
    }

    fn alloc(&self, block: BlockId, kind: u16) {
        let kind = &self.play.workload.kinds[usize::from(kind)];
        let request = Request {
            order: kind.order,
            migratetype: kind.migratetype,
            highest: kind.highest,
            node: None,
            allowed: self.stage().allowed,
            urgency: kind.urgency.into(),
            no_fs: false,
            this_node: kind.this_node,
            zero: kind.zero,
        };
        let state = if let Ok(pfn) = self.stage().mm.alloc(request) {
            self.stage().tally.got(kind.order.pages());
            pfn.0
        } else {
            self.stage().tally.could_not_get();
            FAILED
        };
        self.blocks.borrow_mut()[block.0 as usize] = state;
        if !self.awaited.borrow().is_empty() {
            self.tell_waiters(block);
        }
    }

    #[cold]
    fn tell_waiters(&self, block: BlockId) {
        let queue = self.awaited.borrow_mut().remove(&block.0);
        if let Some(queue) = queue {
            self.machine().notify_all(&queue);
        }
    }

    /// The frame of a block, once somebody has asked for it; `None` if that was in vain.
    #[inline]
    fn frame(&self, block: BlockId) -> Option<Pfn> {
        let state = || self.blocks.borrow()[block.0 as usize];
        if state() == NOT_YET {
            let queue = self.awaited.borrow_mut().entry(block.0).or_default().clone();
            self.machine().wait_until(&queue, || state() != NOT_YET);
        }
        let frame = state();
        if frame == FAILED { None } else { Some(Pfn(frame)) }
    }

    fn free(&self, blocks: &[BlockId]) {
        let mut frames = [(Pfn(0), Order::ZERO); 32];
        let mut count = 0;
        for &block in blocks {
            match self.frame(block) {
                Some(pfn) => {
                    frames[count] = (pfn, self.stage().mm.map().frame(pfn).state().order);
                    count += 1;
                }
                None => self.stage().tally.had_nothing_to_give(),
            }
            self.blocks.borrow_mut()[block.0 as usize] = GONE;
        }
        let frames = &frames[..count];
        let freed = match frames {
            [] => Ok(()),
            [(pfn, order)] => self.stage().mm.free(*pfn, *order),
            many => self.stage().mm.free_batch(many),
        };
        freed.expect("the workload frees only what it holds");
        for (_, order) in frames {
            self.stage().tally.gave(order.pages());
        }
    }

    fn split(&self, block: BlockId, parts: BlockId, order: Order) {
        let frame = self.frame(block);
        if let Some(pfn) = frame {
            self.stage().mm.pages().split(pfn, order).expect("the workload splits only what it holds");
        }
        let mut blocks = self.blocks.borrow_mut();
        blocks[block.0 as usize] = GONE;
        for page in 0..order.pages() {
            blocks[(parts.0 + page) as usize] = frame.map_or(FAILED, |pfn| pfn.0 + page);
        }
        drop(blocks);
        if !self.awaited.borrow().is_empty() {
            for page in 0..order.pages() {
                self.tell_waiters(BlockId(parts.0 + page));
            }
        }
    }

    /// A task is through with this pass; the last one gives back what the pass left, if another follows.
    fn finish_pass(&self) {
        self.through.set(self.through.get() + 1);
        if self.through.get() < self.play.workload.tasks.len() as u32 {
            return;
        }
        if self.pass.get() + 1 < self.play.passes {
            self.give_back_all();
            self.objects.give_back_all(self.stage());
        }
        self.through.set(0);
        self.pass.set(self.pass.get() + 1);
        self.machine().notify_all(&self.pass_ended);
    }

    fn give_back_all(&self) {
        let count = self.blocks.borrow().len();
        for block in 0..count {
            let state = std::mem::replace(&mut self.blocks.borrow_mut()[block], NOT_YET);
            if state < GONE {
                let pfn = Pfn(state);
                let order = self.stage().mm.map().frame(pfn).state().order;
                self.stage().mm.free(pfn, order).expect("a block that is held can be freed");
                self.stage().tally.dropped(order.pages());
            }
        }
    }
}
