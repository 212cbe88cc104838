//! From a file's text to an [`Experiment`]: defaults laid out, names resolved, figures in their metrics' units. What is
//! wrong is said with file, line and key.

use std::ops::Range;
use std::path::PathBuf;

use mm::{Cpu, Knob, Nanos, Policy};
use sim::Profile;
use toml::Spanned;

use super::error::{ExperimentError, Place};
use super::file::{File, KnobEntries, Parameters, PhaseEntry, SweepEntry, VariantEntry};
use super::library::is_path;
use super::metric::Metric;
use super::missing;
use super::parameters::overlaid;
use super::published;
use super::spec::{Criterion, Experiment, Setup, Sweep, Variant};
use crate::measurements::{Confidence, NotCompared};
use crate::scene::Phase;
use crate::stage::placement::parse_cpu_list;

pub(super) type Read<T> = Result<T, ExperimentError>;

/// Longest simulated time of a phase or a warm-up, in ms: an hour.
const LENGTH_MAX_MS: u64 = 3_600_000;
/// Most repetitions.
const SEEDS_MAX: u32 = 1000;
/// Most things that a file runs.
const VARIANTS_MAX: usize = 10_000;

/// Where a file is read from.
pub(super) struct Source<'a> {
    pub(super) place: Place<'a>,
    /// The folder that paths of machines start from; `None` for what comes with the program.
    pub(super) folder: Option<PathBuf>,
}

/// Beyond that, nothing that resembles the machine is left.
const SHRINK_MAX: u32 = 1024;

/// What holds where a variant or sweep says nothing.
struct Defaults<'a> {
    machine: Option<&'a Spanned<String>>,
    policy: Option<&'a Spanned<String>>,
    cpus: Option<&'a Spanned<String>>,
    shrink: Option<&'a Spanned<u32>>,
    warm_up_ms: Option<&'a Spanned<u64>>,
    run_ms: Option<&'a Spanned<u64>>,
    knobs: &'a KnobEntries,
    workload: &'a Parameters,
    confidence: Option<Confidence>,
    because: Option<&'a str>,
}

/// What one variant or cell of a sweep says.
struct Said<'a> {
    what: String,
    span: Range<usize>,
    own: Defaults<'a>,
    phases: &'a [PhaseEntry],
}

fn seeds(place: Place<'_>, said: &Spanned<u32>) -> Read<u32> {
    let seeds = *said.get_ref();
    if (1..=SEEDS_MAX).contains(&seeds) {
        return Ok(seeds);
    }
    Err(place.error(&said.span(), format!("seeds is {seeds}; 1 to {SEEDS_MAX} are possible")))
}

pub(super) fn experiment(source: &Source<'_>) -> Read<Experiment> {
    let place = source.place;
    let file: File = toml::from_str(place.text).map_err(|error| {
        let lacks = error.message().starts_with("missing field");
        lacks.then(|| missing::keys(place)).flatten().unwrap_or_else(|| place.toml(error))
    })?;
    check_name(place, &file.name, "name")?;
    check_unique(place, &file.variant)?;
    let seeds = seeds(place, &file.seeds)?;
    let defaults = Defaults {
        machine: file.machine.as_ref(),
        policy: file.policy.as_ref(),
        cpus: file.cpus.as_ref(),
        shrink: file.shrink.as_ref(),
        warm_up_ms: file.warm_up_ms.as_ref(),
        run_ms: file.run_ms.as_ref(),
        knobs: &file.knobs,
        workload: &file.workload,
        confidence: file.confidence,
        because: file.because.as_deref(),
    };
    let variants = file
        .variant
        .iter()
        .map(|entry| variant(source, &defaults, entry, &file.source))
        .collect::<Read<Vec<_>>>()?;
    let comparisons = file.compare.iter();
    let comparisons = comparisons
        .map(|entry| published::comparison(place, entry, &variants, &file.source))
        .collect::<Read<_>>()?;
    let sweeps = file.sweep.iter().map(|entry| sweep(source, &defaults, entry)).collect::<Read<Vec<_>>>()?;
    let cells: usize = sweeps.iter().map(|sweep| sweep.cells.len()).sum();
    if variants.is_empty() && cells == 0 {
        return Err(ExperimentError::new(place.file, "runs nothing: it has no [[variant]] and no [[sweep]]"));
    }
    if variants.len() + cells > VARIANTS_MAX {
        return Err(ExperimentError::new(place.file, format!("runs more than {VARIANTS_MAX} variants")));
    }
    let not_compared = file
        .not_compared
        .iter()
        .map(|entry| NotCompared { figures: one_line(&entry.figures), because: one_line(&entry.because) });
    let mut experiment = Experiment {
        name: file.name.into_inner(),
        title: one_line(&file.title),
        about: one_line(&file.about),
        learnt: one_line(&file.learnt),
        source: file.source,
        seeds,
        variants,
        comparisons,
        sweeps,
        not_compared: not_compared.collect(),
        file: place.file.into(),
    };
    super::independence::mark(&mut experiment);
    Ok(experiment)
}

