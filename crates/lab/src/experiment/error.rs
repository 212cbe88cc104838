//! Why an experiment cannot be read or run: one line that says which file, which line of it, which key, and what to do.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What is wrong with an experiment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExperimentError {
    file: String,
    line: Option<usize>,
    problem: String,
}

impl ExperimentError {
    pub(super) fn new(file: &str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        // A list below, of the tasks of a simulation that stands still, stays one.
        let (line, list) = problem.split_at(problem.find("\n  - ").unwrap_or(problem.len()));
        let words = line.lines().map(str::trim).filter(|line| !line.is_empty());
        Self { file: file.into(), line: None, problem: words.collect::<Vec<_>>().join(" ") + list }
    }
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for ExperimentError {}

/// A text that is being read, and what it is called: it makes errors with their place.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Place<'_> {
    /// `problem` with what is at `span`, on its line.
    pub(super) fn error(self, span: &Range<usize>, problem: impl Into<String>) -> ExperimentError {
        ExperimentError { line: Some(self.line(span)), ..ExperimentError::new(self.file, problem) }
    }

    /// The line that `span` begins on, from 1.
    pub(super) fn line(self, span: &Range<usize>) -> usize {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        before.split(|&byte| byte == b'\n').count()
    }

    /// What `toml` found.
    pub(super) fn toml(self, mut error: toml::de::Error) -> ExperimentError {
        let span = error.span();
        // Without the text, it says in which key.
        error.set_input(None);
        let said = error.to_string();
        let (problem, key) = match said.trim_end().rsplit_once("\nin `") {
            Some((problem, key)) => (problem, Some(key.trim_end_matches('`'))),
            None => (said.as_str(), None),
        };
        let problem = with_nearest(problem);
        let problem = match key {
            Some(key) => format!("{key}: {problem}"),
            None => problem,
        };
        match span {
            Some(span) => self.error(&span, problem),
            None => ExperimentError::new(self.file, problem),
        }
    }
}

/// What is read, or why it cannot be.
pub(super) type Read<T> = Result<T, ExperimentError>;

/// Where a file is read from.
pub(super) struct Source<'a> {
    pub(super) place: Place<'a>,
    /// The folder that paths of machines start from; `None` for what comes with the program.
    pub(super) folder: Option<PathBuf>,
}

/// Whether a name of an experiment or machine means a file: it ends in `.toml` or has a directory in it.
pub fn is_path(name: &str) -> bool {
    let is_toml = Path::new(name).extension().is_some_and(|of| of.eq_ignore_ascii_case("toml"));
    is_toml || name.contains(['/', '\\'])
}

/// `problem`, with the nearest of the names that it lists in the place of the list, if it is about a name that is none of
/// them and one is near.
pub(super) fn with_nearest(problem: &str) -> String {
    let mut names = problem.split('`').skip(1).step_by(2);
    let (Some(wrong), true) = (names.next(), problem.starts_with("unknown ")) else {
        return problem.to_owned();
    };
    let near = names
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3))
        .min();
    match (near, problem.split_once(", expected")) {
        (Some((_, name)), Some((said, _))) => format!("{said}; did you mean `{name}`?"),
        _ => problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::with_nearest;

    #[test]
    fn the_nearest_name_takes_the_place_of_all() {
        let near = with_nearest("unknown field `taks`, expected one of `mib`, `tasks`, `taxes`");
        assert_eq!(near, "unknown field `taks`; did you mean `tasks`?");
        for other in ["unknown field `x`, expected `something`", "missing field `tasks`", "expected `]`"] {
            assert_eq!(with_nearest(other), other);
        }
    }
}
