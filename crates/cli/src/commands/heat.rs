//! `freehold heat`.

use std::fs;
use std::path::Path;

use trace::heat::{Heat as Seen, HeatOptions, HeatTarget, watch};

use crate::args::{Global, Heat};
use crate::common::{Failure, Verdict, note, print, style};
use crate::progress::Bar;

pub(crate) fn run(global: &Global, options: Heat) -> Result<Verdict, Failure> {
    let target = target(&options)?;
    let claim = options.output.as_deref().map(Claim::of).transpose()?;
    let how = HeatOptions {
        target,
        title: options.title,
        interval: options.interval,
        after: options.after,
        length: options.length,
        rounds: options.rounds,
        stop: trace::stop_on_signals().map_err(Failure::of)?,
    };
    let bar = Bar::new(global, 0);
    let seen = watch(&how, &mut |step| bar.step(format!("{}, round {}", step.process, step.rounds + 1)));
    bar.done();
    let seen = seen.map_err(Failure::of)?;
    if let Some(claim) = claim {
        claim.write(&seen.to_toml())?;
    }
    if global.json {
        print(&(serde_json::to_string_pretty(&seen.to_json()).map_err(Failure::of)? + "\n"));
    } else {
        print(&report::heat::text(style(), &seen));
    }
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
fn verdict(global: &Global, seen: &Seen) -> Verdict {
    match seen.exit_status {
        None | Some(0) => Verdict::Fine,
        Some(status) => {
            note(global, &format!("the command ended with status {status}"));
            Verdict::FellShort
        }
    }
}

/// A file that can be written: what cannot is said before anything is measured.
struct Claim<'a> {
    path: &'a Path,
    is_new: bool,
    is_written: bool,
}

impl<'a> Claim<'a> {
    fn of(path: &'a Path) -> Result<Self, Failure> {
        if path.extension().is_none_or(|ext| !ext.eq_ignore_ascii_case("toml")) {
            return Err(Failure::at(path, "the file's name is to end in .toml"));
        }
        let is_new = !path.exists();
        let opened = fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| Failure::at(path, error))?;
        Ok(Self { path, is_new, is_written: false })
    }

    fn write(mut self, text: &str) -> Result<(), Failure> {
        fs::write(self.path, text).map_err(|error| Failure::at(self.path, error))?;
        self.is_written = true;
        Ok(())
    }
}

/// A file that nothing was written to is taken away again, if it is ours.
impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.is_new && !self.is_written {
            let _ = fs::remove_file(self.path);
        }
    }
}
