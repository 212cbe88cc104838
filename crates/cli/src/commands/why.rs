//! `freehold why`: which rule, of which commit, or which setting makes the difference between two sides of a recording or an
//! experiment.

use std::path::Path;

use lab::experiment::{Case, Experiment};
use lab::measurements::Document;
use lab::replay::{Plan, Setting, parse_settings};
use lab::subject::{Side, Subject};
use lab::why::{Answer, Question, explain};
use mm::policy::DEFAULT_POLICY;

use super::replay::workload;
use super::subject::{case, experiment_of, knobs};
use crate::args::{Global, Why};
use crate::common::{CommandVerdict, Failure, Texts, answer, command_line, knob, machine, policy};
use crate::progress::Bar;
use crate::this_machine::{THIS, machine_or_this};

pub(crate) fn run(global: &Global, options: &Why) -> Result<CommandVerdict, Failure> {
    let settings = knob(parse_settings(&options.set))?;
    if let Some(setting) = settings.iter().find(|setting| setting.values.len() > 2) {
        let name = setting.knob.spec().name;
        return Err(Failure(format!(
            "--set {name} has {} values; a question has two sides",
            setting.values.len()
        )));
    }
    let question = match experiment_of(&options.what)? {
        Some(experiment) => about_experiment(global, options, experiment, &settings)?,
        None => about_recording(global, options, &settings)?,
    };
    check(options, &question)?;
    let bar = Bar::new(global, 0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs).build().map_err(Failure::of)?;
    let done = |what: &str| bar.step(what.to_owned());
    let Answer { why, runs } = pool.install(|| explain(&question, &done)).map_err(Failure::of)?;
    bar.done();
    let short = report::shortfall::line(&runs);
    let mut document = Document { runs, why: Some(why), ..Document::new(command_line()) };
    let damage = question.subject.damage();
    document
        .notes
        .extend(damage.map(|damage| format!("{} {damage}; what of it is whole was replayed", options.what)));
    answer(global, &document, &Texts { short: report::why::answer, full: report::why::full })?;
    Ok(match short {
        Some(line) => {
            eprintln!("freehold: {line}");
            CommandVerdict::FellShort
        }
        None if damage.is_some() => CommandVerdict::FellShort,
        None => CommandVerdict::Fine,
    })
}

fn about_recording(global: &Global, options: &Why, settings: &[Setting]) -> Result<Question, Failure> {
    if options.variant.is_some() {
        return Err(Failure("--variant is for experiments; a recording has none".to_owned()));
    }
    let from = options.from.as_deref().unwrap_or(DEFAULT_POLICY);
    let first = Side { policy: policy(from)?, knobs: knobs(&[], settings, 0) };
    let second = Side { policy: policy(&second_name(options, from))?, knobs: knobs(&[], settings, 1) };
    // What is wrong with anything else is said before this machine is measured, which takes seconds.
    let name = options.machine.as_deref().unwrap_or(THIS);
    if name != THIS {
        machine(name)?;
    }
    let source = workload(Path::new(&options.what))?;
    let mut plan = Plan::new(machine_or_this(global, name)?, first.policy.clone());
    plan.copies = options.copies.unwrap_or(1);
    Ok(question(global, options, Subject::Replay(Box::new(source), Box::new(plan)), [first, second]))
}

fn about_experiment(
    global: &Global,
    options: &Why,
    mut experiment: Experiment,
    settings: &[Setting],
) -> Result<Question, Failure> {
    if options.copies.is_some() {
        return Err(Failure("--copies is for recordings; an experiment says what runs".to_owned()));
    }
    let named = |name: &Option<String>| name.as_deref().and_then(|name| experiment.case(name));
    let (from, to) = (named(&options.from), named(&options.to));
    let chosen = options.variant.as_deref().map(|name| case(&experiment, name)).transpose()?;
    let Some(base) = chosen.or(from).or(to).or_else(|| experiment.cases().next()) else {
        return Err(Failure(format!("{} has no variant to ask about", experiment.name)));
    };
    for other in [from, to].into_iter().flatten() {
        if let Some(what) = experiment.differs_in(base, other) {
            let (one, two) = (experiment.case_name(base), experiment.case_name(other));
            return Err(Failure(format!(
                "{one} and {two} differ in {what}, too; take two that differ in policy and knobs alone"
            )));
        }
    }
    let setup = experiment.variants[base.variant].setup.clone();
    let side = |case: Option<Case>, name: Option<&str>, place: usize| -> Result<Side, Failure> {
        let of_case = case.map(|case| &experiment.variants[case.variant].setup);
        let policy = match (of_case, name) {
            (Some(setup), _) => setup.policy.clone(),
            (None, Some(name)) => policy(name)?,
            (None, None) => setup.policy.clone(),
        };
        Ok(Side { policy, knobs: knobs(&of_case.unwrap_or(&setup).knobs, settings, place) })
    };
    let first = side(from, options.from.as_deref(), 0)?;
    let second_policy = second_name(options, first.policy.name());
    let second = match (to, &options.to) {
        (None, None) => Side { policy: first.policy.clone(), ..side(from, None, 1)? },
        (case, _) => side(case, Some(&second_policy), 1)?,
    };
    if let Some(name) = &options.machine {
        let profile = machine_or_this(global, name)?;
        experiment.move_to(base, &profile);
    }
    Ok(question(global, options, Subject::Case(Box::new(experiment), base), [first, second]))
}

/// The policy of the second side, `+part` spelled out.
fn second_name(options: &Why, first: &str) -> String {
    match options.to.as_deref() {
        Some(part) if part.starts_with('+') => format!("{first}{part}"),
        Some(name) => name.to_owned(),
        None => first.to_owned(),
    }
}

fn question(global: &Global, options: &Why, subject: Subject, [from, to]: [Side; 2]) -> Question {
    Question { subject, from, to, goals: options.goal.clone(), seed: global.seed, seeds: options.seeds }
}

/// Two sides that are one, and knobs that a side's kernel does not have or that can act on neither, are no question.
fn check(options: &Why, question: &Question) -> Result<(), Failure> {
    let Question { subject, from, to, .. } = question;
    if from == to {
        let name = from.name();
        return Err(Failure(format!(
            "both sides are {name}; name another with --to, or give a knob two values: --set KNOB=A,B"
        )));
    }
    for (side, knob, value) in [from, to]
        .into_iter()
        .flat_map(|side| side.knobs.iter().map(move |&(knob, value)| (side, knob, value)))
    {
        side.policy.check_knob(knob, value).map_err(Failure::of)?;
    }
    let (one, two) = (subject.refusals(from), subject.refusals(to));
    let idle = one.iter().find(|refusal| two.iter().any(|other| other.knob == refusal.knob));
    match idle.filter(|_| !options.force) {
        Some(refusal) => Err(Failure(format!("{refusal}; --force asks all the same"))),
        None => Ok(()),
    }
}
