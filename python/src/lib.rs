//! The module `freehold._freehold`, which the package `freehold` wraps.
//!
//! A [`Recording`](recording::Recording) is read once; [`replay`](replay::replay) and [`Experiment.run`](experiment::Experiment) hand it
//! to `lab` on threads of their own with the GIL released ([`work`]), and give back a [`Outcome`](outcome::Outcome): the document
//! that the command line prints, and its tables as Arrow's ([`table`]), which pandas and polars take without a copy. Names, defaults and
//! errors are the command line's.

#![forbid(unsafe_code)]
// Arguments are what Python hands over.
#![allow(clippy::needless_pass_by_value)]

mod conform;
mod error;
mod experiment;
mod machine;
mod outcome;
mod recording;
mod replay;
mod search;
mod table;
mod tables;
mod why;
mod words;
mod work;

use pyo3::prelude::*;

/// What memory management does to a recorded program, on a machine that is not there.
#[pymodule]
fn _freehold(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("FreeholdError", module.py().get_type::<error::FreeholdError>())?;
    module.add_class::<recording::Recording>()?;
    module.add_class::<machine::Machine>()?;
    module.add_class::<experiment::Experiment>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<search::Search>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(why::why, module)?)?;
    module.add_function(wrap_pyfunction!(conform::conform, module)?)
}
