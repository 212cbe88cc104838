//! Real programs under several settings beside their predictions, in Markdown (`make programs`).

use std::fmt::Write as _;

use lab::measurements::{Agreement, Document, Sample, Validated, ValidatedRow};

use crate::proof;
use crate::units;
use crate::validate_program::{amount, by, direction, width};

/// A document of `freehold validate --set … -- CMD`.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What the program is called.
    pub program: String,
    /// What it made.
    pub document: Document,
}

/// Figures that a prediction is held to, and what is said of their rows.
const HELD: [&str; 3] = ["page faults", "huge faults", "peak RSS"];
/// Figures whose direction is asked for.
const TIMES: [&str; 2] = ["CPU time", "run time"];
/// The counter of what khugepaged made huge.
const COLLAPSED: &str = "thp_collapse_alloc";
/// Below this, what others on the machine do is seen in a counter of the whole machine, and an error says little.
const FEW: f64 = 10.0;
/// What an error may be, in percent.
const BAND: f64 = 10.0;

/// The page. The same documents give the same page.
pub fn markdown(all: &[Ran]) -> String {
    let mut out = HEAD.to_owned();
    out += &score(all);
    out += &settings(all);
    out += &changes(all);
    out += &as_recorded(all);
    out
}

fn validated(all: &[Ran]) -> impl Iterator<Item = (&str, &Validated)> {
    all.iter()
        .flat_map(|ran| ran.document.validated.iter().map(|validated| (ran.program.as_str(), validated)))
}

/// How far predictions were off for settings under which nothing was recorded.
fn score(all: &[Ran]) -> String {
    let mut out = format!(
        "## How far off\nOf all settings but the first of each command, under which it was recorded; figures of {FEW} or more.\n\n\
         | figure | within {BAND} % | median error | worst |\n|---|---|---|---|\n"
    );
    for metric in HELD.into_iter().chain(TIMES) {
        let errors: Vec<f64> = validated(all)
            .flat_map(|(_, validated)| {
                validated.rows.iter().filter(|row| Some(&row.setting) != validated.settings.first())
            })
            .filter(|row| row.metric == metric && row.real >= FEW)
            .filter_map(ValidatedRow::error_percent)
            .map(f64::abs)
            .collect();
        let within = errors.iter().filter(|error| **error <= BAND).count();
        let worst = errors.iter().copied().fold(0.0, f64::max);
        let count = errors.len();
        let middle = Sample::new(errors).median().unwrap_or(0.0);
        let _ = writeln!(out, "| {metric} | {within} of {count} | {middle:.1} % | {worst:.1} % |");
    }
    out.push('\n');
    for metric in HELD.iter().chain(&TIMES) {
        let of = |asked: Agreement| {
            let changes = validated(all).flat_map(|(_, validated)| &validated.changes);
            changes.filter(|change| change.metric == *metric && change.agreement == asked).count()
        };
        let (right, wrong) = (of(Agreement::Right), of(Agreement::Wrong));
        let _ = writeln!(
            out,
            "- Direction of {metric}: right in {right} of {} changes that are over 5 % and beyond their interval; {} not asked.",
            right + wrong,
            of(Agreement::Small) + of(Agreement::Uncertain)
        );
    }
    out.push('\n');
    out
}

fn settings(all: &[Ran]) -> String {
    let mut out = "## Under each setting\n| program | setting | figure | real | ± | predicted | error |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (program, validated) in validated(all) {
        let is_shown = |row: &&ValidatedRow| {
            HELD.contains(&&*row.metric) || TIMES.contains(&&*row.metric) || row.metric == COLLAPSED
        };
        for row in validated.rows.iter().filter(is_shown) {
            let said =
                |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| amount(&row.unit, value));
            let error = row.error_percent().map_or_else(|| "–".to_owned(), |error| format!("{error:+.1} %"));
            let _ = writeln!(
                out,
                "| {program} | {} | {} | {} | {} | {} | {error} |",
                short(&row.setting),
                row.metric,
                said(Some(row.real)),
                said(row.half),
                said(row.predicted),
            );
        }
    }
    out + "\n"
}

/// A setting without what all knobs of huge pages begin with.
fn short(setting: &str) -> String {
    setting.replace("transparent_hugepage.", "")
}

