//! `freehold`: Linux's memory management outside the kernel. The command parses arguments, calls the other crates and
//! prints what `report` makes of their results. Exit status 0: it ran; 1: it ran and something fell short; 2: it could
//! not run, and one line on stderr says why.

mod args;
mod commands;
mod common;
mod progress;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use common::{Failure, Verdict};

#[global_allocator]
static HEAP: host::HugeHeap = host::HugeHeap;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    match run(args) {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::FellShort) => ExitCode::from(1),
        Err(Failure(line)) => {
            eprintln!("freehold: {line}");
            ExitCode::from(2)
        }
    }
}

/// Help and version go to stdout as they are; a usage error becomes one line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Nothing can be done if stdout is gone.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    if matches!(error.kind(), clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        eprint!("{text}");
        return ExitCode::from(2);
    }
    eprintln!("freehold: {}", common::one_line(&text));
    ExitCode::from(2)
}

fn run(args: Args) -> Result<Verdict, Failure> {
    let global = &args.global;
    match args.command {
        Command::Try(options) => commands::tour::run(global, &options),
        Command::Record(options) => commands::record::run(global, options),
        Command::Inspect(options) => commands::inspect::run(global, &options),
        Command::Heat(options) => commands::heat::run(global, options),
        Command::Replay(options) => commands::replay::run(global, &options),
        Command::Conform(options) => commands::conform::run(global, &options),
        Command::Lab(options) => commands::lab::run(global, &options),
        Command::Machines(options) => commands::machines::run(global, &options),
        Command::Bench(options) => commands::bench::run(global, &options),
        Command::Compare(options) => commands::compare::run(global, &options),
        Command::Knobs(options) => commands::knobs::run(global, &options),
        Command::Validate(options) => commands::validate::run(global, &options),
        Command::FaultLoop(options) => commands::fault_loop::run(&options),
    }
}
