//! Published times beside simulated ones: the model's interval of each, and what they are evidence of ([`Times`]).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::published_rows::{is_counted, setup};
use super::spec::Experiment;
use crate::evidence::{Table, TimeKind, Times};
use crate::measurements::{Document, ModelInterval, Role, Row};

/// The kind of time that a row's figure is; `None` of counts, and of what repeats another row (a sum of the same runs that a mean is of).
fn kind(row: &Row) -> Option<TimeKind> {
    if !is_change(row) {
        return TimeKind::of(&row.metric, &row.unit);
    }
    let repeats = ["min.", "max.", "sum.", "stddev."].iter().any(|head| row.metric.starts_with(head));
    let is_rare = row.metric.ends_with("max_ns") || row.metric.starts_with("refill.pages_per_second");
    let is_told = matches!(row.unit.as_str(), "percent" | "ratio");
    (is_told && !repeats && !is_rare && !is_counted(&row.metric)).then_some(TimeKind::Change)
}

fn is_change(row: &Row) -> bool {
    row.variant.contains(" against ")
}

/// A change as a factor; any other figure as it is.
fn factor(row: &Row, value: f64) -> f64 {
    if is_change(row) && row.unit == "percent" { 1.0 + value / 100.0 } else { value }
}

/// The other way round.
fn in_unit(row: &Row, factor: f64) -> f64 {
    if is_change(row) && row.unit == "percent" { 100.0 * (factor - 1.0) } else { factor }
}

/// Puts the interval of `row`'s simulated figure beside it, by what `table` has, and whether the published figure lies in it.
pub(super) fn put_interval(table: &Table, row: &mut Row) {
    let Some(kind) = kind(row) else { return };
    let simulated = factor(row, row.simulated);
    let ends = match kind {
        TimeKind::Change => {
            Table::bundled_changes().filter(|_| simulated > 0.0).map(|of| of.around(simulated))
        }
        _ => table.factor(kind).ok().map(|factor| (simulated / factor, simulated * factor)),
    };
    let ends = ends.filter(|_| simulated.is_finite());
    let interval = ModelInterval {
        kind: kind.name().to_owned(),
        low: ends.map(|(low, _)| in_unit(row, low)),
        high: ends.map(|(_, high)| in_unit(row, high)),
    };
    // What a cost was chosen by says nothing of an interval.
    let is_evidence = row.published.is_finite() && is_evidence(row);
    row.inside = interval.holds(row.published).filter(|_| is_evidence);
    row.interval = Some(interval);
}

/// Whether a row is of nothing that was fitted. A change counts where both of its sides were published, too: it is a question of its own.
fn is_evidence(row: &Row) -> bool {
    match row.role {
        Role::Predicted => true,
        Role::Derived | Role::Noise => is_change(row),
        Role::Fitted | Role::Zero | Role::Exact => false,
    }
}

/// The times of `document` that nothing was chosen by, published beside simulated. `experiments` are those that it is of.
pub fn times_of(document: &Document, experiments: &[Experiment]) -> Vec<Times> {
    let mut sums: BTreeMap<(usize, String, TimeKind), Times> = BTreeMap::new();
    for row in document.rows.iter().filter(|row| is_evidence(row) && row.published_high.is_none()) {
        let place = experiments.iter().position(|experiment| experiment.name == row.experiment);
        let Some((place, kind)) = place.zip(kind(row)) else { continue };
        let Some(setup) = setup(&experiments[place], &row.variant) else { continue };
        let (published, simulated) = (factor(row, row.published), factor(row, row.simulated));
        let has_both = published > 0.0 && simulated > 0.0 && published.is_finite() && simulated.is_finite();
        if !has_both || matches!(kind, TimeKind::Max | TimeKind::Other) {
            continue;
        }
        let machine = setup.profile.name().to_owned();
        let of = sums.entry((place, machine.clone(), kind)).or_insert_with(|| Times {
            experiment: row.experiment.clone(),
            machine,
            kind,
            published: vec![],
            simulated: vec![],
        });
        of.published.push(rounded(published));
        of.simulated.push(rounded(simulated));
    }
    sums.into_values().collect()
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Appends them as TOML.
pub(super) fn write_times(out: &mut String, times: &[Times]) {
    let list =
        |values: &[f64]| values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", ");
    for of in times {
        let _ = write!(
            out,
            "\n[[times]]\nexperiment = \"{}\"\nmachine = \"{}\"\nkind = \"{}\"\npublished = [{}]\nsimulated = [{}]\n",
            of.experiment,
            of.machine,
            of.kind.name(),
            list(&of.published),
            list(&of.simulated)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(variant: &str, metric: &str, unit: &str, figures: [f64; 2], role: Role) -> Row {
        let [published, simulated] = figures;
        let (variant, metric, unit) = (variant.to_owned(), metric.to_owned(), unit.to_owned());
        let mut row = Row { variant, metric, unit, published, simulated, role, ..Row::default() };
        put_interval(Table::bundled(), &mut row);
        row
    }

    #[test]
    fn a_level_has_its_kinds_interval_and_a_change_has_its_own() {
        let hold = row("a", "refill.mean_ns", "ns", [1000.0, 1100.0], Role::Predicted);
        assert_eq!((hold.interval.as_ref().unwrap().kind.as_str(), hold.inside), ("hold", Some(true)));
        let far = row("a", "refill.mean_ns", "ns", [1000.0, 2000.0], Role::Predicted);
        assert_eq!(far.inside, Some(false));
        let change = row("a against b", "refill.mean_ns", "percent", [-50.0, -60.0], Role::Derived);
        let interval = change.interval.unwrap();
        assert_eq!((interval.kind.as_str(), change.inside), ("change", Some(true)));
        let (low, high) = Table::bundled_changes().unwrap().around(0.4);
        assert!((interval.low.unwrap() - 100.0 * (low - 1.0)).abs() < 1e-9);
        assert!((interval.high.unwrap() - 100.0 * (high - 1.0)).abs() < 1e-9);
    }

    #[test]
    fn what_was_fitted_counts_nowhere_and_some_times_have_no_interval() {
        let fitted = row("a", "refill.mean_ns", "ns", [1000.0, 1000.0], Role::Fitted);
        assert!(fitted.inside.is_none() && fitted.interval.unwrap().low.is_some());
        for metric in ["refill.max_ns", "refill.p99_ns", "compact.mean_ns"] {
            let row = row("a", metric, "ns", [1000.0, 1000.0], Role::Predicted);
            assert!(row.inside.is_none() && row.interval.unwrap().low.is_none(), "{metric}");
        }
        let counted = row("a against b", "counters.compact_stall", "percent", [3.0, 3.0], Role::Predicted);
        assert_eq!(counted.interval, None);
    }
}