fn changes(all: &[Ran]) -> String {
    let mut out =
        "## What changes\n| program | to | figure | real | ± | predicted | direction |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (program, validated) in validated(all) {
        for change in &validated.changes {
            let half = width(change).unwrap_or_else(|| "–".to_owned());
            let _ = writeln!(
                out,
                "| {program} | {} | {} | {} | {half} | {} | {} |",
                short(&change.setting),
                change.metric,
                by(&change.unit, change.from, change.real),
                by(&change.unit, change.predicted_from, change.predicted),
                direction(change.agreement)
            );
        }
    }
    out + "\n"
}

fn as_recorded(all: &[Ran]) -> String {
    let mut out =
        "## As recorded\n| program | figure | recorded | replayed | error |\n|---|---|---|---|---|\n"
            .to_owned();
    for ran in all {
        for row in ran.document.proofs.iter().flat_map(|proof| &proof.rows) {
            let error = row.error_percent().map_or_else(|| "–".to_owned(), |error| format!("{error:+.1} %"));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {error} |",
                ran.program,
                row.what,
                proof::amount(row, row.recorded),
                proof::amount(row, row.replayed)
            );
        }
    }
    let runs: u64 =
        validated(all).map(|(_, validated)| validated.settings.len() as u64 * validated.repeats).sum();
    let _ = writeln!(
        out,
        "\n{} of {} behind these tables.",
        units::plural(runs, "real run"),
        units::plural(validated(all).count() as u64, "command")
    );
    out
}

const HEAD: &str = "\
# Six real programs, real and predicted

`make programs` writes this page (as root, on the machine that it is to speak of; `scripts/programs` says what each program does).
Each is run for real under every setting, in the order A B C C B A, recorded once under the first without huge pages, and every
setting is predicted from that one recording, on what `machines probe` measured of the machine unless `MACHINE` names another. ± is half of a 95 % interval of the real mean. Huge faults and `thp_collapse_alloc` are
counted by the kernel for the whole machine, so other programs are in them; peak RSS is that of the largest process. Run time predicted
leaves out waiting for a CPU that others had. Rules of the replay (what a race of two faults is, which pages of files were there before) were
mended with programs like these in view; no number of the page was chosen on them.

";

#[cfg(test)]
mod tests {
    use super::*;
    use lab::measurements::{Proof, ProofRow, ValidatedChange};

    fn row(setting: &str, metric: &str, real: f64, predicted: f64) -> ValidatedRow {
        ValidatedRow {
            setting: setting.into(),
            metric: metric.into(),
            unit: "count".into(),
            real,
            half: Some(1.0),
            predicted: Some(predicted),
        }
    }

    fn ran() -> Ran {
        let (never, always) = ("transparent_hugepage.enabled=never", "transparent_hugepage.enabled=always");
        let validated = Validated {
            settings: vec![never.into(), always.into()],
            repeats: 2,
            rows: vec![
                row(never, "page faults", 1000.0, 500.0),
                row(always, "page faults", 100.0, 95.0),
                row(always, "huge faults", 2.0, 9.0),
                row(always, "peak RSS", 100.0, 120.0),
                row(always, "numa_hit", 100.0, 120.0),
            ],
            changes: vec![ValidatedChange {
                setting: always.into(),
                metric: "page faults".into(),
                unit: "count".into(),
                from: 1000.0,
                real: -900.0,
                half: Some(10.0),
                predicted_from: 500.0,
                predicted: -405.0,
                agreement: Agreement::Right,
            }],
            ..Validated::default()
        };
        let rows = vec![ProofRow {
            what: "page faults".into(),
            unit: "count".into(),
            recorded: 10.0,
            replayed: 9.0,
        }];
        let proofs = vec![Proof { rows, ..Proof::default() }];
        Ran {
            program: "sort".into(),
            document: Document { validated: vec![validated], proofs, ..Document::default() },
        }
    }

    #[test]
    fn errors_are_of_settings_that_were_not_recorded() {
        let page = markdown(&[ran()]);
        for line in [
            "| page faults | 1 of 1 | 5.0 % | 5.0 % |",
            "| huge faults | 0 of 0 | 0.0 % | 0.0 % |",
            "| peak RSS | 0 of 1 | 20.0 % | 20.0 % |",
            "- Direction of page faults: right in 1 of 1 changes that are over 5 % and beyond their interval; 0 not asked.",
            "| sort | enabled=always | page faults | 100 | 1 | 95 | -5.0 % |",
            "| sort | enabled=always | page faults | -90.0 % | 1.0 | -81.0 % | right |",
            "| sort | page faults | 10 | 9 | -10.0 % |",
            "4 real runs of 1 command behind these tables.",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        assert!(!page.contains("numa_hit"));
    }
}
