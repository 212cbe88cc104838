//! `freehold completions SHELL` and `freehold man FOLDER`: what is made of the arguments' own descriptions.

use std::{fs, io};

use clap::CommandFactory;

use crate::args::{Args, Completions, Man};
use crate::common::{CommandVerdict, Failure};
use crate::output::Channel;

/// Prints a shell's completions.
pub(crate) fn completions(options: &Completions) -> Result<CommandVerdict, Failure> {
    let mut text = vec![];
    clap_complete::generate(options.shell, &mut Args::command(), "freehold", &mut text);
    Channel::Stdout.print(&String::from_utf8_lossy(&text))?;
    Ok(CommandVerdict::Fine)
}

/// Writes a page for the program and one for each command that `--help` lists.
pub(crate) fn man(options: &Man) -> Result<CommandVerdict, Failure> {
    let at = |error: io::Error| Failure::at(&options.folder, error);
    fs::create_dir_all(&options.folder).map_err(at)?;
    clap_mangen::generate_to(Args::command(), &options.folder).map_err(at)?;
    Ok(CommandVerdict::Fine)
}
