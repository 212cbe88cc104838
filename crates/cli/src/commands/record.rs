//! `freehold record`. Where it runs a command, stdout is the command's, and so is the exit status: ours are 125 for our
//! own failures, 126 for a command that cannot be run, 127 for one that does not exist, as env's and timeout's are.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

use lab::measurements::SCHEMA_VERSION;
use report::units::plural;
use trace::{Group, RecordError, RecordOptions, Summary, Target};

use crate::args::{Accesses, Global, Record};
use crate::common::{CommandVerdict, Failure, note};
use crate::output::{Channel, Destination, say};
use crate::progress::Bar;

/// The command exists and cannot be run.
const NOT_RUN: u8 = 126;
/// There is no such command.
const NOT_FOUND: u8 = 127;

pub(crate) fn run(global: &Global, options: Record) -> Result<CommandVerdict, Failure> {
    if let Some(input) = &options.import {
        return import(global, input, &options.output);
    }
    let output = options.output.clone();
    let channel = if options.command.is_empty() { Channel::Stdout } else { Channel::Stderr };
    let summary = match capture(global, record_options(options)?) {
        Ok(summary) => summary,
        Err(error @ RecordError::Command { .. }) => return Ok(not_started(&error)),
        Err(error) => return Err(explain(&output, &error)),
    };
    if global.json {
        channel.print(&(serde_json::to_string_pretty(&json(&summary)).map_err(Failure::of)? + "\n"))?;
    } else {
        note(global, &account(&output, &summary));
        for line in warnings(&summary) {
            say(&line);
        }
    }
    if summary.events == 0 {
        return Err(Failure(format!(
            "{}: no event was recorded; did the command do anything, and is the process the right one?",
            output.display()
        )));
    }
    match (channel, summary.exit_status) {
        (Channel::Stderr, Some(status)) => Ok(CommandVerdict::Ended(status as u8)),
        (Channel::Stderr, None) => Err(Failure(format!(
            "{}: stopped from outside; the command did not end when asked to and runs on",
            output.display()
        ))),
        (Channel::Stdout, _) if summary.lost > 0 => Ok(CommandVerdict::FellShort),
        (Channel::Stdout, _) => Ok(CommandVerdict::Fine),
    }
}

fn not_started(error: &RecordError) -> CommandVerdict {
    say(&format!("freehold: {error}"));
    let is_missing =
        matches!(error, RecordError::Command { error, .. } if error.kind() == ErrorKind::NotFound);
    CommandVerdict::Ended(if is_missing { NOT_FOUND } else { NOT_RUN })
}

/// Records as `options` say, with progress; Ctrl-C and SIGTERM end it cleanly.
pub(crate) fn capture(global: &Global, mut options: RecordOptions) -> Result<Summary, RecordError> {
    options.stop =
        trace::stop_on_signals().map_err(|error| RecordError::System { what: "catching Ctrl-C", error })?;
    // A bar would stand among the lines of a command.
    let has_command = matches!(options.target, Target::Command(_) | Target::AllWhile(_));
    let mut bar = if has_command { Bar::hidden() } else { Bar::new(global, 0) };
    let summary = trace::record(&options, &mut bar);
    bar.done();
    summary
}

/// Why nothing could be recorded, with the file's name where it is about the file.
pub(crate) fn explain(output: &Path, error: &RecordError) -> Failure {
    match error {
        RecordError::Output { .. } | RecordError::System { .. } => Failure::at(output, error),
        _ => Failure::of(error),
    }
}

fn record_options(options: Record) -> Result<RecordOptions, Failure> {
    let target = match (options.pid, options.all, options.command.is_empty()) {
        _ if options.cgroup.is_some() => Target::Cgroup(options.cgroup.unwrap_or_default()),
        (Some(pid), _, true) => Target::Process(pid),
        (Some(_), _, false) => return Err(Failure("record takes --pid or a command, not both".into())),
        (None, true, true) => Target::All,
        (None, true, false) => Target::AllWhile(options.command),
        (None, false, false) => Target::Command(options.command),
        (None, false, true) => {
            let advice = "nothing to record: give a command after --, or --pid, --cgroup or --all";
            return Err(Failure(advice.into()));
        }
    };
    let mut record = RecordOptions::new(options.output, target);
    record.groups = Group::parse_list(&options.events).map_err(Failure)?;
    record.via = options.via.parse().map_err(Failure)?;
    record.ring_pages = options.ring;
    record.masked = options.mask;
    record.length = options.length;
    record.budget = options.budget;
    record.keep_huge_pages = options.keep_huge_pages;
    record.accessed = options.accesses.map(Accesses::looking);
    Ok(record)
}

