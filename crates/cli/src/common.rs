//! What all commands share: how they end, how they print, how they find machines, policies and recordings.

use std::fmt::Display;
use std::fs::File;
use std::path::Path;

use lab::measurements::{Document, Versioned};
use mm::Policy;
use report::Style;
use report::nearest::{no_policy, no_setting};
use serde::Serialize;
use sim::Profile;
use trace::Reader;

use crate::args::Global;
use crate::output::{Channel, Destination, say};

pub(crate) use crate::failure::{Failure, one_line};
pub(crate) use crate::output::print;

/// How a command that ran ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandVerdict {
    /// As it should.
    Fine,
    /// It ran, and something fell short of what was asked.
    FellShort,
    /// With the status of the command that it ran, or with another that says why that could not be run.
    Ended(u8),
}

/// How a channel is to be written to.
fn style(channel: Channel) -> Style {
    if !channel.is_terminal() || std::env::var_os("NO_COLOR").is_some() {
        return Style::plain();
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Style::terminal(columns.unwrap_or(100))
}

/// Prints a note on stderr, unless it is to be quiet.
pub(crate) fn note(global: &Global, text: &str) {
    if !global.quiet {
        say(text);
    }
}

/// The two ways in which a document is told on a terminal.
pub(crate) struct Texts {
    /// The answer alone.
    pub(crate) short: fn(Style, &Document) -> String,
    /// All of it, for `--full`.
    pub(crate) full: fn(Style, &Document) -> String,
}

/// As [`present`], in short or in full.
pub(crate) fn answer(global: &Global, document: &Document, texts: &Texts) -> Result<(), Failure> {
    let text = if global.full { texts.full } else { texts.short };
    let verdict = |style: Style| (texts.short)(style, document);
    present_with(global, document, verdict, |style| text(style, document))
}

/// Prints a document as `--json` asks or as `text` says, and writes the page that `--report` asks for.
pub(crate) fn present(
    global: &Global,
    document: &Document,
    text: impl FnOnce(Style) -> String,
) -> Result<(), Failure> {
    present_with(global, document, |style| report::verdict::replay(style, document), text)
}

/// As [`present`], with the answer that heads the page.
fn present_with(
    global: &Global,
    document: &Document,
    verdict: impl FnOnce(Style) -> String,
    text: impl FnOnce(Style) -> String,
) -> Result<(), Failure> {
    let page = || report::html::page(document, verdict).map_err(Failure::of);
    let channel = Channel::Stdout;
    let printed = if global.json {
        document.to_json()
    } else if global.csv {
        report::csv::document(document)
    } else {
        let style = style(channel);
        let notes: String =
            document.notes.iter().flat_map(|note| [style.bad(note), "\n".to_owned()]).collect();
        let gap = if notes.is_empty() { "" } else { "\n" };
        notes + gap + &text(style)
    };
    give(channel, global, &printed, page)
}

/// As [`present`], for what is no document of measurements: `json` is what `--json` prints with its version, an object; `title` heads
/// the page.
pub(crate) fn show(
    global: &Global,
    title: &str,
    json: &impl Serialize,
    text: impl Fn(Style) -> String,
) -> Result<(), Failure> {
    show_on(Channel::Stdout, global, title, json, text)
}

/// As [`show`], on a channel.
pub(crate) fn show_on(
    channel: Channel,
    global: &Global,
    title: &str,
    json: &impl Serialize,
    text: impl Fn(Style) -> String,
) -> Result<(), Failure> {
    let output = serde_json::to_value(json).map_err(Failure::of)?;
    let json = serde_json::to_string_pretty(&Versioned::new(json)).map_err(Failure::of)? + "\n";
    let page = || report::html::plain_page(title, &text(Style::plain()), &json).map_err(Failure::of);
    let printed = match (global.json, global.csv) {
        (true, _) => json.clone(),
        (false, true) => report::csv::first_list(&output),
        (false, false) => text(style(channel)),
    };
    give(channel, global, &printed, page)
}

/// The page is written first: it is there even if nobody reads on. What is printed is there even without the page.
fn give(
    channel: Channel,
    global: &Global,
    printed: &str,
    page: impl FnOnce() -> Result<String, Failure>,
) -> Result<(), Failure> {
    let Some(path) = &global.report else { return channel.print(printed) };
    let written = page().and_then(|page| Destination::of_page(path)?.write(page.as_bytes()));
    channel.print(printed)?;
    written?;
    note(global, &format!("{} is to be looked at in a browser", path.display()));
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
    Policy::parse(name).map_err(|error| Failure(no_policy(&error)))
}

/// A setting or change of a knob, with the nearest name if there is no such knob.
pub(crate) fn knob<T>(parsed: Result<T, lab::replay::ParseSettingError>) -> Result<T, Failure> {
    parsed.map_err(|error| Failure(no_setting(&error)))
}

/// Opens a recording; a perf.data file is imported first, to a file that goes away with the reader. What is wrong with it
/// is said before anything else is, and is no note: --quiet does not keep it back.
pub(crate) fn recording(path: &Path) -> Result<Reader<File>, Failure> {
    let at = |error: &dyn Display| Failure::at(path, error);
    if matches!(path.try_exists(), Ok(false)) {
        return Err(at(&"there is no such recording; `freehold record -o FILE -- COMMAND` makes one"));
    }
    if trace::is_perf_data(path).map_err(|error| at(&error))? {
        let imported = tempfile::NamedTempFile::new().map_err(|error| at(&error))?;
        trace::import(path, imported.path()).map_err(|error| at(&error))?;
        // The open file outlives its name.
        return Reader::open(imported.path()).map_err(|error| at(&error));
    }
    let reader = Reader::open(path).map_err(|error| at(&error))?;
    if let Some(damage) = reader.damage() {
        if reader.event_count() == 0 {
            return Err(Failure::at(path, format!("{damage}; no event of it can be read")));
        }
        say(&format!("{}: {damage}; going on with what is whole", path.display()));
    }
    Ok(reader)
}
