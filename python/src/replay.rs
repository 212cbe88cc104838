//! `freehold.replay`: recordings on simulated machines, with every combination of the knobs that were set.

use lab::evidence;
use lab::findings::findings;
use lab::measurements::{Document, Proof, Run, means};
use lab::replay::{
    Plan, ShareOptions, Source, begin_as_recorded, parse_changes, parse_settings, prove, replay_all,
    stood_otherwise,
};
use mm::Policy;
use pyo3::prelude::*;
use report::nearest::{no_policy, no_setting};

use crate::error::failed;
use crate::outcome::Outcome;
use crate::recording::{Recording, stand_in};
use crate::words;
use crate::work::{Hands, work};

/// Replays one recording, or several side by side. The parameters are the options of `freehold replay`.
#[pyfunction]
#[pyo3(signature = (recording, *, machine, set = None, as_recorded = false, at = None, policy = "linux-6.18", copies = None, repeat = 1, seed = 1, seeds = 3,
    cpus = None, mems = None, mempolicy = None, force = false, jobs = 0, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords, each an option of the command")]
pub(crate) fn replay<'py>(
    py: Python<'py>,
    recording: &Bound<'py, PyAny>,
    machine: &Bound<'py, PyAny>,
    set: Option<&Bound<'py, PyAny>>,
    as_recorded: bool,
    at: Option<&Bound<'py, PyAny>>,
    policy: &str,
    copies: Option<&Bound<'py, PyAny>>,
    repeat: u32,
    seed: u64,
    seeds: u32,
    cpus: Option<&Bound<'py, PyAny>>,
    mems: Option<&Bound<'py, PyAny>>,
    mempolicy: Option<&Bound<'py, PyAny>>,
    force: bool,
    jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Outcome> {
    let recordings = recordings(recording)?;
    let source = together(&recordings)?;
    let texts = |of: Option<&Bound<'_, PyAny>>, what: &str| of.map_or(Ok(vec![]), |of| words::list(of, what));
    let copies = of_copies(copies)?;
    let (cpus, mems) = (texts(cpus, "cpus: [NAME=]LIST")?, texts(mems, "mems: [NAME=]LIST")?);
    let policies = texts(mempolicy, "mempolicy: [NAME=]POLICY")?;
    let shares = ShareOptions { copies: &copies, cpus: &cpus, mems: &mems, policies: &policies };
    let policy = Policy::parse(policy).map_err(|error| failed(no_policy(&error)))?;
    let names: Vec<String> = recordings.iter().map(|one| one.get().called().to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut plans = vec![];
    for profile in words::machines(machine)? {
        let mut plan = Plan::new(profile, policy.clone());
        plan.settings = parse_settings(&words::settings(set)?).map_err(|error| failed(no_setting(&error)))?;
        let changes = texts(at, "at: TIME:KNOB=V")?;
        plan.changes = parse_changes(&changes).map_err(|error| failed(no_setting(&error)))?;
        plan.share(&shares, &names).map_err(failed)?;
        plan.check().map_err(failed)?;
        (plan.repeat, plan.seed, plan.seeds, plan.forced) = (repeat.max(1), seed, seeds.max(1), force);
        if as_recorded {
            begin_as_recorded(&mut plan, &source).map_err(failed)?;
        }
        refuse(&plan, &source)?;
        plans.push(plan);
    }
    let total = plans.iter().map(|plan| (plan.variants().len() * plan.seeds().count()) as u64).sum();
    let runs = work(py, &Hands { jobs, total, step: 1, progress }, |done| {
        let done = |run: &Run| {
            done(&format!("{} {}, seed {}", run.machine, run.variant, run.seed), 1);
        };
        replay_all(&source, &plans, &done)
    })?;
    let mut document = document(&source, runs.map_err(failed)?);
    document.notes = stood_otherwise(&plans, &source, "as_recorded=True");
    document.proofs = proofs(py, &recordings)?;
    Ok(Outcome::of_replay(document))
}

/// What the runs of `source` say.
fn document(source: &Source, runs: Vec<Run>) -> Document {
    let mut document = Document::new("replay");
    document.means = means(&runs);
    document.findings = findings(&runs);
    document.runs = runs;
    evidence::intervals(evidence::Table::bundled(), &mut document);
    document.heat = source.programs().iter().flat_map(|program| program.heat.clone()).collect();
    document
}

/// What each recorded kernel counted beside what a replay as recorded counts.
fn proofs(py: Python<'_>, recordings: &[Bound<'_, Recording>]) -> PyResult<Vec<Proof>> {
    let host = stand_in()?.profile().clone();
    let prove = |one: &Bound<'_, Recording>| {
        let (source, host) = (one.get().source(), host.clone());
        py.detach(move || prove(source, host)).map_err(failed).transpose()
    };
    recordings.iter().filter_map(prove).collect()
}

fn recordings<'py>(of: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, Recording>>> {
    let all = words::many(of)?.into_iter().map(|one| one.cast_into::<Recording>().map_err(PyErr::from));
    all.collect()
}

fn together(recordings: &[Bound<'_, Recording>]) -> PyResult<Source> {
    let sources = recordings.iter().map(|one| one.get().source().clone()).collect();
    Source::together(sources).map_err(failed)
}

/// A number for all, or `NAME=N` of each.
fn of_copies(copies: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(copies) = copies else { return Ok(vec![]) };
    words::many(copies)?.iter().map(|one| Ok(one.str()?.to_string())).collect()
}

/// Knobs that cannot act are refused, unless they are forced.
fn refuse(plan: &Plan, source: &Source) -> PyResult<()> {
    match plan.refusals(source).first().filter(|_| !plan.forced) {
        Some(refusal) => Err(failed(format!("{refusal}; force=True runs it all the same"))),
        None => Ok(()),
    }
}
