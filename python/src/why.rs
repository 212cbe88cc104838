//! `freehold.why`: which rule, of which commit, or which setting makes the difference between two sides.

use lab::measurements::Document;
use lab::replay::parse_settings_of_all;
use lab::subject::AskedError;
use lab::why::{Asked, Question, explain};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use report::nearest::{no_question, no_setting};

use crate::error::failed;
use crate::experiment::Experiment;
use crate::outcome::Outcome;
use crate::recording::Recording;
use crate::words;
use crate::work::{Hands, work};

/// Explains the difference between two sides of a recording or an experiment. The parameters are the options of `freehold why`.
#[pyfunction]
#[pyo3(signature = (subject, *, from_ = None, to = None, set = None, goal = None, variant = None, machine = None, copies = None,
    seed = 1, seeds = 3, force = false, jobs = 0, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords, each an option of the command")]
pub(crate) fn why<'py>(
    py: Python<'py>,
    subject: &Bound<'py, PyAny>,
    from_: Option<&str>,
    to: Option<&str>,
    set: Option<&Bound<'py, PyAny>>,
    goal: Option<&Bound<'py, PyAny>>,
    variant: Option<&str>,
    machine: Option<&Bound<'py, PyAny>>,
    copies: Option<u32>,
    seed: u64,
    seeds: u32,
    force: bool,
    jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Outcome> {
    let settings =
        parse_settings_of_all(&words::settings(set)?).map_err(|error| failed(no_setting(&error)))?;
    let goals = goal.map_or(Ok(vec![]), |goal| words::list(goal, "goal: names of figures"))?;
    let asked = Asked {
        from: from_,
        to,
        variant,
        settings: &settings,
        copies,
        goals: &goals,
        seed,
        seeds: seeds.max(1),
        forced: force,
    };
    let question = question(&asked, subject, machine)?;
    // How many simulations it takes is found on the way.
    let hands = Hands { jobs, total: 0, step: 1, progress };
    let answer = work(py, &hands, |done| explain(&question, &|what| done(what, 1)))?.map_err(failed)?;
    Ok(Outcome::of_why(Document { runs: answer.runs, why: Some(answer.why), ..Document::new("why") }))
}

fn question(
    asked: &Asked<'_>,
    subject: &Bound<'_, PyAny>,
    machine: Option<&Bound<'_, PyAny>>,
) -> PyResult<Question> {
    let said = |error: AskedError| failed(no_question(&error));
    let machines = machine.map_or(Ok(vec![]), words::machines)?;
    if machines.len() > 1 {
        return Err(failed("a question is about one machine; several are named"));
    }
    let profile = machines.into_iter().next();
    if let Ok(experiment) = subject.cast::<Experiment>() {
        return asked.of_experiment(experiment.get().inner().clone(), profile.as_ref()).map_err(said);
    }
    let Ok(recording) = subject.cast::<Recording>() else {
        return Err(PyTypeError::new_err(format!(
            "a question is about a Recording or an Experiment, not {subject}"
        )));
    };
    let Some(profile) = profile else { return Err(failed("machine= says where the recording is replayed")) };
    asked.of_recording(recording.get().source().clone(), profile).map_err(said)
}