/// A text that was written over several lines.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check_name(place: Place<'_>, name: &Spanned<String>, key: &str) -> Read<()> {
    let text = name.get_ref();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if text.is_empty() || text.len() > 60 || !text.chars().all(fits) {
        let problem = format!("{key} is {text:?}; 1 to 60 letters, digits and - _ . + are possible");
        return Err(place.error(&name.span(), problem));
    }
    Ok(())
}

fn check_unique(place: Place<'_>, variants: &[VariantEntry]) -> Read<()> {
    for (index, entry) in variants.iter().enumerate() {
        check_name(place, &entry.name, "variant.name")?;
        if variants[..index].iter().any(|other| other.name == entry.name) {
            let problem = format!("variant.name: there are two variants called {}", entry.name);
            return Err(place.error(&entry.name.span(), problem));
        }
    }
    Ok(())
}

fn variant(
    source: &Source<'_>,
    defaults: &Defaults<'_>,
    entry: &VariantEntry,
    published_at: &str,
) -> Read<Variant> {
    let place = source.place;
    let own = Defaults {
        machine: entry.machine.as_ref(),
        policy: entry.policy.as_ref(),
        cpus: entry.cpus.as_ref(),
        shrink: entry.shrink.as_ref(),
        warm_up_ms: entry.warm_up_ms.as_ref(),
        run_ms: entry.run_ms.as_ref(),
        knobs: &entry.knobs,
        workload: &entry.workload,
        confidence: entry.confidence,
        because: entry.because.as_deref(),
    };
    let said =
        Said { what: format!("variant {}", entry.name), span: entry.name.span(), own, phases: &entry.phase };
    let mut variant = built(source, defaults, &said, entry.name.get_ref())?;
    for figure in &entry.published {
        variant.figures.push(published::figure(place, figure, &variant.phases, published_at)?);
    }
    for histogram in &entry.histogram {
        let (histogram, figures) = published::histogram(place, histogram, &variant.phases, published_at)?;
        variant.histograms.push(histogram);
        variant.figures.extend(figures);
    }
    Ok(variant)
}

/// A variant without what was published of it.
fn built(source: &Source<'_>, defaults: &Defaults<'_>, said: &Said<'_>, name: &str) -> Read<Variant> {
    let place = source.place;
    let own = &said.own;
    let workload = overlaid(defaults.workload, own.workload);
    let has_length = !said.phases.is_empty() || own.run_ms.or(defaults.run_ms).is_some();
    let missing = || {
        let is_there = [
            ("machine", own.machine.or(defaults.machine).is_some()),
            ("workload", !workload.0.is_empty()),
            ("run_ms", has_length),
        ];
        let lacks: Vec<&str> = is_there.iter().filter(|(_, is)| !is).map(|(key, _)| *key).collect();
        let problem = format!("missing: {}: neither {} nor the file says it", lacks.join(", "), said.what);
        place.error(&said.span, problem)
    };
    let machine = own.machine.or(defaults.machine).ok_or_else(missing)?;
    if workload.0.is_empty() || !has_length {
        return Err(missing());
    }
    let profile = profile(source, machine)?;
    let policy =
        own.policy.or(defaults.policy).map_or_else(|| Ok(Policy::default()), |name| policy(place, name))?;
    super::perform::check(&workload, place)?;
    let mut all = knobs(place, defaults.knobs)?;
    lay_over(&mut all, knobs(place, own.knobs)?);
    taken_by(&policy, &all).map_err(|error| place.error(&said.span, error))?;
    let warm_up = own.warm_up_ms.or(defaults.warm_up_ms);
    let confidence = own.confidence.or(defaults.confidence).unwrap_or_default();
    let because = own.because.or(defaults.because);
    Ok(Variant {
        name: name.to_owned(),
        phases: phases(place, defaults, said)?,
        confidence,
        because: because.map_or_else(|| unexplained(confidence).to_owned(), one_line),
        figures: vec![],
        histograms: vec![],
        setup: Setup {
            cpus: cpus(place, own.cpus.or(defaults.cpus), &profile)?,
            profile,
            policy,
            knobs: all,
            workload: workload.table(),
            shrink: own.shrink.or(defaults.shrink).map_or(Ok(1), |by| shrink(place, by))?,
            warm_up: warm_up.map_or(Ok(Nanos(0)), |length| milliseconds(place, length, "warm_up_ms", 0))?,
        },
    })
}

