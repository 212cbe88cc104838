//! `freehold replay`: a recording, or several side by side, on a simulated machine, with every combination of the knobs that were set.

use std::fmt::Display;
use std::fs::{self, File};
use std::path::Path;

use lab::evidence::{Table, intervals};
use lab::findings::findings;
use lab::measurements::{Document, Run, means};
use lab::replay::{
    CpuListError, Plan, RecordedOn, ReplayError, ShareError, Source, begin_as_recorded, parse_changes,
    parse_settings, prove, replay_all, stood_otherwise,
};
use lab::tune::Recorded;
use sim::Profile;
use sim::profile::digest;
use trace::{ReadError, Reader};

use crate::args::{Global, Replay};
use crate::common::{CommandVerdict, Failure, Texts, answer, command_line, knob, machine, policy, recording};
use crate::fail_if;
use crate::progress::Bar;
use crate::this_machine::{Machines, STAND_IN, THIS};

const NOTHING: &str = "holds no event of the recorded tasks, so there is nothing to replay";

pub(crate) fn run(global: &Global, options: &Replay) -> Result<CommandVerdict, Failure> {
    let draft = draft(global, options)?;
    let bounds = fail_if::read(&options.bounds)?;
    // What is wrong with anything else is said before this machine is measured, which takes seconds.
    for name in options.machine.iter().filter(|name| *name != THIS) {
        plan(&draft, options, machine(name)?)?;
    }
    let machines = Machines::new(global, &options.machine);
    let made_on = options.file.iter().map(|file| machines.that_made(file)).collect::<Result<Vec<_>, _>>()?;
    let sources = options.file.iter().zip(&made_on).map(|(file, on)| source(options, file, on));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let workload = Source::together(sources.clone()).map_err(Failure)?;
    let plans = machines.profiles()?.into_iter().map(|profile| plan(&draft, options, profile));
    let mut plans = plans.collect::<Result<Vec<_>, _>>()?;
    named_once(&plans)?;
    if options.as_recorded {
        for plan in &mut plans {
            begin_as_recorded(plan, &workload).map_err(|error| Failure(format!("--as-recorded: {error}")))?;
        }
    }
    plans.iter().try_for_each(|plan| check_knobs(plan, &workload))?;
    let mut document = Document::new(command_line());
    for (file, source) in options.file.iter().zip(&sources) {
        let damage = source.damage().into_iter();
        let note = |damage| format!("{} {damage}; what of it is whole was replayed", file.display());
        document.notes.extend(damage.map(note));
    }
    document.notes.extend(stood_otherwise(&plans, &workload, "--as-recorded"));
    document.runs = runs(global, &workload, &plans, options.jobs)?;
    document.means = means(&document.runs);
    fail_if::hold(&bounds, &mut document)?;
    intervals(Table::bundled(), &mut document);
    document.findings = findings(&document.runs);
    document.heat = workload.programs().iter().flat_map(|program| program.heat.clone()).collect();
    for (source, on) in sources.iter().zip(made_on) {
        document.proofs.extend(prove(source, on.profile().clone()).map_err(Failure::of)?);
    }
    answer(global, &document, &Texts { short: report::verdict::replay, full: report::replay::full })?;
    let is_broken = fail_if::is_broken(&document) || workload.damage().is_some();
    Ok(if is_broken { CommandVerdict::FellShort } else { verdict(&document.runs) })
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
    check_groups(options, &plan)?;
    plan.changes = knob(parse_changes(&options.at))?;
    plan.check().map_err(Failure::of)?;
    check_shares(options, &plan.profile)?;
    plan.repeat = options.repeat;
    plan.seed = global.seed;
    plan.seeds = options.seeds;
    plan.forced = options.force;
    Ok(plan)
}

/// A cgroup is called as its recording is.
fn check_groups(options: &Replay, plan: &Plan) -> Result<(), Failure> {
    let names: Vec<String> = options.file.iter().map(|file| name_of(file)).collect();
    let mut of = plan.settings.iter().filter_map(|setting| setting.of.as_ref());
    match of.find(|name| !names.contains(name)) {
        Some(name) => Err(Failure::of(ShareError::NoRecording { name: name.clone(), names })),
        None => Ok(()),
    }
}

/// What recordings are to get of a machine, as far as it can be said before the machine is known.
fn check_shares(options: &Replay, stand_in: &Profile) -> Result<(), Failure> {
    let names: Vec<String> = options.file.iter().map(|file| name_of(file)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match options.shares().read(&names, stand_in) {
        // Of another machine these may be.
        Ok(_) | Err(ShareError::Cpus(CpuListError::NoCpu { .. }) | ShareError::Nodes { .. }) => Ok(()),
        Err(error) => Err(Failure::of(error)),
    }
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
    let names: Vec<String> = options.file.iter().map(|file| name_of(file)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    plan.share(&options.shares(), &names).map_err(Failure::of)?;
    Ok(plan)
}

/// What the recording at `path` is called.
fn name_of(path: &Path) -> String {
    path.file_stem().map_or_else(|| "recording".into(), |stem| stem.to_string_lossy().into_owned())
}

/// What is replayed of a recording.
fn source(options: &Replay, file: &Path, on: &RecordedOn) -> Result<Source, Failure> {
    let source = if options.events { read(file, on, Source::read_events) } else { workload(file, on) }?;
    let is_placed = !options.mems.is_empty()
        || !options.mempolicy.is_empty()
        || options.cpus.iter().any(|cpus| cpus.ends_with("recorded"));
    if source.programs().is_empty() && is_placed {
        let what = "says nothing of its program's memory; --mems, --mempolicy and --cpus recorded want that";
        return Err(Failure::at(file, what));
    }
    Ok(source)
}

/// The workload that a recording is, with what recording cost where it was made taken out of it.
pub(crate) fn workload(path: &Path, on: &RecordedOn) -> Result<Source, Failure> {
    read(path, on, Source::read)
}

/// The same, with its shortened forms.
pub(crate) fn recorded(path: &Path, on: &RecordedOn) -> Result<Recorded, Failure> {
    let at = |error: &dyn Display| Failure::at(path, error);
    let content = digest(fs::read(path).map_err(|error| at(&error))?);
    let recorded = Recorded::read(&mut recording(path)?, &name_of(path), on, content);
    let recorded = recorded.map_err(|error| at(&error))?;
    if recorded.whole().is_empty() { Err(at(&NOTHING)) } else { Ok(recorded) }
}

/// Reads the recording at `path` by `read`.
fn read(
    path: &Path,
    on: &RecordedOn,
    read: fn(&mut Reader<File>, &str, &RecordedOn) -> Result<Source, ReadError>,
) -> Result<Source, Failure> {
    let mut reader = recording(path)?;
    let workload = read(&mut reader, &name_of(path), on).map_err(|error| Failure::at(path, error))?;
    if workload.is_empty() {
        return Err(Failure::at(path, NOTHING));
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
    let runs = pool.install(|| replay_all(workload, plans, &done));
    bar.done();
    let runs = runs.map_err(|error| match error {
        ReplayError::Refused(refusal) => Failure(format!("{refusal}; --force shows it all the same")),
        error => Failure::of(error),
    })?;
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
