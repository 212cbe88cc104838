//! Why an experiment cannot be read or run: one line that says which file, which line of it, which key, and what to do.

use std::fmt;
use std::ops::Range;

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
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = before.split(|&byte| byte == b'\n').count();
        ExperimentError { line: Some(line), ..ExperimentError::new(self.file, problem) }
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
        let problem = match key {
            Some(key) => format!("{key}: {problem}"),
            None => problem.to_owned(),
        };
        match span {
            Some(span) => self.error(&span, problem),
            None => ExperimentError::new(self.file, problem),
        }
    }
}
