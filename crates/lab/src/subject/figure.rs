//! A figure that is asked for and that there is not.

use super::{AskError, Goal};
use crate::measurements::{Run, figures};

/// Figures that are listed where one is asked for that there is not.
const LISTED: usize = 12;

/// What to say if no run of `runs` has the figure.
pub(crate) fn unknown_figure<'a>(
    goal: &Goal,
    runs: impl Iterator<Item = &'a Run> + Clone,
) -> Option<AskError> {
    if runs.clone().any(|run| goal.unit(run).is_some()) {
        return None;
    }
    let mut known: Vec<String> = runs.flat_map(figures).map(|(figure, _)| figure.name).collect();
    known.sort();
    known.dedup();
    known.retain(|name| !name.starts_with("recording.") && !name.ends_with(".max_ns"));
    let more = if known.len() > LISTED { ", …" } else { "" };
    known.truncate(LISTED);
    Some(AskError::new(format!(
        "there is no figure `{}` here; there are {}{more}",
        goal.name(),
        known.join(", ")
    )))
}
