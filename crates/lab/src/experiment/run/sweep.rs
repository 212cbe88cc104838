//! A sweep's table: machines by values, and which machines need another value than the usual one.

use crate::experiment::metric::Metric;
use crate::experiment::run::repetition::Repetition;
use crate::experiment::spec::{Criterion, Sweep};
use crate::measurements::{Sample, SweepMetric, SweepTable, Verdict};

/// The table of a sweep; `ran[cell]` are its repetitions.
pub(super) fn table(sweep: &Sweep, ran: &[Vec<Repetition>]) -> SweepTable {
    let of = |metric: &Metric| SweepMetric {
        metric: metric.path().to_owned(),
        unit: metric.unit().to_owned(),
        means: means(metric, sweep, ran),
    };
    let criterion = sweep.criterion.as_ref();
    SweepTable {
        title: sweep.title.clone(),
        knob: sweep.knob.spec().name.to_owned(),
        values: sweep.values.clone(),
        rows: sweep.rows.clone(),
        metrics: sweep.metrics.iter().map(of).collect(),
        criterion: criterion.map(|criterion| sentence(sweep, criterion)).unwrap_or_default(),
        criterion_unit: criterion.map(|criterion| criterion.metric.unit().to_owned()).unwrap_or_default(),
        verdicts: criterion.map(|criterion| verdicts(sweep, criterion, ran)).unwrap_or_default(),
    }
}

/// `[row][value]`.
fn means(metric: &Metric, sweep: &Sweep, ran: &[Vec<Repetition>]) -> Vec<Vec<Option<f64>>> {
    let mean = |repetitions: &Vec<Repetition>| {
        let values = repetitions.iter().filter_map(|repetition| metric.read(repetition.seen(0)));
        Sample::new(values).mean()
    };
    ran.chunks(sweep.values.len()).map(|row| row.iter().map(mean).collect()).collect()
}

fn sentence(sweep: &Sweep, criterion: &Criterion) -> String {
    format!(
        "a machine needs another value of {} than {} if {} is over {} {} with it; {}",
        sweep.knob.spec().name,
        criterion.usual,
        criterion.metric,
        criterion.at_most,
        criterion.metric.unit(),
        criterion.because,
    )
}

fn verdicts(sweep: &Sweep, criterion: &Criterion, ran: &[Vec<Repetition>]) -> Vec<Verdict> {
    let of = |metric| {
        let absent = |mean: Option<f64>| mean.unwrap_or(f64::NAN);
        means(metric, sweep, ran)
            .into_iter()
            .map(move |means| means.into_iter().map(absent).collect::<Vec<_>>())
    };
    let rows = sweep.rows.iter().zip(of(&criterion.metric)).zip(of(&criterion.cost));
    rows.map(|((row, limited), costs)| verdict(row, sweep, criterion, &limited, &costs)).collect()
}

fn verdict(row: &str, sweep: &Sweep, criterion: &Criterion, limited: &[f64], costs: &[f64]) -> Verdict {
    let usual = sweep.values.iter().position(|value| *value == criterion.usual).unwrap_or(0);
    let needed = limited[usual] > criterion.at_most;
    let keeps = (0..sweep.values.len()).filter(|&value| limited[value] <= criterion.at_most);
    // Nearest to the usual value; of two as near, the smaller.
    let nearest =
        keeps.min_by_key(|&value| (sweep.values[value].abs_diff(criterion.usual), sweep.values[value]));
    let advised = nearest.filter(|_| needed);
    Verdict {
        row: row.to_owned(),
        usual: limited[usual],
        needed,
        advised: advised.map(|value| sweep.values[value]),
        cost_percent: advised.map_or(f64::NAN, |value| 100.0 * (costs[value] / costs[usual] - 1.0)),
    }
}
