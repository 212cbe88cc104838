//! `freehold tune`: which setting is the best for a recording or an experiment on a machine.

use std::fs;
use std::path::Path;

use lab::experiment::{Case, Experiment};
use lab::measurements::{Document, Tune as Tuned};
use lab::replay::{Plan, Setting, parse_settings};
use lab::subject::{Side, Subject, knobs};
use lab::tune::{Answer, Ground, Journal, KnobChoice, Method, Prepared, Question};
use mm::policy::DEFAULT_POLICY;
use report::Style;
use sim::Profile;
use sim::profile::digest;

use super::ask_tell;
use super::replay::{shortened, workload};
use super::subject::{case, experiment_of};
use crate::args::{Global, Tune};
use crate::common::{CommandVerdict, Failure, command_line, knob, machine, note, policy, present};
use crate::progress::Bar;
use crate::this_machine::{THIS, machine_or_this};

/// The shortened forms that are raced on, in thousandths of the whole.
const SHORTENED: [u64; 2] = [111, 333];

pub(crate) fn run(global: &Global, options: &Tune) -> Result<CommandVerdict, Failure> {
    let questions = questions(global, options)?;
    let prepared = questions.into_iter().map(|question| Prepared::of(question).map_err(Failure::of));
    let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
    let journal = journal(global, options)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs).build().map_err(Failure::of)?;
    if options.ask_tell {
        let [prepared] = &prepared[..] else {
            return Err(Failure("--ask-tell is about one machine; --machine names several".to_owned()));
        };
        pool.install(|| ask_tell::talk(prepared, &journal))?;
        return Ok(CommandVerdict::Fine);
    }
    if options.plan.is_some() && prepared.len() > 1 {
        return Err(Failure("--plan is for one machine's setting; --machine names several".to_owned()));
    }
    let mut document = Document::new(command_line());
    for prepared in &prepared {
        note(global, report::tune::space(Style::plain(), &prepared.space()).trim_end());
    }
    let bar = Bar::with_time(global, prepared.iter().map(Prepared::planned).sum());
    for prepared in &prepared {
        let done = |what: &str, cost: u64| bar.advance(cost, what.to_owned());
        let answer = pool.install(|| prepared.answer(&journal, &done)).map_err(Failure::of)?;
        let Answer { tune, runs } = answer;
        document.tune.push(tune);
        document.runs.extend(runs);
    }
    bar.done();
    let damage = prepared.first().and_then(Prepared::damage);
    document
        .notes
        .extend(damage.map(|damage| format!("{} {damage}; what of it is whole was replayed", options.what)));
    present(global, &document, |style| report::tune::answer(style, &document))?;
    if let Some(path) = &options.plan {
        write_plan(global, path, &document.tune[0])?;
    }
    Ok(match report::shortfall::line(&document.runs) {
        Some(line) => {
            eprintln!("freehold: {line}");
            CommandVerdict::FellShort
        }
        None if damage.is_some() => CommandVerdict::FellShort,
        None => CommandVerdict::Fine,
    })
}

/// Leaves what wins to `apply`. Where nothing wins no file is written, so that none of an earlier search is taken for this one's.
fn write_plan(global: &Global, path: &Path, tune: &Tuned) -> Result<(), Failure> {
    let Some(winner) = &tune.winner else {
        note(global, &format!("the current setting stays: {} was not written", path.display()));
        return Ok(());
    };
    let plan = lab::apply::Plan::of_candidate(winner).map_err(Failure::of)?;
    let head = format!("# {}\n", command_line().replace('\n', " "));
    fs::write(path, head + &plan.to_string()).map_err(|error| Failure::at(path, error))?;
    note(global, &format!("{} has it as a plan, for `freehold apply`", path.display()));
    Ok(())
}

/// The journal, if there is to be one; what another build simulated does not count.
fn journal(global: &Global, options: &Tune) -> Result<Journal, Failure> {
    let Some(path) = &options.journal else { return Ok(Journal::default()) };
    let program = std::env::current_exe().and_then(fs::read).map_err(Failure::of)?;
    let build = format!("{} {}", env!("CARGO_PKG_VERSION"), digest(program));
    let journal = Journal::open(path, &build).map_err(Failure::of)?;
    if !journal.is_empty() {
        note(
            global,
            &format!("{} has {} simulations; none of them runs again", path.display(), journal.len()),
        );
    }
    Ok(journal)
}

/// A question for each machine.
fn questions(global: &Global, options: &Tune) -> Result<Vec<Question>, Failure> {
    let settings = knob(parse_settings(&options.set))?;
    if let Some(setting) = settings.iter().find(|setting| setting.values.len() > 1) {
        let name = setting.knob.spec().name;
        return Err(Failure(format!("--set {name} has several values; --knob {name}=V,V searches them")));
    }
    let chosen =
        knob(options.knob.iter().map(|text| KnobChoice::parse(text)).collect::<Result<Vec<_>, _>>())?;
    let asked = Asked { settings, policy: options.policy.as_deref().map(policy).transpose()? };
    for name in options.machine.iter().filter(|name| *name != THIS) {
        machine(name)?;
    }
    let experiment = experiment_of(&options.what)?;
    let wholes = match &experiment {
        Some(experiment) => of_experiment(global, options, experiment, &asked)?,
        None => of_recording(global, options, &asked)?,
    };
    let mut questions = vec![];
    for (at, (side, grounds)) in wholes.iter().enumerate() {
        let mut also = vec![];
        let others = wholes.iter().enumerate().filter(|(other, _)| *other != at);
        for (_, (_, other)) in others {
            also.extend(other.last().map(|ground| (ground.name(), ground.clone())));
        }
        let profile = grounds.last().and_then(|ground| ground.subject.profile());
        for what in &options.also {
            let Some(profile) = profile else { continue };
            let ground = whole_of(options, what, profile, side)?;
            also.push((ground.name(), ground));
        }
        questions.push(Question {
            grounds: grounds.clone(),
            also,
            base: side.clone(),
            knobs: chosen.clone(),
            goals: options.goal.clone(),
            keep: options.keep.clone(),
            seed: global.seed,
            seeds: options.seeds,
            unseen: options.unseen,
            budget: options.budget,
            method: if options.every { Method::Every } else { Method::Race },
        });
    }
    Ok(questions)
}

