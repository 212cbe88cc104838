//! The short answer of `validate`: how many figures are near enough, and which are not.

use lab::measurements::{Agreement, Document, Row, Validated, ValidatedChange};
use lab::validate::{HOSTS_MEMORY, marks, target_of};

use super::{item, more, remarks};
use crate::bounds;
use crate::style::Style;
use crate::validate::line;
use crate::validate_program::{by, score, width};

/// Figures or changes that are named; the tables have all.
const NAMED: usize = 4;

/// Of the page-fault workloads.
pub fn workloads(style: Style, document: &Document) -> String {
    let mut out = String::new();
    for of in &document.experiments {
        out += &style.heading(&of.title);
        out.push('\n');
    }
    // Not a number is outside.
    let is_within = |row: &Row, limit: f64| row.error.abs() <= limit;
    let outside: Vec<String> = document
        .rows
        .iter()
        .filter(|row| target_of(&row.metric).is_some_and(|target| !is_within(row, target.limit)))
        .map(|row: &Row| format!("{} of {} ({})", row.metric, row.variant, crate::published::error(row)))
        .collect();
    for mark in marks(&document.rows) {
        out += &item(style, 2, "score:", line(&mark).trim_start_matches("score: "));
    }
    if !outside.is_empty() {
        let rest = outside.len().saturating_sub(NAMED);
        let more = if rest > 0 { format!("; {rest} more") } else { String::new() };
        out += &item(style, 2, "outside:", &(outside[..outside.len().min(NAMED)].join(", ") + &more));
    }
    if out.is_empty() { out } else { out + &more(style, "every figure beside the kernel's") }
}

/// Of a program under several settings.
pub fn program(style: Style, document: &Document) -> String {
    let mut out = String::new();
    for validated in &document.validated {
        out += &one(style, validated);
    }
    out += &bounds::text(style, &document.fail_if);
    out += &remarks::proofs(style, &document.proofs);
    if out.is_empty() { out } else { out + &more(style, "every figure, real beside predicted") }
}

fn one(style: Style, validated: &Validated) -> String {
    let Validated { workload, machine, policy, repeats, .. } = validated;
    let title =
        format!("{workload}: {repeats} real runs of each setting, predicted on {machine} under {policy}");
    let mut out = format!("{}\n", style.heading(&title));
    for setting in validated.settings.iter().skip(1) {
        let of = |agreement: Agreement| {
            let those = validated.changes.iter().filter(|change| change.setting == *setting);
            those.filter(|change| change.agreement == agreement).collect::<Vec<_>>()
        };
        let (right, wrong) = (of(Agreement::Right), of(Agreement::Wrong));
        if right.is_empty() && wrong.is_empty() {
            out += &item(
                style,
                2,
                &format!("{setting}:"),
                "nothing changed by more than 5 % and beyond its interval",
            );
        }
        for (label, changes) in [("as predicted", right), ("otherwise than predicted", wrong)] {
            if !changes.is_empty() {
                out += &item(style, 2, &format!("{setting}, {label}:"), &named(&changes));
            }
        }
    }
    out += &item(style, 0, "score:", &score(&validated.changes));
    // What a setting cannot do here is what the answer stands on; other sentences are of what no prediction has.
    for sentence in
        validated.left_out.iter().filter(|sentence| sentence.contains("predicted to change nothing"))
    {
        out += &item(style, 0, "no effect:", sentence);
    }
    for sentence in validated.left_out.iter().filter(|sentence| *sentence == HOSTS_MEMORY) {
        out += &item(style, 0, "note:", sentence);
    }
    out
}

/// `page faults -98.8 % ± 0.1 (predicted -98.9 %)`, and so on.
fn named(changes: &[&ValidatedChange]) -> String {
    let one = |change: &&ValidatedChange| {
        let half = width(change).map_or_else(String::new, |half| format!(" ±{half}"));
        let real = by(&change.unit, change.from, change.real);
        let predicted = by(&change.unit, change.predicted_from, change.predicted);
        format!("{} {real}{half} (predicted {predicted})", change.metric)
    };
    let said: Vec<String> = changes.iter().take(NAMED).map(one).collect();
    let rest = changes.len().saturating_sub(NAMED);
    if rest > 0 { format!("{}; {rest} more", said.join(", ")) } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guests_host_takes_is_said_beside_the_answer() {
        let said = |left_out: &[&str]| {
            let left_out = left_out.iter().map(|sentence| (*sentence).to_owned()).collect();
            one(Style::plain(), &Validated { left_out, ..Validated::default() })
        };
        assert!(said(&["Huge pages save TLB misses.", HOSTS_MEMORY]).contains("\nnote: This guest gives"));
        assert!(!said(&["Huge pages save TLB misses."]).contains("note:"));
    }
}
