//! Programs that ran in guests of two nodes under several settings (scripts/guests): recorded under one, replayed under all, their
//! memory must land on the nodes where the kernel had it, within 5 points of all of it.

use std::path::PathBuf;

use freehold_lab::measurements::Run;
use freehold_lab::replay::{
    CpuChoice, Plan, RecordedOn, Source, Variant, parse_mempolicy, policy_of, replay,
};
use mm::Knob;
use sim::Profile;
use trace::Reader;

/// How far the share of a node may be off.
const POINTS: f64 = 5.0;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/guests")
}

/// What a guest said of a program's run under one setting.
#[derive(Debug, Default)]
struct Captured {
    setting: String,
    policy: String,
    balancing: u64,
    /// Pages on nodes 0 and 1 at the last point.
    end: [u64; 2],
    counters: Vec<(String, u64)>,
}

impl Captured {
    fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(counter, _)| counter == name).map_or(0, |(_, value)| *value)
    }

    fn share(&self, node: usize) -> f64 {
        100.0 * self.end[node] as f64 / self.end.iter().sum::<u64>() as f64
    }
}

fn captured(program: &str) -> Vec<Captured> {
    let text = std::fs::read_to_string(folder().join(format!("{program}.txt"))).unwrap();
    let mut all: Vec<Captured> = vec![];
    for line in text.lines() {
        if let Some(run) = line.strip_prefix("@@run ") {
            let (setting, rest) = run.split_once(": policy ").unwrap();
            let (policy, balancing) = rest.split_once(", kernel.numa_balancing ").unwrap();
            let (setting, policy) = (setting.to_owned(), policy.to_owned());
            let balancing = balancing.parse().unwrap();
            all.push(Captured { setting, policy, balancing, ..Captured::default() });
        } else if let Some(run) = all.last_mut() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            match words[..] {
                ["end", "all", ..] => run.end = [number(2), number(3)],
                [name, _] if name.starts_with("numa_") => run.counters.push((name.to_owned(), number(1))),
                _ => {}
            }
        }
    }
    all
}

/// The program as recorded, replayed under the setting of `run`.
fn replayed(program: &str, run: &Captured) -> Run {
    let profile = Profile::load(folder().join("qemu-2n.toml").to_str().unwrap()).unwrap();
    let mut reader = Reader::open(&folder().join(format!("{program}.rec"))).unwrap();
    let source = Source::read(&mut reader, program, &RecordedOn::StandIn(profile.clone())).unwrap();
    let policy = policy_of(&source.programs()[0].surroundings).unwrap();
    let mut plan = Plan::new(profile, policy);
    plan.shares.everyone.cpus = Some(CpuChoice::Recorded);
    plan.shares.everyone.policy = Some(parse_mempolicy(&run.policy, 2).unwrap());
    let knobs = vec![
        (Knob::TransparentHugepage, 0),
        (Knob::NumaBalancing, run.balancing),
        (Knob::BalancingScanDelay, 100),
        (Knob::BalancingPeriodMin, 100),
    ];
    replay(&source, &plan, &Variant::from(knobs)).unwrap()
}

/// Holds each setting's placement against the guest's.
fn hold(program: &str) {
    for run in captured(program) {
        let replayed = replayed(program, &run);
        let used = &replayed.recordings[0];
        let shares = used.shares();
        let [migrated, there] = [used.counts.numa_pages_migrated, run.counter("numa_pages_migrated")];
        println!(
            "| {program} | {} | {:.1} % | {:.1} % | {there} | {migrated} |",
            run.setting,
            run.share(0),
            shares[0],
        );
        for (node, share) in shares.iter().enumerate() {
            let off = (share - run.share(node)).abs();
            assert!(
                off < POINTS,
                "{program}, {}, node {node}: {share} against {}",
                run.setting,
                run.share(node)
            );
        }
        let pages: u64 = used.pages_by_node.iter().sum();
        let all: u64 = run.end.iter().sum();
        assert!(pages.abs_diff(all) * 20 < all, "{program}, {}: {pages} pages, {all} there", run.setting);
        assert_eq!(migrated > 0, run.balancing > 0, "{}", run.setting);
    }
}

#[test]
fn a_database_in_memory() {
    hold("sqlite");
}

#[test]
fn a_server_with_threads() {
    hold("redis");
}
