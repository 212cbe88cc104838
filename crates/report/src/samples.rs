//! Results of workload parts that are alike (the JVMs of SPECjbb), in mmtests' layout: Min, Mean, Stddev, Max and TPut,
//! with a column for each variant. A second table shows how the means changed, published and simulated, each with its 95 %
//! confidence interval. A change within its interval is noise.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lab::measurements::{Moments, Row, Run, Sample};

use crate::style::Style;
use crate::table::Table;

/// The samples of a variant, over all seeds, by what was done.
struct Column<'a> {
    variant: &'a str,
    samples: BTreeMap<&'a str, Vec<Sample>>,
}

impl Column<'_> {
    /// A statistic of the samples of each seed, averaged over seeds.
    fn of(&self, key: &str, statistic: Statistic) -> Option<f64> {
        let seeds = self.samples.get(key)?;
        Sample::new(seeds.iter().filter_map(statistic)).mean()
    }

    /// All seeds' values as one sample.
    fn moments(&self, key: &str) -> Option<Moments> {
        let seeds = self.samples.get(key)?;
        let values = seeds.iter().flat_map(Sample::values);
        Moments::of(&Sample::new(values))
    }
}

fn total(sample: &Sample) -> Option<f64> {
    sample.mean().map(|mean| mean * sample.count() as f64)
}

/// What is computed of a sample.
type Statistic = fn(&Sample) -> Option<f64>;

/// Name, statistic, and 1 where more is better or -1.
const STATISTICS: [(&str, Statistic, f64); 5] = [
    ("Min", Sample::min, 1.0),
    ("Mean", Sample::mean, 1.0),
    ("Stddev", Sample::stddev, -1.0),
    ("Max", Sample::max, 1.0),
    ("TPut", total, 1.0),
];

/// The tables; empty where no run has samples. `rows` are those of the same experiment.
pub fn tables(style: Style, runs: &[&Run], rows: &[&Row]) -> String {
    let columns = columns(runs);
    let Some(base) = columns.first() else { return String::new() };
    let keys = keys(base);
    let mut out = style.heading("Simulated, as mmtests prints it; positive is better") + "\n";
    out.push_str(&layout(&columns, &keys));
    let changes = changes(&columns, &keys, rows);
    if let Some(table) = changes {
        let heading = format!(
            "Change of the mean against {}, percent, with its 95 % confidence interval",
            base.variant
        );
        let _ = write!(out, "\n{}\n{}", style.heading(&heading), table.text(2, style.columns()));
    }
    out
}

fn columns<'a>(runs: &[&'a Run]) -> Vec<Column<'a>> {
    let mut columns: Vec<Column<'a>> = vec![];
    for run in runs.iter().filter(|run| !run.samples.is_empty()) {
        let known = columns.iter().position(|column| column.variant == run.variant);
        let index = known.unwrap_or_else(|| {
            columns.push(Column { variant: &run.variant, samples: BTreeMap::new() });
            columns.len() - 1
        });
        for (key, values) in &run.samples {
            columns[index].samples.entry(key).or_default().push(Sample::new(values.iter().copied()));
        }
    }
    columns
}

/// By the number that a key ends with, as people count.
fn keys<'a>(column: &Column<'a>) -> Vec<&'a str> {
    let mut keys: Vec<&str> = column.samples.keys().copied().collect();
    let number = |key: &str| key.rsplit('-').next().and_then(|number| number.parse::<u64>().ok());
    keys.sort_by_key(|key| number(key).unwrap_or(u64::MAX));
    keys
}

