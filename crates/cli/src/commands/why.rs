//! `freehold why`: which rule, of which commit, or which setting makes the difference between two sides of a recording or an
//! experiment.

use std::path::Path;

use lab::measurements::Document;
use lab::replay::{Setting, parse_settings_of_all};
use lab::subject::AskedError;
use lab::why::{Answer, Asked, Question, explain};
use report::nearest::no_question;

use super::replay::workload;
use super::subject::experiment_of;
use crate::args::{Global, Why};
use crate::common::{CommandVerdict, Failure, Texts, answer, command_line, knob, machine};
use crate::progress::Bar;
use crate::this_machine::{Machines, THIS, machine_or_this};

pub(crate) fn run(global: &Global, options: &Why) -> Result<CommandVerdict, Failure> {
    let settings = knob(parse_settings_of_all(&options.set))?;
    let question = question(global, options, &settings)?;
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

fn question(global: &Global, options: &Why, settings: &[Setting]) -> Result<Question, Failure> {
    let asked = Asked {
        from: options.from.as_deref(),
        to: options.to.as_deref(),
        variant: options.variant.as_deref(),
        settings,
        copies: options.copies,
        goals: &options.goal,
        seed: global.seed,
        seeds: options.seeds,
        forced: options.force,
    };
    let said = |error: AskedError| Failure(no_question(&error));
    if let Some(experiment) = experiment_of(&options.what)? {
        let profile = options.machine.as_ref().map(|name| machine_or_this(global, name)).transpose()?;
        return asked.of_experiment(experiment, profile.as_ref()).map_err(said);
    }
    // What is wrong with anything else is said before this machine is measured, which takes seconds.
    asked.sides().map_err(said)?;
    let name = options.machine.as_deref().unwrap_or(THIS);
    if name != THIS {
        machine(name)?;
    }
    let path = Path::new(&options.what);
    let names = [name.to_owned()];
    let machines = Machines::new(global, &names);
    let source = workload(path, &machines.that_made(path)?)?;
    let profile = machines.profiles()?.remove(0);
    asked.of_recording(source, profile).map_err(said)
}
