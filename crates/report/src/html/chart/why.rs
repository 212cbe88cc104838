//! What makes a difference: the share of each cause.

use lab::measurements::{Cause, Why, WhyGoal};

use super::Chart;
use super::forest::{Forest, Point, Row, Unit};
use super::mark::Mark;
use crate::table::Table;

/// A chart for each figure that has causes.
pub(in crate::html) fn charts(why: &Why) -> Vec<Chart> {
    why.goals.iter().filter_map(|goal| chart(why, goal)).collect()
}

fn chart(why: &Why, goal: &WhyGoal) -> Option<Chart> {
    let title = format!("{}: what makes the difference", goal.metric);
    let forest = Forest {
        name: format!("{title}, from {} to {}; the table below has the figures", why.from, why.to),
        unit: Unit::Percent,
        axis: format!("share of the change of {}, percent of the whole", goal.metric),
        centre: "nothing",
        legend: vec![],
        rows: goal.causes.iter().map(|cause| row(goal, cause)).collect(),
    };
    let svg = forest.svg();
    let note = format!("shares add up to 100 %; whiskers: 95 % interval over {} seeds", why.seeds);
    (!svg.is_empty()).then(|| Chart { title, note, svg, table: table(goal) })
}

/// Percent of the whole change.
fn percent(goal: &WhyGoal, value: f64) -> f64 {
    if goal.change.mean == 0.0 { 0.0 } else { 100.0 * value / goal.change.mean }
}

fn row(goal: &WhyGoal, cause: &Cause) -> Row {
    let share = percent(goal, cause.share.mean);
    let between = cause.share.low.zip(cause.share.high);
    let ends = between.map(|(low, high)| {
        let [low, high] = [percent(goal, low), percent(goal, high)];
        [low.min(high), low.max(high)]
    });
    let mark = if cause.share.is_told() { Mark::Neither } else { Mark::Unclear };
    let point = Point { at: share, between: ends, mark };
    Row { label: cause.name.clone(), said: format!("{share:.0} %"), class: "said", points: vec![point] }
}

fn table(goal: &WhyGoal) -> Table {
    let mut table = Table::new(["<cause", "share", "95 % interval", "<what it decides"]);
    for cause in &goal.causes {
        let between = match cause.share.low.zip(cause.share.high) {
            Some((low, high)) => {
                let [low, high] = [percent(goal, low), percent(goal, high)];
                format!("{:.0} to {:.0} %", low.min(high), low.max(high))
            }
            None => "-".into(),
        };
        table.row([
            cause.name.clone(),
            format!("{:.0} %", percent(goal, cause.share.mean)),
            between,
            cause.about.clone(),
        ]);
    }
    table
}
