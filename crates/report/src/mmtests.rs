//! Tables as mmtests' compare-kernels prints them.
//!
//! A cell is `%12.2f (%7.2f%%)`. The first column is the baseline; a positive percentage is always better. `Hmean` is
//! the mean of a rate, `Amean` that of a time. On those rows the brackets become `*  *` where the 95 % confidence
//! intervals of the two means have nothing in common.

use std::fmt::Write as _;

use lab::measurements::{Better, Comparison, ComparisonTable, MetricRow};

use crate::style::Style;

/// The blocks of a table, in mmtests' order.
const STATISTICS: [Statistic; 5] =
    [Statistic::Min, Statistic::Mean, Statistic::Stddev, Statistic::CoeffVar, Statistic::Max];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Statistic {
    Min,
    Mean,
    Stddev,
    CoeffVar,
    Max,
}

impl Statistic {
    fn name(self, better: Better) -> &'static str {
        match (self, better) {
            (Self::Min, _) => "Min",
            (Self::Mean, Better::Higher) => "Hmean",
            (Self::Mean, Better::Lower) => "Amean",
            (Self::Stddev, _) => "Stddev",
            (Self::CoeffVar, _) => "CoeffVar",
            (Self::Max, _) => "Max",
        }
    }

    fn of(self, row: &MetricRow, column: usize) -> Option<f64> {
        let sample = &row.samples[column];
        match self {
            Self::Min => sample.min(),
            Self::Mean => row.mean(column),
            Self::Stddev => sample.stddev(),
            Self::CoeffVar => sample.coefficient_of_variation(),
            Self::Max => sample.max(),
        }
    }

    /// Less spread is better, whatever it is that spreads.
    fn better(self, better: Better) -> Better {
        match self {
            Self::Stddev | Self::CoeffVar => Better::Lower,
            Self::Min | Self::Mean | Self::Max => better,
        }
    }
}

/// All tables of a comparison, and what could not be compared. With one repetition a column there is a mean and
/// nothing else, and a note that says so.
pub fn comparison(style: Style, of: &Comparison) -> String {
    tables(style, of, &STATISTICS)
}

/// The same with the rows of means alone.
pub fn means(style: Style, of: &Comparison) -> String {
    tables(style, of, &[Statistic::Mean])
}

fn tables(style: Style, of: &Comparison, statistics: &[Statistic]) -> String {
    let mut out = String::new();
    for table in &of.tables {
        if !out.is_empty() {
            out.push('\n');
        }
        if !table.title.is_empty() {
            let _ = writeln!(out, "{}", style.heading(&table.title));
        }
        out.push_str(&one(style, table, statistics));
    }
    for alone in &of.alone {
        let _ = writeln!(out, "not compared, without a counterpart: {alone}");
    }
    out
}

fn one(style: Style, table: &ComparisonTable, statistics: &[Statistic]) -> String {
    let repeated = table.rows.iter().flat_map(|row| &row.samples).any(|sample| sample.count() > 1);
    let statistics = if repeated { statistics } else { &[Statistic::Mean] };
    let lines: Vec<(&'static str, &str, Vec<Cell>)> = statistics
        .iter()
        .flat_map(|&statistic| table.rows.iter().map(move |row| (statistic, row)))
        .filter(|(statistic, row)| (0..row.samples.len()).any(|column| statistic.of(row, column).is_some()))
        .map(|(statistic, row)| {
            (statistic.name(row.metric.better), row.metric.name.as_str(), cells(statistic, row))
        })
        .collect();
    let label = lines.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
    // A total of nanoseconds is wider than mmtests' twelve columns; the whole table then is.
    let value =
        lines.iter().flat_map(|(_, _, cells)| cells).map(|cell| cell.value.len()).max().unwrap_or(0).max(12);
    let mut out = heads(&table.columns, 9 + label, value + 11);
    for (statistic, name, cells) in &lines {
        let _ = write!(out, "{statistic:<8} {name:<label$}");
        for cell in cells {
            let _ = write!(out, " {:>value$} {}", cell.value, cell.gain(style));
        }
        out.push('\n');
    }
    if !repeated {
        out.push_str(
            "(one run a column: no deviations and no confidence intervals; repeat the runs for those)\n",
        );
    }
    out
}

struct Cell {
    value: String,
    /// Percent; none where it cannot be said.
    gain: Option<f64>,
    differs: bool,
    is_baseline: bool,
}

impl Cell {
    /// Eleven columns: `( -12.34%)`, or with stars for brackets.
    fn gain(&self, style: Style) -> String {
        let Some(gain) = self.gain else { return format!("({:>8})", "n/a") };
        let (open, close) = if self.differs { ('*', '*') } else { ('(', ')') };
        let text = format!("{open}{gain:7.2}%{close}");
        match gain {
            _ if self.is_baseline || !self.differs => text,
            0.0.. => style.good(&text),
            _ => style.bad(&text),
        }
    }
}

fn cells(statistic: Statistic, row: &MetricRow) -> Vec<Cell> {
    let base = statistic.of(row, 0);
    let cell = |column: usize| {
        let value = statistic.of(row, column);
        let gain = match (base, value) {
            (Some(base), Some(value)) => statistic.better(row.metric.better).gain_percent(base, value),
            _ => None,
        };
        Cell {
            value: value.map_or_else(|| "-".into(), |value| format!("{value:.2}")),
            gain,
            differs: statistic == Statistic::Mean && row.differs(column),
            is_baseline: column == 0,
        }
    };
    (0..row.samples.len()).map(cell).collect()
}

/// The columns' names, right-aligned over their cells; one that is too long is broken into lines, the last lowest.
fn heads(columns: &[String], indent: usize, width: usize) -> String {
    let broken: Vec<Vec<String>> = columns.iter().map(|name| break_name(name, width)).collect();
    let height = broken.iter().map(Vec::len).max().unwrap_or(0);
    let mut out = String::new();
    for line in 0..height {
        let _ = write!(out, "{:indent$}", "");
        for name in &broken {
            let part = (line + name.len()).checked_sub(height).map_or("", |line| &name[line]);
            let _ = write!(out, " {part:>width$}");
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

fn break_name(name: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in name.split_inclusive(['/', ' ', '-', '_']) {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() || line.chars().count() + part.trim_end().chars().count() <= width {
            line.push_str(part);
        } else {
            lines.push(part.to_owned());
        }
    }
    lines.into_iter().map(|line| line.trim_end().chars().take(width).collect()).collect()
}
