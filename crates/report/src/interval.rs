//! What the model leaves open of a time, whatever the seeds say: the 80 % interval of each figure, which changes survive theirs, and
//! what all of these rest on. How wide they are is evidence's: docs/costs.md.

use std::fmt::Write as _;

use lab::evidence::{PERCENT, Table, TimeKind};
use lab::measurements::{Change, Document, IntervalKind, Row, Run};

use crate::style::Style;
use crate::table::wrap;
use crate::units::figure;

/// What the model's interval says of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Model {
    /// It is no time: a count follows from the kernel's rules.
    Counted,
    /// The interval excludes that nothing changed.
    Tells,
    /// It holds no change.
    Open,
    /// There is none, of a maximum.
    Silent,
}

impl Model {
    /// What is known of `change`.
    pub(crate) fn of(change: &Change) -> Self {
        let (before, after) = change.means();
        Self::between(&change.figure.name, change.figure.unit, before, after)
    }

    /// The same of a figure `name`, in `unit`, before and after.
    pub(crate) fn between(name: &str, unit: &str, before: f64, after: f64) -> Self {
        match (TimeKind::of(name, unit), Table::bundled_changes()) {
            (None, _) => Self::Counted,
            (Some(TimeKind::Max), _) | (_, None) => Self::Silent,
            (Some(_), Some(interval)) if interval.tells(after / before) => Self::Tells,
            (Some(_), Some(_)) => Self::Open,
        }
    }

    /// Whether a verdict may say that something got better or worse.
    pub(crate) const fn survives(self) -> bool {
        matches!(self, Self::Counted | Self::Tells)
    }
}

/// `1.2 to 9.4 times`, of a change that its interval tells: between which factors the real one lies.
pub(crate) fn range(change: &Change) -> Option<String> {
    let (before, after) = change.means();
    (Model::of(change) == Model::Tells).then(|| ends(before, after)).flatten()
}

/// What the model leaves open of a figure that goes from one mean to another, to stand behind them: between which factors the real change
/// lies, or that its interval cannot tell it from none. Empty of what is no time, and of maxima.
pub(crate) fn beside(name: &str, unit: &str, [before, after]: [f64; 2]) -> String {
    let said = match Model::between(name, unit, before, after) {
        Model::Tells => ends(before, after).map(|ends| format!("really {ends}, with {PERCENT} %")),
        Model::Open => Table::bundled_changes()
            .map(|of| format!("the model cannot tell less than {:.1} times from none", of.least_told())),
        Model::Counted | Model::Silent => None,
    };
    said.map_or_else(String::new, |said| format!(" ({said})"))
}

/// Between which factors the real change lies, however it is directed.
fn ends(before: f64, after: f64) -> Option<String> {
    let interval = Table::bundled_changes().filter(|_| before > 0.0 && after > 0.0)?;
    let (low, high) = interval.around((after / before).max(before / after));
    Some(format!("{} to {} times", factor(low), factor(high)))
}

