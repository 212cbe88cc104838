//! `freehold compare`.

use std::path::Path;

use lab::measurements::{Document, compare, differences};

use crate::args::{Compare, Global, Table};
use crate::common::{CommandVerdict, Failure, command_line, present};

pub(crate) fn run(global: &Global, options: &Compare) -> Result<CommandVerdict, Failure> {
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::at(path, error))?;
        let document = Document::from_json(&text).map_err(|error| Failure::at(path, error))?;
        Ok((name(path, &options.files), document))
    };
    let documents: Vec<(String, Document)> =
        options.files.iter().map(read).collect::<Result<_, Failure>>()?;
    let comparison = compare(&documents).map_err(Failure::of)?;
    let differ = differences(&documents).join(", ");
    if !differ.is_empty() && !options.force {
        return Err(Failure(format!(
            "these were not measured on the same thing: they differ in {differ}; --force compares them all the same"
        )));
    }
    let mut all = gathered(documents);
    if !differ.is_empty() {
        all.notes.push(format!("compared by force: these differ in {differ}"));
    }
    present(global, &all, |style| match options.table {
        Table::Mmtests => report::mmtests::comparison(style, &comparison),
        Table::Lkp => report::lkp::comparison(&comparison),
    })?;
    Ok(CommandVerdict::Fine)
}

/// All in one document. A variant is named after its own, or the same variant of two would be taken for repetitions.
fn gathered(documents: Vec<(String, Document)>) -> Document {
    let mut all = Document::new(command_line());
    let are_several = documents.len() > 1;
    for (name, document) in documents {
        all.notes.extend(document.notes.iter().map(|note| format!("{name}: {note}")));
        all.runs.extend(document.runs.into_iter().map(|mut run| {
            if are_several {
                let named = [name.as_str(), &run.variant].join(" ");
                named.trim_end().clone_into(&mut run.variant);
            }
            run
        }));
    }
    all
}

/// A document's name is its file's, without the folder where that is enough to tell it from the others.
fn name(path: &Path, all: &[std::path::PathBuf]) -> String {
    let is_unique = all.iter().filter(|other| other.file_stem() == path.file_stem()).count() == 1;
    let stem = if is_unique { path.file_stem() } else { Some(path.as_os_str()) };
    stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
