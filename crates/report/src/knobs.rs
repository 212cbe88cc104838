//! Every tunable: `freehold knobs`.

use std::fmt::Write as _;

use host::KnobFile;
use mm::Policy;
use mm::knobs::{KNOBS, Knob, KnobSpec};

use crate::nearest::no_knob;
use crate::style::Style;
use crate::table::{Table, wrap};
use crate::to_set::CGROUP;

/// In the table a range takes this many letters at most.
const LONGEST_RANGE: usize = 22;

/// The table of all knobs.
pub fn list(style: Style) -> String {
    let mut table = Table::new(["<knob", "<range", "default", "<meaning"]);
    let policy = Policy::default();
    for spec in &KNOBS {
        let unit = if spec.unit.is_empty() { String::new() } else { format!(" [{}]", spec.unit) };
        let meaning = format!("{}{unit}", spec.meaning);
        // Words of many letters would leave no room for the meaning, which has them all.
        let range = Some(range(spec)).filter(|range| range.len() <= LONGEST_RANGE);
        let range = range.unwrap_or_else(|| format!("{} words", spec.knob.words().len()));
        let default = spec.knob.written(policy.default_of(spec.knob));
        table.row([spec.name.to_owned(), range, default.to_string(), meaning]);
    }
    table.text(0, style.columns())
}

/// The knob called `name`.
///
/// # Errors
/// There is none: one line, with the nearest name.
pub fn find(name: &str) -> Result<Knob, String> {
    Knob::from_name(name).map_err(|_| no_knob(name))
}

/// The value where nothing is said: mainline's, and what distributions have instead.
pub(crate) fn default(spec: &KnobSpec) -> String {
    let unit = if spec.unit.is_empty() { String::new() } else { format!(" {}", spec.unit) };
    let mainline = format!("{}{unit}", spec.knob.written(spec.default));
    spec.distributed.map_or_else(
        || mainline.clone(),
        |built| {
            let value = spec.knob.written(built.value);
            format!("{value}{unit} as distributions build {}, else {mainline}", built.kernels)
        },
    )
}

/// All that is known of `knob`, with the lines that give it `value` (or show how it is given one) on a running kernel;
/// `here` is what the kernel underneath holds.
pub fn show(style: Style, knob: Knob, value: Option<u64>, here: Option<&KnobFile>) -> String {
    let spec = knob.spec();
    let mut out = format!("{}\n", style.heading(spec.name));
    for line in wrap(spec.meaning, style.columns() - 2) {
        let _ = writeln!(out, "  {line}");
    }
    let unit = if spec.unit.is_empty() { String::new() } else { format!(" {}", spec.unit) };
    let _ = writeln!(out, "  range    {}{unit}", range(spec));
    let _ = writeln!(out, "  default  {}", default(spec));
    let _ = writeln!(out, "  Linux    {}", spec.stands_for);
    if let Some(kernels) = spec.kernels {
        let _ = writeln!(out, "  kernels  {kernels}");
    }
    if let Some(here) = here {
        let _ = writeln!(out, "  here     {}", said(here));
    }
    for (index, line) in commands(knob, value, here).iter().enumerate() {
        let _ = writeln!(out, "  {:<7}  {line}", if index == 0 { "to set" } else { "" });
    }
    out
}

/// What the running kernel says, in a few words.
pub fn said(here: &KnobFile) -> String {
    match here {
        KnobFile::Missing => "this kernel has no such file".into(),
        KnobFile::Unreadable(why) => format!("this kernel has the file; it cannot be read: {why}"),
        KnobFile::Holds(text) => text.clone(),
    }
}

/// So many words have a line each, where no value is given.
const LINES: usize = 6;

/// Lines for a root shell that give `knob` the value; without one, a line for each of its words where they are few, or one that shows how.
pub fn commands(knob: Knob, value: Option<u64>, here: Option<&KnobFile>) -> Vec<String> {
    let line = match here {
        Some(KnobFile::Holds(line)) => Some(line.as_str()),
        _ => None,
    };
    let values: Vec<u64> = match (value, knob.words()) {
        (Some(value), _) => vec![value],
        (None, words) if (1..=LINES).contains(&words.len()) => words.iter().map(|word| word.value).collect(),
        (None, _) => vec![knob.example()],
    };
    let command = |value| knob.command(value, line).or_else(|| knob.command_in(CGROUP, value));
    values.into_iter().filter_map(command).collect()
}

/// The values that a knob takes, in words.
pub(crate) fn range(spec: &KnobSpec) -> String {
    const LARGEST: u64 = i32::MAX as u64;
    let words: Vec<&str> = spec.knob.words().iter().map(|word| word.word).collect();
    match spec.max {
        _ if spec.knob.has_words_only() => words.join(" "),
        _ if !words.is_empty() => format!("{} and up, {}", spec.min, words.join(" ")),
        // The kernel's way of saying that there is no bound.
        LARGEST.. => format!("{} and up", spec.min),
        max => format!("{} to {max}", spec.min),
    }
}
