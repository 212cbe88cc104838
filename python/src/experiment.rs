//! Experiments: what somebody published, run again.

use lab::experiment::{self, Detail, Options, simulations};
use pyo3::prelude::*;

use crate::error::failed;
use crate::outcome::Outcome;
use crate::words;
use crate::work::{Hands, work};

/// An experiment: variants of a workload on machines, and what was published of each (docs/experiments.md).
#[pyclass(module = "freehold", frozen)]
pub(crate) struct Experiment(experiment::Experiment);

impl Experiment {
    pub(crate) fn inner(&self) -> &experiment::Experiment {
        &self.0
    }
}

#[pymethods]
impl Experiment {
    /// One that comes along, by its name, or a file of your own (`.toml`).
    #[new]
    fn new(name_or_path: &str) -> PyResult<Self> {
        experiment::Experiment::load(name_or_path).map(Self).map_err(failed)
    }

    /// One from TOML, as a file has it; `name` is what errors call it.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "experiment"))]
    fn from_toml(text: &str, name: &str) -> PyResult<Self> {
        experiment::Experiment::parse(name, text).map(Self).map_err(failed)
    }

    /// The names of those that come along.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        experiment::Experiment::bundled_names().collect()
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// What it is, in a line.
    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    /// Its variants' names.
    #[getter]
    fn variants(&self) -> Vec<String> {
        self.0.cases().map(|case| self.0.case_name(case)).collect()
    }

    /// Runs it. The parameters are the options of `freehold lab run`.
    #[pyo3(signature = (*, machine = None, seeds = None, seed = 1, explain = false, force = false, jobs = 0, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords, each an option of the command")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        machine: Option<&Bound<'py, PyAny>>,
        seeds: Option<u32>,
        seed: u64,
        explain: bool,
        force: bool,
        jobs: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Outcome> {
        let machines = machine.map_or(Ok(vec![]), words::machines)?;
        let detail = if explain { Detail::Explained } else { Detail::Results };
        let options = Options { machines, seeds, first_seed: seed, detail, forced: force };
        let experiments = vec![self.0.clone()];
        let total = simulations(&experiments, &options) as u64;
        let document = work(py, &Hands { jobs, total, step: 1, progress }, |done| {
            experiment::run(experiments, &options, &|what| done(what, 1))
        })?;
        Ok(Outcome::of_experiment(document.map_err(failed)?))
    }

    fn __repr__(&self) -> String {
        format!("Experiment({:?}): {}", self.0.name, self.0.title)
    }
}
