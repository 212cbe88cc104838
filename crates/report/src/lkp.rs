//! Tables as lkp, the kernel test robot, prints them.
//!
//! Value, `± n%` where the deviation is over 2 %, the change against the first column, the metric's name. Here the
//! change is the plain one: a time that fell is negative.

use std::fmt::Write as _;

use lab::measurements::{Comparison, ComparisonTable, MetricRow};

/// Deviations up to this many percent are not shown.
const QUIET_PERCENT: f64 = 2.0;

/// All tables of a comparison, and what could not be compared.
pub fn comparison(of: &Comparison) -> String {
    let mut out = String::new();
    for table in &of.tables {
        if !out.is_empty() {
            out.push('\n');
        }
        if !table.title.is_empty() {
            let _ = writeln!(out, "{}\n", table.title);
        }
        out.push_str(&one(table));
    }
    for alone in &of.alone {
        let _ = writeln!(out, "not compared, without a counterpart: {alone}");
    }
    out
}

fn one(table: &ComparisonTable) -> String {
    let mut names = String::new();
    let (mut rule, mut deviations, mut marks) = (String::new(), String::new(), String::new());
    for (index, name) in table.columns.iter().enumerate() {
        let width = if index == 0 { 16 } else { 27 };
        let name: String = name.chars().take(width).collect();
        let _ = write!(names, "{name:>width$} ");
        let _ = write!(rule, "{} ", "-".repeat(width));
        if index > 0 {
            deviations.push_str("     %change");
            marks.push_str("          |   ");
        }
        deviations.push_str("         %stddev");
        marks.push_str("             \\");
    }
    let mut out = String::new();
    for line in [names, rule, deviations, marks] {
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for row in &table.rows {
        let _ = writeln!(out, "{}  {}", cells(row), row.metric.name);
    }
    out
}

fn cells(row: &MetricRow) -> String {
    let base = row.samples[0].mean();
    let mut out = String::new();
    for (column, sample) in row.samples.iter().enumerate() {
        let mean = sample.mean();
        if column > 0 {
            let change = match (base, mean) {
                (Some(base), Some(mean)) if base != 0.0 => format!("{:+.1}%", 100.0 * (mean - base) / base),
                (Some(_), Some(0.0)) => "+0.0%".into(),
                _ => "n/a".into(),
            };
            let _ = write!(out, "{change:>11}");
        }
        let width = if column == 0 { 10 } else { 11 };
        let _ = write!(out, "{:>width$}", mean.map_or_else(|| "-".into(), value));
        match sample.coefficient_of_variation() {
            Some(percent) if percent > QUIET_PERCENT => {
                let _ = write!(out, " ±{percent:3.0}%");
            }
            _ => out.push_str("      "),
        }
    }
    out
}

/// At least five digits of a value; large ones in exponents, as lkp does.
fn value(value: f64) -> String {
    match value.abs() {
        1e9.. => format!("{value:.3e}"),
        1000.0.. => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use lab::measurements::{Better, Metric, Sample};

    use super::*;

    #[test]
    fn a_line_is_set_as_in_the_published_tables() {
        let row = |samples: Vec<Sample>| MetricRow {
            metric: Metric { name: "ops".into(), unit: "ops/s", better: Better::Higher },
            samples,
        };
        let quiet = row(vec![Sample::new([223_670.0]), Sample::new([298_205.0])]);
        assert_eq!(cells(&quiet), "    223670           +33.3%     298205      ");
        let loud = row(vec![Sample::new([95.0, 105.0]), Sample::new([50.0, 50.0])]);
        assert_eq!(cells(&loud), "    100.00 ±  7%     -50.0%      50.00      ");
    }
}
