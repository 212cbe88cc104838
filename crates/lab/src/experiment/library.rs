//! The experiments that come with the program, and finding one by name or path.

use std::fs;
use std::path::Path;

use super::error::{ExperimentError, Place, is_path};
use super::spec::Experiment;
use crate::experiment::error::Source;
use crate::experiment::read;
use crate::experiment::read::heat;

/// Longest file that is read; five histograms take 20 KiB.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The experiments of `experiments/`, compiled in, in the order in which all are run: each file's `order`.
const BUNDLED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

impl Experiment {
    /// The names of those that come with the program.
    pub fn bundled_names() -> impl Iterator<Item = &'static str> {
        BUNDLED.iter().map(|(name, _)| *name)
    }

    /// The experiment called so: one that comes with the program, or a file if it ends in `.toml` or has a directory
    /// in it.
    ///
    /// # Errors
    /// There is none of this name, or the file cannot be read or is no experiment: file, line and key.
    pub fn load(name_or_path: &str) -> Result<Self, ExperimentError> {
        if is_path(name_or_path) {
            return Self::from_file(Path::new(name_or_path));
        }
        let Some((name, text)) = BUNDLED.iter().find(|(name, _)| *name == name_or_path) else {
            let known: Vec<&str> = Self::bundled_names().collect();
            let problem = format!(
                "there is no such experiment; there are {}, and a file is named by its path",
                known.join(", ")
            );
            return Err(ExperimentError::new(name_or_path, problem));
        };
        let file = format!("experiments/{name}.toml");
        read::experiment(&Source { place: Place { file: &file, text }, folder: None })
    }

    /// An experiment from the text of a file that messages call `file`. Paths of machines mean nothing in it.
    ///
    /// # Errors
    /// As [`Experiment::load`].
    pub fn parse(file: &str, text: &str) -> Result<Self, ExperimentError> {
        experiment(&Source { place: Place { file, text }, folder: None })
    }

    fn from_file(path: &Path) -> Result<Self, ExperimentError> {
        let file = path.display().to_string();
        let failed = |error: std::io::Error| ExperimentError::new(&file, format!("cannot be read: {error}"));
        let length = fs::metadata(path).map_err(failed)?.len();
        if length > FILE_BYTES_MAX {
            return Err(ExperimentError::new(&file, format!("has {length} bytes, more than any experiment")));
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        experiment(&Source { place: Place { file: &file, text: &text }, folder: Some(folder) })
    }
}

/// An experiment file, or what `freehold heat` wrote.
fn experiment(source: &Source<'_>) -> Result<Experiment, ExperimentError> {
    let place = source.place;
    if !heat::is_heat(place.text) {
        return read::experiment(source);
    }
    let text = heat::experiment(place)?;
    read::experiment(&Source { place: Place { text: &text, ..place }, folder: None })
}
