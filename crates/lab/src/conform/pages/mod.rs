//! A page trace: mm is given its allocations and frees, and must refill and drain as the kernel did. `infer` says what happened to
//! each page (a [`story::Story`]), `fit` what the trace hides, and `replay` holds mm against both.

mod counts;
mod fit;
mod hidden;
mod infer;
mod life;
mod lists;
mod replay;
mod runs;
mod story;

use self::counts::Telling;
use super::outcome::{FileKind, FileOutcome};
use super::read::beside::Beside;
use super::read::sections::FormatError;
use super::read::trace_csv::PageTrace;

/// Holds mm against a page trace.
///
/// # Errors
/// If the kernel is one without rules, or its machine could not be.
pub(super) fn conform(trace: &PageTrace, beside: &Beside) -> Result<FileOutcome, FormatError> {
    let prepared = replay::prepare(beside)?;
    let story = infer::infer(trace, beside, prepared.shape);
    let mm = prepared.mm()?;
    let sizes = prepared.sizes(&mm, beside);
    let telling = Telling {
        trace,
        beside,
        story: &story,
        policy: &prepared.policy,
        sizes: &sizes,
        scale: prepared.scale,
    };
    let hidden = fit::fit(telling);
    let mut outcome = FileOutcome::new(FileKind::PageTrace);
    outcome.policy = prepared.policy.name().to_string();
    replay::compare_sizes(&mm, beside, &mut outcome);
    replay::replay(telling, &hidden, &mm, &mut outcome)?;
    Ok(outcome)
}
