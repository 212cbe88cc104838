//! Machine profiles.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use sim::Profile;

use crate::error::failed;
use crate::table::{Column, Table};
use crate::words;

/// A machine: CPUs, nodes, caches, latencies, the lengths of kernel paths, each figure with its source.
#[pyclass(module = "freehold", frozen)]
pub(crate) struct Machine(Profile);

impl Machine {
    pub(crate) fn profile(&self) -> &Profile {
        &self.0
    }
}

#[pymethods]
impl Machine {
    /// A profile that comes along, by its name, or one in a file (`.toml`).
    #[new]
    fn new(name_or_path: &str) -> PyResult<Self> {
        words::named(name_or_path).map(Self)
    }

    /// The names of those that come along.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        Profile::builtin_names().collect()
    }

    /// A profile from TOML, as a file has it (docs/machines.md); `name` is for one that says none.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "machine"))]
    fn from_toml(text: &str, name: &str) -> PyResult<Self> {
        Profile::parse(name, text).map(Self).map_err(failed)
    }

    /// A profile from a dictionary of the same tables.
    #[staticmethod]
    #[pyo3(signature = (tables, *, name = "machine"))]
    fn from_dict(tables: &Bound<'_, PyDict>, name: &str) -> PyResult<Self> {
        // The standard library writes JSON and no TOML; both know tables, lists, texts and numbers.
        let json: String = tables.py().import("json")?.call_method1("dumps", (tables,))?.extract()?;
        let tables: toml::Table = serde_json::from_str(&json).map_err(failed)?;
        Self::from_toml(&toml::to_string(&tables).map_err(failed)?, name)
    }

    /// The profile as TOML.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// What it is, in a line.
    #[getter]
    fn title(&self) -> &str {
        self.0.title()
    }

    /// How many CPUs it has.
    #[getter]
    fn cpus(&self) -> u32 {
        self.0.shape().cpu_count()
    }

    /// How many nodes memory is on.
    #[getter]
    fn nodes(&self) -> usize {
        self.0.topology().nodes.len()
    }

    /// Every figure with its unit, its kind (published, measured, counted, fitted, estimated) and its source.
    #[getter]
    fn figures(&self) -> PyResult<Table> {
        let all: Vec<_> = self.0.figures().collect();
        Table::new(vec![
            Column::text("figure", all.iter().map(|(spec, _)| spec.key)),
            Column::number("value", all.iter().map(|(_, figure)| Some(figure.value))),
            Column::text("kind", all.iter().map(|(_, figure)| figure.kind.name())),
            Column::text("source", all.iter().map(|(_, figure)| figure.source.as_str())),
        ])
    }

    fn __repr__(&self) -> String {
        format!("Machine({:?}): {}", self.0.name(), self.0.title())
    }
}
