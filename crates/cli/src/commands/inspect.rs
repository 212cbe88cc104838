//! `freehold inspect`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::args::{Global, Inspect};
use crate::common::{Failure, Verdict, note, print, recording, style};

pub(crate) fn run(global: &Global, options: &Inspect) -> Result<Verdict, Failure> {
    let mut reader = recording(&options.file)?;
    if let Some(output) = &options.mask {
        return mask(global, &mut reader, output);
    }
    let inspection = trace::inspect(&mut reader).map_err(|error| Failure::at(&options.file, error))?;
    if global.json {
        print(&(serde_json::to_string_pretty(&inspection).map_err(Failure::of)? + "\n"));
    } else {
        let name = options.file.display().to_string();
        print(&report::inspect::text(style(), &name, &inspection));
    }
    Ok(if inspection.truncated { Verdict::FellShort } else { Verdict::Fine })
}

fn mask(global: &Global, reader: &mut trace::Reader<File>, output: &Path) -> Result<Verdict, Failure> {
    let file = File::create(output).map_err(|error| Failure::at(output, error))?;
    let (_, written) =
        trace::mask::mask(reader, BufWriter::new(file)).map_err(|error| Failure::at(output, error))?;
    note(global, &format!("{}: {} events, addresses and names hidden", output.display(), written.events));
    Ok(Verdict::Fine)
}
