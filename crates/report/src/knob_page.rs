//! What every knob is, and what it did to some recordings at its ends, in Markdown: what docs/knobs.md is.

use std::fmt::Write as _;

use lab::measurements::KnobOutcome;
use lab::replay::survey::{Figures, Ran, Trial, TrialOutcome};
use mm::knobs::{KNOBS, Knob, KnobSpec};

use crate::knobs::{default, range};
use crate::units::plural;

/// The page. The same trials give the same page.
pub fn markdown(trials: &[Trial]) -> String {
    let mut out = HEAD.replace("MACHINES", &listed(&names(trials, |trial| &trial.machine)));
    out += &glance(trials);
    out += &refused(trials);
    out += "## One by one\n";
    for spec in &KNOBS {
        let _ = write!(out, "\n{}", section(spec, &of(trials, spec.knob)));
    }
    out
}

fn of(trials: &[Trial], knob: Knob) -> Vec<&Trial> {
    trials.iter().filter(|trial| trial.knob == knob).collect()
}

/// What is missing everywhere; `None` where the knob could act somewhere, or lacks now this and now that.
fn missing<'a>(trials: &[&'a Trial]) -> Option<&'a str> {
    let reason = |trial: &&'a Trial| match &trial.outcome {
        TrialOutcome::Refused(reason) => Some(reason.as_str()),
        TrialOutcome::NotRun | TrialOutcome::Ran(_) => None,
    };
    let first = trials.first().and_then(reason)?;
    trials.iter().all(|trial| reason(trial) == Some(first)).then_some(first)
}

/// A row for each knob that something can be said of and each machine, a column for each workload.
fn glance(trials: &[Trial]) -> String {
    let workloads = names(trials, |trial| &trial.workload);
    let mut out = format!("## At a glance\n| knob | machine | {} |\n|---|---|", workloads.join(" | "));
    out += &"---|".repeat(workloads.len());
    out.push('\n');
    for spec in &KNOBS {
        let of_knob = of(trials, spec.knob);
        if missing(&of_knob).is_some() {
            continue;
        }
        for machine in names(trials, |trial| &trial.machine) {
            let _ = write!(out, "| {} | {machine} |", spec.name);
            for workload in &workloads {
                let here = of_knob.iter().filter(|of| of.machine == machine && of.workload == *workload);
                let _ = write!(out, " {} |", in_words(&here.copied().collect::<Vec<_>>()));
            }
            out.push('\n');
        }
    }
    out + "\n"
}

/// The outcomes of one knob on one workload and machine: one word where all values came to the same.
fn in_words(trials: &[&Trial]) -> String {
    let words: Vec<&str> = trials.iter().map(|trial| word(&trial.outcome)).collect();
    match words.first() {
        Some(first) if words.iter().all(|word| word == first) => (*first).to_owned(),
        _ => {
            let each = trials.iter().zip(words);
            each.map(|(trial, word)| format!("{}: {word}", trial.knob.written(trial.value)))
                .collect::<Vec<_>>()
                .join(", ")
        }
    }
}

fn word(outcome: &TrialOutcome) -> &'static str {
    match outcome {
        TrialOutcome::Refused(_) => "refused",
        TrialOutcome::NotRun => "not simulated",
        TrialOutcome::Ran(ran) => match ran.uses.outcome {
            KnobOutcome::Acted => "**acted**",
            KnobOutcome::Consulted if ran.uses.consulted == 0 => "never consulted",
            KnobOutcome::Consulted => "consulted",
            KnobOutcome::AtDefault => "at its default",
            KnobOutcome::RefusedButForced => "forced",
        },
    }
}

/// The knobs that are refused everywhere, by what is missing.
fn refused(trials: &[Trial]) -> String {
    let mut by_reason: Vec<(&str, Vec<&str>)> = vec![];
    for spec in &KNOBS {
        let Some(reason) = missing(&of(trials, spec.knob)) else { continue };
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, knobs)) => knobs.push(spec.name),
            None => by_reason.push((reason, vec![spec.name])),
        }
    }
    let mut out = String::from("Refused everywhere, by what is missing:\n\n");
    for (reason, knobs) in by_reason {
        let _ = writeln!(out, "- {reason}: {}", knobs.join(", "));
    }
    out + "\n"
}