/// A factor, with as many digits as it is known to.
fn factor(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// `80.9 to 126 µs`: where the machine itself has the time `name`; a dash where that is not known.
pub(crate) fn of_figure(name: &str, unit: &str, value: f64) -> String {
    let interval = Table::bundled().interval(name, unit, value);
    let ends = interval.and_then(|interval| interval.low.zip(interval.high)).filter(|_| value > 0.0);
    ends.map_or_else(
        || "-".to_owned(),
        |(low, high)| format!("{} to {}", figure(unit, low), figure(unit, high)),
    )
}

/// The verdict's words about `count` changes, of times that the model's interval cannot tell from none.
pub(crate) fn of_open(count: usize) -> String {
    let changes = if count == 1 { "1 change".to_owned() } else { format!("{count} changes") };
    Table::bundled_changes()
        .map_or(changes.clone(), |of| format!("{changes} below {:.1} times", of.least_told()))
}

/// The verdict's words about changes: which of them the model tells apart.
pub(crate) fn of_changes() -> Option<String> {
    let of = Table::bundled_changes()?;
    Some(format!(
        "told apart from {:.1} times on (the model's {PERCENT} % interval; {} changes, {} machines)",
        of.least_told(),
        of.rows,
        of.machines
    ))
}

/// The verdict's words about a variant alone: how wide the intervals of `run`'s times are.
pub(crate) fn of_levels(run: &Run) -> Option<String> {
    let table = Table::bundled();
    let kinds = [TimeKind::Hold, TimeKind::Wait, TimeKind::Rate, TimeKind::Mean, TimeKind::Program];
    let used = kinds.into_iter().filter(|kind| run.intervals.values().any(|of| of.kind == kind.name()));
    let widest = used.filter_map(|kind| table.factor(kind).ok()).reduce(f64::max)?;
    let all = table.kind(TimeKind::Mean)?;
    Some(format!(
        "within {widest:.2} times either way (the model's {PERCENT} % interval; {} left-out rows, {} machines; none of p99, max)",
        all.rows, all.machines
    ))
}

/// A line for each kind that a document tells of: how wide, from what, or why there is none. Empty where it has none.
pub fn text(style: Style, document: &Document) -> String {
    let lines = lines(document);
    if lines.is_empty() {
        return String::new();
    }
    let heading = format!("{PERCENT} % intervals of the model: where the machine itself has a time");
    let mut out = style.heading(&heading) + "\n";
    for line in lines {
        let wrapped = wrap(&line, style.columns() - 4).join("\n    ");
        let _ = writeln!(out, "  {wrapped}");
    }
    let seeds = "± beside a mean is the seeds' 95 % interval: how well the simulated mean is known.";
    out + &wrap(seeds, style.columns() - 2).iter().fold(String::new(), |out, line| out + "  " + line + "\n")
}

/// The same, a line each.
pub(crate) fn lines(document: &Document) -> Vec<String> {
    document.intervals.iter().map(line).collect()
}

fn line(of: &IntervalKind) -> String {
    let IntervalKind { of: what, rows, machines, .. } = of;
    match of.factor {
        None => format!("{what}: none; {}", of.none),
        Some(factor) if of.kind == TimeKind::Change.name() => {
            let inside = 100.0 * of.inside;
            format!(
                "{what}: {factor:.2} times the root of the change either way ({rows} published changes of {machines} machines, {inside:.0} % inside)"
            )
        }
        Some(factor) => {
            let inside = 100.0 * of.inside;
            format!(
                "{what}: {factor:.2} times either way ({rows} rows of {machines} left-out machines, {inside:.0} % inside)"
            )
        }
    }
}

/// How many published times that were not fitted lie in their intervals, by kind: `hold 2 of 3, change 50 of 62`. `None` without any.
pub(crate) fn coverage(rows: &[&Row]) -> Option<String> {
    let mut kinds: Vec<(&str, usize, usize)> = vec![];
    for row in rows {
        let (Some(interval), Some(inside)) = (&row.interval, row.inside) else { continue };
        let known = kinds.iter().position(|(kind, ..)| *kind == interval.kind);
        let at = known.unwrap_or_else(|| {
            kinds.push((&interval.kind, 0, 0));
            kinds.len() - 1
        });
        kinds[at].1 += usize::from(inside);
        kinds[at].2 += 1;
    }
    let named: Vec<String> =
        kinds.iter().map(|(kind, inside, all)| format!("{kind} {inside} of {all}")).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// The same of all experiments together, with what is wanted.
pub(crate) fn coverage_line(rows: &[Row]) -> Option<String> {
    let said = coverage(&rows.iter().collect::<Vec<_>>())?;
    Some(format!(
        "published times inside of the model's {PERCENT} % intervals, fitted rows apart (75 to 90 % are wanted): {said}"
    ))
}
