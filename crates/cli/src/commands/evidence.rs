//! `freehold evidence`, which `make evidence` runs: the tables that labels come from, made anew.

use lab::evidence::{held_in, held_toml};
use lab::experiment::Experiment;
use lab::measurements::Document;

use crate::args::{Evidence, Global};
use crate::common::{CommandVerdict, Failure, note};
use crate::output::Destination;
use crate::results_folder::ResultsFolder;

pub(crate) fn run(global: &Global, options: &Evidence) -> Result<CommandVerdict, Failure> {
    if let Some(folder) = &options.conformance {
        let held = held_in(folder).map_err(Failure::of)?;
        if held.is_empty() {
            return Err(Failure::at(folder, "holds no capture and no trace"));
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
    Ok(CommandVerdict::Fine)
}

fn write(global: &Global, options: &Evidence, text: &str) -> Result<(), Failure> {
    Destination::of(&options.output)?.write(text.as_bytes())?;
    note(global, &format!("{} is written", options.output.display()));
    Ok(())
}
