//! `freehold.Search`: a question of `freehold tune`, which `run` answers by a race, and of which a search of one's own simulates settings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lab::measurements::Document;
use lab::replay::parse_settings_of_all;
use lab::subject::AskedError;
use lab::tune::{Answer, Figures, Journal, KnobChoice, Method, Prepared, Terms, Workload};
use mm::Knob;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use report::nearest::{no_question, no_setting};
use sim::profile::digest;

use crate::error::failed;
use crate::experiment::Experiment;
use crate::outcome::Outcome;
use crate::recording::Recording;
use crate::words;
use crate::work::{Hands, work};

/// What is searched, and where; one question for each machine.
#[pyclass(module = "freehold", frozen)]
pub(crate) struct Search {
    prepared: Vec<Prepared>,
    journal: Journal,
    jobs: usize,
}

#[pymethods]
impl Search {
    /// The parameters are the options of `freehold tune`.
    #[new]
    #[pyo3(signature = (subject, *, machine = None, goal = None, keep = None, knobs = None, set = None, policy = None, variant = None,
        copies = None, budget = None, every = false, seeds = 5, unseen = 10, also = None, journal = None, seed = 1, jobs = 0))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords, each an option of the command")]
    fn new(
        py: Python<'_>,
        subject: &Bound<'_, PyAny>,
        machine: Option<&Bound<'_, PyAny>>,
        goal: Option<&Bound<'_, PyAny>>,
        keep: Option<&Bound<'_, PyAny>>,
        knobs: Option<&Bound<'_, PyAny>>,
        set: Option<&Bound<'_, PyAny>>,
        policy: Option<&str>,
        variant: Option<&str>,
        copies: Option<u32>,
        budget: Option<u32>,
        every: bool,
        seeds: u32,
        unseen: u32,
        also: Option<&Bound<'_, PyAny>>,
        journal: Option<PathBuf>,
        seed: u64,
        jobs: usize,
    ) -> PyResult<Self> {
        let texts = |of: Option<&Bound<'_, PyAny>>, what| of.map_or(Ok(vec![]), |of| words::list(of, what));
        let terms = Terms {
            settings: &parse_settings_of_all(&words::settings(set)?)
                .map_err(|error| failed(no_setting(&error)))?,
            policy,
            variant,
            copies,
            knobs: &choices(knobs)?,
            goals: &texts(goal, "goal: names of figures")?,
            keep: &texts(keep, "keep: FIGURE:min|max=LIMIT")?,
            seed,
            seeds,
            unseen,
            budget,
            method: if every { Method::Every } else { Method::Race },
        };
        let others = also.map_or(Ok(vec![]), words::many)?;
        let also = others.iter().map(workload).collect::<PyResult<Vec<_>>>()?;
        let machines = machine.map_or(Ok(vec![]), words::machines)?;
        let said = |error: AskedError| failed(no_question(&error));
        let questions = terms.questions(&workload(subject)?, &machines, &also).map_err(said)?;
        let prepared = questions.into_iter().map(|question| Prepared::of(question).map_err(failed));
        let journal = journal.map_or_else(|| Ok(Journal::default()), |path| opened(py, &path))?;
        Ok(Self { prepared: prepared.collect::<PyResult<_>>()?, journal, jobs })
    }

    /// Races, and tries the winner where the race did not look: what `freehold tune` answers. `progress` hears of simulations of full
    /// length; a race may end early.
    #[pyo3(signature = (*, progress = None))]
    fn run(&self, py: Python<'_>, progress: Option<Bound<'_, PyAny>>) -> PyResult<Outcome> {
        let planned: u64 = self.prepared.iter().map(Prepared::planned).sum();
        let hands = Hands { jobs: self.jobs, total: planned, step: 1000, progress };
        let answers = work(py, &hands, |done| {
            self.prepared
                .iter()
                .map(|prepared| prepared.answer(&self.journal, done))
                .collect::<Result<Vec<_>, _>>()
        })?;
        let mut document = Document::new("tune");
        for Answer { tune, runs } in answers.map_err(failed)? {
            document.tune.push(tune);
            document.runs.extend(runs);
        }
        Ok(Outcome::of_tune(document))
    }

    /// Knobs that are searched, each with the values that are tried and the present one, as they are written.
    #[getter]
    fn space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let axes = self.one()?.space().axes;
        let json = serde_json::to_string(&axes).map_err(failed)?;
        py.import("json")?.call_method1("loads", (json,))
    }

    /// What is to become better: name, unit, and `lower` or `higher`.
    #[getter]
    fn goals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = serde_json::to_string(&self.one()?.goals()).map_err(failed)?;
        py.import("json")?.call_method1("loads", (json,))
    }

    /// Parts of the workload that can be simulated, ascending; the last is 1, all of it.
    #[getter]
    fn shares(&self) -> PyResult<Vec<f64>> {
        Ok(self.one()?.parts().into_iter().map(|permille| permille as f64 / 1000.0).collect())
    }

    /// Simulates one setting, knobs that differ from the current one, with one seed: the figures of goals and limits.
    #[pyo3(signature = (knobs = None, *, seed = 1, share = 1.0))]
    fn evaluate(
        &self,
        py: Python<'_>,
        knobs: Option<&Bound<'_, PyDict>>,
        seed: u64,
        share: f64,
    ) -> PyResult<Figures> {
        let prepared = self.one()?;
        let permille = (share * 1000.0).round() as u64;
        let knobs = set(knobs)?;
        let hands = Hands { jobs: 1, total: 1, step: 1, progress: None };
        work(py, &hands, |_| prepared.evaluate(&knobs, seed, permille, &self.journal))?.map_err(failed)
    }

    /// How far `values` are beyond each limit, as it is written, where the current setting has `current`: in parts of the limit, 0 within it.
    fn breaches(&self, values: Figures, current: Figures) -> PyResult<BTreeMap<String, f64>> {
        self.one()?.breaches(&values, &current).map_err(failed)
    }

    fn __repr__(&self) -> String {
        let sizes = self.prepared.iter().map(|prepared| prepared.space().settings.to_string());
        format!("Search: {} settings", sizes.collect::<Vec<_>>().join(" and "))
    }
}

