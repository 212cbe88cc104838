//! `--fail-if`: bounds that are read before anything runs, and held against what came out.

use lab::measurements::{Bound, Document, Held, check_bounds, figure_names, figure_unit};
use report::nearest::nearest;

use crate::args::FailIf;
use crate::common::Failure;

/// The bounds; names of figures that no run can have, and values that do not fit, are refused.
pub(crate) fn read(options: &FailIf) -> Result<Vec<Bound>, Failure> {
    let lists = options.fail_if.iter().map(|text| Bound::parse_list(text).map_err(Failure::of));
    let bounds = lists.collect::<Result<Vec<_>, _>>()?.concat();
    for bound in &bounds {
        let Some(unit) = figure_unit(&bound.figure) else { return Err(no_figure(&bound.figure)) };
        bound.limit_in(unit, 1.0).map_err(Failure::of)?;
    }
    Ok(bounds)
}

fn no_figure(name: &str) -> Failure {
    let names = figure_names();
    let near =
        nearest(name, names.iter().map(String::as_str)).map(|near| format!("; did you mean `{near}`?"));
    Failure(format!("no figure `{name}`{} docs/replay.md#bounds lists them", near.as_deref().unwrap_or(";")))
}

/// Holds `bounds` against the document's runs and notes in it what came out.
pub(crate) fn hold(bounds: &[Bound], document: &mut Document) -> Result<(), Failure> {
    document.fail_if = check_bounds(bounds, &document.runs).map_err(Failure::of)?;
    Ok(())
}

/// Whether a bound was broken; a line on stderr says which and by how much.
pub(crate) fn is_broken(document: &Document) -> bool {
    if let Some(line) = report::bounds::line(&document.fail_if) {
        eprintln!("freehold: {line}");
    }
    document.fail_if.iter().any(|check| check.held == Held::Broken)
}