/// What is said of the current setting.
struct Asked {
    settings: Vec<Setting>,
    policy: Option<mm::Policy>,
}

/// A recording on each machine, shortened and whole.
fn of_recording(global: &Global, options: &Tune, asked: &Asked) -> Result<Vec<(Side, Vec<Ground>)>, Failure> {
    if options.variant.is_some() {
        return Err(Failure("--variant is for experiments; a recording has none".to_owned()));
    }
    let policy = asked.policy.clone().map_or_else(|| policy(DEFAULT_POLICY), Ok)?;
    let side = Side { policy, knobs: knobs(&[], &asked.settings, 0) };
    let path = Path::new(&options.what);
    let content = digest(fs::read(path).map_err(|error| Failure::at(path, error))?);
    let mut forms = vec![];
    for permille in SHORTENED {
        forms.extend(shortened(path, permille)?.map(|source| (permille, source)));
    }
    forms.push((1000, workload(path)?));
    let this = [THIS.to_owned()];
    let machines = if options.machine.is_empty() { &this[..] } else { &options.machine };
    let on_machine = |name: &String| -> Result<(Side, Vec<Ground>), Failure> {
        let mut plan = Plan::new(machine_or_this(global, name)?, side.policy.clone());
        plan.copies = options.copies.unwrap_or(1);
        let ground = |(permille, source): &(u64, lab::replay::Source)| Ground {
            subject: Subject::Replay(Box::new(source.clone()), Box::new(plan.clone())),
            permille: *permille,
            content: format!("{content} {permille}"),
        };
        Ok((side.clone(), forms.iter().map(ground).collect()))
    };
    machines.iter().map(on_machine).collect()
}

/// A variant of an experiment on each machine, shortened and whole.
fn of_experiment(
    global: &Global,
    options: &Tune,
    experiment: &Experiment,
    asked: &Asked,
) -> Result<Vec<(Side, Vec<Ground>)>, Failure> {
    if options.copies.is_some() {
        return Err(Failure("--copies is for recordings; an experiment says what runs".to_owned()));
    }
    let chosen = options.variant.as_deref().map(|name| case(experiment, name)).transpose()?;
    let mut places = vec![];
    for name in &options.machine {
        places.push(Some(machine_or_this(global, name)?));
    }
    if places.is_empty() {
        places.push(None);
    }
    let on_machine = |profile: &Option<Profile>| {
        let mut experiment = experiment.clone();
        let runs_there = |of: &Case| {
            profile
                .as_ref()
                .is_none_or(|profile| experiment.variants[of.variant].setup.profile.name() == profile.name())
        };
        let found =
            chosen.or_else(|| experiment.cases().find(runs_there)).or_else(|| experiment.cases().next());
        let Some(case) = found else {
            return Err(Failure(format!("{} has no variant to tune", experiment.name)));
        };
        if let Some(profile) = profile {
            experiment.move_to(case, profile);
        }
        Ok(of_case(&experiment, case, asked))
    };
    places.iter().map(on_machine).collect()
}

fn of_case(experiment: &Experiment, case: Case, asked: &Asked) -> (Side, Vec<Ground>) {
    let setup = &experiment.variants[case.variant].setup;
    let policy = asked.policy.clone().unwrap_or_else(|| setup.policy.clone());
    let side = Side { policy, knobs: knobs(&setup.knobs, &asked.settings, 0) };
    let ground = |permille: u64| Ground {
        subject: Subject::Case(Box::new(experiment.shortened(case, permille)), case),
        permille,
        content: String::new(),
    };
    (side, SHORTENED.into_iter().chain([1000]).map(ground).collect())
}

/// Another recording or experiment, whole, on a machine.
fn whole_of(options: &Tune, what: &str, profile: &Profile, side: &Side) -> Result<Ground, Failure> {
    if let Some(mut experiment) = experiment_of(what)? {
        let named = options.variant.as_deref().and_then(|name| experiment.case(name));
        let Some(case) = named.or_else(|| experiment.cases().next()) else {
            return Err(Failure(format!("{} has no variant to try the winner on", experiment.name)));
        };
        experiment.move_to(case, profile);
        let subject = Subject::Case(Box::new(experiment), case);
        return Ok(Ground { subject, permille: 1000, content: String::new() });
    }
    let path = Path::new(what);
    let content = digest(fs::read(path).map_err(|error| Failure::at(path, error))?);
    let mut plan = Plan::new(profile.clone(), side.policy.clone());
    plan.copies = options.copies.unwrap_or(1);
    let subject = Subject::Replay(Box::new(workload(path)?), Box::new(plan));
    Ok(Ground { subject, permille: 1000, content: format!("{content} 1000") })
}
