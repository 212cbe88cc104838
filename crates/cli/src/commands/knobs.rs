//! `freehold knobs`.

use mm::KNOBS;
use report::Style;
use serde::Serialize;

use crate::args::{Global, Knobs, KnobsWhat};
use crate::common::{Failure, Verdict, show};

/// A knob as `--json` prints it.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    min: u64,
    max: u64,
    default: u64,
    unit: &'static str,
    meaning: &'static str,
    stands_for: String,
}

pub(crate) fn run(global: &Global, options: &Knobs) -> Result<Verdict, Failure> {
    let only = match &options.what {
        None | Some(KnobsWhat::List) => None,
        Some(KnobsWhat::Show { knob }) => Some(knob.as_str()),
    };
    // A name that does not exist is refused before anything is printed.
    only.map_or(Ok(String::new()), |name| report::knobs::show(Style::plain(), name)).map_err(Failure)?;
    let entries: Vec<Entry> = KNOBS
        .iter()
        .filter(|spec| only.is_none_or(|name| name == spec.name))
        .map(|spec| Entry {
            name: spec.name,
            min: spec.min,
            max: spec.max,
            default: spec.default,
            unit: spec.unit,
            meaning: spec.meaning,
            stands_for: spec.stands_for.to_string(),
        })
        .collect();
    show(global, only.unwrap_or("Every tunable"), &entries, |style| match only {
        None => report::knobs::list(style),
        Some(name) => report::knobs::show(style, name).unwrap_or_default(),
    })?;
    Ok(Verdict::Fine)
}
