//! `freehold sweep`: a fleet's question, which the Python package answers; its command `freehold-sweep` gets the words as they are.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::args::Sweep;
use crate::common::{CommandVerdict, Failure};

pub(crate) fn run(options: &Sweep) -> Result<CommandVerdict, Failure> {
    // It takes this process's place: signals and the status are its own.
    let error = Command::new("freehold-sweep").args(&options.words).exec();
    Err(match error.kind() {
        ErrorKind::NotFound => Failure(
            "sweep is in the Python package, which is not on the PATH: make wheel, then pip install target/wheels/freehold-*.whl"
                .to_owned(),
        ),
        _ => Failure(format!("freehold-sweep cannot be started: {error}")),
    })
}
