//! Seed 000's script, in so many processes:
//!
//! ```python
//! while True:
//!     mm = mmap.mmap(-1, size)
//!     mm[:] = b'\xff' * size
//!     mm.close()
//! ```
//!
//! Each round maps `size` bytes of shared memory, builds a private bytes object of the same size (`malloc` maps it; the
//! interpreter fills it), copies it over page by page, frees the object when the statement ends, and closes the mapping,
//! whose pages go with the file behind it. So twice `size` comes and goes in each round. Left out: the interpreter's own
//! memory, and what the kernel allocates besides pages and page tables.

use std::rc::Rc;

use mm::{Nanos, Order};
use serde::Deserialize;
use sim::{Path, Sim, TaskSpec, Traffic};

use super::mapping::{Backing, Mapping};
use super::random::Random;
use super::within;
use crate::stage::Stage;

/// Parameters of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonLoop {
    /// Processes that run it, from 1.
    pub processes: u32,
    /// Size of the mapping, MiB, from 1.
    pub mib: u32,
    /// Processes start at random within this time, ms.
    #[serde(default = "default_stagger")]
    pub stagger_ms: u32,
}

const fn default_stagger() -> u32 {
    1000
}

impl PythonLoop {
    pub(super) fn title(&self) -> String {
        format!("python loop, {} processes of {} MiB", self.processes, self.mib)
    }

    pub(super) fn shrunk(self, by: u32) -> Self {
        Self { mib: (self.mib / by).max(1), stagger_ms: self.stagger_ms / by, ..self }
    }

    pub(super) fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String> {
        within("processes", self.processes.into(), 1..=100_000)?;
        within("mib", self.mib.into(), 1..=1 << 24)?;
        for number in 0..self.processes {
            let (stage, spec) = (Rc::clone(stage), *self);
            let mut random = Random::new(stage.machine());
            let start = random.time_below(Nanos(u64::from(self.stagger_ms) * 1_000_000));
            let task = TaskSpec::new(format!("python/{number}")).on(stage.cpu(number)).at(start);
            sim.spawn(task, move || while !stage.is_over() && spec.round(&stage) {});
        }
        Ok(())
    }

    /// One round; false if memory ran out.
    fn round(self, stage: &Stage) -> bool {
        let pages = self.mib as usize * 256;
        let mut shared = Mapping::new(stage, Backing::Shared, pages);
        let mut object = Mapping::new(stage, Backing::Anonymous, pages);
        let filled = (0..pages).all(|_| !stage.is_over() && fill(stage, &mut object));
        let copied =
            filled && (0..pages).all(|page| !stage.is_over() && copy(stage, &object, page, &mut shared));
        object.unmap(stage);
        shared.unmap(stage);
        copied
    }
}

/// The interpreter fills a page of the object: the kernel has just cleared it, so it is in the caches.
#[inline]
fn fill(stage: &Stage, object: &mut Mapping) -> bool {
    let got = object.fault(stage);
    stage.machine().charge(Path::RewritePage);
    got
}

/// A page of the object goes to the shared mapping: the source comes from memory, the target is in the caches.
#[inline]
fn copy(stage: &Stage, object: &Mapping, page: usize, shared: &mut Mapping) -> bool {
    let got = shared.fault(stage);
    stage.machine().stream(object.pages()[page], Order::ZERO, Traffic::Read);
    stage.machine().charge(Path::RewritePage);
    got
}