fn section(spec: &KnobSpec, trials: &[&Trial]) -> String {
    let mut out = format!("### {}\n{}.\n\n", spec.name, spec.meaning);
    let unit = if spec.unit.is_empty() { String::new() } else { format!(" [{}]", spec.unit) };
    let _ = writeln!(out, "- Values: {}{unit}; default {}.", range(spec), default(spec));
    let kernels = spec.kernels.map_or_else(String::new, |kernels| format!("; {kernels}"));
    let _ = writeln!(out, "- In Linux: {}{kernels}.", stands_for(spec));
    if let Some(first) = trials.first() {
        let _ = writeln!(out, "- Tried under {}.", first.policy);
    }
    out.push('\n');
    if let Some(reason) = missing(trials) {
        let _ = writeln!(out, "Refused everywhere: {reason}.");
        return out;
    }
    out += "| recording | machine | value | what it did |\n|---|---|---|---|\n";
    for trial in trials {
        let value = trial.knob.written(trial.value);
        let _ =
            writeln!(out, "| {} | {} | {value} | {} |", trial.workload, trial.machine, told(&trial.outcome));
    }
    out
}

fn stands_for(spec: &KnobSpec) -> String {
    match spec.stands_for.path() {
        Some(path) => spec.stands_for.to_string().replacen(path, &format!("`{path}`"), 1),
        None => spec.stands_for.to_string(),
    }
}

/// An outcome in full.
fn told(outcome: &TrialOutcome) -> String {
    match outcome {
        TrialOutcome::Refused(reason) => format!("refused: {reason}"),
        TrialOutcome::NotRun => "not simulated".to_owned(),
        TrialOutcome::Ran(ran) => told_of(ran),
    }
}

fn told_of(ran: &Ran) -> String {
    let mut out = ran.uses.sentence();
    match (ran.uses.outcome, ran.figures) {
        (KnobOutcome::Acted, Figures::Alike) => out += "; every figure is as by default",
        (KnobOutcome::Consulted, Figures::Different) => out += "; yet figures are not as by default",
        _ => {}
    }
    if ran.failed > 0 {
        let _ = write!(out, "; {} found no memory", plural(ran.failed, "allocation"));
    }
    out
}

/// What `of` says of the trials, each once, in their order.
fn names<'a>(trials: &'a [Trial], of: impl Fn(&'a Trial) -> &'a String) -> Vec<&'a str> {
    let mut names: Vec<&str> = vec![];
    for name in trials.iter().map(of) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", most.join(", "))
        }
    }
}

const HEAD: &str = "\
# Knobs
What every knob is, where it is in Linux, and what it does to the recordings that come with the project
([recordings.md](recordings.md)). Written by `make knobs`, and held by a test; change the program, not this page.

## How to read it
Every knob is tried with its least and its greatest value, or with each word that it takes. Where one of these is the
default, the value next to it stands in its place. Each value is one simulation of each recording: one copy, seed 1, on
MACHINES (`freehold machines show NAME` has them). The policy is linux-6.18, or where its
rules do not read the knob, one whose rules do. What came of it is one of three:

- **acted**: so many decisions, of those that read the knob, came out different from what its default would have decided.
  That says nothing about how much it matters: a replay prints the figures. `every figure is as by default` means that no figure
  of the run is another, so that the decisions had no effect.
- **consulted** so many times, and never decided otherwise. The row says how near it came, where a figure is compared with a mark:
  a larger load, a smaller machine or another value may get there. `never consulted`: what reads the knob did not come up in
  this run, and can in another.
- **refused**: nothing in the recording, the machine or the policy reads it; the row says what is missing. `freehold replay` ends
  with status 2 there, unless `--force` is given.

`redis-program` has what the program did to its address spaces and files. The other recordings have what was asked of the page and slab
allocators, and are refused by all knobs of huge pages, compaction, reclaim by swappiness, dirty files and NUMA balancing; the workloads
of `freehold lab` reach these, too ([experiments.md](experiments.md)). Values at the ends are for seeing whether a knob reaches anything. Most are of no
use on a real machine.

";
