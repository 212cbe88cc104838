//! A program that ran for real under several settings: what it used beside what was predicted, and whether changes went the way that
//! was predicted.

use std::fmt::Write as _;

use lab::measurements::{Agreement, Document, Validated, ValidatedChange, ValidatedRow};

use crate::bounds;
use crate::proof;
use crate::style::Style;
use crate::table::{Table, wrap};
use crate::units;

/// The whole account.
pub fn text(style: Style, document: &Document) -> String {
    let mut parts: Vec<String> = document.validated.iter().map(|validated| one(style, validated)).collect();
    parts.push(bounds::text(style, &document.fail_if));
    parts.push(proof::text(style, &document.proofs));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn one(style: Style, validated: &Validated) -> String {
    let Validated { workload, machine, policy, repeats, .. } = validated;
    let title = format!(
        "validated: {workload}, {} of each setting beside a replay on {machine} under {policy}",
        units::plural(*repeats, "real run")
    );
    let mut out = format!("{}\n{}", style.heading(&title), figures(validated).text(2, style.columns()));
    for setting in validated.settings.iter().skip(1) {
        let first = validated.settings.first().map_or("", String::as_str);
        let _ = writeln!(out, "\n{}", style.heading(&format!("from {first} to {setting}")));
        out.push_str(&changes(validated, setting).text(2, style.columns()));
    }
    let _ = writeln!(out, "\n{}", style.heading(&score(&validated.changes)));
    for sentence in &validated.left_out {
        for line in wrap(sentence, style.columns() - 2) {
            let _ = writeln!(out, "  {}", style.faint(&line));
        }
    }
    out
}

fn figures(validated: &Validated) -> Table {
    let mut table = Table::new(["<", "real", "±", "predicted", "error"]);
    for setting in &validated.settings {
        table.row([setting.clone()]);
        for row in validated.rows.iter().filter(|row| row.setting == *setting) {
            table.row(figure(row));
        }
    }
    table
}

fn figure(row: &ValidatedRow) -> [String; 5] {
    let said = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| amount(&row.unit, value));
    let error = row.error_percent().map_or_else(|| "-".to_owned(), |error| format!("{error:+.1} %"));
    [format!("  {}", row.metric), said(Some(row.real)), said(row.half), said(row.predicted), error]
}

fn changes(validated: &Validated, setting: &str) -> Table {
    let mut table = Table::new(["<", "real", "±", "predicted", "<direction"]);
    for change in validated.changes.iter().filter(|change| change.setting == setting) {
        let real = by(&change.unit, change.from, change.real);
        let half = width(change).unwrap_or_else(|| "-".to_owned());
        let predicted = by(&change.unit, change.predicted_from, change.predicted);
        table.row([change.metric.clone(), real, half, predicted, direction(change.agreement).to_owned()]);
    }
    table
}

/// A change by so many times what was before is said in amounts: percents would be in the thousands.
const TIMES: f64 = 10.0;

/// Whether a change is a part of what was before, in percent, and not another amount.
fn is_part(from: f64, change: f64) -> bool {
    from > 0.0 && change.abs() < TIMES * from
}

/// A change in percent of what it is from (`+12.3 %`), or from what to what (`0.4 to 14`).
pub(crate) fn by(unit: &str, from: f64, change: f64) -> String {
    if is_part(from, change) {
        format!("{:+.1} %", 100.0 * change / from)
    } else {
        format!("{} to {}", amount(unit, from), amount(unit, from + change))
    }
}

/// Half of the real change's interval, in what [`by`] says the change in.
pub(crate) fn width(change: &ValidatedChange) -> Option<String> {
    let half = change.half?;
    let said = if is_part(change.from, change.real) {
        format!("{:.1}", 100.0 * half / change.from)
    } else {
        amount(&change.unit, half)
    };
    Some(said)
}

pub(crate) const fn direction(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Right => "right",
        Agreement::Wrong => "wrong",
        Agreement::Small => "not asked: 5 % or less",
        Agreement::Uncertain => "not asked: no clear change",
    }
}

pub(crate) fn score(changes: &[ValidatedChange]) -> String {
    let count = |of: Agreement| changes.iter().filter(|change| change.agreement == of).count();
    let (right, wrong) = (count(Agreement::Right), count(Agreement::Wrong));
    format!("direction right in {right} of {} changes over 5 % and beyond their interval", right + wrong)
}

