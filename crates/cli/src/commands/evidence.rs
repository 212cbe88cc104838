//! `freehold evidence`, which `make evidence` runs: the tables that labels come from, made anew.

use std::path::{Path, PathBuf};

use lab::evidence::{held_in, held_toml};
use lab::experiment::Experiment;
use lab::measurements::Document;
use report::programs_page::Ran;

use crate::args::{Evidence, Global};
use crate::common::{CommandVerdict, Failure, note};
use crate::output::Destination;
use crate::results_folder::ResultsFolder;

pub(crate) fn run(global: &Global, options: &Evidence) -> Result<CommandVerdict, Failure> {
    if let Some(folder) = &options.conformance {
        let held = held_in(folder).map_err(Failure::of)?;
        if held.is_empty() {
            return Err(Failure::at(folder, "holds no capture, no trace and no scene"));
        }
        write(global, options, &held_toml(&held))?;
    }
    if let Some(path) = &options.results {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::at(path, error))?;
        let document = Document::from_json(&text).map_err(|error| Failure::at(path, error))?;
        let names = Experiment::bundled_names();
        let experiments = names.map(Experiment::load).collect::<Result<Vec<_>, _>>().map_err(Failure::of)?;
        ResultsFolder::of(&options.output)?.update(&document, &experiments)?;
    }
    if let Some(folder) = &options.programs {
        write(global, options, &report::programs_page::markdown(&programs(folder)?))?;
    }
    if options.how_wrong {
        write(global, options, &report::how_wrong::markdown(lab::evidence::Table::bundled()))?;
    }
    Ok(CommandVerdict::Fine)
}

/// What real programs came to: a document for each command, by the names of files.
fn programs(folder: &Path) -> Result<Vec<Ran>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::at(folder, error))?;
    let entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| Failure::at(folder, error))?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    if paths.is_empty() {
        return Err(Failure::at(folder, "holds no document of a program; make programs makes them"));
    }
    paths.iter().map(|path| ran(path)).collect()
}

fn ran(path: &Path) -> Result<Ran, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::at(path, error))?;
    let document = Document::from_json(&text).map_err(|error| Failure::at(path, error))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let program = name.split('.').next().unwrap_or_default().to_owned();
    Ok(Ran { program, document })
}

fn write(global: &Global, options: &Evidence, text: &str) -> Result<(), Failure> {
    Destination::of(&options.output)?.write(text.as_bytes())?;
    note(global, &format!("{} is written", options.output.display()));
    Ok(())
}
