//! `freehold lab`: published experiments on simulated machines, figure beside figure.

use lab::experiment::{self, Detail, Experiment, METRICS, Options};
use lab::findings::findings;
use lab::measurements::{Document, Role};
use report::nearest::unknown;

use crate::args::{Global, Lab, LabFiles, LabHow, LabWhat};
use crate::common::{CommandVerdict, Failure, Texts, answer, command_line, note, show};
use crate::fail_if;
use crate::progress::Bar;
use crate::results_folder::ResultsFolder;
use crate::this_machine::machine_or_this;

pub(crate) fn run(global: &Global, options: &Lab) -> Result<CommandVerdict, Failure> {
    match &options.what {
        None | Some(LabWhat::List) => list(global),
        Some(LabWhat::Metrics) => metrics(global),
        Some(LabWhat::Run { names, how, files }) => {
            let experiments = names.iter().map(|name| load(name)).collect::<Result<_, _>>()?;
            perform(global, experiments, how, files)
        }
        Some(LabWhat::All { how, files }) => perform(global, all()?, how, files),
    }
}

fn all() -> Result<Vec<Experiment>, Failure> {
    Experiment::bundled_names().map(load).collect()
}

/// The experiment of that name or path.
pub(crate) fn load(name: &str) -> Result<Experiment, Failure> {
    if !experiment::is_path(name) && !Experiment::bundled_names().any(|known| known == name) {
        return Err(Failure(unknown("experiment", name, Experiment::bundled_names(), "freehold lab list")));
    }
    Experiment::load(name).map_err(Failure::of)
}

fn list(global: &Global) -> Result<CommandVerdict, Failure> {
    let experiments = all()?;
    let entry = |experiment: &Experiment| {
        let figures = |role: Role| experiment.figures(role);
        serde_json::json!({
            "name": experiment.name,
            "title": experiment.title,
            "about": experiment.about,
            "source": experiment.source,
            "variants": experiment.variants.iter().map(|variant| &variant.name).collect::<Vec<_>>(),
            "machines": experiment.machines(),
            "fitted": figures(Role::Fitted),
            "predicted": figures(Role::Predicted),
            "derived": figures(Role::Derived),
        })
    };
    let entries: Vec<serde_json::Value> = experiments.iter().map(entry).collect();
    let output = serde_json::json!({ "experiments": entries });
    show(global, "Experiments", &output, |style| report::experiments::list(style, &experiments))?;
    Ok(CommandVerdict::Fine)
}

fn metrics(global: &Global) -> Result<CommandVerdict, Failure> {
    let entries = METRICS
        .iter()
        .map(|spec| serde_json::json!({ "path": spec.path, "unit": spec.unit, "meaning": spec.meaning }));
    let entries: Vec<serde_json::Value> = entries.collect();
    let output = serde_json::json!({ "metrics": entries });
    show(global, "What an experiment can measure", &output, report::experiments::metrics)?;
    Ok(CommandVerdict::Fine)
}

fn perform(
    global: &Global,
    experiments: Vec<Experiment>,
    how: &LabHow,
    files: &LabFiles,
) -> Result<CommandVerdict, Failure> {
    let bounds = fail_if::read(&how.bounds)?;
    let results = files.results.as_deref().map(ResultsFolder::of).transpose()?;
    let published = experiments.clone();
    let options = Options {
        machines: how.machine.iter().map(|name| machine_or_this(global, name)).collect::<Result<_, _>>()?,
        seeds: how.seeds,
        first_seed: global.seed,
        forced: how.force,
        detail: if how.explain { Detail::Explained } else { Detail::Results },
    };
    let bar = Bar::new(global, experiment::simulations(&experiments, &options) as u64);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(how.jobs).build().map_err(Failure::of)?;
    let done = |what: &str| bar.step(what.to_owned());
    let ran = pool.install(|| experiment::run(experiments, &options, &done)).map_err(Failure::of)?;
    bar.done();
    let findings = findings(&ran.runs);
    let mut document = Document { command: command_line(), findings, ..ran };
    fail_if::hold(&bounds, &mut document)?;
    if let Some(results) = results {
        results.update(&document, &published)?;
        note(global, "the results are written");
    }
    answer(
        global,
        &document,
        &Texts { short: report::verdict::experiments, full: report::experiment::accounts },
    )?;
    let verdict = verdict(&document);
    Ok(if fail_if::is_broken(&document) { CommandVerdict::FellShort } else { verdict })
}

/// What a machine was too small for, or what should have been exact and is not, fell short. How far predictions are off
/// is what was asked for.
fn verdict(document: &Document) -> CommandVerdict {
    let mut short: Vec<String> = report::shortfall::line(&document.runs).into_iter().collect();
    let inexact = experiment::inexact_rows(document).len();
    if inexact > 0 {
        short.push(format!("{inexact} of the figures that should be exact are not; the tables show them"));
    }
    if short.is_empty() {
        return CommandVerdict::Fine;
    }
    eprintln!("freehold: {}", short.join("; "));
    CommandVerdict::FellShort
}
