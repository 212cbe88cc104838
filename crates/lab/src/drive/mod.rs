//! The one driver of simulations, a replay's and a scene's: it sets a machine up with the memory manager and its daemons on it, has a
//! workload start, and runs until all its tasks have ended. `figures` makes a [`Run`](crate::measurements::Run) of what was
//! measured.

pub(crate) mod figures;
mod timeline;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use mm::Nanos;
use sim::{Sim, SimError, SimOptions, SpanRecord};

use self::timeline::{NamesSeen, Seen};
use crate::daemons;
use crate::measurements::Timeline;
use crate::stage::{Setup, Stage};
use crate::workloads::Workload;

/// Why a simulation could not be.
#[derive(Clone, PartialEq, Debug)]
pub enum DriveError {
    /// The machine or the workload cannot be set up.
    Setup(String),
    /// The simulation came to a halt.
    Sim(SimError),
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(what) => f.write_str(what),
            Self::Sim(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DriveError {}

/// A simulated machine, set up.
pub(crate) struct Drive {
    sim: Sim,
    stage: Rc<Stage>,
    began: Instant,
    seen: Rc<RefCell<Seen>>,
}

impl Drive {
    /// The memory manager on a machine; no time has passed, and its daemons are still to be started.
    pub(crate) fn new(setup: &Setup<'_>) -> Result<Self, DriveError> {
        let began = Instant::now();
        let descriptor_bytes = setup.policy.rules().lists.descriptor_bytes;
        let options = SimOptions { seed: setup.seed, descriptor_bytes, ..SimOptions::default() };
        let sim = Sim::new(setup.profile, options);
        let stage = Rc::new(Stage::new(&sim, setup).map_err(DriveError::Setup)?);
        Ok(Self { sim, stage, began, seen: Rc::default() })
    }

    /// Starts the memory manager's daemons. What was measured before is forgotten: setting up took locks too.
    pub(crate) fn start_daemons(&self) {
        self.sim.reset_measurements();
        daemons::start(&self.sim, &self.stage);
    }

    /// What tasks stand on.
    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Calls `body` at `time`, in a task called `name`.
    pub(crate) fn at(&self, time: Nanos, name: &str, body: impl FnOnce(&Stage) + 'static) {
        let stage = Rc::clone(&self.stage);
        self.sim.at(time, name, move || body(&stage));
    }

    /// Calls `hear` of each span that ends.
    pub(crate) fn on_span(&self, hear: impl FnMut(&SpanRecord) + 'static) {
        self.sim.on_span(hear);
    }

    /// Has `workload` start, and runs until all its tasks have ended; says when that was.
    pub(crate) fn run(&mut self, workload: &dyn Workload) -> Result<Nanos, DriveError> {
        self.stage.begin_in_group(&workload.group());
        workload.start(&self.sim, &self.stage).map_err(DriveError::Setup)?;
        timeline::look_on(&self.sim, &self.stage, &self.seen);
        Ok(self.sim.run(None).map_err(DriveError::Sim)?.now)
    }

    /// What was seen over time, from the workload's start on.
    pub(crate) fn timeline(&self) -> Timeline {
        let names = NamesSeen { processes: self.stage.names(), tasks: self.sim.task_names() };
        self.seen.borrow().timeline(self.stage.start.get(), &names)
    }

    /// Real time since it was set up, ns.
    pub(crate) fn wall_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}
