//! A scene is one variant of an experiment: a workload on a machine, under a policy, with knobs set at the start and at
//! the beginning of each phase. [`perform`] runs it and gives what each phase measured.

mod perform;
#[cfg(test)]
mod tests;

use std::fmt;

use mm::{Cpu, Knob, Limit, Nanos, Policy};
use sim::{Measurements, Profile};

use crate::drive::DriveError;
use crate::measurements::Run;
use crate::stage::{GroupSetup, Setup};
use crate::workloads::WorkloadSpec;

pub use perform::{perform, perform_in_order};

/// What is to run.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The machine.
    pub profile: Profile,
    /// The policy.
    pub policy: Policy,
    /// Knobs that differ from their defaults from the start.
    pub knobs: Vec<(Knob, u64)>,
    /// The workload.
    pub workload: WorkloadSpec,
    /// Seed of offsets and of all random choices.
    pub seed: u64,
    /// CPUs that tasks are placed on; empty: the profile's.
    pub cpus: Vec<Cpu>,
    /// Memory of machine and workload, and the larger caches, are divided by this, from 1 (see [`Profile::shrunk`]). The
    /// vmstat tick comes as often in a workload's round as it would.
    pub shrink: u32,
    /// Simulated time before anything is measured.
    pub warm_up: Nanos,
    /// What is measured, one after the other; at least one.
    pub phases: Vec<Phase>,
}

impl Scene {
    /// The machine, and what it is given.
    fn setup(&self) -> Setup<'_> {
        let Self { profile, policy, knobs, cpus, seed, .. } = self;
        let changes = self.phases.iter().flat_map(|phase| &phase.set);
        let changes = changes.into_iter().any(|(knob, _)| Limit::of(*knob).is_some());
        let groups = GroupSetup { named: &[], changes };
        Setup { profile, policy, knobs, built: &[], groups, cpus, seed: *seed }
    }
}

impl Scene {
    /// A phase of `length` of a workload; all else as nobody says otherwise.
    pub(crate) fn plain(profile: Profile, policy: Policy, workload: WorkloadSpec, length: Nanos) -> Self {
        Self {
            profile,
            policy,
            knobs: vec![],
            workload,
            seed: 1,
            cpus: vec![],
            shrink: 1,
            warm_up: Nanos(0),
            phases: vec![Phase::only(length)],
        }
    }
}

#[cfg(test)]
impl Scene {
    /// [`Self::plain`] of a workload that is written as in an experiment's file.
    pub(crate) fn of(profile: Profile, policy: &str, workload: &str, length: Nanos) -> Self {
        let workload: toml::Table = workload.parse().expect("TOML");
        let policy = Policy::parse(policy).expect("a policy");
        Self::plain(profile, policy, workload.try_into().expect("a workload"), length)
    }
}

/// A stretch of simulated time that is measured by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phase {
    /// Its name; empty if it is the only one.
    pub name: String,
    /// How long it lasts.
    pub length: Nanos,
    /// Knobs that are written when it begins.
    pub set: Vec<(Knob, u64)>,
}

impl Phase {
    /// The only phase of a scene.
    pub const fn only(length: Nanos) -> Self {
        Self { name: String::new(), length, set: vec![] }
    }
}

/// What a phase measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The phase's name.
    pub phase: String,
    /// The figures. [`Run::variant`] is the phase's name, [`Run::confidence`] the least, until a caller knows better;
    /// counters and memory are those at the phase's end, counted from the start of the simulation
    /// (slab caches' of the last phase: when its tasks have ended).
    pub run: Run,
    /// Everything, for those who want to know where a mean comes from.
    pub measured: Measurements,
}

/// Why a scene could not be.
#[derive(Clone, PartialEq, Debug)]
pub enum SceneError {
    /// There was no simulation.
    Drive(DriveError),
    /// All tasks ended before the last phase did.
    Early {
        /// When, from the start.
        at: Nanos,
        /// When the last phase was to end.
        end: Nanos,
    },
}

impl fmt::Display for SceneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drive(error) => error.fmt(f),
            Self::Early { at, end } => {
                write!(f, "all tasks had ended at {} ns, before the last phase did at {} ns", at.0, end.0)
            }
        }
    }
}

impl std::error::Error for SceneError {}

impl From<DriveError> for SceneError {
    fn from(error: DriveError) -> Self {
        Self::Drive(error)
    }
}

impl SceneError {
    pub(crate) fn setup(what: impl Into<String>) -> Self {
        Self::Drive(DriveError::Setup(what.into()))
    }
}
