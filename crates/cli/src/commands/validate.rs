//! `freehold validate`: page-fault workloads on the kernel here, and the same simulated on a profile of this machine.

use std::path::Path;

use host::fault_loop::Memory;
use lab::validate::{self, Case, Compared, Observed, Plan, ProbeCost, Setting, Simulated};
use sim::Profile;
use trace::{Event, Group, Reader, RecordOptions, Target};

use super::{fault_loop, validate_program};
use crate::args::{FaultLoopOptions, Global, MappedMemory, Validate};
use crate::common::{CommandVerdict, Failure, Texts, answer, command_line, machine};
use crate::progress::Bar;
use crate::this_machine::{THIS, this_machine};

/// How long a recorded workload begins rounds. All its events are followed many times over, and there are millions a
/// second.
const RECORDED_MS: u64 = 150;
/// MiB that go from one CPU to another and cause an event a page, for its cost.
const CARRIED_MIB: u32 = 256;
/// Pages of each CPU's ring, the largest first: the reader may have to wait for its turn.
const RING_PAGES: [usize; 3] = [32_768, 8192, 2048];

pub(crate) fn run(global: &Global, options: &Validate) -> Result<CommandVerdict, Failure> {
    validate_program::undo_left()?;
    if !options.command.is_empty() {
        return validate_program::run(global, options);
    }
    if !options.bounds.fail_if.is_empty() {
        return Err(Failure("--fail-if bounds what is predicted of a program: give it as -- CMD".into()));
    }
    let cases = cases(options)?;
    if options.machine != THIS {
        machine(&options.machine)?;
    }
    let bar = Bar::new(global, 1);
    bar.step("what an event costs".into());
    let cost = probe_cost()?;
    bar.done();
    let (profile, mut notes) = profile(global, options)?;
    let title = profile.title().to_owned();
    let bar = Bar::new(global, 3 * cases.len() as u64);
    let mut release = String::new();
    let mut compared = vec![];
    for case in cases {
        bar.step(format!("{case}, unrecorded"));
        let unrecorded = fault_loop::gather(&workload(case, options, options.ms))?;
        bar.step(format!("{case}, recorded"));
        let recorded = record(case, options)?;
        let observed = observe(&recorded, cost)?;
        bar.step(format!("{case}, simulated"));
        let meta = &recorded.meta;
        let plan = Plan::new(profile.clone(), &meta.kernel, &meta.vm, options.mib).map_err(Failure::of)?;
        let simulated = simulate(global, options, &plan, case)?;
        release.clone_from(&meta.kernel);
        compared.push(Compared { case, observed, unrecorded, simulated });
    }
    bar.done();
    notes.extend(host::probe::load_average().map(|load| format!("Load averages at the end: {load}.")));
    let setting = Setting { release, machine: title, cost, notes };
    let document = validate::document(command_line(), &setting, &compared);
    answer(global, &document, &Texts { short: report::verdict::workloads, full: report::validate::text })?;
    let short = validate::marks(&document.rows).iter().any(|mark| mark.within < mark.rows);
    Ok(if short && options.strict { CommandVerdict::FellShort } else { CommandVerdict::Fine })
}

/// Every memory with every number of tasks. More tasks than CPUs would share them, which is another question.
fn cases(options: &Validate) -> Result<Vec<Case>, Failure> {
    let cpus = host::probe::allowed().map_or(1, |cpus| cpus.len() as u32);
    let mut tasks = options.tasks.clone();
    if tasks.is_empty() {
        tasks = if cpus > 1 { vec![1, 2] } else { vec![1] };
    }
    if let Some(many) = tasks.iter().find(|tasks| **tasks > cpus) {
        return Err(Failure(format!(
            "--tasks {many}: this process may use {cpus} CPUs, and each task needs one"
        )));
    }
    let of = |memory: Memory| tasks.iter().map(move |&tasks| Case { memory, tasks });
    let memories: Vec<Memory> = match options.memory {
        Some(memory) => vec![memory.into()],
        None => Memory::ALL.to_vec(),
    };
    Ok(memories.into_iter().flat_map(of).collect())
}

