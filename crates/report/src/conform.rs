//! The outcome of holding mm against captures and traces of stock kernels: a line per disagreement, a count at the end.

use std::fmt::Write as _;

use crate::style::Style;
use crate::units::plural;

/// What came of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Its name, as it was given.
    pub file: String,
    /// How many figures were compared.
    pub compared: u64,
    /// How many of them were equal.
    pub equal: u64,
    /// Those that were not.
    pub differences: Vec<Difference>,
    /// What a reader should know beside the count: drains by kswapd, pages refilled …
    pub notes: Vec<String>,
}

/// A figure in which the kernel and mm disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which figure: `node 0 zone Normal low`.
    pub what: String,
    /// The kernel's.
    pub kernel: String,
    /// Ours.
    pub freehold: String,
}

/// A line per file and per disagreement, then the count.
pub fn text(style: Style, files: &[File]) -> String {
    let mut out = String::new();
    for file in files {
        let verdict = format!("{} of {} equal", file.equal, file.compared);
        let verdict = if file.differences.is_empty() { style.good(&verdict) } else { style.bad(&verdict) };
        let _ = writeln!(out, "{}: {verdict}", file.file);
        for Difference { what, kernel, freehold } in &file.differences {
            let _ = writeln!(out, "  {what}: kernel {kernel}, freehold {freehold}");
        }
        for note in &file.notes {
            let _ = writeln!(out, "  {}", style.faint(note));
        }
    }
    let compared: u64 = files.iter().map(|file| file.compared).sum();
    let disagreements: usize = files.iter().map(|file| file.differences.len()).sum();
    let _ = writeln!(
        out,
        "{}, {} compared, {}",
        plural(files.len() as u64, "file"),
        plural(compared, "figure"),
        plural(disagreements as u64, "disagreement"),
    );
    out
}
