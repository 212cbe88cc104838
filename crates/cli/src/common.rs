//! What all commands share: how they end, how they print, how they find machines, policies and recordings.

use std::fmt::Display;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;

use lab::measurements::Document;
use mm::{
    Policy,
    policy::{EXAMPLE_POLICIES, OLDEST},
};
use report::Style;
use report::nearest::{nearest, unknown};
use sim::Profile;
use trace::Reader;

use crate::args::Global;

/// How a command that ran ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// As it should.
    Fine,
    /// It ran, and something fell short of what was asked.
    FellShort,
}

/// Why a command could not run: one line, what, where, what to do.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// Something that has to do with a file.
    pub(crate) fn at(path: &Path, error: impl Display) -> Self {
        Self(format!("{}: {}", path.display(), one_line(&error.to_string())))
    }

    /// Anything else.
    pub(crate) fn of(error: impl Display) -> Self {
        Self(one_line(&error.to_string()))
    }
}

/// The lines of `text` in one, without clap's "error: " before and its advice behind.
pub(crate) fn one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let kept: Vec<&str> =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")).collect();
    kept.join(" ")
}

/// How stdout is to be written to.
pub(crate) fn style() -> Style {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() || std::env::var_os("NO_COLOR").is_some() {
        return Style::plain();
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Style::terminal(columns.unwrap_or(100))
}

/// Prints `text`; a closed pipe is nobody's fault.
pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Prints a note on stderr, unless it is to be quiet.
pub(crate) fn note(global: &Global, text: &str) {
    if !global.quiet {
        eprintln!("{text}");
    }
}

/// Prints a document as `--json` asks or as `text` says, and writes the page that `--report` asks for.
pub(crate) fn present(
    global: &Global,
    document: &Document,
    text: impl FnOnce(Style) -> String,
) -> Result<(), Failure> {
    if global.json {
        print(&document.to_json());
    } else {
        print(&text(style()));
    }
    if let Some(path) = &global.report {
        let page = report::html::page(document).map_err(Failure::of)?;
        std::fs::write(path, page).map_err(|error| Failure::at(path, error))?;
        note(global, &format!("{} is to be looked at in a browser", path.display()));
    }
    Ok(())
}

/// The command line as given, without the program's name.
pub(crate) fn command_line() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    words.join(" ")
}

/// The machine called so.
pub(crate) fn machine(name: &str) -> Result<Profile, Failure> {
    Profile::load(name).map_err(Failure::of)
}

/// The policy called so.
pub(crate) fn policy(name: &str) -> Result<Policy, Failure> {
    Policy::parse(name).map_err(|error| match nearest(name, EXAMPLE_POLICIES.iter().copied()) {
        Some(near) => Failure(format!(
            "no policy `{name}`; did you mean `{near}`? linux-X.Y from {OLDEST} on are policies"
        )),
        None => Failure::of(error),
    })
}

/// A setting or change of a knob, with the nearest name if there is no such knob.
pub(crate) fn knob<T>(parsed: Result<T, lab::replay::ParseSettingError>) -> Result<T, Failure> {
    parsed.map_err(|error| match &error {
        lab::replay::ParseSettingError::Knob(mm::KnobError::Unknown { name }) => {
            let names = mm::KNOBS.iter().map(|spec| spec.name);
            Failure(unknown("knob", name, names, "freehold knobs list"))
        }
        _ => Failure::of(error),
    })
}

/// Opens a recording; a perf.data file is imported first, to a file that goes away with the reader.
pub(crate) fn recording(path: &Path) -> Result<Reader<File>, Failure> {
    let at = |error: &dyn Display| Failure::at(path, error);
    if trace::is_perf_data(path).map_err(|error| at(&error))? {
        let imported = tempfile::NamedTempFile::new().map_err(|error| at(&error))?;
        trace::import(path, imported.path()).map_err(|error| at(&error))?;
        // The open file outlives its name.
        return Reader::open(imported.path()).map_err(|error| at(&error));
    }
    Reader::open(path).map_err(|error| at(&error))
}