fn probe_cost() -> Result<ProbeCost, Failure> {
    // The thread is sent from CPU to CPU, and this one is to stay free.
    std::thread::scope(|scope| {
        let measure = || {
            let refill = event_cost("kmem:mm_page_alloc_zone_locked")?;
            let drain = event_cost("kmem:mm_page_pcpu_drain")?;
            let missing = || {
                Failure("no refill or drain came of a loop of page faults: nothing can be compared".into())
            };
            // The two events are alike, where one of them would not come.
            Ok(ProbeCost {
                refill_ns: refill.or(drain).ok_or_else(missing)?,
                drain_ns: drain.or(refill).ok_or_else(missing)?,
            })
        };
        let measured = scope.spawn(measure);
        measured.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn event_cost(tracepoint: &str) -> Result<Option<f64>, Failure> {
    let cpus = host::probe::allowed().map_err(|error| Failure(format!("sched_getaffinity: {error}")))?;
    trace::event_cost(tracepoint, &mut || host::fault_loop::carry(CARRIED_MIB, &cpus)).map_err(Failure::of)
}

pub(super) fn profile(global: &Global, options: &Validate) -> Result<(Profile, Vec<String>), Failure> {
    if options.machine != THIS {
        return Ok((machine(&options.machine)?, vec![]));
    }
    let this = this_machine(global)?;
    let notes = this.notes.iter().map(|note| format!("Profile: {note}."));
    Ok((this.profile, notes.collect()))
}

fn workload(case: Case, options: &Validate, ms: u64) -> FaultLoopOptions {
    let memory = match case.memory {
        Memory::Private => MappedMemory::Private,
        Memory::Shared => MappedMemory::Shared,
    };
    FaultLoopOptions { memory, mib: options.mib, ms, tasks: case.tasks, task: None }
}

/// A recording, read.
struct Recorded {
    meta: trace::Meta,
    zoneinfo_after: String,
    events: Vec<Event>,
    tasks: Vec<trace::Task>,
}

/// Records everybody's page events while the workload runs.
fn record(case: Case, options: &Validate) -> Result<Recorded, Failure> {
    let folder =
        tempfile::tempdir().map_err(|error| Failure(format!("a folder for the recording: {error}")))?;
    let file = folder.path().join("validate.rec");
    let program =
        std::env::current_exe().map_err(|error| Failure(format!("finding this program: {error}")))?;
    let words = fault_loop::words(&workload(case, options, RECORDED_MS));
    // What the tasks print is for nobody.
    let script = ["/bin/sh", "-c", "exec \"$0\" \"$@\" >/dev/null"].map(std::ffi::OsString::from);
    let command =
        script.into_iter().chain([program.into()]).chain(words.into_iter().map(Into::into)).collect();
    let mut record = RecordOptions::new(file.clone(), Target::AllWhile(command));
    record.groups = [Group::Page].into();
    record.keep_huge_pages = true;
    record.stop = trace::stop_on_signals().map_err(Failure::of)?;
    let summary = with_largest_ring(&mut record)?;
    if summary.interrupted {
        return Err(Failure("stopped from outside".into()));
    }
    if summary.exit_status != Some(0) {
        return Err(Failure(format!("the recorded page-fault loop failed ({:?})", summary.exit_status)));
    }
    read(&file, summary.zoneinfo)
}

/// A user who may have events may still not have much memory locked for them.
pub(super) fn with_largest_ring(record: &mut RecordOptions) -> Result<trace::Summary, Failure> {
    let mut refusal = None;
    for ring_pages in RING_PAGES {
        record.ring_pages = ring_pages;
        match trace::record(record, &mut ()) {
            Ok(summary) => return Ok(summary),
            Err(error @ (trace::RecordError::Permission(_) | trace::RecordError::System { .. })) => {
                refusal = Some(error);
            }
            Err(error) => return Err(Failure::of(error)),
        }
    }
    Err(refusal.map_or_else(|| Failure("no ring can be had".into()), Failure::of))
}

fn read(file: &Path, zoneinfo_after: String) -> Result<Recorded, Failure> {
    let at = |error: trace::ReadError| Failure::at(file, error);
    let mut reader = Reader::open(file).map_err(at)?;
    let events = reader.events().map_err(at)?.collect::<Result<Vec<_>, _>>().map_err(at)?;
    Ok(Recorded { meta: reader.meta().clone(), zoneinfo_after, events, tasks: reader.tasks().to_vec() })
}

fn observe(recorded: &Recorded, cost: ProbeCost) -> Result<Observed, Failure> {
    let Recorded { meta, zoneinfo_after, events, tasks } = recorded;
    validate::observe(meta, zoneinfo_after, (events, tasks), cost).map_err(Failure::of)
}

fn simulate(global: &Global, options: &Validate, plan: &Plan, case: Case) -> Result<Vec<Simulated>, Failure> {
    let seeds = (0..u64::from(options.seeds)).map(|seed| global.seed.wrapping_add(seed));
    seeds.map(|seed| validate::simulate(plan, case, seed).map_err(Failure::of)).collect()
}
