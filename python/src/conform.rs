//! `freehold.conform`: captures and traces of real kernels, held against the rules.

use std::path::PathBuf;

use lab::conform::conform_file;
use pyo3::prelude::*;

use crate::error::failed;

/// What each file's kernel counted beside what the rules give, as `freehold conform --json` has it.
#[pyfunction]
#[pyo3(signature = (*files))]
pub(crate) fn conform(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<Bound<'_, PyAny>> {
    let mut outcomes = vec![];
    for path in &files {
        py.check_signals()?;
        outcomes.push(py.detach(|| conform_file(path)).map_err(failed)?);
    }
    let json = serde_json::json!({ "files": outcomes }).to_string();
    py.import("json")?.call_method1("loads", (json,))
}
