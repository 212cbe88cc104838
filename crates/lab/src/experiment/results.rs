//! What every experiment came to when it was run last: docs/results.toml, which `lab run --results` brings up to date.
//!
//! Running all of them takes half an hour, so a run replaces what is there of the experiments that it ran, and keeps the rest.

use std::fmt::Write as _;

use serde::Deserialize;

use super::published_rows::{rows_of, write_rows};
use super::spec::Experiment;
use super::times::{times_of, write_times};
use crate::evidence::{Rows, Times};
use crate::measurements::{Account, Document, Score};

/// Scores and rows, by experiment, in the order of `lab list`; those of files of one's own come last.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// How well each came out.
    #[serde(default)]
    pub experiments: Vec<Scored>,
    /// How far its rows were off.
    #[serde(default)]
    pub rows: Vec<Rows>,
    /// Those of them that are times which nothing was chosen by, both sides.
    #[serde(default)]
    pub times: Vec<Times>,
}

/// An experiment's title and score.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scored {
    /// What it is, in a line.
    pub title: String,
    /// How well its rows came out.
    pub score: Score,
}

impl Results {
    /// Of a document that `experiments` were run for.
    pub fn of(document: &Document, experiments: &[Experiment]) -> Self {
        let outcome = |account: &Account| {
            let score = document.score.iter().find(|score| score.experiment == account.name);
            // An experiment of which nothing was published has no score.
            let none = || Score {
                median_abs_error: f64::NAN,
                worst_abs_error: f64::NAN,
                worst_emd_buckets: f64::NAN,
                ..Score::default()
            };
            let score = Score { experiment: account.name.clone(), ..score.cloned().unwrap_or_else(none) };
            Scored { title: account.title.clone(), score }
        };
        Self {
            experiments: document.experiments.iter().map(outcome).collect(),
            rows: rows_of(document, experiments),
            times: times_of(document, experiments),
        }
    }

    /// These, with what `newer` has in the place of what they have of its experiments.
    #[must_use]
    pub fn updated(mut self, newer: Self) -> Self {
        let ran = |name: &str| newer.experiments.iter().any(|outcome| outcome.score.experiment == name);
        self.experiments.retain(|outcome| !ran(&outcome.score.experiment));
        self.rows.retain(|rows| !ran(&rows.experiment));
        self.times.retain(|times| !ran(&times.experiment));
        self.experiments.extend(newer.experiments);
        self.rows.extend(newer.rows);
        self.times.extend(newer.times);
        let place =
            |name: &str| Experiment::bundled_names().position(|known| known == name).unwrap_or(usize::MAX);
        self.experiments.sort_by_key(|outcome| place(&outcome.score.experiment));
        self.rows.sort_by_key(|rows| place(&rows.experiment));
        self.times.sort_by_key(|times| place(&times.experiment));
        self
    }

    /// Reads a file of [`Results::to_toml`].
    ///
    /// # Errors
    /// Text that is not such a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
    }

    /// The file.
    pub fn to_toml(&self) -> String {
        let mut out = String::from(HEAD);
        for Scored { title, score } in &self.experiments {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "\n[[experiments]]\ntitle = {}\n[experiments.score]", quoted(title));
            write_score(&mut out, score);
        }
        write_rows(&mut out, &self.rows);
        write_times(&mut out, &self.times);
        out
    }
}

const HEAD: &str = "# Written by `make results` beside results.md: scores, and how far published rows were off, for labels and intervals. Change \
     experiments, not this file.\n";

fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn write_score(out: &mut String, score: &Score) {
    let counts = [
        ("predicted_rows", score.predicted_rows),
        ("independent_rows", score.independent_rows),
        ("fitted_rows", score.fitted_rows),
        ("derived_rows", score.derived_rows),
        ("noise_rows", score.noise_rows),
        ("zero_rows", score.zero_rows),
        ("exact_rows", score.exact_rows),
        ("direction_rows", score.direction_rows),
        ("direction_right", score.direction_right),
        ("direction_unqualified", score.direction_unqualified),
        ("histograms", score.histograms),
    ];
    let numbers = [
        ("median_abs_error", score.median_abs_error),
        ("worst_abs_error", score.worst_abs_error),
        ("worst_emd_buckets", score.worst_emd_buckets),
    ];
    let _ = writeln!(out, "experiment = {}", quoted(&score.experiment));
    for (name, count) in counts {
        let _ = writeln!(out, "{name} = {count}");
    }
    for (name, number) in numbers {
        let _ = writeln!(out, "{name} = {}", toml::Value::Float((number * 1e4).round() / 1e4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, title: &str) -> Scored {
        let score = Score {
            experiment: name.into(),
            independent_rows: 3,
            median_abs_error: 0.25,
            worst_abs_error: f64::INFINITY,
            worst_emd_buckets: 1.5,
            ..Score::default()
        };
        Scored { title: title.into(), score }
    }

    fn results(names: &[(&str, &str)]) -> Results {
        Results {
            experiments: names.iter().map(|(name, title)| outcome(name, title)).collect(),
            ..Results::default()
        }
    }

    #[test]
    fn what_was_run_takes_the_place_of_what_was_there() {
        let before = results(&[("of-my-own", "a"), ("pcp-batch", "b"), ("thpscale", "c")]);
        let after = before.updated(results(&[("thpscale", "d"), ("pcp-hold", "e")]));
        let expected =
            results(&[("pcp-batch", "b"), ("pcp-hold", "e"), ("thpscale", "d"), ("of-my-own", "a")]);
        assert_eq!(after, expected);
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        let written = results(&[("pcp-batch", "\"quoted\"")]);
        assert_eq!(Results::parse(&written.to_toml()).unwrap(), written);
        assert!(Results::parse("rows = 3").unwrap_err().contains("rows"));
    }
}
