//! What a question is asked of, as it is named on the command line: a recording, or a variant of an experiment. `why` and `tune` ask.

use std::path::Path;

use lab::experiment::{self, Case, Experiment};
use lab::replay::Setting;
use mm::Knob;
use report::nearest::{nearest, unknown};

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

/// The variant called so, or why there is none.
pub(crate) fn case(experiment: &Experiment, name: &str) -> Result<Case, Failure> {
    experiment.case(name).ok_or_else(|| {
        let names: Vec<String> = experiment.cases().map(|case| experiment.case_name(case)).collect();
        let near = nearest(name, names.iter().map(String::as_str));
        let near = near.map_or_else(|| ".".to_owned(), |near| format!("; did you mean `{near}`?"));
        let experiment = &experiment.name;
        Failure(format!("{experiment} has no variant `{name}`{near} It has {}", names.join(", ")))
    })
}

/// `base` with the settings of one side laid over it: the first value of each, or the last.
pub(crate) fn knobs(base: &[(Knob, u64)], settings: &[Setting], side: usize) -> Vec<(Knob, u64)> {
    let mut all = base.to_vec();
    for Setting { knob, values } in settings {
        let value = values[side.min(values.len() - 1)];
        match all.iter_mut().find(|(other, _)| other == knob) {
            Some(entry) => entry.1 = value,
            None => all.push((*knob, value)),
        }
    }
    all
}
