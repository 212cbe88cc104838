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

pub use experiments::experiments;
pub use sure::sure;
pub use validated::{program, workloads};

/// Of a replay, or of several: a paragraph for each workload and machine, then what holds for all of them.
pub fn replay(style: Style, document: &Document) -> String {
    let scenes = scenes(&document.runs);
    let pairs: usize = scenes.iter().map(|scene| scene.groups.len().saturating_sub(1)).sum();
    let detail = if pairs > 1 { scene::Detail::First } else { scene::Detail::Several };
    let mut out = String::new();
    for (place, scene) in scenes.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &scenes[before]);
        out += &scene::text(style, scene, before, detail);
    }
    out += &remarks::text(style, &document.runs, &scenes);
    out += &remarks::published(style, &document.rows);
    out += &remarks::proofs(style, &document.proofs);
    out += &remarks::to_set(style, &scenes);
    out += &sure(style, &document.runs);
    if !out.is_empty() {
        out += &more(style, "all of it");
    }
    out
}

/// The last line: where the rest is.
fn more(style: Style, what: &str) -> String {
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
