//! The options of `freehold completions` and `freehold man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Where to write freehold.1 and freehold-COMMAND.1
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}
