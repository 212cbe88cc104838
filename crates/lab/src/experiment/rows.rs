//! Simulated figures beside published ones: a row for each, over all repetitions, and the score of an experiment.

use super::funclatency::emd_buckets;
use super::metric::{Metric, Seen};
use super::published::{set_against, unchanged, unit_of};
use super::run::Repetition;
use super::spec::{Comparison, Experiment, Figure, Published, Variant};
use crate::measurements::{Confidence, Document, Latency, Role, Row, Run, Sample, Score};

/// Changes up to this many percent say nothing of a direction: so much is noise between two runs of one machine.
const NOISE_PERCENT: f64 = 1.0;

/// A row, and for a comparison whether it went the way that was published.
pub(super) struct Judged {
    pub(super) row: Row,
    pub(super) direction: Option<bool>,
}

/// Every row: variant by variant, then the comparisons. `ran[variant]` are its repetitions.
pub(super) fn judge(experiment: &Experiment, ran: &[Vec<Repetition>]) -> Vec<Judged> {
    let mut all = vec![];
    for (variant, repetitions) in experiment.variants.iter().zip(ran) {
        for figure in &variant.figures {
            let rows = of_figure(experiment, variant, figure, repetitions);
            all.extend(rows.into_iter().map(|row| Judged { row, direction: None }));
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
        source: figure.source.clone(),
        ..Row::default()
    };
    match &figure.published {
        Published::Value(value) => vec![filled(blank, *value, runs().map(|seen| figure.metric.read(seen)))],
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

fn of_comparison(experiment: &Experiment, comparison: &Comparison, ran: &[Vec<Repetition>]) -> Judged {
    let Comparison { case, against, metric, form, published, .. } = comparison;
    // Repetitions of the same seed belong together.
    let pairs = ran[case.variant].iter().zip(&ran[against.variant]);
    let values = pairs.map(|(this, base)| {
        let (value, base) = (metric.read(this.seen(case.phase))?, metric.read(base.seen(against.phase))?);
        set_against(*form, value, base)
    });
    let blank = Row {
        experiment: experiment.name.clone(),
        variant: format!("{} against {}", experiment.case_name(*case), experiment.case_name(*against)),
        metric: metric.path().to_owned(),
        unit: unit_of(*form).to_owned(),
        role: comparison.role,
        source: comparison.source.clone(),
        ..Row::default()
    };
    let row = filled(blank, *published, values);
    let unchanged = unchanged(*form);
    let (was, is) = (row.published - unchanged, row.simulated - unchanged);
    let noise = if row.unit == "percent" { NOISE_PERCENT } else { NOISE_PERCENT / 100.0 };
    let direction = (was.abs() > noise).then(|| was.signum() == is.signum() && is != 0.0);
    Judged { direction: direction.filter(|_| comparison.role == Role::Predicted), row }
}

fn filled(blank: Row, published: f64, values: impl Iterator<Item = Option<f64>>) -> Row {
    let sample = Sample::new(values.flatten());
    let simulated = sample.mean().unwrap_or(f64::NAN);
    let error = match blank.unit.as_str() {
        "percent" => simulated - published,
        "buckets" => simulated,
        // A name: it is the same or it is not.
        "node" => f64::from(u8::from((simulated - published).abs() >= f64::EPSILON || simulated.is_nan())),
        _ => simulated / published - 1.0,
    };
    Row { published, simulated, stddev: sample.stddev().unwrap_or(0.0), error, ..blank }
}

/// Rows that should be the kernel's own numbers, by the label of their variant's runs, and are not.
pub fn inexact_rows(document: &Document) -> Vec<&Row> {
    let is_exact = |row: &&Row| {
        let of_row = |run: &&Run| run.experiment == row.experiment && run.variant == row.variant;
        document.runs.iter().find(of_row).is_some_and(|run| run.confidence == Confidence::Exact)
    };
    let is_exact = |row: &&Row| row.role == Role::Exact || is_exact(row);
    let differs = |row: &&Row| row.published.is_finite() && row.error != 0.0;
    document.rows.iter().filter(is_exact).filter(differs).collect()
}

/// How far off the predicted rows are. A row with a published figure and no simulated one is infinitely far off.
pub(super) fn score(experiment: &Experiment, judged: &[Judged]) -> Score {
    let predicted = || judged.iter().map(|judged| &judged.row).filter(|row| row.role == Role::Predicted);
    let rows = predicted().filter(|row| row.unit != "buckets" && row.published.is_finite());
    let mut errors: Vec<f64> = rows.map(error).collect();
    errors.sort_by(f64::total_cmp);
    let distances: Vec<f64> = predicted().filter(|row| row.unit == "buckets").map(error).collect();
    let directions = || judged.iter().filter_map(|judged| judged.direction);
    Score {
        experiment: experiment.name.clone(),
        predicted_rows: errors.len() as u64,
        direction_rows: directions().count() as u64,
        direction_right: directions().filter(|&right| right).count() as u64,
        median_abs_error: median(&errors),
        worst_abs_error: errors.last().copied().unwrap_or(f64::NAN),
        histograms: distances.len() as u64,
        worst_emd_buckets: distances.into_iter().fold(f64::NAN, f64::max),
    }
}

/// A row's error without its sign, 100 points as 1.
fn error(row: &Row) -> f64 {
    let error = if row.error.is_finite() { row.error.abs() } else { f64::INFINITY };
    if row.unit == "percent" { error / 100.0 } else { error }
}

/// Of values in ascending order.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}
