//! What came out: the document that the command prints, in its words, as JSON, as a page, and as tables.

use std::path::PathBuf;

use lab::apply::Plan;
use lab::measurements::Document;
use pyo3::prelude::*;
use report::Style;

use crate::error::failed;
use crate::table::Table;
use crate::tables;

type Text = fn(Style, &Document) -> String;

/// What came out of a replay, an experiment or a question.
#[pyclass(module = "freehold", frozen, name = "Result")]
pub(crate) struct Outcome {
    document: Document,
    short: Text,
    full: Text,
}

impl Outcome {
    pub(crate) fn of_replay(document: Document) -> Self {
        Self { document, short: report::verdict::replay, full: report::replay::full }
    }

    pub(crate) fn of_why(document: Document) -> Self {
        Self { document, short: report::why::answer, full: report::why::full }
    }

    pub(crate) fn of_tune(document: Document) -> Self {
        Self { document, short: report::tune::answer, full: report::tune::answer }
    }

    pub(crate) fn of_experiment(document: Document) -> Self {
        Self { document, short: report::verdict::experiments, full: report::experiment::accounts }
    }
}

#[pymethods]
impl Outcome {
    /// The answer in the terminal's words.
    fn verdict(&self) -> String {
        (self.short)(Style::plain(), &self.document)
    }

    /// All of it, as `--full` prints it.
    fn text(&self) -> String {
        (self.full)(Style::plain(), &self.document)
    }

    /// What `--json` prints (docs/schema), as text.
    fn to_json(&self) -> String {
        self.document.to_json()
    }

    /// The same as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.to_json(),))
    }

    /// Writes the page of `--report`.
    fn report(&self, path: PathBuf) -> PyResult<()> {
        let page = report::html::page(&self.document, |style| (self.short)(style, &self.document))
            .map_err(failed)?;
        std::fs::write(&path, page).map_err(|error| failed(format!("{}: {error}", path.display())))
    }

    /// A row for each run.
    #[getter]
    fn runs(&self) -> PyResult<Table> {
        tables::runs(&self.document)
    }

    /// A row for each figure's mean over a variant's seeds, with its 95 % interval.
    #[getter]
    fn means(&self) -> PyResult<Table> {
        tables::means(&self.document)
    }

    /// A row for each figure of each run.
    #[getter]
    fn figures(&self) -> PyResult<Table> {
        tables::figures_of(&self.document)
    }

    /// A row for each counter of each run, by vmstat's names.
    #[getter]
    fn counters(&self) -> PyResult<Table> {
        tables::counters(&self.document)
    }

    /// How long spans took: a row for each power of two of each kind of span of each run.
    #[getter]
    fn histograms(&self) -> PyResult<Table> {
        tables::histograms(&self.document)
    }

    /// Memory, faults and waits over simulated time.
    #[getter]
    fn timeline(&self) -> PyResult<Table> {
        tables::timeline(&self.document)
    }

    /// What of the recorded memory was used when, by mapping; of replays.
    #[getter]
    fn heat(&self) -> PyResult<Table> {
        tables::heat(&self.document)
    }

    /// Published figures beside simulated ones; of experiments.
    #[getter]
    fn rows(&self) -> PyResult<Table> {
        tables::rows(&self.document)
    }

    /// What makes the difference: a row for each cause of each figure; of `why`.
    #[getter]
    fn causes(&self) -> PyResult<Table> {
        tables::causes(&self.document)
    }

    /// The setting that wins, as a plan for `freehold apply`; `None` where the current one stays; of `tune`.
    fn plan(&self) -> PyResult<Option<String>> {
        let winner = self.document.tune.iter().find_map(|tune| tune.winner.as_ref());
        winner
            .map(|winner| Plan::of_candidate(winner).map(|plan| plan.to_string()).map_err(failed))
            .transpose()
    }

    fn __repr__(&self) -> String {
        self.verdict()
    }
}
