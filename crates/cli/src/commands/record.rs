//! `freehold record`.

use std::fmt::Write as _;
use std::path::Path;

use report::units::plural;
use trace::{Group, RecordOptions, Summary, Target};

use crate::args::{Global, Record};
use crate::common::{Failure, Verdict, note, print};
use crate::progress::Bar;

pub(crate) fn run(global: &Global, options: Record) -> Result<Verdict, Failure> {
    if let Some(input) = &options.import {
        return import(global, input, &options.output);
    }
    let output = options.output.clone();
    let summary = capture(global, record_options(options)?)?;
    if global.json {
        print(&(serde_json::to_string_pretty(&json(&summary)).map_err(Failure::of)? + "\n"));
    } else {
        note(global, &account(&output, &summary));
    }
    if summary.events == 0 {
        return Err(Failure(format!(
            "{}: no event was recorded; did the command do anything, and is the process the right one?",
            output.display()
        )));
    }
    let ended_well = summary.exit_status.is_none_or(|status| status == 0);
    Ok(if summary.lost == 0 && ended_well { Verdict::Fine } else { Verdict::FellShort })
}

/// Records as `options` say, with progress; Ctrl-C and SIGTERM end it cleanly.
pub(crate) fn capture(global: &Global, mut options: RecordOptions) -> Result<Summary, Failure> {
    options.stop = trace::stop_on_signals().map_err(Failure::of)?;
    let mut bar = Bar::new(global, 0);
    let summary = trace::record(&options, &mut bar);
    bar.done();
    summary.map_err(|error| match error {
        trace::RecordError::Output { .. } | trace::RecordError::System { .. } => {
            Failure::at(&options.output, error)
        }
        _ => Failure::of(error),
    })
}

fn record_options(options: Record) -> Result<RecordOptions, Failure> {
    let target = match (options.pid, options.all, options.command.is_empty()) {
        (Some(pid), _, true) => Target::Process(pid),
        (Some(_), _, false) => return Err(Failure("record takes --pid or a command, not both".into())),
        (None, true, true) => Target::All,
        (None, true, false) => Target::AllWhile(options.command),
        (None, false, false) => Target::Command(options.command),
        (None, false, true) => {
            let advice = "nothing to record: give a command after --, or --pid, or --all";
            return Err(Failure(advice.into()));
        }
    };
    let mut record = RecordOptions::new(options.output, target);
    record.groups = Group::parse_list(&options.events).map_err(Failure)?;
    record.ring_pages = options.ring;
    record.masked = options.mask;
    Ok(record)
}

fn import(global: &Global, input: &Path, output: &Path) -> Result<Verdict, Failure> {
    let imported = trace::import(input, output).map_err(|error| Failure::at(input, error))?;
    note(global, &format!("{}: {}", output.display(), plural(imported.events, "event")));
    Ok(Verdict::Fine)
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
    if summary.lost > 0 {
        text += "\nevents were lost: record again with a larger --ring";
    }
    if let Some(status) = summary.exit_status.filter(|status| *status != 0) {
        let _ = write!(text, "\nthe command ended with status {status}");
    }
    if summary.interrupted {
        text += "\nstopped from outside";
    }
    text
}

fn json(summary: &Summary) -> serde_json::Value {
    serde_json::json!({
        "events": summary.events,
        "bytes": summary.bytes,
        "lost": summary.lost,
        "left_out": summary.left_out,
        "unreadable": summary.unreadable,
        "tasks": summary.tasks,
        "duration_ns": summary.duration_ns,
        "cost_ns_per_event": summary.cost.map(|cost| cost.ns_per_event),
        "exit_status": summary.exit_status,
        "interrupted": summary.interrupted,
    })
}
