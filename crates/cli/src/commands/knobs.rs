//! `freehold knobs`.

use host::KnobFile;
use lab::measurements::Run;
use lab::replay::survey::Survey;
use mm::{KNOBS, Knob};
use serde::Serialize;

use super::replay::workload;
use crate::args::{Global, KnobPage, Knobs, KnobsWhat};
use crate::common::{CommandVerdict, Failure, machine, note, show};
use crate::output::Destination;
use crate::progress::Bar;
use crate::this_machine::stand_in;

/// A knob as `--json` prints it.
#[derive(Serialize)]
struct KnobEntry {
    name: &'static str,
    min: u64,
    max: u64,
    /// Under the default policy, as distributions build its kernel.
    default: u64,
    unit: &'static str,
    /// Its values' words, the least value first; empty where all are numbers.
    words: Vec<&'static str>,
    meaning: &'static str,
    stands_for: String,
    /// The mainline kernels that have it; none: a patch's, or a constant of the build.
    kernels: Option<String>,
    /// What the running kernel's file says; none: there is no such file.
    #[serde(skip_serializing_if = "Option::is_none")]
    here: Option<String>,
    /// Lines for a root shell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    to_set: Vec<String>,
}

pub(crate) fn run(global: &Global, options: &Knobs) -> Result<CommandVerdict, Failure> {
    match &options.what {
        None | Some(KnobsWhat::List) => list(global),
        Some(KnobsWhat::Show { knob, value }) => one(global, knob, value.as_deref()),
        Some(KnobsWhat::Page(options)) => page(global, options),
    }
}

/// All of them.
#[derive(Serialize)]
struct KnobEntries {
    knobs: Vec<KnobEntry>,
}

fn list(global: &Global) -> Result<CommandVerdict, Failure> {
    let entries: Vec<KnobEntry> = KNOBS.iter().map(|spec| entry(spec.knob)).collect();
    show(global, "Every tunable", &KnobEntries { knobs: entries }, report::knobs::list)?;
    Ok(CommandVerdict::Fine)
}

fn one(global: &Global, name: &str, value: Option<&str>) -> Result<CommandVerdict, Failure> {
    let knob = report::knobs::find(name).map_err(Failure)?;
    let value = value.map(|text| knob.parse_one(text)).transpose().map_err(Failure::of)?;
    let here = knob.spec().stands_for.path().map(KnobFile::read);
    let holds = match &here {
        Some(KnobFile::Holds(text)) => Some(text.clone()),
        _ => None,
    };
    let to_set = report::knobs::commands(knob, value, here.as_ref());
    let entry = KnobEntry { here: holds, to_set, ..entry(knob) };
    show(global, name, &KnobEntries { knobs: vec![entry] }, |style| {
        report::knobs::show(style, knob, value, here.as_ref())
    })?;
    Ok(CommandVerdict::Fine)
}

/// The page of what every knob does to recordings.
fn page(global: &Global, options: &KnobPage) -> Result<CommandVerdict, Failure> {
    let output = Destination::of(&options.output)?;
    let workloads =
        options.files.iter().map(|file| workload(file, &stand_in()?)).collect::<Result<Vec<_>, _>>()?;
    let machines = options.machine.iter().map(|name| machine(name)).collect::<Result<Vec<_>, _>>()?;
    let mut survey = Survey::of(workloads, machines);
    let bar = Bar::new(global, survey.simulations() as u64);
    let done = |run: &Run| bar.step(format!("{} on {} {}", run.workload, run.machine, run.variant));
    survey.simulate(|_| true, &done).map_err(Failure::of)?;
    bar.done();
    output.write(report::knob_page::markdown(survey.trials()).as_bytes())?;
    note(global, &format!("{} is written", options.output.display()));
    Ok(CommandVerdict::Fine)
}

fn entry(knob: Knob) -> KnobEntry {
    let spec = knob.spec();
    KnobEntry {
        name: spec.name,
        min: spec.min,
        max: spec.max,
        default: mm::Policy::default().default_of(knob),
        unit: spec.unit,
        words: knob.words().iter().map(|word| word.word).collect(),
        meaning: spec.meaning,
        stands_for: spec.stands_for.to_string(),
        kernels: spec.kernels.map(|kernels| kernels.to_string()),
        here: None,
        to_set: vec![],
    }
}
