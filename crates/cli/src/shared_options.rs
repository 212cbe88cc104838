//! Which command honours which of the options that may stand anywhere. A command refuses an option that it cannot honour:
//! an option that is taken and ignored looks as if it had worked.

use crate::args::{BenchWhat, Command, Global, LabWhat};
use crate::common::Failure;

/// An option of [`Global`] that some commands have no use for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SharedOption {
    Csv,
    Full,
    Json,
    Report,
    Seed,
}

use SharedOption::{Csv, Full, Json, Report, Seed};

impl SharedOption {
    const ALL: [Self; 5] = [Csv, Full, Json, Report, Seed];

    const fn name(self) -> &'static str {
        match self {
            Csv => "--csv",
            Full => "--full",
            Json => "--json",
            Report => "--report",
            Seed => "--seed",
        }
    }

    fn is_given(self, global: &Global) -> bool {
        match self {
            Csv => global.csv,
            Full => global.full,
            Json => global.json,
            Report => global.report.is_some(),
            Seed => global.seed_given,
        }
    }
}

/// A command's words and what it honours.
type CommandOptions = (&'static str, &'static [SharedOption]);

/// The table.
fn row(command: &Command) -> CommandOptions {
    match command {
        Command::Try(_) => ("try", &[Csv, Full, Json, Report, Seed]),
        Command::Record(_) => ("record", &[Json]),
        Command::Inspect(options) if options.mask.is_some() => ("inspect --mask", &[]),
        Command::Inspect(_) => ("inspect", &[Json, Report]),
        Command::Heat(_) => ("heat", &[Json, Report]),
        Command::Replay(_) => ("replay", &[Csv, Full, Json, Report, Seed]),
        Command::Why(_) => ("why", &[Csv, Full, Json, Report, Seed]),
        Command::Apply(_) => ("apply", &[Json, Report]),
        Command::Tune(_) => ("tune", &[Csv, Full, Json, Report, Seed]),
        Command::Sweep(_) => ("sweep", &[]),
        Command::Conform(_) => ("conform", &[Csv, Json, Report]),
        Command::Lab(options) => match &options.what {
            None | Some(LabWhat::List) => ("lab list", &[Csv, Json, Report]),
            Some(LabWhat::Metrics) => ("lab metrics", &[Csv, Json, Report]),
            Some(LabWhat::Run { .. }) => ("lab run", &[Csv, Full, Json, Report, Seed]),
            Some(LabWhat::All { .. }) => ("lab all", &[Csv, Full, Json, Report, Seed]),
        },
        Command::Machines(_) => ("machines", &[Csv, Json, Report]),
        Command::Validate(_) => ("validate", &[Csv, Full, Json, Report, Seed]),
        Command::Bench(options) => match &options.what {
            None => ("bench", &[Csv, Json, Report]),
            Some(BenchWhat::Contention(_)) => ("bench contention", &[Csv, Json, Report]),
        },
        Command::Compare(_) => ("compare", &[Csv, Json, Report]),
        Command::Knobs(_) => ("knobs", &[Csv, Json, Report]),
        Command::Policies(_) => ("policies", &[Csv, Json, Report]),
        Command::Completions(_) => ("completions", &[]),
        Command::Man(_) => ("man", &[]),
        // It is JSON, whatever is asked for.
        Command::Schema => ("schema", &[Json]),
        Command::Evidence(_) => ("evidence", &[]),
        // Its output is JSON, whatever is asked for.
        Command::FaultLoop(_) => ("fault-loop", &[Json]),
    }
}

/// Fails if an option was given that `command` has no use for.
pub(crate) fn check(global: &Global, command: &Command) -> Result<(), Failure> {
    let (words, honoured) = row(command);
    let refused =
        SharedOption::ALL.into_iter().find(|option| option.is_given(global) && !honoured.contains(option));
    refused.map_or(Ok(()), |option| {
        Err(Failure(format!("{words} has no use for {}: {}", option.name(), instead(words, option))))
    })
}

/// What to do in place of it.
fn instead(words: &str, option: SharedOption) -> &'static str {
    match (words, option) {
        ("record", Report) => "`freehold inspect FILE --report` makes a page of a recording",
        (_, Report) => "it prints nothing that a page could show",
        (_, Csv) => "it has no table",
        (_, Full) => "it prints all that it has",
        (_, Json) => "it prints nothing",
        (_, Seed) => "it draws no random numbers",
    }
}
