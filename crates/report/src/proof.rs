//! What the recorded kernel counted beside what the replay of the same, as it was recorded, counts.

use std::fmt::Write as _;

use lab::measurements::{Proof, ProofRow};

use crate::style::Style;
use crate::table::{Table, wrap};
use crate::units;

/// A table for each proof, with what could not be compared below it. Empty where there is none.
pub fn text(style: Style, proofs: &[Proof]) -> String {
    let mut out = String::new();
    for proof in proofs {
        let title =
            format!("as recorded: {} replayed on {} under {}", proof.workload, proof.machine, proof.policy);
        let _ = writeln!(out, "{}", style.heading(&title));
        out.push_str(&table(proof).text(2, style.columns()));
        for missing in &proof.missing {
            for line in wrap(&format!("not compared: {missing}"), style.columns() - 2) {
                let _ = writeln!(out, "  {}", style.faint(&line));
            }
        }
    }
    out
}

fn table(proof: &Proof) -> Table {
    let mut table = Table::new(["<", "recorded", "replayed", "error"]);
    for row in &proof.rows {
        let error = row.error_percent().map_or_else(|| "-".to_owned(), |error| format!("{error:+.1} %"));
        table.row([row.what.clone(), amount(row, row.recorded), amount(row, row.replayed), error]);
    }
    table
}

pub(crate) fn amount(row: &ProofRow, value: f64) -> String {
    match row.unit.as_str() {
        "ns" => units::duration(value),
        "pages" => units::memory(value.round() as u64),
        _ => units::count(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_printed_and_what_is_missing_is_said() {
        let row = |what: &str, unit: &str, recorded, replayed| ProofRow {
            what: what.into(),
            unit: unit.into(),
            recorded,
            replayed,
        };
        let proof = Proof {
            workload: "redis".into(),
            machine: "kvm-genoa-2c".into(),
            policy: "linux-6.18".into(),
            rows: vec![
                row("page faults", "count", 1000.0, 1005.0),
                row("peak RSS", "pages", 2560.0, 2500.0),
                row("run time", "ns", 0.0, 2e9),
            ],
            missing: vec!["the recording has no page events".into()],
        };
        insta::assert_snapshot!(text(Style::plain(), &[proof]), @r"
        as recorded: redis replayed on kvm-genoa-2c under linux-6.18
                        recorded   replayed   error
          page faults       1000       1005  +0.5 %
          peak RSS     10.00 MiB  9.766 MiB  -2.3 %
          run time          0 ns    2.000 s       -
          not compared: the recording has no page events
        ");
    }
}
