//! Recordings.

use std::path::PathBuf;

use lab::replay::{RecordedOn, Source};
use lab::tune::Recorded;
use pyo3::prelude::*;
use sim::Profile;
use sim::profile::digest;
use trace::Reader;

use crate::error::failed;

/// Of a machine that is not known.
const STAND_IN: &str = "kvm-genoa-2c";

/// What a program asked of the kernel, read from a file of `freehold record` or of `perf record`.
#[pyclass(module = "freehold", frozen)]
pub(crate) struct Recording {
    source: Source,
    name: String,
    path: PathBuf,
    kernel: String,
    events: u64,
}

impl Recording {
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The same file with its shortened forms.
    pub(crate) fn recorded(&self) -> PyResult<Recorded> {
        let at = |what: &dyn std::fmt::Display| failed(format!("{}: {what}", self.path.display()));
        let content = digest(std::fs::read(&self.path).map_err(|error| at(&error))?);
        let mut reader = open(&self.path).map_err(|what| at(&what))?;
        Recorded::read(&mut reader, &self.name, &stand_in()?, content).map_err(|error| at(&error))
    }

    pub(crate) fn called(&self) -> &str {
        &self.name
    }
}

/// The profile that stands for the recorded machine where a recording does not say what something cost there.
pub(crate) fn stand_in() -> PyResult<RecordedOn> {
    Profile::load(STAND_IN).map(RecordedOn::StandIn).map_err(failed)
}

#[pymethods]
impl Recording {
    /// Reads the file. With `events` its page and slab events are replayed one for one, though the recording says what the program
    /// did to its memory.
    #[new]
    #[pyo3(signature = (path, *, name = None, events = false))]
    fn new(py: Python<'_>, path: PathBuf, name: Option<String>, events: bool) -> PyResult<Self> {
        let stem = || {
            path.file_stem().map_or_else(|| "recording".into(), |stem| stem.to_string_lossy().into_owned())
        };
        let name = name.unwrap_or_else(stem);
        let on = stand_in()?;
        let at = |what: &dyn std::fmt::Display| failed(format!("{}: {what}", path.display()));
        let (source, kernel, events) = py.detach(|| {
            let mut reader = open(&path).map_err(|what| at(&what))?;
            let read = if events { Source::read_events } else { Source::read };
            let source = read(&mut reader, &name, &on).map_err(|error| at(&error))?;
            PyResult::Ok((source, reader.meta().kernel.clone(), reader.event_count()))
        })?;
        if source.is_empty() {
            return Err(at(&"holds no event of the recorded tasks, so there is nothing to replay"));
        }
        Ok(Self { source, name, path, kernel, events })
    }

    /// What it is called in tables.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The kernel that was recorded.
    #[getter]
    fn kernel(&self) -> &str {
        &self.kernel
    }

    /// Whether it says what a program did to its address spaces; else it is page and slab events.
    #[getter]
    fn is_program(&self) -> bool {
        !self.source.programs().is_empty()
    }

    /// What is wrong with the file; what of it is whole is replayed.
    #[getter]
    fn damage(&self) -> Option<&str> {
        self.source.damage()
    }

    /// Recorded events.
    fn __len__(&self) -> usize {
        usize::try_from(self.events).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        format!(
            "Recording({:?}): {} events, Linux {}",
            self.path.display().to_string(),
            self.events,
            self.kernel
        )
    }
}

/// Opens a recording; a perf.data file is imported first, to a file that goes away with the reader.
fn open(path: &std::path::Path) -> Result<Reader<std::fs::File>, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    if trace::is_perf_data(path).map_err(|error| said(&error))? {
        let imported = tempfile::NamedTempFile::new().map_err(|error| said(&error))?;
        trace::import(path, imported.path()).map_err(|error| said(&error))?;
        return Reader::open(imported.path()).map_err(|error| said(&error));
    }
    let reader = Reader::open(path).map_err(|error| said(&error))?;
    match reader.damage() {
        Some(damage) if reader.event_count() == 0 => Err(format!("{damage}; no event of it can be read")),
        _ => Ok(reader),
    }
}
