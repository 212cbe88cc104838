//! Tasks as a workload describes them.

use std::rc::Rc;

use mm::{Cpu, Daemon, Nanos};

/// Which CPUs a task may run on.
#[derive(Clone, Debug)]
pub enum Affinity {
    /// All of the profile's default CPUs.
    Default,
    /// One CPU.
    One(Cpu),
    /// Any of these, which must not be empty. Share the list between tasks.
    Any(Rc<[Cpu]>),
}

/// A task to be started.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Its name, for messages.
    pub name: String,
    /// Where it may run.
    pub affinity: Affinity,
    /// When it starts; a time that has passed is now.
    pub start: Nanos,
    /// Spans are measured by group. Number groups from 0 without gaps.
    pub group: u16,
}

impl TaskSpec {
    /// A task that starts at once, anywhere, in group 0.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), affinity: Affinity::Default, start: Nanos(0), group: 0 }
    }

    /// The same, on one CPU.
    #[must_use]
    pub fn on(mut self, cpu: Cpu) -> Self {
        self.affinity = Affinity::One(cpu);
        self
    }

    /// The same, on any of `cpus`.
    #[must_use]
    pub fn on_any(mut self, cpus: Rc<[Cpu]>) -> Self {
        self.affinity = Affinity::Any(cpus);
        self
    }

    /// The same, from `start` on.
    #[must_use]
    pub fn at(mut self, start: Nanos) -> Self {
        self.start = start;
        self
    }

    /// The same, measured in `group`.
    #[must_use]
    pub fn in_group(mut self, group: u16) -> Self {
        self.group = group;
        self
    }
}

/// What a task is to the simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The simulation lasts until it ends.
    Ordinary,
    /// It serves the others, runs before them on its CPU, and is let go when they have ended.
    Background,
    /// As [`Role::Background`]; [`mm::Machine::wake`] wakes it by this name.
    Daemon(Daemon),
}
