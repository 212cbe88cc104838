//! Simulated figures beside published ones: a row for each, over all repetitions.

use crate::experiment::funclatency::emd_buckets;
use crate::experiment::metric::{Metric, Seen};
use crate::experiment::run::repetition::Repetition;
use crate::experiment::spec::{Comparison, Experiment, Figure, Published, Variant, Way};
use crate::measurements::{Confidence, Direction, Document, Latency, Role, Row, Run, Sample};

/// Every row: variant by variant, then the comparisons. `ran[variant]` are its repetitions.
pub(super) fn judge(experiment: &Experiment, ran: &[Vec<Repetition>]) -> Vec<Row> {
    let mut all = vec![];
    for (variant, repetitions) in experiment.variants.iter().zip(ran) {
        for figure in &variant.figures {
            all.extend(of_figure(experiment, variant, figure, repetitions));
        }
    }
    all.extend(experiment.comparisons.iter().map(|comparison| of_comparison(experiment, comparison, ran)));
    all
}

fn of_figure(
    experiment: &Experiment,
    variant: &Variant,
    figure: &Figure,
    repetitions: &[Repetition],
) -> Vec<Row> {
    let runs = || repetitions.iter().map(|repetition| repetition.seen(figure.phase));
    let blank = Row {
        experiment: experiment.name.clone(),
        variant: variant.case_name(figure.phase),
        metric: figure.metric.path().to_owned(),
        unit: figure.metric.unit().to_owned(),
        role: figure.role,
        because: figure.because.clone(),
        source: figure.source.clone(),
        ..Row::default()
    };
    match &figure.published {
        Published::Value(value) => {
            vec![nothing(filled(blank, *value, runs().map(|seen| figure.metric.read(seen))), 0.0)]
        }
        Published::Range(range) => vec![within(blank, *range, runs().map(|seen| figure.metric.read(seen)))],
        Published::Histogram(published) => {
            let distances = runs().map(|seen| distance(&figure.metric, published, seen));
            vec![filled(blank, 0.0, distances)]
        }
        Published::Sequence(values) => {
            let key = figure.metric.sequence().unwrap_or_default();
            let element = |(place, &value): (usize, &f64)| {
                let of = |seen: Seen<'_>| {
                    let sizes = seen.run.sequences.get(key)?;
                    // What was published begins somewhere in the middle of a trace.
                    let begin = sizes.iter().position(|&size| (size as f64 - values[0]).abs() < 0.5)?;
                    Some(*sizes.get(begin + place)? as f64)
                };
                let metric = format!("{}[{place}]", figure.metric);
                filled(Row { metric, ..blank.clone() }, value, runs().map(of))
            };
            values.iter().enumerate().map(element).collect()
        }
    }
}

fn distance(metric: &Metric, published: &Latency, seen: Seen<'_>) -> Option<f64> {
    let (key, _) = metric.path().rsplit_once('.')?;
    emd_buckets(published, seen.run.latency.get(key)?)
}

fn of_comparison(experiment: &Experiment, comparison: &Comparison, ran: &[Vec<Repetition>]) -> Row {
    let Comparison { case, against, metric, form, published, .. } = comparison;
    // Repetitions of the same seed belong together.
    let pairs = ran[case.variant].iter().zip(&ran[against.variant]);
    let values = pairs.map(|(this, base)| {
        let (value, base) = (metric.read(this.seen(case.phase))?, metric.read(base.seen(against.phase))?);
        form.set_against(value, base)
    });
    let values: Vec<Option<f64>> = values.collect();
    let unchanged = form.unchanged();
    let direction = direction(comparison.way, published - unchanged, unchanged, &values);
    let role = match (comparison.role, direction) {
        // A change below 1 % whose noise is not known is a row like others, only without a direction.
        (Role::Predicted, Some(Direction::WithinNoise)) if comparison.is_noise_known => Role::Noise,
        (role, _) => role,
    };
    let blank = Row {
        experiment: experiment.name.clone(),
        variant: format!("{} against {}", experiment.case_name(*case), experiment.case_name(*against)),
        metric: metric.path().to_owned(),
        unit: form.unit().to_owned(),
        role,
        because: comparison.because.clone(),
        direction,
        source: comparison.source.clone(),
        ..Row::default()
    };
    nothing(filled(blank, *published, values.into_iter()), unchanged)
}

