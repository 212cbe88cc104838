//! What a reader must know of all runs together: notes, what was not as recorded, knobs that did nothing, published figures, the
//! proof, and what to write on the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use lab::measurements::{Group, KnobOutcome, KnobUses, Proof, ProofRow, Row, Run, Scene};

use super::item;
use crate::heading::omissions;
use crate::knob_uses;
use crate::published::error;
use crate::style::Style;
use crate::to_set;

/// Commands that are printed; the tables have all.
const COMMANDS: usize = 6;
/// Rows of the proof that are named.
const NAMED: usize = 3;

/// Notes of the runs, what could not be carried out, and knobs that changed nothing; each once.
pub(super) fn text(style: Style, runs: &[Run], scenes: &[Scene<'_>]) -> String {
    let mut out = String::new();
    for note in notes(runs) {
        out += &item(style, 0, "note:", note);
    }
    for (of, phrases) in not_as_recorded(scenes) {
        out += &item(style, 0, "not as recorded:", &format!("{of}{}", phrases.join(", ")));
    }
    for line in idle_knobs(scenes) {
        out += &item(style, 0, "no effect:", &line);
    }
    out
}

/// The notes of the runs, each once. Of runs that differ in their seeds one stands for all whose notes differ in figures alone.
fn notes(runs: &[Run]) -> Vec<&str> {
    let mut said: Vec<&str> = vec![];
    let mut said_by: BTreeSet<([&str; 4], String)> = BTreeSet::new();
    for run in runs {
        let of = [&run.workload, &run.machine, &run.policy, &run.variant].map(String::as_str);
        for note in &run.notes {
            let is_new = said_by.insert((of, note.replace(|letter: char| letter.is_ascii_digit(), "")));
            // What no mainline kernel has is said where there would be something to write.
            if is_new && !said.contains(&note.as_str()) && !to_set::says(note) {
                said.push(note);
            }
        }
    }
    said
}

/// What each variant could not carry out, and which it is; once and without a name where all have the same.
fn not_as_recorded(scenes: &[Scene<'_>]) -> Vec<(String, Vec<String>)> {
    let named = |scene: &Scene<'_>| {
        let several = scenes.len() > 1;
        let machine = scene.machine.to_owned();
        let of = |group: &Group<'_>| {
            let name = if several {
                format!("{} on {machine}: ", group.label)
            } else {
                format!("{}: ", group.label)
            };
            (name, omissions(group))
        };
        scene.groups.iter().map(of).collect::<Vec<_>>()
    };
    let all: Vec<(String, Vec<String>)> = scenes.iter().flat_map(named).collect();
    let are_alike = all.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let told = all.into_iter().filter(|(_, phrases)| !phrases.is_empty());
    if are_alike {
        told.take(1).map(|(_, phrases)| (String::new(), phrases)).collect()
    } else {
        told.collect()
    }
}

