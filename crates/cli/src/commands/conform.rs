//! `freehold conform`.

use lab::conform::{conform_file, trace_scene};

use crate::args::{Conform, Global};
use crate::common::{CommandVerdict, Failure, show};
use crate::progress::Bar;

pub(crate) fn run(global: &Global, options: &Conform) -> Result<CommandVerdict, Failure> {
    if options.trace {
        return trace(global, options);
    }
    let bar = Bar::new(global, options.files.len() as u64);
    let mut outcomes = vec![];
    for path in &options.files {
        outcomes.push(conform_file(path).map_err(Failure::of)?);
        bar.step(path.display().to_string());
    }
    bar.done();
    let json = serde_json::json!({ "files": outcomes });
    let title = "Held against what kernels did";
    show(global, title, &json, |style| report::conform::outcomes(style, &outcomes))?;
    let disagrees = outcomes.iter().any(|outcome| !outcome.differences.is_empty());
    Ok(if disagrees { CommandVerdict::FellShort } else { CommandVerdict::Fine })
}

/// Prints the batches of reclaim and the steps of compaction of scenes.
fn trace(global: &Global, options: &Conform) -> Result<CommandVerdict, Failure> {
    let mut rows = vec![];
    for path in &options.files {
        rows.extend(trace_scene(path).map_err(Failure::of)?);
    }
    let json = serde_json::json!({ "trace": rows });
    let lines: Vec<String> = rows.iter().map(ToString::to_string).collect();
    show(global, "Batches of reclaim and steps of compaction", &json, |_| lines.join("\n") + "\n")?;
    Ok(CommandVerdict::Fine)
}
