//! The short answer, which commands print where nobody asks for `--full`: what changes and by how much, what gets worse, how sure
//! that is and why, what to write on the machine. About ten lines; what a reader must know to trust them is never left out.

mod experiments;
mod remarks;
mod scene;
mod sure;
mod validated;

use std::fmt::Write as _;

use lab::measurements::{Document, scenes};

use crate::style::Style;
use crate::table::wrap;
use crate::{bounds, findings, interval};

pub use experiments::experiments;
pub use sure::sure;
pub use validated::{program, workloads};

/// A first screen has fewer words than this, so that it is read whole. Findings take what the rest leaves.
const WORDS: usize = 150;

/// Of a replay, or of several: a paragraph for each workload and machine, then what holds for all of them.
pub fn replay(style: Style, document: &Document) -> String {
    let scenes = scenes(&document.runs);
    let pairs: usize = scenes.iter().map(|scene| scene.groups.len().saturating_sub(1)).sum();
    let detail = if pairs > 1 { scene::Detail::First } else { scene::Detail::Several };
    let mut changes = String::new();
    for (place, scene) in scenes.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &scenes[before]);
        changes += &scene::text(style, scene, before, detail);
    }
    let mut rest = remarks::text(style, &document.runs, &scenes);
    rest += &remarks::published(style, &document.rows);
    rest += &remarks::proofs(style, &document.proofs);
    rest += &remarks::to_set(style, &scenes);
    rest += &bounds::text(style, &document.fail_if);
    rest += &sure(style, &document.runs);
    if changes.is_empty() && rest.is_empty() {
        return rest;
    }
    let full = more(style, "all of it");
    rest += &full;
    let room = WORDS.saturating_sub(words(&[&changes, &rest]) + COUNT_OF_OTHERS);
    let found = findings::short(style, &document.findings, &scenes, room);
    // What to try comes before what it rests on, which --full says in any case.
    let model = interval::of_changes().filter(|_| pairs > 0).map(|model| item(style, 0, "times:", &model));
    let model = model.filter(|model| words(&[&changes, model, &found, &rest]) < WORDS).unwrap_or_default();
    let apply = remarks::apply(&scenes).map(|setting| applied(style, &setting));
    let apply = apply.filter(|apply| words(&[&changes, &model, &found, &rest, apply]) < WORDS);
    let rest = match (apply, rest.strip_suffix(&full)) {
        (Some(apply), Some(rest)) => format!("{rest}{apply}{full}"),
        _ => rest,
    };
    changes + &model + &found + &rest
}

/// The line that names the command which writes a setting and undoes it.
fn applied(style: Style, setting: &str) -> String {
    format!("{}\n", style.faint(&format!("freehold apply --set {setting} writes it, --revert undoes it")))
}

fn words(texts: &[&str]) -> usize {
    texts.iter().map(|text| text.split_whitespace().count()).sum()
}

/// The words of the line that counts the findings for which there was no room, and one to stay below the limit.
const COUNT_OF_OTHERS: usize = 5;

/// The last line: where the rest is.
pub(crate) fn more(style: Style, what: &str) -> String {
    format!("{}\n", style.faint(&format!("--full shows {what}")))
}

/// `label text`, the label set as a heading, wrapped with what follows four spaces in; `indent` spaces before all of it.
fn item(style: Style, indent: usize, label: &str, text: &str) -> String {
    let whole = format!("{label} {text}");
    let mut out = String::new();
    for (number, line) in wrap(&whole, style.columns() - indent - 2).iter().enumerate() {
        let inset = if number == 0 { indent } else { indent + 2 };
        let _ = writeln!(out, "{:inset$}{line}", "");
    }
    out.replacen(label, &style.heading(label), 1)
}
