//! `freehold try`: records the Python loop of seed 000 at a size that takes seconds here, replays it with ten copies on
//! two machines with `vm.pcp_batch_scale_max` at 5 and at 0, and says what changed and how sure we are.

use std::path::{Path, PathBuf};

use lab::measurements::{Document, Role, Row, Run};
use lab::replay::{Plan, parse_setting};
use mm::Policy;
use trace::{RecordOptions, Target};

use super::record::{capture, explain};
use super::replay::{runs, workload};
use crate::args::{Global, Try};
use crate::common::{Failure, Verdict, command_line, machine, note, policy, present};
use crate::output::Destination;

/// The machines of the seed, with the mean duration of rmqueue_bulk that it measured at 5 and at 0, in ns: ten loops of
/// 6 GiB over 600 s, on upstream Linux with the series.
const MACHINES: [(&str, [u32; 2]); 2] =
    [("epyc-7w83", [449_775, 19_359]), ("xeon-8260-1n", [144_410, 8_401])];
const SOURCE: &str = "Yafang Shao, linux-mm, 29 July 2024, 20240729023532.1555-4-laoar.shao@gmail.com";
/// The seed ran upstream Linux of its day with the series that adds the knob.
const POLICY: &str = "linux-6.11+pcp_batch_scale_max";
const COPIES: u32 = 10;
const ROUNDS: u32 = 3;

/// The recording that comes along, for machines that may not record: the same loop over 128 MiB, masked.
const BUNDLED: &[u8] = include_bytes!("../../../../recordings/python-loop-128m.rec");

pub(crate) fn run(global: &Global, options: &Try) -> Result<Verdict, Failure> {
    let folder = tempfile::tempdir().map_err(Failure::of)?;
    let file = options.keep.clone().unwrap_or_else(|| folder.path().join("python-loop.rec"));
    obtain(global, options, &file)?;
    let workload = workload(&file)?;
    let mut document = Document::new(command_line());
    let machines = MACHINES.map(|(name, _)| name).join(" and ");
    note(global, &format!("replaying {COPIES} copies of it on {machines}, vm.pcp_batch_scale_max 5 and 0 …"));
    for (name, published) in MACHINES {
        let plan = plan(global, name, policy(POLICY)?)?;
        let runs = runs(global, &workload, &plan, 0)?;
        document.rows.extend(runs.iter().zip(published).filter_map(|(run, published)| row(run, published)));
        document.runs.extend(runs);
    }
    present(global, &document, |style| report::replay::brief(style, &document))?;
    note(
        global,
        "next: freehold record -o my.rec -- CMD, then freehold replay my.rec --machine NAME --set KNOB=V,V",
    );
    Ok(Verdict::Fine)
}

fn plan(global: &Global, name: &str, policy: Policy) -> Result<Plan, Failure> {
    let mut plan = Plan::new(machine(name)?, policy);
    plan.settings = vec![parse_setting("vm.pcp_batch_scale_max=5,0").map_err(Failure::of)?];
    plan.copies = COPIES;
    plan.repeat = ROUNDS;
    plan.seed = global.seed;
    Ok(plan)
}

/// A run's mean refill beside the published one. The workload is far smaller than the post's, so only the direction can
/// be expected to agree.
fn row(run: &Run, published_ns: u32) -> Option<Row> {
    let simulated = run.latency.get("refill")?.mean_ns as f64;
    let published = f64::from(published_ns);
    Some(Row {
        experiment: "beside what seed 000 measured with 6 GiB a process".into(),
        variant: format!("{} {}", run.machine, run.variant),
        metric: "refill.mean_ns".into(),
        unit: "ns".into(),
        published,
        simulated,
        stddev: 0.0,
        error: simulated / published - 1.0,
        role: Role::Predicted,
        source: SOURCE.into(),
        ..Row::default()
    })
}

/// Puts a recording of the loop at `file`: made here if that is permitted, else the one that comes along.
fn obtain(global: &Global, options: &Try, file: &Path) -> Result<(), Failure> {
    if options.bundled {
        note(global, "taking the recording that comes with freehold");
        return bundled(file);
    }
    note(global, &format!("recording seed 000's Python loop over {} MiB …", options.mib));
    match capture(global, record_options(options.mib, file)) {
        Ok(summary) if summary.events > 0 => {
            note(global, &format!("recorded {} events, {} lost", summary.events, summary.lost));
            Ok(())
        }
        Ok(_) => {
            note(global, "nothing was recorded here; taking the recording that comes with freehold");
            bundled(file)
        }
        Err(error) => {
            let Failure(why) = explain(file, &error);
            note(
                global,
                &format!("cannot record here ({why}); taking the recording that comes with freehold"),
            );
            bundled(file)
        }
    }
}

fn bundled(file: &Path) -> Result<(), Failure> {
    Destination::of(file)?.write(BUNDLED)
}

/// One round of the seed's loop, over `mib` MiB instead of 6 GiB.
fn record_options(mib: u32, file: &Path) -> RecordOptions {
    let program = format!("import mmap; n={mib}<<20; m=mmap.mmap(-1,n); m[:]=b'\\xff'*n; m.close()");
    let command = [python(), "-c", &program].map(Into::into).to_vec();
    RecordOptions::new(PathBuf::from(file), Target::Command(command))
}

/// The system's own interpreter where there is one: what stands first in PATH may be a script that starts others.
fn python() -> &'static str {
    const SYSTEM: &str = "/usr/bin/python3";
    if Path::new(SYSTEM).exists() { SYSTEM } else { "python3" }
}
