//! `freehold conform`.

use lab::conform::{FileOutcome, conform_file};
use report::conform::{Difference, File};

use crate::args::{Conform, Global};
use crate::common::{Failure, Verdict, print, style};
use crate::progress::Bar;

pub(crate) fn run(global: &Global, options: &Conform) -> Result<Verdict, Failure> {
    let bar = Bar::new(global, options.files.len() as u64);
    let mut outcomes = vec![];
    for path in &options.files {
        outcomes.push(conform_file(path).map_err(Failure::of)?);
        bar.step(path.display().to_string());
    }
    bar.done();
    if global.json {
        let json =
            serde_json::to_string_pretty(&serde_json::json!({ "files": outcomes })).map_err(Failure::of)?;
        print(&(json + "\n"));
    } else {
        let files: Vec<File> = outcomes.iter().map(file).collect();
        print(&report::conform::text(style(), &files));
    }
    let disagrees = outcomes.iter().any(|outcome| !outcome.differences.is_empty());
    Ok(if disagrees { Verdict::FellShort } else { Verdict::Fine })
}

fn file(outcome: &FileOutcome) -> File {
    let difference = |difference: &lab::conform::Difference| Difference {
        what: difference.what.clone(),
        kernel: difference.kernel.to_string(),
        freehold: difference.freehold.to_string(),
    };
    File {
        file: outcome.file.clone(),
        compared: outcome.compared,
        equal: outcome.equal,
        differences: outcome.differences.iter().map(difference).collect(),
        notes: outcome.notes.clone(),
    }
}
