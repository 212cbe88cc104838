//! CPUs that run in an address space are made to forget entries of its page tables: they are interrupted, and whoever changed
//! the entries waits for them. A CPU that is idle, or runs something else, is left alone.

use mm::vm::SpaceId;

use super::Core;
use super::sched::Sched;
use crate::costs::Path;
use crate::time::Ticks;

impl Core {
    /// The running task is in `space` from here on.
    pub(crate) fn enter_space(&self, space: SpaceId) {
        if self.in_task() {
            self.has_spaces.set(true);
            self.sched.borrow_mut().tasks[self.task() as usize].space = Some(space);
        }
    }

    /// Other CPUs that run in `space` forget entries of it.
    pub(crate) fn flush_tlb(&self, space: SpaceId) {
        if !self.in_task() || !self.has_spaces.get() {
            return;
        }
        let cost = |path: Path| self.costs().paths[path as usize];
        let interrupted = self.sched.borrow_mut().interrupt(space, self.cpu(), cost(Path::Interrupt));
        if interrupted > 0 {
            self.instructions(cost(Path::Shootdown));
        }
    }
}

impl Sched {
    /// Takes `time` of each CPU but `this` one that runs a task which is in `space`; how many these are.
    fn interrupt(&mut self, space: SpaceId, this: u16, time: Ticks) -> usize {
        let mut interrupted = 0;
        for (number, cpu) in self.cpus.iter_mut().enumerate() {
            let Some(task) = self.tasks.get_mut(cpu.current as usize) else { continue };
            if number == usize::from(this) || task.space != Some(space) {
                continue;
            }
            // What it computes ends that much later; what it does else goes on that much later.
            if cpu.until > 0 {
                cpu.until += time;
            } else {
                task.remaining += time;
            }
            interrupted += 1;
        }
        interrupted
    }
}
