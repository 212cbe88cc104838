//! `freehold`: Linux's memory management outside the kernel. The command parses arguments, calls the other crates and
//! prints what `report` makes of their results. Exit status 0: it ran; 1: it ran and something fell short; 2: it could
//! not run or not write what it had to say, and one line on stderr says why. `record` ends as the command that it ran did,
//! and with 125 where the failure is its own.

mod args;
mod commands;
mod common;
mod fail_if;
mod failure;
mod output;
mod progress;
mod results_folder;
mod schema;
mod shared_options;
mod this_machine;

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches};

use args::{Args, Command};
use common::{CommandVerdict, Failure};
use output::say;

#[global_allocator]
static HEAP: host::HugeHeap = host::HugeHeap;

/// Wrong usage, wrong input, or output that could not be written.
const REFUSED: u8 = 2;
/// The same of a command that otherwise ends with another command's status, which may well be 2.
const OWN_FAILURE: u8 = 125;

fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let own_failure = if matches!(args.command, Command::Record(_)) { OWN_FAILURE } else { REFUSED };
    match run(args) {
        Ok(CommandVerdict::Fine) => ExitCode::SUCCESS,
        Ok(CommandVerdict::FellShort) => ExitCode::from(1),
        Ok(CommandVerdict::Ended(status)) => ExitCode::from(status),
        Err(Failure(line)) => {
            say(&format!("freehold: {line}"));
            ExitCode::from(own_failure)
        }
    }
}

fn parse() -> Result<Args, clap::Error> {
    let matches = Args::command().try_get_matches()?;
    let mut args = Args::from_arg_matches(&matches)?;
    args.global.seed_given = matches.value_source("seed") == Some(ValueSource::CommandLine);
    Ok(args)
}

/// Help and version go to stdout as they are; a usage error becomes one line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Styled where stdout is a terminal, so that clap has to print it.
        let printed = error.print().and_then(|()| std::io::Write::flush(&mut std::io::stdout()));
        return match printed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!("freehold: {}", output::Channel::Stdout.unprinted(&error).0));
                ExitCode::from(REFUSED)
            }
        };
    }
    let text = error.to_string();
    if matches!(error.kind(), clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        say(text.trim_end());
        return ExitCode::from(REFUSED);
    }
    say(&format!("freehold: {}", common::one_line(&text)));
    ExitCode::from(if is_about_record() { OWN_FAILURE } else { REFUSED })
}

/// Whether words that could not be parsed were meant for `record`.
fn is_about_record() -> bool {
    let lenient = Args::command().ignore_errors(true).try_get_matches();
    lenient.is_ok_and(|matches| matches.subcommand_name() == Some("record"))
}

fn run(args: Args) -> Result<CommandVerdict, Failure> {
    let global = &args.global;
    shared_options::check(global, &args.command)?;
    if let Some(path) = &global.report {
        output::Destination::of_page(path)?;
    }
    match args.command {
        Command::Try(options) => commands::tour::run(global, &options),
        Command::Record(options) => commands::record::run(global, options),
        Command::Inspect(options) => commands::inspect::run(global, &options),
        Command::Heat(options) => commands::heat::run(global, options),
        Command::Replay(options) => commands::replay::run(global, &options),
        Command::Why(options) => commands::why::run(global, &options),
        Command::Apply(options) => commands::apply::run(global, &options),
        Command::Tune(options) => commands::tune::run(global, &options),
        Command::Sweep(options) => commands::sweep::run(&options),
        Command::Conform(options) => commands::conform::run(global, &options),
        Command::Lab(options) => commands::lab::run(global, &options),
        Command::Machines(options) => commands::machines::run(global, &options),
        Command::Bench(options) => commands::bench::run(global, &options),
        Command::Compare(options) => commands::compare::run(global, &options),
        Command::Knobs(options) => commands::knobs::run(global, &options),
        Command::Policies(options) => commands::policies::run(global, &options),
        Command::Validate(options) => commands::validate::run(global, &options),
        Command::Completions(options) => commands::reference::completions(&options),
        Command::Man(options) => commands::reference::man(&options),
        Command::Schema => commands::schema::run(),
        Command::Evidence(options) => commands::evidence::run(global, &options),
        Command::FaultLoop(options) => commands::fault_loop::run(&options),
    }
}
