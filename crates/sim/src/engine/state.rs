//! What the scheduler knows of a CPU and of a task.

use std::collections::VecDeque;
use std::rc::Rc;

use corosensei::Yielder;
use mm::Cpu;
use mm::vm::SpaceId;

use super::Park;
use crate::locks::SimLock;
use crate::task::Role;
use crate::time::Ticks;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CpuMode {
    Idle,
    /// In the heap.
    Ready,
    /// The engine is executing it.
    Running,
    /// Waits for a lock.
    Spinning,
}

#[derive(Debug)]
pub(super) struct CpuState {
    pub(super) mode: CpuMode,
    pub(super) clock: Ticks,
    pub(super) current: u32,
    pub(super) queue: VecDeque<u32>,
    pub(super) slice_end: Ticks,
    /// The end of the step that the current task computes; 0 if it does something else.
    pub(super) until: Ticks,
    pub(super) need_resched: bool,
    pub(super) last: u32,
    pub(super) idle_since: Ticks,
    pub(super) idle: Ticks,
    pub(super) spin: Ticks,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TaskState {
    /// On a CPU or in its queue.
    Ready,
    /// Spins for a lock.
    Spinning(SimLock),
    /// Until woken; a timer may do it.
    Blocked,
    Ended,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "four facts that have nothing to do with each other")]
pub(super) struct TaskRecord {
    pub(super) name: String,
    /// Which of the names it is of.
    pub(super) named: u32,
    pub(super) role: Role,
    pub(super) group: u16,
    pub(super) state: TaskState,
    pub(super) cpu: u16,
    pub(super) allowed: Rc<[Cpu]>,
    /// Computing left to do before the task itself goes on.
    pub(super) remaining: Ticks,
    /// Woken while it was awake: its next wait ends at once.
    pub(super) token: bool,
    /// Woken, and has not run since.
    pub(super) fresh: bool,
    /// Tells its present timer from past ones.
    pub(super) timer: u32,
    /// Depth of sections that must not be preempted.
    pub(super) atomic: u32,
    /// Its time slice has run out, for another task's sake, since it last asked.
    pub(super) sliced: bool,
    /// Time that it waited for locks.
    pub(super) waited: Ticks,
    /// Open spans, innermost in the lowest four bits.
    pub(super) spans: u32,
    pub(super) stuck: bool,
    /// The address space that it is in, where it said so.
    pub(super) space: Option<SpaceId>,
    /// The way back to the engine; null until it starts.
    pub(super) yielder: *const Yielder<(), Park>,
}
