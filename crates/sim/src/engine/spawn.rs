//! New tasks, and tasks that are told to run elsewhere.

use std::rc::Rc;

use mm::{Cpu, TaskId};

use super::{Core, Park};
use crate::task::{Affinity, Role, TaskSpec};
use crate::time::from_nanos;

impl Core {
    /// A task that runs `body`. Its coroutine is made when it starts.
    pub(crate) fn spawn(&self, spec: TaskSpec, role: Role, body: Box<dyn FnOnce()>) -> TaskId {
        if self.in_task() {
            self.sync();
        }
        let allowed = self.allowed(&spec.affinity);
        let start = from_nanos(spec.start).max(self.clock.get());
        self.meter.borrow_mut().know_group(spec.group);
        let number = self.sched.borrow_mut().add(spec.name, role, spec.group, allowed, start);
        self.bodies.borrow_mut().push(Some(body));
        self.others_changed();
        TaskId(number)
    }

    /// The task runs on `cpus` from now on (`sched_setaffinity`): if this is none of them, it goes to the first.
    pub(crate) fn restrict(&self, cpus: Rc<[Cpu]>) {
        if !self.in_task() {
            return;
        }
        self.sync();
        let allowed = self.allowed(&Affinity::Any(cpus));
        let (task, here) = (self.task.get() as usize, self.cpu.get());
        let stays = allowed.iter().any(|cpu| cpu.0 == here);
        {
            let mut sched = self.sched.borrow_mut();
            if let Some(first) = allowed.first().filter(|_| !stays) {
                sched.tasks[task].cpu = first.0;
            }
            sched.tasks[task].allowed = allowed;
        }
        if !stays {
            self.park_asleep(Park::Block(self.clock.get()));
        }
    }

    /// The CPUs of `affinity` that the machine has; all default ones if it has none of them.
    fn allowed(&self, affinity: &Affinity) -> Rc<[Cpu]> {
        let cpus = self.sched.borrow().cpus.len();
        let exists = |cpu: &Cpu| usize::from(cpu.0) < cpus;
        match affinity {
            Affinity::One(cpu) if exists(cpu) => Rc::new([*cpu]),
            Affinity::Any(set) if !set.is_empty() && set.iter().all(exists) => Rc::clone(set),
            _ => Rc::clone(&self.default_cpus),
        }
    }
}