pub(crate) fn amount(unit: &str, value: f64) -> String {
    match unit {
        "ns" => units::duration(value),
        "pages" => units::memory(value.round() as u64),
        _ => units::count((10.0 * value).round() / 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        setting: &str,
        metric: &str,
        unit: &str,
        figures: (f64, Option<f64>, Option<f64>),
    ) -> ValidatedRow {
        let (real, half, predicted) = figures;
        ValidatedRow {
            setting: setting.into(),
            metric: metric.into(),
            unit: unit.into(),
            real,
            half,
            predicted,
        }
    }

    fn change(metric: &str, unit: &str, real: (f64, f64, f64), predicted: (f64, f64)) -> ValidatedChange {
        let mut change = ValidatedChange {
            setting: "enabled=always".into(),
            metric: metric.into(),
            unit: unit.into(),
            from: real.0,
            real: real.1,
            half: Some(real.2),
            predicted_from: predicted.0,
            predicted: predicted.1,
            agreement: Agreement::Small,
        };
        change.agreement = change.judge();
        change
    }

    #[test]
    fn a_change_of_tens_of_times_is_said_in_amounts() {
        let change = |from, real| ValidatedChange {
            unit: "count".to_owned(),
            from,
            real,
            half: Some(2.0),
            ..ValidatedChange::default()
        };
        let said = |from, real| (by("count", from, real), width(&change(from, real)).unwrap());
        assert_eq!(said(100.0, 20.0), ("+20.0 %".to_owned(), "2.0".to_owned()));
        assert_eq!(said(0.2, 13.8), ("0.2 to 14".to_owned(), "2".to_owned()));
        assert_eq!(said(0.0, 11.0), ("0 to 11".to_owned(), "2".to_owned()));
    }

    #[test]
    fn real_stands_beside_predicted() {
        let (never, always) = ("enabled=never", "enabled=always");
        let validated = Validated {
            workload: "sort big".into(),
            machine: "this".into(),
            policy: "linux-6.18".into(),
            settings: vec![never.into(), always.into()],
            repeats: 3,
            rows: vec![
                row(never, "page faults", "count", (76_800.0, Some(12.3), Some(77_000.0))),
                row(never, "huge faults", "count", (0.0, Some(0.0), Some(0.0))),
                row(always, "page faults", "count", (900.0, Some(2.0), Some(850.0))),
                row(always, "huge faults", "count", (150.0, Some(0.0), Some(149.0))),
                row(always, "peak RSS", "pages", (76_800.0, None, Some(76_900.0))),
                row(always, "CPU time", "ns", (2e8, Some(1e7), Some(1.5e8))),
                row(always, "numa_hit", "count", (8000.0, Some(10.0), None)),
            ],
            changes: vec![
                change("page faults", "count", (76_800.0, -75_900.0, 12.0), (77_000.0, -76_150.0)),
                change("huge faults", "count", (0.0, 150.0, 0.0), (0.0, 149.0)),
                change("CPU time", "ns", (3e8, -1e8, 1e7), (1e8, 5e7)),
                change("run time", "ns", (3e8, -1e8, 2e8), (1e8, 5e7)),
                change("peak RSS", "pages", (76_800.0, 10.0, 2.0), (76_800.0, 100.0)),
            ],
            left_out: vec!["Huge pages save TLB misses.".into()],
        };
        let document = Document { validated: vec![validated], ..Document::default() };
        insta::assert_snapshot!(text(Style::plain(), &document), @r"
        validated: sort big, 3 real runs of each setting beside a replay on this under linux-6.18
                               real         ±  predicted    error
          enabled=never
            page faults       76800      12.3      77000   +0.3 %
            huge faults           0         0          0        -
          enabled=always
            page faults         900         2        850   -5.6 %
            huge faults         150         0        149   -0.7 %
            peak RSS      300.0 MiB         -  300.4 MiB   +0.1 %
            CPU time       200.0 ms  10.00 ms   150.0 ms  -25.0 %
            numa_hit           8000        10          -        -

        from enabled=never to enabled=always
                           real     ±  predicted  direction
          page faults   -98.8 %   0.0    -98.9 %  right
          huge faults  0 to 150     0   0 to 149  right
          CPU time      -33.3 %   3.3    +50.0 %  wrong
          run time      -33.3 %  66.7    +50.0 %  not asked: no clear change
          peak RSS       +0.0 %   0.0     +0.1 %  not asked: 5 % or less

        direction right in 2 of 3 changes over 5 % and beyond their interval
          Huge pages save TLB misses.
        ");
    }
}
