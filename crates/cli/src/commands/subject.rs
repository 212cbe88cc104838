//! What a question is asked of, as it is named on the command line: a recording, or a variant of an experiment. `why` and `tune` ask.

use std::path::Path;

use lab::experiment::{self, Experiment};
use report::nearest::unknown;

use super::lab::load;
use crate::common::Failure;

/// The experiment that was asked about, if it was one.
pub(crate) fn experiment_of(what: &str) -> Result<Option<Experiment>, Failure> {
    let is_file = Path::new(what).extension().is_some_and(|ending| ending == "toml");
    if is_file || Experiment::bundled_names().any(|name| name == what) {
        return load(what).map(Some);
    }
    if !Path::new(what).exists() && !experiment::is_path(what) {
        let names = Experiment::bundled_names();
        return Err(Failure(format!(
            "no recording {what}, and {}",
            unknown("experiment", what, names, "freehold lab list")
        )));
    }
    Ok(None)
}