/// By how much memory is divided.
fn shrink(place: Place<'_>, by: &Spanned<u32>) -> Read<u32> {
    match *by.get_ref() {
        by if (1..=SHRINK_MAX).contains(&by) => Ok(by),
        wrong => {
            let problem = format!("shrink is {wrong}; 1 to {SHRINK_MAX} are possible");
            Err(place.error(&by.span(), problem))
        }
    }
}

fn unexplained(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Extrapolated => {
            "the experiment does not say that the machine was checked against figures of its own"
        }
        Confidence::Exact | Confidence::Predicted => "the experiment says so, without a reason",
    }
}

fn phases(place: Place<'_>, defaults: &Defaults<'_>, said: &Said<'_>) -> Read<Vec<Phase>> {
    if said.phases.is_empty() {
        let problem = || format!("run_ms is missing: neither {} nor the file says it", said.what);
        let length = said.own.run_ms.or(defaults.run_ms).ok_or_else(|| place.error(&said.span, problem()))?;
        let length = milliseconds(place, length, "run_ms", 1)?;
        return Ok(vec![Phase { name: String::new(), length, set: vec![] }]);
    }
    if let Some(length) = said.own.run_ms {
        let problem = "run_ms: a variant with phases has none of its own; each phase has";
        return Err(place.error(&length.span(), problem));
    }
    let one = |(index, entry): (usize, &PhaseEntry)| {
        check_name(place, &entry.name, "phase.name")?;
        if said.phases[..index].iter().any(|other| other.name == entry.name) {
            let problem = format!("phase.name: there are two phases called {}", entry.name);
            return Err(place.error(&entry.name.span(), problem));
        }
        Ok(Phase {
            name: entry.name.get_ref().clone(),
            length: milliseconds(place, &entry.run_ms, "phase.run_ms", 1)?,
            set: knobs(place, &entry.knobs)?,
        })
    };
    said.phases.iter().enumerate().map(one).collect()
}

fn milliseconds(place: Place<'_>, length: &Spanned<u64>, key: &str, least: u64) -> Read<Nanos> {
    let ms = *length.get_ref();
    if !(least..=LENGTH_MAX_MS).contains(&ms) {
        let problem = format!("{key} is {ms}; {least} to {LENGTH_MAX_MS} are possible");
        return Err(place.error(&length.span(), problem));
    }
    Ok(Nanos(ms * 1_000_000))
}

fn profile(source: &Source<'_>, name: &Spanned<String>) -> Read<Profile> {
    let at = |problem: String| source.place.error(&name.span(), problem);
    let text = name.get_ref();
    let is_path = is_path(text);
    let loaded = match (&source.folder, is_path) {
        (Some(folder), true) => Profile::load(&folder.join(text).to_string_lossy()),
        (None, true) => {
            return Err(at(format!(
                "machine: {text} is a path; what comes with the program names machines that do too"
            )));
        }
        (_, false) => Profile::load(text),
    };
    loaded.map_err(|error| at(error.to_string()))
}

fn policy(place: Place<'_>, name: &Spanned<String>) -> Read<Policy> {
    Policy::parse(name.get_ref()).map_err(|error| place.error(&name.span(), format!("policy: {error}")))
}

fn cpus(place: Place<'_>, list: Option<&Spanned<String>>, profile: &Profile) -> Read<Vec<Cpu>> {
    let Some(list) = list else { return Ok(vec![]) };
    parse_cpu_list(list.get_ref(), profile.shape().cpu_count())
        .map_err(|error| place.error(&list.span(), format!("cpus: {error}")))
}

fn knobs(place: Place<'_>, entries: &KnobEntries) -> Read<Vec<(Knob, u64)>> {
    let one = |entry: &super::file::KnobEntry| {
        let read = Knob::from_name(&entry.name).and_then(|knob| Ok((knob, knob.parse_one(&entry.value)?)));
        read.map_err(|error| place.error(&entry.span, format!("knobs: {error}")))
    };
    entries.0.iter().map(one).collect()
}

