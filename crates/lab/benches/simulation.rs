//! What simulating costs: page operations and recorded events in a second of CPU time, and the memory of a large machine.
//!
//! Each line has what is aimed at beside it. To compare revisions run it in both, one after the other: a machine that is busy with other
//! things gives other figures.

use std::fs;
use std::io::Cursor;

use freehold_lab::experiment::{self, Experiment, Options};
use freehold_lab::measurements::{Document, Run};
use freehold_lab::replay::{Plan, RecordedOn, Source, Variant, replay};
use mm::{Nanos, Policy};
use sim::Profile;
use trace::Reader;

/// Recorded events that are replayed, about.
const EVENTS: u64 = 20_000_000;
const LOOP: &[u8] = include_bytes!("../../../recordings/python-loop-128m.rec");
/// In which the processes fill 64 GiB of it.
const FILLED: Nanos = Nanos(2_000_000_000);
/// A machine of 1 TiB.
const LARGE: &str = r#"
title = "512 CPUs, two nodes of 512 GiB"
extends = "epyc-2s-512"
[topology]
source = "a bench's"
sockets = 2
cores_per_socket = 128
threads_per_core = 2
cores_per_llc = 8
smt_numbering = "split"
distances = [[10, 32], [32, 10]]
nodes = [{ socket = 0, memory_mib = 524288 }, { socket = 1, memory_mib = 524288 }]
"#;

fn main() {
    page_operations();
    recorded_events();
    large_machine();
}

/// The first variant of the experiment that has the post's loop, changed by `change`.
fn the_posts_loop(machine: Option<Profile>, change: impl Fn(&mut experiment::Variant)) -> Document {
    let mut post = Experiment::load("pcp-batch").expect("it comes along");
    post.variants.truncate(1);
    post.comparisons.clear();
    post.variants.iter_mut().for_each(change);
    let options = Options {
        machines: machine.into_iter().collect(),
        seeds: Some(1),
        forced: true,
        ..Options::default()
    };
    experiment::run(vec![post], &options, &|_| {}).expect("it runs")
}

/// Pages that a run requested and gave back.
fn pages_moved(run: &Run) -> u64 {
    let counters = run.counters.iter();
    counters
        .filter(|(name, _)| name.starts_with("pgalloc_") || *name == "pgfree")
        .map(|(_, count)| count)
        .sum()
}

fn page_operations() {
    let (operations, seconds) = timed_loop(None);
    let (before_clock, start_seconds) = timed_loop(Some(Nanos(1_000_000)));
    println!(
        "pcp-batch's loop: {:.2} M page operations a CPU-second ({operations} in {seconds:.1} s; 10 M are aimed at); after its clock starts {:.2} M",
        operations as f64 / seconds / 1e6,
        (operations - before_clock) as f64 / (seconds - start_seconds) / 1e6
    );
}

/// Page operations of the loop, those before the clock starts too, and its CPU time, s.
fn timed_loop(length: Option<Nanos>) -> (u64, f64) {
    let before = cpu_seconds();
    let document = the_posts_loop(None, |variant| {
        if let Some(length) = length {
            variant.phases[0].length = length;
        }
    });
    (document.runs.iter().map(pages_moved).sum(), cpu_seconds() - before)
}

fn recorded_events() {
    let before = cpu_seconds();
    let machine = Profile::load("kvm-genoa-2c").expect("it comes along");
    let mut reader = Reader::new(Cursor::new(LOOP)).expect("it can be read");
    let source =
        Source::read(&mut reader, "loop", &RecordedOn::StandIn(machine.clone())).expect("it is whole");
    let mut plan = Plan::new(machine, Policy::parse("linux-6.18").expect("there is one"));
    let once = events();
    plan.repeat = (EVENTS / once).max(1) as u32;
    let run = replay(&source, &plan, &Variant::default()).expect("it runs");
    let (seconds, all) = (cpu_seconds() - before, once * u64::from(plan.repeat));
    println!(
        "a recording, {} times: {:.2} M events a CPU-second ({all} in {seconds:.1} s, {} operations; 5 M are aimed at)",
        plan.repeat,
        all as f64 / seconds / 1e6,
        run.operations
    );
}

/// Events of the recording.
fn events() -> u64 {
    let mut reader = Reader::new(Cursor::new(LOOP)).expect("it can be read");
    reader.events().expect("it can be read").filter_map(Result::ok).count() as u64
}

fn large_machine() {
    let machine = Profile::parse("large", LARGE).expect("it is a profile");
    // The high-water mark begins anew.
    let is_reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    // Eleven processes of 6 GiB, not a scale model, from a fresh start.
    let document = the_posts_loop(Some(machine), |variant| {
        variant.phases[0].length = FILLED;
        let setup = &mut variant.setup;
        (setup.shrink, setup.warm_up) = (1, Nanos(0));
        setup.workload.insert("processes".to_owned(), 11.into());
        setup.workload.insert("rounds_before".to_owned(), 0.into());
    });
    let touched = document.runs.iter().map(|run| run.memory.peak_pages).max().unwrap_or(0);
    println!(
        "1 TiB and 512 CPUs, {:.0} GiB touched: {:.2} GB resident at most{} (4.5 GiB are allowed)",
        touched as f64 / f64::from(1 << 18),
        status_kib("VmHWM:") as f64 * 1024.0 / 1e9,
        if is_reset { "" } else { ", what ran before included" }
    );
}

/// CPU time of this process in user mode and in the kernel, s: to a tick of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux has it");
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    ticks.sum::<u64>() as f64 / 100.0
}

/// A line of this process's status, KiB.
fn status_kib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
