//! `freehold tune`: which setting is the best for a recording or an experiment on a machine.

use std::fs;
use std::path::Path;

use lab::measurements::{Document, Tune as Tuned};
use lab::replay::parse_settings_of_all;
use lab::subject::AskedError;
use lab::tune::{Answer, Journal, KnobChoice, Method, Prepared, Question, Terms, Workload};
use report::Style;
use report::nearest::no_question;
use sim::profile::digest;

use super::ask_tell;
use super::replay::recorded;
use super::subject::experiment_of;
use crate::args::{Global, Tune};
use crate::common::{CommandVerdict, Failure, command_line, knob, machine, note, present};
use crate::progress::Bar;
use crate::this_machine::{Machines, THIS};

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
    let ahead = |prepared: &Prepared| {
        let space = prepared.space();
        if global.full { report::tune::space(Style::plain(), &space) } else { report::tune::ahead(&space) }
    };
    let mut said: Vec<String> = prepared.iter().map(ahead).collect();
    // Most machines have the same space.
    said.dedup();
    for space in said {
        note(global, space.trim_end());
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
    let text = if global.full { report::tune::full } else { report::tune::answer };
    present(global, &document, |style| text(style, &document))?;
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
    let settings = knob(parse_settings_of_all(&options.set))?;
    let chosen =
        knob(options.knob.iter().map(|text| KnobChoice::parse(text)).collect::<Result<Vec<_>, _>>())?;
    let terms = Terms {
        settings: &settings,
        policy: options.policy.as_deref(),
        variant: options.variant.as_deref(),
        copies: options.copies,
        knobs: &chosen,
        goals: &options.goal,
        keep: &options.keep,
        seed: global.seed,
        seeds: options.seeds,
        unseen: options.unseen,
        budget: options.budget,
        method: if options.every { Method::Every } else { Method::Race },
    };
    let said = |error: AskedError| Failure(no_question(&error));
    // What is wrong with anything is said before this machine is measured, which takes seconds.
    for name in options.machine.iter().filter(|name| *name != THIS) {
        machine(name)?;
    }
    let this = [THIS.to_owned()];
    let machines = Machines::new(global, if options.machine.is_empty() { &this } else { &options.machine });
    let searched = searched(&options.what, &machines)?;
    terms.check(&searched).map_err(said)?;
    let also = options.also.iter().map(|what| self::searched(what, &machines));
    let also = also.collect::<Result<Vec<_>, _>>()?;
    let is_own = options.machine.is_empty() && matches!(searched, Workload::Experiment(_));
    let profiles = if is_own { vec![] } else { machines.profiles()? };
    terms.questions(&searched, &profiles, &also).map_err(said)
}

/// The recording or experiment called so.
fn searched(what: &str, machines: &Machines<'_>) -> Result<Workload, Failure> {
    if let Some(experiment) = experiment_of(what)? {
        return Ok(Workload::Experiment(Box::new(experiment)));
    }
    let path = Path::new(what);
    recorded(path, &machines.that_made(path)?).map(Workload::Recording)
}