impl Search {
    fn one(&self) -> PyResult<&Prepared> {
        let [prepared] = &self.prepared[..] else {
            return Err(failed("this is about one machine; the search names several"));
        };
        Ok(prepared)
    }
}

/// `["K", "K=V,V", "K=LOW..HIGH"]`, or a dictionary of knobs with their values; without values: those of the knob's own range.
fn choices(knobs: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<KnobChoice>> {
    let Some(knobs) = knobs else { return Ok(vec![]) };
    let texts = match knobs.cast::<PyDict>() {
        Ok(_) => words::settings(Some(knobs))?,
        Err(_) => words::list(knobs, "knobs: KNOB, KNOB=V,V or KNOB=LOW..HIGH")?,
    };
    let choice = |text: &String| KnobChoice::parse(text.trim_end_matches('='));
    texts.iter().map(choice).collect::<Result<_, _>>().map_err(|error| failed(no_setting(&error)))
}

/// Knobs with one value each.
fn set(knobs: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(Knob, u64)>> {
    let Some(knobs) = knobs else { return Ok(vec![]) };
    let settings = parse_settings_of_all(&words::settings(Some(knobs.as_any()))?)
        .map_err(|error| failed(no_setting(&error)))?;
    let one = settings.iter().map(|setting| match setting.values[..] {
        [value] => Ok((setting.knob, value)),
        _ => Err(failed(format!("{} has several values; a setting has one", setting.knob.spec().name))),
    });
    one.collect()
}

fn workload(of: &Bound<'_, PyAny>) -> PyResult<Workload> {
    if let Ok(experiment) = of.cast::<Experiment>() {
        return Ok(Workload::Experiment(Box::new(experiment.get().inner().clone())));
    }
    let Ok(recording) = of.cast::<Recording>() else {
        return Err(PyTypeError::new_err(format!(
            "a search is about a Recording or an Experiment, not {of}"
        )));
    };
    recording.get().recorded().map(Workload::Recording)
}

/// What another build simulated does not count.
fn opened(py: Python<'_>, path: &Path) -> PyResult<Journal> {
    let module: PathBuf = py.import("freehold._freehold")?.getattr("__file__")?.extract()?;
    let build = digest(fs::read(&module).map_err(failed)?);
    Journal::open(path, &format!("{} {build}", env!("CARGO_PKG_VERSION"))).map_err(failed)
}
