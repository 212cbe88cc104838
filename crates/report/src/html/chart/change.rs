//! Changes against the first variant, with their intervals.

use lab::measurements::{Change, Group, Moments, Scene, Told, changes};

use super::Chart;
use super::forest::{Forest, Point, Row, Unit};
use super::mark::Mark;
use crate::changes::{amount, figures, is_real, title};
use crate::interval::Model;
use crate::table::Table;

/// Dots that a chart may have; what changed comes before what did not.
const MOST: usize = 18;

/// The figures that a chart may show, in this order; `*` stands for every span, lock or recording.
const ORDER: [&str; 14] = [
    "elapsed_ns",
    "cpu_ns",
    "walk_ns",
    "peak_rss",
    "page_faults",
    "pages_per_second",
    "operations_per_second",
    "*.mean_ns",
    "*.p99_ns",
    "lock.*.wait_ns",
    "pages_copied",
    "fork_ns",
    "forked_fault_p99_ns",
    "failed_allocations",
];

/// A variant's change of a figure.
struct Changed {
    variant: usize,
    place: usize,
    change: Change,
}

/// The chart of a scene; none where there is nothing to compare.
pub(in crate::html) fn chart(scene: &Scene<'_>) -> Option<Chart> {
    let (base, others) = scene.groups.split_first().filter(|(_, others)| !others.is_empty())?;
    let all = all(base, others);
    let several = others.len() > 1;
    let rows = rows(&all, &told_apart(others));
    let of = |other: &Group<'_>| format!("{} against {}", other.label, base.label);
    let title = match others {
        [other] => format!("Changes: {}", of(other)),
        _ => format!("Changes against {}", base.label),
    };
    let seeds = scene.groups.iter().map(|group| group.runs.len()).min().unwrap_or(0);
    let whiskers = match seeds {
        1 => "one seed: no interval".to_owned(),
        seeds => format!("whiskers: 95 % interval over {seeds} seeds"),
    };
    let name = format!(
        "{title}; {}",
        if several { "a dot for each figure and variant" } else { "a dot for each figure" }
    );
    let forest = Forest {
        name: name + "; the table below has the figures",
        unit: Unit::Ratio,
        axis: "after ÷ before, log scale".into(),
        centre: "no change",
        legend: vec![],
        rows,
    };
    let svg = forest.svg();
    let note = format!("{whiskers}; disc: better, diamond: worse, open: not told apart from none");
    (!svg.is_empty()).then(|| Chart { title, note, svg, table: table(&all, others) })
}

/// Every change that the chart or its table may show.
fn all(base: &Group<'_>, others: &[Group<'_>]) -> Vec<Changed> {
    let mut all = vec![];
    for (variant, other) in others.iter().enumerate() {
        for change in changes(base, other) {
            if let Some(place) = place(&change.figure.name).filter(|_| change.means() != (0.0, 0.0)) {
                all.push(Changed { variant, place, change });
            }
        }
    }
    all.sort_by(|one, other| {
        let key = |of: &Changed| (of.place, of.change.figure.name.clone(), of.variant);
        key(one).cmp(&key(other))
    });
    all
}

/// Where a figure stands in [`ORDER`], if it does.
fn place(name: &str) -> Option<usize> {
    ORDER.iter().position(|pattern| match pattern.split_once('*') {
        None => *pattern == name,
        Some(("", end)) => {
            name.ends_with(end) && !name.starts_with("lock.") && !name.starts_with("recording.")
        }
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
    })
}

/// Names of the variants: the values alone where all of them set the same knob, which the title names.
fn told_apart(others: &[Group<'_>]) -> Vec<String> {
    let values = |other: &Group<'_>| {
        let (knob, value) = other.label.split_once('=')?;
        (!value.contains('=')).then(|| (knob.to_owned(), value.to_owned()))
    };
    let pairs: Option<Vec<(String, String)>> = others.iter().map(values).collect();
    let alike = pairs.filter(|pairs| pairs.windows(2).all(|pair| pair[0].0 == pair[1].0));
    match alike {
        Some(pairs) => pairs.into_iter().map(|(_, value)| value).collect(),
        None => others.iter().map(|other| other.label.clone()).collect(),
    }
}

/// A row for each change; where there are several variants, figures are headings of theirs.
fn rows(all: &[Changed], others: &[String]) -> Vec<Row> {
    let mut names: Vec<&str> = vec![];
    for real in [true, false] {
        for changed in all.iter().filter(|changed| is_real(&changed.change) == real) {
            let name = changed.change.figure.name.as_str();
            let has_room = (names.len() + 1) * others.len() <= MOST || names.is_empty();
            if !names.contains(&name) && has_room {
                names.push(name);
            }
        }
    }
    names.sort_by_key(|name| (place(name), *name));
    let mut rows = vec![];
    for name in names {
        let of_figure = all.iter().filter(|changed| changed.change.figure.name == name);
        if others.len() > 1 {
            rows.push(Row::heading(&title(name)));
            rows.extend(of_figure.map(|changed| row(&others[changed.variant], &changed.change)));
        } else {
            rows.extend(of_figure.map(|changed| row(&title(name), &changed.change)));
        }
    }
    rows
}

fn row(label: &str, change: &Change) -> Row {
    let better = change.is_better().filter(|_| is_real(change));
    let (mark, class) = match better {
        Some(true) => (Mark::Better, "better"),
        Some(false) => (Mark::Worse, "worse"),
        None if change.told() == Told::Apart && change.figure.better.is_none() => (Mark::Neither, "said"),
        None => (Mark::Unclear, "said"),
    };
    let said = match change.told() {
        Told::Same => "the same in all seeds".to_owned(),
        Told::Within => "no clear difference".to_owned(),
        Told::Apart | Told::OneSeed if Model::of(change).survives() => amount(change),
        Told::Apart | Told::OneSeed => format!("{}: not told apart", amount(change)),
    };
    let (at, between) = ratio(change);
    Row { label: label.to_owned(), said, class, points: vec![Point { at, between, mark }] }
}

/// How many times the mean before the mean after is, and between which with 95 % confidence. What comes from nothing has no end.
fn ratio(change: &Change) -> (f64, Option<[f64; 2]>) {
    let (before, after) = change.means();
    if before <= 0.0 {
        return (f64::INFINITY, None);
    }
    let of = |value: f64| value / before;
    let moments = Moments::of(&change.before).zip(Moments::of(&change.after));
    let half = moments.and_then(|(before, after)| before.change(after).1).filter(|half| *half > 0.0);
    (of(after), half.map(|half| [of(after - half).max(0.0), of(after + half)]))
}

fn table(all: &[Changed], others: &[Group<'_>]) -> Table {
    let mut table =
        Table::new(["<figure", "<variant", "<before -> after", "change", "95 % interval of after ÷ before"]);
    for Changed { variant, change, .. } in all {
        let between = match ratio(change).1 {
            Some([low, high]) => format!("{low:.3} to {high:.3}"),
            None => "-".into(),
        };
        table.row([
            title(&change.figure.name),
            others[*variant].label.clone(),
            figures(change),
            amount(change),
            between,
        ]);
    }
    table
}
