//! Errors: one exception with the line that the command would print.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    freehold,
    FreeholdError,
    PyException,
    "What was asked cannot be done: what, where, what to do, in one line."
);

/// The exception that says `error`.
pub(crate) fn failed(error: impl Display) -> PyErr {
    FreeholdError::new_err(error.to_string())
}