/// Which way the simulated values went. `change` is the published one, and `unchanged` what a value without a change is.
fn direction(way: Way, change: f64, unchanged: f64, values: &[Option<f64>]) -> Option<Direction> {
    let least = match way {
        Way::NotAsked => return None,
        _ if !change.is_finite() => return None,
        Way::Noise => return Some(Direction::WithinNoise),
        Way::Beyond(least) => least,
    };
    if change.abs() <= least {
        return Some(Direction::WithinNoise);
    }
    if values.len() < 2 {
        return Some(Direction::OneSeed);
    }
    // A repetition in which nothing of the kind happened leaves the change unknown.
    let all: Option<Vec<f64>> = values.iter().copied().collect();
    let Some(interval) = all.and_then(|values| Sample::new(values).mean_interval()) else {
        return Some(Direction::Unclear);
    };
    let (low, high) = (interval.low - unchanged, interval.high - unchanged);
    Some(match (low > 0.0 || high < 0.0, (low > 0.0) == (change > 0.0)) {
        (false, _) => Direction::Unclear,
        (true, true) => Direction::Right,
        (true, false) => Direction::Opposite,
    })
}

/// A row that says 0, or no change, on both sides is no prediction.
fn nothing(row: Row, unchanged: f64) -> Row {
    let is_nothing = |value: f64| (value - unchanged).abs() < f64::EPSILON;
    let is_counted = matches!(row.role, Role::Predicted) && row.unit != "node";
    let role = if is_counted && is_nothing(row.published) && is_nothing(row.simulated) {
        Role::Zero
    } else {
        row.role
    };
    Row { role, ..row }
}

/// A row beside a range: within it there is no error, outside of it the nearer end counts.
fn within(blank: Row, [low, high]: [f64; 2], values: impl Iterator<Item = Option<f64>>) -> Row {
    let sample = Sample::new(values.flatten());
    let simulated = sample.mean().unwrap_or(f64::NAN);
    let nearer = simulated.clamp(low, high);
    let error = match blank.unit.as_str() {
        "percent" => simulated - nearer,
        _ if simulated.is_finite() && (simulated - nearer).abs() < f64::EPSILON => 0.0,
        _ => simulated / nearer - 1.0,
    };
    let stddev = sample.stddev().unwrap_or(0.0);
    Row { published: low, published_high: Some(high), simulated, stddev, error, ..blank }
}

fn filled(blank: Row, published: f64, values: impl Iterator<Item = Option<f64>>) -> Row {
    let sample = Sample::new(values.flatten());
    let simulated = sample.mean().unwrap_or(f64::NAN);
    let error = match blank.unit.as_str() {
        "percent" => simulated - published,
        "buckets" => simulated,
        // A name: it is the same or it is not.
        "node" => f64::from(u8::from((simulated - published).abs() >= f64::EPSILON || simulated.is_nan())),
        // Nothing on both sides is agreement, though no prediction.
        _ if published == 0.0 && simulated == 0.0 => 0.0,
        _ => simulated / published - 1.0,
    };
    Row { published, simulated, stddev: sample.stddev().unwrap_or(0.0), error, ..blank }
}

/// Rows that should be the kernel's own numbers, by their role or by what their variant says, and are not.
pub fn inexact_rows(document: &Document) -> Vec<&Row> {
    let is_exact = |row: &&Row| {
        let of_row = |run: &&Run| run.experiment == row.experiment && run.variant == row.variant;
        document.runs.iter().find(of_row).is_some_and(|run| run.claimed == Confidence::Exact)
    };
    let is_exact = |row: &&Row| row.role == Role::Exact || is_exact(row);
    let differs = |row: &&Row| row.published.is_finite() && row.error != 0.0;
    document.rows.iter().filter(is_exact).filter(differs).collect()
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
