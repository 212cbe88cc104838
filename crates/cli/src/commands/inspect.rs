//! `freehold inspect`.

use std::fs::File;
use std::io::{BufWriter, Write};

use crate::args::{Global, Inspect};
use crate::common::{CommandVerdict, Failure, note, one_line, recording, show};
use crate::output::Destination;

pub(crate) fn run(global: &Global, options: &Inspect) -> Result<CommandVerdict, Failure> {
    let copy = options.mask.as_deref().map(Destination::of).transpose()?;
    copy.as_ref().map_or(Ok(()), |copy| copy.is_not(&options.file))?;
    let mut reader = recording(&options.file)?;
    if let Some(copy) = copy {
        return mask(global, &mut reader, &copy);
    }
    let inspection = trace::inspect(&mut reader).map_err(|error| Failure::at(&options.file, error))?;
    let name = options.file.display().to_string();
    show(global, &name, &inspection, |style| report::inspect::text(style, &name, &inspection))?;
    Ok(if inspection.damage.is_some() { CommandVerdict::FellShort } else { CommandVerdict::Fine })
}

fn mask(
    global: &Global,
    reader: &mut trace::Reader<File>,
    to: &Destination,
) -> Result<CommandVerdict, Failure> {
    let at = |error: &dyn std::fmt::Display| Failure(format!("{to}: {}", one_line(&error.to_string())));
    let draft = to.draft()?;
    let (mut file, written) =
        trace::mask::mask(reader, BufWriter::new(draft.file())).map_err(|error| at(&error))?;
    file.flush().map_err(|error| at(&error))?;
    drop(file);
    draft.keep()?;
    note(global, &format!("{to}: {} events, addresses and names hidden", written.events));
    Ok(if reader.damage().is_some() { CommandVerdict::FellShort } else { CommandVerdict::Fine })
}
