//! `freehold heat`. Where it runs a command, stdout is the command's: the account goes to stderr when that has ended.

use std::path::Path;

use trace::heat::{Heat as Seen, HeatOptions, HeatTarget, watch};

use crate::args::{Global, Heat};
use crate::common::{CommandVerdict, Failure, note, show_on};
use crate::output::{Channel, Destination};
use crate::progress::Bar;

pub(crate) fn run(global: &Global, options: Heat) -> Result<CommandVerdict, Failure> {
    let target = target(&options)?;
    let output = options.output.as_deref().map(output).transpose()?;
    let channel = if options.command.is_empty() { Channel::Stdout } else { Channel::Stderr };
    let how = HeatOptions {
        target,
        title: options.title,
        interval: options.interval,
        after: options.after,
        length: options.length,
        rounds: options.rounds,
        stop: trace::stop_on_signals().map_err(Failure::of)?,
    };
    let bar = if channel == Channel::Stdout { Bar::new(global, 0) } else { Bar::hidden() };
    let seen = watch(&how, &mut |step| bar.step(format!("{}, round {}", step.process, step.rounds + 1)));
    bar.done();
    let seen = seen.map_err(Failure::of)?;
    if let Some(output) = output {
        output.write(seen.to_toml().as_bytes())?;
    }
    show_on(channel, global, &seen.title, &seen.to_json(), |style| report::heat::text(style, &seen))?;
    Ok(verdict(global, &seen))
}

fn target(options: &Heat) -> Result<HeatTarget, Failure> {
    match (options.pid, options.command.is_empty()) {
        (Some(pid), true) => Ok(HeatTarget::Process(pid)),
        (None, false) => Ok(HeatTarget::Command(options.command.clone())),
        (Some(_), false) => Err(Failure("heat takes --pid or a command, not both".into())),
        (None, true) => Err(Failure("nothing to watch: give a command after --, or --pid".into())),
    }
}

/// A command that failed may have been another one than was meant.
fn verdict(global: &Global, seen: &Seen) -> CommandVerdict {
    match seen.exit_status {
        None | Some(0) => CommandVerdict::Fine,
        Some(status) => {
            // --json has it.
            if !global.json {
                note(global, &format!("the command ended with status {status}"));
            }
            CommandVerdict::FellShort
        }
    }
}

fn output(path: &Path) -> Result<Destination, Failure> {
    if path.extension().is_none_or(|ext| !ext.eq_ignore_ascii_case("toml")) {
        return Err(Failure::at(path, "the file's name is to end in .toml"));
    }
    Destination::of(path)
}
