//! `freehold compare`.

use std::path::Path;

use lab::measurements::{Document, compare};

use crate::args::{Compare, Global, Table};
use crate::common::{Failure, Verdict, command_line, present};

pub(crate) fn run(global: &Global, options: &Compare) -> Result<Verdict, Failure> {
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::at(path, error))?;
        let document = Document::from_json(&text).map_err(|error| Failure::at(path, error))?;
        Ok((name(path), document))
    };
    let documents: Vec<(String, Document)> =
        options.files.iter().map(read).collect::<Result<_, Failure>>()?;
    let comparison = compare(&documents).map_err(Failure::of)?;
    let mut all = Document::new(command_line());
    for (_, document) in &documents {
        all.runs.extend(document.runs.iter().cloned());
    }
    present(global, &all, |style| match options.table {
        Table::Mmtests => report::mmtests::comparison(style, &comparison),
        Table::Lkp => report::lkp::comparison(&comparison),
    })?;
    Ok(Verdict::Fine)
}

fn name(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
