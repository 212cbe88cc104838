//! Why a command could not run, in one line.

use std::fmt::Display;
use std::path::Path;

/// Why a command could not run: one line, what, where, what to do.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// Something that has to do with a file.
    pub(crate) fn at(path: &Path, error: impl Display) -> Self {
        Self(format!("{}: {}", path.display(), one_line(&error.to_string())))
    }

    /// Anything else.
    pub(crate) fn of(error: impl Display) -> Self {
        let text = error.to_string();
        Self(if has_list(&text) { text } else { one_line(&text) })
    }
}

/// Whether `text` is a line and a list below it, such as the tasks of a simulation that stands still.
fn has_list(text: &str) -> bool {
    let mut below = text.lines().skip(1).peekable();
    below.peek().is_some() && below.all(|line| line.starts_with("  - "))
}

/// The lines of `text` in one, without clap's "error: " before and its advice behind.
pub(crate) fn one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let kept: Vec<&str> =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")).collect();
    kept.join(" ")
}
