//! Conformance: mm held against what stock Linux kernels said and did.
//!
//! A *capture* is a kernel's own account of its machine and its parameters: [`Capture`] reads it, [`params`] compares what
//! mm computes from the topology alone. A *page trace* is every page event of a run: mm is given its allocations and
//! frees and must refill and drain as the kernel did. [`conform_file`] tells the two apart by content.

mod capture;
mod outcome;
pub mod params;
mod sections;
mod zoneinfo;

use std::fmt;
use std::fs;
use std::path::Path;

pub use capture::{Capture, CaptureNode};
pub use outcome::{Difference, Figure, FileKind, FileOutcome, Moves, PagesMoved, Sides};
pub use sections::FormatError;
pub use zoneinfo::{PagesetInfo, ZoneInfo};

/// Why a file could not be held against mm: one line that names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConformError {
    /// The file.
    pub file: String,
    /// What is wrong with it and where.
    pub what: String,
}

impl fmt::Display for ConformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.what)
    }
}

impl std::error::Error for ConformError {}

/// Holds mm against a capture or a page trace, whichever `path` is.
///
/// # Errors
/// If the file cannot be read, is neither, or is of a kernel without rules.
pub fn conform_file(path: &Path) -> Result<FileOutcome, ConformError> {
    let error = |what: String| ConformError { file: path.display().to_string(), what };
    let bytes = fs::read(path).map_err(|cause| error(format!("cannot be read: {cause}")))?;
    let text = String::from_utf8_lossy(&bytes);
    let compared = params::compare(&Capture::parse(&text).map_err(|e| error(e.to_string()))?);
    let mut outcome = compared.map_err(|cause| error(cause.to_string()))?;
    outcome.file = path.display().to_string();
    Ok(outcome)
}
