//! Every tunable: `freehold knobs`.

use std::fmt::Write as _;

use mm::knobs::{KNOBS, KnobSpec, StandsFor};

use crate::nearest::unknown;
use crate::style::Style;
use crate::table::{Table, wrap};

/// The table of all knobs.
pub fn list(style: Style) -> String {
    let mut table = Table::new(["<knob", "<range", "default", "<meaning"]);
    for spec in &KNOBS {
        let unit = if spec.unit.is_empty() { String::new() } else { format!(" [{}]", spec.unit) };
        let meaning = format!("{}{unit}", spec.meaning);
        table.row([spec.name.to_owned(), range(spec), spec.default.to_string(), meaning]);
    }
    table.text(0, style.columns())
}

/// All that is known of the knob called `name`.
///
/// # Errors
/// There is no such knob: one line, with the nearest name.
pub fn show(style: Style, name: &str) -> Result<String, String> {
    let Some(spec) = KNOBS.iter().find(|spec| spec.name == name) else {
        return Err(unknown("knob", name, KNOBS.iter().map(|spec| spec.name), "freehold knobs"));
    };
    let mut out = format!("{}\n", style.heading(spec.name));
    for line in wrap(spec.meaning, style.columns() - 2) {
        let _ = writeln!(out, "  {line}");
    }
    let unit = if spec.unit.is_empty() { String::new() } else { format!(" {}", spec.unit) };
    let _ = writeln!(out, "  range    {}{unit}", range(spec));
    let _ = writeln!(out, "  default  {}{unit}", spec.default);
    let _ = writeln!(out, "  Linux    {}", spec.stands_for);
    if let StandsFor::Sysctl(path) | StandsFor::Sysfs(path) = spec.stands_for {
        let _ = writeln!(out, "  to set   echo VALUE > {path}");
    }
    Ok(out)
}

fn range(spec: &KnobSpec) -> String {
    const LARGEST: u64 = i32::MAX as u64;
    match spec.max {
        // The kernel's way of saying that there is no bound.
        LARGEST.. => format!("{} and up", spec.min),
        max => format!("{} to {max}", spec.min),
    }
}
