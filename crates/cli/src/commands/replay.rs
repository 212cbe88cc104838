//! `freehold replay`: a recording on a simulated machine, with every combination of the knobs that were set.

use std::fs::File;
use std::path::Path;

use lab::measurements::{Document, Run, means};
use lab::replay::{Plan, Source, parse_changes, parse_cpu_list, parse_settings, prove, replay_all};
use sim::Profile;
use trace::{ReadError, Reader};

use crate::args::{Global, Replay};
use crate::common::{CommandVerdict, Failure, command_line, knob, machine, policy, present, recording};
use crate::progress::Bar;
use crate::this_machine::{THIS, machine_or_this};

/// Of a machine that is not known, or not yet.
const STAND_IN: &str = "kvm-genoa-2c";

pub(crate) fn run(global: &Global, options: &Replay) -> Result<CommandVerdict, Failure> {
    let draft = draft(global, options)?;
    // What is wrong with anything else is said before this machine is measured, which takes seconds.
    for name in options.machine.iter().filter(|name| *name != THIS) {
        plan(&draft, options, machine(name)?)?;
    }
    let workload = source(options)?;
    let plans = options.machine.iter().map(|name| plan(&draft, options, machine_or_this(global, name)?));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    named_once(&plans)?;
    plans.iter().try_for_each(|plan| check_knobs(plan, &workload))?;
    let mut document = Document::new(command_line());
    document.notes.extend(
        workload
            .damage()
            .iter()
            .map(|damage| format!("{} {damage}; what of it is whole was replayed", options.file.display())),
    );
    document.runs = runs(global, &workload, &plans, options.jobs)?;
    document.means = means(&document.runs);
    document.proofs.extend(prove(&workload, machine(STAND_IN)?).map_err(Failure::of)?);
    let text = if options.brief { report::replay::answer } else { report::replay::full };
    present(global, &document, |style| text(style, &document))?;
    Ok(if workload.damage().is_some() { CommandVerdict::FellShort } else { verdict(&document.runs) })
}

/// Runs of one machine under two entries would pass for repetitions.
fn named_once(plans: &[Plan]) -> Result<(), Failure> {
    for (index, plan) in plans.iter().enumerate() {
        let name = plan.profile.name();
        if plans[..index].iter().any(|other| other.profile.name() == name) {
            return Err(Failure(format!("--machine names {name} twice")));
        }
    }
    Ok(())
}

/// What is to run, whatever the machine is.
fn draft(global: &Global, options: &Replay) -> Result<Plan, Failure> {
    let mut plan = Plan::new(machine(STAND_IN)?, policy(&options.policy)?);
    plan.settings = knob(parse_settings(&options.set))?;
    plan.changes = knob(parse_changes(&options.at))?;
    plan.check().map_err(Failure::of)?;
    plan.copies = options.copies;
    plan.repeat = options.repeat;
    plan.seed = global.seed;
    plan.seeds = options.seeds;
    plan.forced = options.force;
    Ok(plan)
}

/// Knobs that cannot act are refused, unless they are forced.
fn check_knobs(plan: &Plan, workload: &Source) -> Result<(), Failure> {
    match plan.refusals(workload).first().filter(|_| !plan.forced) {
        Some(refusal) => Err(Failure::of(format!("{refusal}; --force runs it all the same"))),
        None => Ok(()),
    }
}

/// What is to run on a machine.
fn plan(draft: &Plan, options: &Replay, profile: Profile) -> Result<Plan, Failure> {
    let mut plan = Plan { profile, ..draft.clone() };
    if let Some(list) = &options.cpus {
        plan.cpus = parse_cpu_list(list, plan.profile.shape().cpu_count()).map_err(Failure::of)?;
    }
    Ok(plan)
}

/// What is replayed of the recording.
fn source(options: &Replay) -> Result<Source, Failure> {
    if options.events { read(&options.file, Source::read_events) } else { workload(&options.file) }
}

/// The workload that a recording is, with what recording cost taken out of it.
pub(crate) fn workload(path: &Path) -> Result<Source, Failure> {
    read(path, Source::read)
}

/// Reads the recording at `path` by `read`.
fn read(
    path: &Path,
    read: fn(&mut Reader<File>, &str, &Profile) -> Result<Source, ReadError>,
) -> Result<Source, Failure> {
    let mut reader = recording(path)?;
    let name =
        path.file_stem().map_or_else(|| "recording".into(), |stem| stem.to_string_lossy().into_owned());
    let workload = read(&mut reader, &name, &machine(STAND_IN)?).map_err(|error| Failure::at(path, error))?;
    if workload.is_empty() {
        return Err(Failure::at(path, "holds no event of the recorded tasks, so there is nothing to replay"));
    }
    Ok(workload)
}

/// Runs every variant of every plan with every seed, `jobs` at a time (0: as many as there are CPUs).
pub(crate) fn runs(
    global: &Global,
    workload: &Source,
    plans: &[Plan],
    jobs: usize,
) -> Result<Vec<Run>, Failure> {
    let count: usize = plans.iter().map(|plan| plan.variants().len() * plan.seeds().count()).sum();
    let bar = Bar::new(global, count as u64);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().map_err(Failure::of)?;
    let done = |run: &Run| bar.step(format!("{} {}, seed {}", run.machine, run.variant, run.seed));
    let runs = pool.install(|| replay_all(workload, plans, &done)).map_err(Failure::of)?;
    bar.done();
    Ok(runs)
}

/// A run that could not do all that was asked fell short, and a line on stderr says of what.
fn verdict(runs: &[Run]) -> CommandVerdict {
    match report::shortfall::line(runs) {
        Some(line) => {
            eprintln!("freehold: {line}");
            CommandVerdict::FellShort
        }
        None => CommandVerdict::Fine,
    }
}