/// Knobs that acted in no variant, though somebody set them; each once, by its first machine.
fn idle_knobs(scenes: &[Scene<'_>]) -> Vec<String> {
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for scene in scenes {
        let mut all: BTreeMap<String, KnobUses> = BTreeMap::new();
        for (knob, used) in scene.groups.iter().flat_map(knob_uses::of_group) {
            all.entry(knob).and_modify(|sum| sum.add(&used)).or_insert(used);
        }
        for (knob, used) in all.into_iter().filter(|(_, used)| used.outcome != KnobOutcome::Acted) {
            let line = format!("{knob}: {}", used.sentence());
            lines.entry(knob).or_insert(line);
        }
    }
    lines.into_values().collect()
}

/// How far simulated figures are from published ones, in a line for each experiment.
pub(super) fn published(style: Style, rows: &[Row]) -> String {
    let mut out = String::new();
    for (experiment, rows) in crate::published::experiments(rows) {
        let rows: Vec<&&Row> = rows.iter().filter(|row| row.published.is_finite()).collect();
        let said: Vec<String> = rows.iter().map(|row| error(row)).collect();
        if let Some(first) = rows.first() {
            let text = format!("{experiment}, {}: {}", first.metric, said.join(", "));
            out += &item(style, 0, "off from published:", &text);
        }
    }
    out
}

/// Whether the replay of each recording, as it was recorded, came near to what its kernel counted: figures that did not are named.
pub(super) fn proofs(style: Style, proofs: &[Proof]) -> String {
    let mut out = String::new();
    for proof in proofs.iter().filter(|proof| !proof.rows.is_empty()) {
        let band = ProofRow::BAND_PERCENT;
        let mut outside: Vec<(&str, f64)> = proof
            .rows
            .iter()
            .filter(|row| !row.is_within_band())
            .map(|row| (row.what.as_str(), row.error_percent().unwrap_or(f64::NAN)))
            .collect();
        outside.sort_by(|one, other| other.1.abs().total_cmp(&one.1.abs()));
        let within = proof.rows.len() - outside.len();
        let mut text = format!("{within} of {} figures within {band} % of the kernel's", proof.rows.len());
        let named: Vec<String> =
            outside.iter().take(NAMED).map(|(what, error)| format!("{what} {error:+.1} %")).collect();
        if !named.is_empty() {
            let more = outside.len().saturating_sub(NAMED);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = write!(text, "; not {}{rest}", named.join(", "));
        }
        let label =
            if proofs.len() > 1 { format!("{} as recorded:", proof.workload) } else { "as recorded:".into() };
        out += &item(style, 0, &label, &text);
    }
    out
}

/// What to write to have what the variants after the first had, but for those that nothing came of.
pub(super) fn to_set(style: Style, scenes: &[Scene<'_>]) -> String {
    let mut lines: Vec<String> = vec![];
    for line in asked(scenes).filter(Asked::is_of_use).flat_map(|asked| to_set::lines(asked.group.first())) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    commands(style, &lines)
}

/// A variant that is asked about, and what it is compared with.
struct Asked<'a> {
    base: Option<&'a Group<'a>>,
    group: &'a Group<'a>,
}

/// The variants that are asked about: those after the first, or the only one.
fn asked<'a>(scenes: &'a [Scene<'a>]) -> impl Iterator<Item = Asked<'a>> {
    scenes.iter().flat_map(|scene| {
        let base = scene.groups.first().filter(|_| scene.groups.len() > 1);
        let after = scene.groups.iter().skip(usize::from(base.is_some()));
        after.map(move |group| Asked { base, group })
    })
}

impl Asked<'_> {
    /// Whether anything came of the variant: it differs from the first, and a knob of it did something, or is at its default, or what
    /// they did was not counted.
    fn is_of_use(&self) -> bool {
        if self.base.is_some_and(|base| super::scene::is_same(base, self.group)) {
            return false;
        }
        let uses = knob_uses::of_group(self.group);
        let is_idle =
            |used: &KnobUses| matches!(used.outcome, KnobOutcome::Consulted | KnobOutcome::RefusedButForced);
        uses.is_empty() || !uses.values().all(is_idle)
    }
}

/// `KNOB=VALUE`, of the knobs that a verdict's commands write, where all of them are one variant's and can be written.
pub(super) fn apply(scenes: &[Scene<'_>]) -> Option<String> {
    let mut variants = asked(scenes);
    let first = variants.next().filter(Asked::is_of_use)?.group.first();
    let lines = to_set::lines(first);
    let can_be_written =
        !lines.is_empty() && lines.iter().all(|line| !line.starts_with('#') && !line.contains('$'));
    let is_only = variants.all(|asked| asked.group.first().knobs == first.knobs);
    let setting = first.knobs.iter().map(|(knob, value)| format!("{knob}={value}"));
    (can_be_written && is_only).then(|| setting.collect::<Vec<_>>().join(" --set "))
}

fn commands(style: Style, lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        [only] => item(style, 0, "to set:", only),
        several => {
            let mut out = format!("{}\n", style.heading("to set, as root:"));
            for line in several.iter().take(COMMANDS) {
                let _ = writeln!(out, "  {line}");
            }
            if several.len() > COMMANDS {
                let _ = writeln!(out, "  and {} more: --full shows them", several.len() - COMMANDS);
            }
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_say_a_note_once_and_variants_each() {
        let run = |variant: &str, notes: &[&str]| Run {
            variant: variant.into(),
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            ..Run::default()
        };
        let runs = [
            run("never", &["walks take 35.2 %", "the same everywhere"]),
            run("never", &["walks take 35.4 %", "the same everywhere", "killed after 2 s"]),
            run("always", &["walks take 3.1 %", "the same everywhere"]),
        ];
        let wanted = ["walks take 35.2 %", "the same everywhere", "killed after 2 s", "walks take 3.1 %"];
        assert_eq!(notes(&runs), wanted);
    }
}
