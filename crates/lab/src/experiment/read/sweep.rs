//! A sweep: machines by values of a knob.

use mm::Knob;
use toml::Spanned;

use super::file::{CriterionEntry, SweepEntry};
use super::variant::{Defaults, Said, built, lay_over, taken_by};
use super::words::{one_line, readable};
use crate::experiment::error::{Place, Read, Source};
use crate::experiment::spec::{Criterion, Sweep, Variant};

/// A cell of a sweep.
struct Cell<'a> {
    machine: &'a Spanned<String>,
    policy: Option<&'a Spanned<String>>,
    knob: Knob,
    value: u64,
}

pub(super) fn sweep(source: &Source<'_>, defaults: &Defaults<'_>, entry: &SweepEntry) -> Read<Sweep> {
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
                cells.push(cell(source, defaults, entry, &Cell { machine, policy: *policy, knob, value })?);
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

fn cell(source: &Source<'_>, defaults: &Defaults<'_>, entry: &SweepEntry, at: &Cell<'_>) -> Read<Variant> {
    let own = Defaults {
        machine: Some(at.machine),
        policy: at.policy,
        cpus: None,
        shrink: entry.shrink.as_ref(),
        warm_up_ms: entry.warm_up_ms.as_ref(),
        run_ms: entry.run_ms.as_ref(),
        knobs: &entry.knobs,
        workload: &entry.workload,
        confidence: entry.confidence,
        because: entry.because.as_deref(),
        tracer: None,
    };
    let said = Said { what: "the sweep".into(), span: entry.knob.span(), own, phases: &[] };
    let mut cell = built(source, defaults, &said, "")?;
    lay_over(&mut cell.setup.knobs, vec![(at.knob, at.value)]);
    taken_by(&cell.setup.policy, &cell.setup.knobs).map_err(|error| source.place.error(&said.span, error))?;
    Ok(cell)
}

fn criterion(place: Place<'_>, entry: &CriterionEntry, values: &[u64]) -> Read<Criterion> {
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