/// Whether the policy's kernel has all of these knobs and takes their values.
fn taken_by(policy: &Policy, knobs: &[(Knob, u64)]) -> Result<(), String> {
    let checked = knobs.iter().try_for_each(|&(knob, value)| policy.check_knob(knob, value));
    checked.map_err(|error| format!("knobs: {error}"))
}

fn lay_over(all: &mut Vec<(Knob, u64)>, over: Vec<(Knob, u64)>) {
    all.retain(|(knob, _)| !over.iter().any(|(other, _)| other == knob));
    all.extend(over);
}

pub(super) fn metric(place: Place<'_>, path: &Spanned<String>, key: &str) -> Read<Metric> {
    Metric::parse(path.get_ref()).map_err(|error| place.error(&path.span(), format!("{key}: {error}")))
}

fn sweep(source: &Source<'_>, defaults: &Defaults<'_>, entry: &SweepEntry) -> Read<Sweep> {
    let place = source.place;
    let at_knob = |problem: String| place.error(&entry.knob.span(), format!("sweep.knob: {problem}"));
    let knob = Knob::from_name(entry.knob.get_ref()).map_err(|error| at_knob(error.to_string()))?;
    let values = entry.values.get_ref();
    let at_values = |problem: String| place.error(&entry.values.span(), format!("sweep.values: {problem}"));
    for &value in values {
        knob.check(value).map_err(|error| at_values(error.to_string()))?;
    }
    if values.is_empty() || entry.machines.is_empty() {
        return Err(at_values("a sweep has at least one value and one machine".into()));
    }
    let metrics =
        entry.metrics.iter().map(|path| readable(place, path, "sweep.metrics")).collect::<Read<_>>()?;
    let policies: Vec<Option<&Spanned<String>>> = match &entry.policies[..] {
        [] => vec![entry.policy.as_ref()],
        several => several.iter().map(Some).collect(),
    };
    let mut cells = vec![];
    for machine in &entry.machines {
        for policy in &policies {
            for &value in values {
                cells.push(cell(source, defaults, entry, (machine, *policy), (knob, value))?);
            }
        }
    }
    let criterion = entry.criterion.as_ref().map(|of| criterion(place, of, values)).transpose()?;
    let mut sweep = Sweep {
        title: one_line(&entry.title),
        knob,
        values: values.clone(),
        rows: vec![],
        metrics,
        cells,
        criterion,
    };
    sweep.name();
    Ok(sweep)
}

/// A metric that has a value of its own.
pub(super) fn readable(place: Place<'_>, path: &Spanned<String>, key: &str) -> Read<Metric> {
    let metric = metric(place, path, key)?;
    if metric.is_beside_published() {
        let problem = format!("{key}: {metric} has no value without a published figure beside it");
        return Err(place.error(&path.span(), problem));
    }
    Ok(metric)
}

fn cell(
    source: &Source<'_>,
    defaults: &Defaults<'_>,
    entry: &SweepEntry,
    (machine, policy): (&Spanned<String>, Option<&Spanned<String>>),
    (knob, value): (Knob, u64),
) -> Read<Variant> {
    let own = Defaults {
        machine: Some(machine),
        policy,
        cpus: None,
        shrink: entry.shrink.as_ref(),
        warm_up_ms: entry.warm_up_ms.as_ref(),
        run_ms: entry.run_ms.as_ref(),
        knobs: &entry.knobs,
        workload: &entry.workload,
        confidence: entry.confidence,
        because: entry.because.as_deref(),
    };
    let said = Said { what: "the sweep".into(), span: entry.knob.span(), own, phases: &[] };
    let mut cell = built(source, defaults, &said, "")?;
    lay_over(&mut cell.setup.knobs, vec![(knob, value)]);
    taken_by(&cell.setup.policy, &cell.setup.knobs).map_err(|error| source.place.error(&said.span, error))?;
    Ok(cell)
}

fn criterion(place: Place<'_>, entry: &super::file::CriterionEntry, values: &[u64]) -> Read<Criterion> {
    let usual = *entry.usual.get_ref();
    if !values.contains(&usual) {
        let problem = format!("sweep.criterion.usual is {usual}, which is none of the sweep's values");
        return Err(place.error(&entry.usual.span(), problem));
    }
    if !entry.at_most.get_ref().is_finite() {
        return Err(place.error(&entry.at_most.span(), "sweep.criterion.at_most is not finite"));
    }
    Ok(Criterion {
        usual,
        metric: readable(place, &entry.metric, "sweep.criterion.metric")?,
        at_most: *entry.at_most.get_ref(),
        cost: readable(place, &entry.cost, "sweep.criterion.cost")?,
        because: one_line(&entry.because),
    })
}
