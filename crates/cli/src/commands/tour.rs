//! `freehold try`: records the Python loop of Yafang Shao's post (docs/published.md#shao-2024) at a size that takes
//! seconds here, replays it with ten copies on two machines with `vm.pcp_batch_scale_max` at 5 and at 0, and says what
//! changed and how sure we are. What was published was measured with loops of 6 GiB, so nothing of the recording is set
//! beside it: the post's own loop is, on a scale model of the post's machines.

use std::path::{Path, PathBuf};

use lab::evidence::{Table, intervals};
use lab::experiment::{self, Experiment, Options};
use lab::findings::findings;
use lab::measurements::{Document, Row, means};
use lab::replay::{Plan, parse_setting};
use mm::Policy;
use trace::{Group, RecordOptions, Target};

use super::record::{capture, explain};
use super::replay::{runs, workload};
use crate::args::{Global, Try};
use crate::common::{CommandVerdict, Failure, Texts, answer, command_line, machine, note, policy};
use crate::fail_if;
use crate::output::Destination;
use crate::progress::Bar;
use crate::this_machine::stand_in;

/// The machines of the post that ran with both values.
const MACHINES: [&str; 2] = ["epyc-7w83", "xeon-8260-1n"];
/// The experiment that has the post's figures.
const POST: &str = "pcp-batch";
/// The post's machines and its loop are divided by this, as in the experiment: at 1/32 the EPYC's second cache level would be
/// smaller than its first.
const SCALE: u32 = 16;
/// The seed ran upstream Linux of its day with the series that adds the knob.
const POLICY: &str = "linux-6.11+pcp_batch_scale_max";
const COPIES: u32 = 10;
const ROUNDS: u32 = 3;
/// One seed would be no answer: where copies begin decides whom they meet.
const SEEDS: u32 = 3;

/// The recording that comes along, for machines that may not record: the same loop over 128 MiB, masked.
const BUNDLED: &[u8] = include_bytes!("../../../../recordings/python-loop-128m.rec");

pub(crate) fn run(global: &Global, options: &Try) -> Result<CommandVerdict, Failure> {
    let bounds = fail_if::read(&options.bounds)?;
    let folder = tempfile::tempdir().map_err(Failure::of)?;
    let file = options.keep.clone().unwrap_or_else(|| folder.path().join("python-loop.rec"));
    obtain(global, options, &file)?;
    let workload = workload(&file, &stand_in()?)?;
    let mut document = Document::new(command_line());
    let machines = MACHINES.join(" and ");
    note(global, &format!("replaying {COPIES} copies of it on {machines}, vm.pcp_batch_scale_max 5 and 0 …"));
    for name in MACHINES {
        let plan = plan(global, name, policy(POLICY)?)?;
        document.runs.extend(runs(global, &workload, &[plan], 0)?);
    }
    document.means = means(&document.runs);
    fail_if::hold(&bounds, &mut document)?;
    intervals(Table::bundled(), &mut document);
    document.findings = findings(&document.runs);
    note(global, &format!("running the loop of the post on its machines, all divided by {SCALE} …"));
    document.rows = like_with_like(global)?;
    answer(global, &document, &Texts { short: report::verdict::replay, full: report::replay::full })?;
    note(
        global,
        "next: freehold record -o my.rec -- CMD, then freehold replay my.rec --machine NAME --set KNOB=V,V; the post's \
         histograms beside ours: freehold lab run pcp-batch",
    );
    Ok(if fail_if::is_broken(&document) { CommandVerdict::FellShort } else { CommandVerdict::Fine })
}

fn plan(global: &Global, name: &str, policy: Policy) -> Result<Plan, Failure> {
    let mut plan = Plan::new(machine(name)?, policy);
    plan.settings = vec![parse_setting("vm.pcp_batch_scale_max=5,0").map_err(Failure::of)?];
    plan.copies = COPIES;
    plan.repeat = ROUNDS;
    plan.seeds = SEEDS;
    plan.seed = global.seed;
    Ok(plan)
}

/// The published mean refills beside those of the experiment that has them, on a smaller model than its own.
fn like_with_like(global: &Global) -> Result<Vec<Row>, Failure> {
    let post = post()?;
    let bar = Bar::new(global, post.variants.len() as u64);
    let options = Options { seeds: Some(1), first_seed: global.seed, ..Options::default() };
    let done = |what: &str| bar.step(what.to_owned());
    let document = experiment::run(vec![post], &options, &done).map_err(Failure::of)?;
    bar.done();
    let mut rows = document.rows;
    rows.retain(|row| row.metric == "refill.mean_ns");
    for row in &mut rows {
        row.experiment = format!("the post's loop of 6 GiB, all divided by {SCALE}");
    }
    Ok(rows)
}

/// The experiment with the post's loop at its full size, on the machines of the tour and divided by [`SCALE`] with them.
fn post() -> Result<Experiment, Failure> {
    let mut post = Experiment::load(POST).map_err(Failure::of)?;
    post.comparisons.clear();
    post.variants.retain(|variant| MACHINES.contains(&variant.setup.profile.name()));
    for variant in &mut post.variants {
        variant.setup.shrink = SCALE;
    }
    Ok(post)
}

/// Puts a recording of the loop at `file`: made here if that is permitted, else the one that comes along.
fn obtain(global: &Global, options: &Try, file: &Path) -> Result<(), Failure> {
    if options.bundled {
        note(global, "taking the recording that comes with freehold");
        return bundled(file);
    }
    note(global, &format!("recording Yafang Shao's Python loop over {} MiB …", options.mib));
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

/// One round of the post's loop, over `mib` MiB instead of 6 GiB.
fn record_options(mib: u32, file: &Path) -> RecordOptions {
    let program = format!("import mmap; n={mib}<<20; m=mmap.mmap(-1,n); m[:]=b'\\xff'*n; m.close()");
    let command = [python(), "-c", &program].map(Into::into).to_vec();
    let mut options = RecordOptions::new(PathBuf::from(file), Target::Command(command));
    // What the post's loop asks of the page allocator, as it ran.
    options.groups = [Group::Page, Group::Sched].into();
    options.keep_huge_pages = true;
    options
}

/// The system's own interpreter where there is one: what stands first in PATH may be a script that starts others.
fn python() -> &'static str {
    const SYSTEM: &str = "/usr/bin/python3";
    if Path::new(SYSTEM).exists() { SYSTEM } else { "python3" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published figures stand beside a loop of the published size only, on a machine that is divided by the same number.
    #[test]
    fn what_stands_beside_published_figures_is_the_posts_loop_to_scale() {
        let post = post().expect("the experiment comes along");
        assert_eq!(post.variants.len(), 2 * MACHINES.len(), "two values on each machine");
        for variant in &post.variants {
            let parameter = |name: &str| variant.setup.workload.get(name)?.as_integer();
            assert_eq!(
                (parameter("mib"), parameter("processes")),
                (Some(6144), Some(10)),
                "{}",
                variant.name
            );
            assert!(parameter("rounds_before") >= Some(24), "{}: lists of many rounds", variant.name);
            assert_eq!(variant.setup.shrink, SCALE);
            assert!(!variant.histograms.is_empty(), "{}: nothing was published of it", variant.name);
        }
    }
}
