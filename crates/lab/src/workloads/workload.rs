//! What a workload says of itself, what a kind of workload is, and a workload of whichever kind.

use std::fmt::{self, Debug};
use std::rc::Rc;
use std::sync::Arc;

use mm::policy::Mechanism;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sim::Sim;
use toml::Table;

use crate::reach::Brings;
use crate::stage::Stage;

/// A workload with its parameters: all that a run has to know of it.
pub trait Workload: Debug + Send + Sync {
    /// What it is, in a few words, with the parameters that matter.
    fn title(&self) -> String;

    /// The same with `by` times less memory; rounds become shorter with it. `None` where no size of it scales.
    fn shrunk(&self, _by: u32) -> Option<Arc<dyn Workload>> {
        None
    }

    /// What the cgroup is called that its tasks are in, where limits are set.
    fn group(&self) -> String {
        "workload".to_owned()
    }

    /// Starts its tasks; they come to an end when [`Stage::is_over`].
    ///
    /// # Errors
    /// Parameters that cannot be: which, and what they may be.
    fn start(&self, sim: &Sim, stage: &Rc<Stage>) -> Result<(), String>;
}

/// A kind of workload: what is known of it whatever its parameters are.
pub(crate) struct WorkloadKind {
    /// Its name, by which a file says `kind`.
    pub(crate) name: &'static str,
    /// The mechanisms that it is there to test: what its rates and times tell of where a metric does not say.
    pub(crate) tests: &'static [Mechanism],
    /// What it brings for knobs to act on.
    pub(crate) brings: Brings,
    /// Names of the groups that its tasks are measured in.
    pub(crate) groups: &'static [&'static str],
    /// Reads its parameters.
    pub(crate) read: fn(Table) -> Result<Arc<dyn Workload>, toml::de::Error>,
    /// Parameters as small as they may be, several where they are of several kinds: tests run each.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests run them"))]
    pub(crate) smallest: &'static [&'static str],
    /// And at their other end, where a run stays short.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests run them"))]
    pub(crate) largest: &'static [&'static str],
}

impl WorkloadKind {
    pub(crate) fn read<W>(parameters: Table) -> Result<Arc<dyn Workload>, toml::de::Error>
    where
        W: Workload + DeserializeOwned + 'static,
    {
        Ok(Arc::new(parameters.try_into::<W>()?))
    }
}

/// A workload with its parameters, as an experiment file gives them: `kind` says which, the others are its own.
#[derive(Clone)]
pub struct WorkloadSpec {
    pub(crate) kind: &'static WorkloadKind,
    pub(crate) workload: Arc<dyn Workload>,
}

impl WorkloadSpec {
    /// The mechanisms that it is there to test.
    pub fn tests(&self) -> &'static [Mechanism] {
        self.kind.tests
    }

    /// What it brings for knobs to act on.
    pub fn brings(&self) -> Brings {
        self.kind.brings
    }

    /// The same with `by` times less memory, as far as it has sizes that scale.
    #[must_use]
    pub fn with_less_memory(&self, by: u32) -> Self {
        let workload = self.workload.shrunk(by).unwrap_or_else(|| Arc::clone(&self.workload));
        Self { kind: self.kind, workload }
    }
}

impl Debug for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.workload.fmt(f)
    }
}

/// How a file's tasks share memory management's structures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each has an address space of its own.
    #[default]
    Processes,
    /// All share one.
    Threads,
}

/// The number that a parameter is where a file does not say.
pub(crate) const fn number<const N: u32>() -> u32 {
    N
}

/// `value`, if it is in `range`.
///
/// # Errors
/// What it may be.
pub(crate) fn within(name: &str, value: u64, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(format!("workload: {name} is {value}, but must be from {} to {}", range.start(), range.end()))
}