fn import(global: &Global, input: &Path, output: &Path) -> Result<CommandVerdict, Failure> {
    let to = Destination::of(output)?;
    to.is_not(input)?;
    let draft = to.draft()?;
    let imported = trace::import(input, draft.path()).map_err(|error| match error {
        RecordError::Output { .. } => explain(output, &error),
        _ => Failure::at(input, error),
    })?;
    draft.keep_beside_older()?;
    if global.json {
        Channel::Stdout.print(&format!(
            "{}\n",
            serde_json::json!({ "schema": SCHEMA_VERSION, "events": imported.events })
        ))?;
    } else {
        note(global, &format!("{to}: {}", plural(imported.events, "event")));
    }
    Ok(CommandVerdict::Fine)
}

fn account(output: &Path, summary: &Summary) -> String {
    let seconds = summary.duration_ns as f64 / 1e9;
    let per_event = summary.bytes as f64 / summary.events.max(1) as f64;
    let mut text = format!(
        "{}: {} of {} in {seconds:.2} s, {} bytes ({per_event:.2} an event), {} lost",
        output.display(),
        plural(summary.events, "event"),
        plural(u64::from(summary.tasks), "task"),
        summary.bytes,
        summary.lost,
    );
    if let Some(cost) = summary.cost {
        let _ = write!(text, "; recording costs about {:.0} ns an event here", cost.ns_per_event);
    }
    if let Some(sampled) = &summary.sampled {
        let _ = write!(text, "\n{}", report::sampled::account(sampled));
    }
    if let Some(why) = &summary.refusal {
        let _ = write!(text, "\nrecorded by perf, which costs more, for BPF cannot here: {why}");
    }
    if summary.without_huge_pages {
        text += "\nthe command had no transparent huge pages, so that each first touch is seen (--keep-huge-pages lets it)";
    }
    if let Some(cost) = summary.accessed {
        let _ = write!(text, "\n{}", report::heat::cost(&cost));
    }
    if !summary.missing.is_empty() {
        let _ = write!(text, "\nthis kernel lacks {}: recorded without", summary.missing.join(", "));
    }
    if let Some(status) = summary.exit_status.filter(|status| *status != 0) {
        let _ = write!(text, "\nthe command ended with status {status}");
    }
    if summary.interrupted {
        text += "\nstopped from outside";
    }
    text
}

/// What is to be said even to those who want no notes: the exit status is the command's, and cannot tell.
fn warnings(summary: &Summary) -> Vec<String> {
    let mut lines = vec![];
    let skipped = summary.skipped.min(summary.lost);
    if summary.lost > skipped {
        let lost = plural(summary.lost - skipped, "event");
        lines.push(format!("{lost} were lost: record again with a larger --ring"));
    }
    if skipped > 0 {
        let lost = plural(skipped, "event");
        lines.push(format!(
            "{lost} of interrupts were lost, for which the kernel skips a program that runs already; --via perf records these"
        ));
    }
    lines
}

fn json(summary: &Summary) -> serde_json::Value {
    serde_json::json!({
        "schema": SCHEMA_VERSION,
        "events": summary.events,
        "bytes": summary.bytes,
        "via": summary.via,
        "lost": summary.lost,
        "skipped": summary.skipped,
        "sampled": summary.sampled,
        "left_out": summary.left_out,
        "unreadable": summary.unreadable,
        "tasks": summary.tasks,
        "duration_ns": summary.duration_ns,
        "cost_ns_per_event": summary.cost.map(|cost| cost.ns_per_event),
        "accessed": summary.accessed,
        "exit_status": summary.exit_status,
        "interrupted": summary.interrupted,
    })
}
