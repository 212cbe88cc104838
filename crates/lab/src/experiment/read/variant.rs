//! A variant: what its file says of it, over what holds for all.

use std::ops::Range;

use mm::{Cpu, Knob, Nanos, Policy};
use sim::Profile;
use toml::Spanned;

use super::file::{KnobEntries, KnobEntry, Parameters, PhaseEntry, TracerEntry, VariantEntry};
use super::parameters::overlaid;
use super::published;
use super::words::{check_name, one_line};
use crate::experiment::error::{Place, Read, Source, is_path};
use crate::experiment::spec::{Setup, Variant};
use crate::experiment::tracer::Tracer;
use crate::measurements::Confidence;
use crate::scene::Phase;
use crate::stage::placement::parse_cpu_list;
use crate::workloads::WorkloadSpec;

/// Longest simulated time of a phase or a warm-up, in ms: an hour.
const LENGTH_MAX_MS: u64 = 3_600_000;
/// Beyond that, nothing that resembles the machine is left.
const SHRINK_MAX: u32 = 1024;

/// What holds where a variant or sweep says nothing.
pub(super) struct Defaults<'a> {
    pub(super) machine: Option<&'a Spanned<String>>,
    pub(super) policy: Option<&'a Spanned<String>>,
    pub(super) cpus: Option<&'a Spanned<String>>,
    pub(super) shrink: Option<&'a Spanned<u32>>,
    pub(super) warm_up_ms: Option<&'a Spanned<u64>>,
    pub(super) run_ms: Option<&'a Spanned<u64>>,
    pub(super) knobs: &'a KnobEntries,
    pub(super) workload: &'a Parameters,
    pub(super) confidence: Option<Confidence>,
    pub(super) because: Option<&'a str>,
    pub(super) tracer: Option<&'a TracerEntry>,
}

/// What one variant or cell of a sweep says.
pub(super) struct Said<'a> {
    pub(super) what: String,
    pub(super) span: Range<usize>,
    pub(super) own: Defaults<'a>,
    pub(super) phases: &'a [PhaseEntry],
}

pub(super) fn variant(
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
        tracer: None,
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
pub(super) fn built(
    source: &Source<'_>,
    defaults: &Defaults<'_>,
    said: &Said<'_>,
    name: &str,
) -> Read<Variant> {
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
    let tracer = defaults.tracer.map(|entry| tracer(place, entry, &profile)).transpose()?;
    let policy =
        own.policy.or(defaults.policy).map_or_else(|| Ok(Policy::default()), |name| policy(place, name))?;
    workload.check::<WorkloadSpec>(place)?;
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
            tracer,
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

/// What measured, as long as it can be added to `machine`.
fn tracer(place: Place<'_>, entry: &TracerEntry, machine: &Profile) -> Read<Tracer> {
    let tracer = Tracer { ns: *entry.ns.get_ref(), because: one_line(&entry.because) };
    let wrong = |problem: String| place.error(&entry.ns.span(), format!("tracer.ns: {problem}"));
    if tracer.ns < 0.0 {
        return Err(wrong("less than nothing".into()));
    }
    tracer.on(machine).map_err(|error| wrong(error.to_string()))?;
    Ok(tracer)
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
    let one = |entry: &KnobEntry| {
        let read = Knob::from_name(&entry.name).and_then(|knob| Ok((knob, knob.parse_one(&entry.value)?)));
        read.map_err(|error| place.error(&entry.span, format!("knobs: {error}")))
    };
    entries.0.iter().map(one).collect()
}

/// Whether the policy's kernel has all of these knobs and takes their values.
pub(super) fn taken_by(policy: &Policy, knobs: &[(Knob, u64)]) -> Result<(), String> {
    let checked = knobs.iter().try_for_each(|&(knob, value)| policy.check_knob(knob, value));
    checked.map_err(|error| format!("knobs: {error}"))
}

pub(super) fn lay_over(all: &mut Vec<(Knob, u64)>, over: Vec<(Knob, u64)>) {
    all.retain(|(knob, _)| !over.iter().any(|(other, _)| other == knob));
    all.extend(over);
}