fn layout(columns: &[Column<'_>], keys: &[&str]) -> String {
    let mut out = format!("{:18}", "");
    for column in columns {
        let _ = write!(out, " {:>23}", column.variant);
    }
    out.push('\n');
    for (name, statistic, sign) in STATISTICS {
        for key in keys {
            let short = key.rsplit('-').next().unwrap_or(key);
            let _ = write!(out, "{name:<7} {short:<10}");
            let base = columns[0].of(key, statistic);
            for column in columns {
                let value = column.of(key, statistic);
                let gain = base.zip(value).filter(|(base, _)| *base != 0.0);
                // Adding 0 makes a 0 of a minus 0.
                let gain = gain.map(|(base, value)| sign * 100.0 * (value - base) / base + 0.0);
                match (value, gain) {
                    (Some(value), Some(gain)) => {
                        let _ = write!(out, " {value:>12.2} ({gain:7.2}%)");
                    }
                    (Some(value), None) => {
                        let _ = write!(out, " {value:>12.2} ({:>8})", "n/a");
                    }
                    (None, _) => {
                        let _ = write!(out, " {:>23}", "-");
                    }
                }
            }
            out.push('\n');
        }
    }
    out
}

/// A row for each variant but the first, and each key.
fn changes(columns: &[Column<'_>], keys: &[&str], rows: &[&Row]) -> Option<Table> {
    let (base, others) = columns.split_first().filter(|(_, others)| !others.is_empty())?;
    let mut table = Table::new(["<variant", "<", "published", "±", "simulated", "±", "<"]);
    for other in others {
        for key in keys {
            let simulated = base.moments(key).zip(other.moments(key));
            let simulated = simulated.and_then(|(base, other)| Change::of(base, other));
            let count = base.samples.get(key).and_then(|seeds| seeds.first()).map_or(0, Sample::count);
            let published =
                published(rows, base.variant, key, count).zip(published(rows, other.variant, key, count));
            let published = published.and_then(|(base, other)| Change::of(base, other));
            let [a, b] = cells(published);
            let [c, d] = cells(simulated);
            table.row([
                other.variant.to_owned(),
                (*key).to_owned(),
                a,
                b,
                c,
                d,
                verdict(published, simulated).to_owned(),
            ]);
        }
    }
    Some(table)
}

/// How far a mean is from another one, in percent of that.
#[derive(Clone, Copy)]
struct Change {
    percent: f64,
    /// Half of its interval.
    half: f64,
}

impl Change {
    fn of(base: Moments, other: Moments) -> Option<Self> {
        base.change_percent(other).map(|(percent, half)| Self { percent, half })
    }
}

fn cells(change: Option<Change>) -> [String; 2] {
    change.map_or(["-".to_owned(), "-".to_owned()], |Change { percent, half }| {
        [format!("{percent:+.2}"), format!("{half:.2}")]
    })
}

/// Published mean and deviation of a variant's `key`, of so many values.
fn published(rows: &[&Row], variant: &str, key: &str, count: usize) -> Option<Moments> {
    let of = |statistic: &str| {
        let metric = format!("{statistic}.{key}");
        let row = rows.iter().find(|row| row.variant == variant && row.metric == metric)?;
        row.published.is_finite().then_some(row.published)
    };
    Some(Moments { mean: of("mean")?, stddev: of("stddev")?, count })
}

fn verdict(published: Option<Change>, simulated: Option<Change>) -> &'static str {
    let outside = |change: Option<Change>| change.is_some_and(|change| change.percent.abs() > change.half);
    match (outside(published), outside(simulated)) {
        (true, true) => "both outside of their intervals",
        (true, false) => "published outside of its interval",
        (false, true) => "simulated outside of its interval",
        (false, false) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(variant: &str, ten: [f64; 4]) -> Run {
        let samples = BTreeMap::from([
            ("warehouses-10".to_owned(), ten.to_vec()),
            ("warehouses-1".to_owned(), vec![30.0, 31.0, 32.0, 31.0]),
        ]);
        Run { variant: variant.into(), samples, ..Run::default() }
    }

    fn row(variant: &str, metric: &str, published: f64) -> Row {
        Row { variant: variant.into(), metric: metric.into(), published, ..Row::default() }
    }

    #[test]
    fn means_that_moved_are_told_from_noise() {
        let runs =
            [run("zone-order", [100.0, 101.0, 99.0, 100.0]), run("node-order", [110.0, 111.0, 109.0, 110.0])];
        let rows = [
            row("zone-order", "mean.warehouses-10", 124_432.5),
            row("zone-order", "stddev.warehouses-10", 7434.03),
            row("node-order", "mean.warehouses-10", 140_904.0),
            row("node-order", "stddev.warehouses-10", 5171.91),
        ];
        let (runs, rows): (Vec<&Run>, Vec<&Row>) = (runs.iter().collect(), rows.iter().collect());
        insta::assert_snapshot!(tables(Style::plain(), &runs, &rows));
    }

    #[test]
    fn runs_without_samples_have_no_table() {
        assert_eq!(tables(Style::plain(), &[&Run::default()], &[]), "");
    }
}
