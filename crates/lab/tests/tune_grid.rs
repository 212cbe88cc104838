//! A race beside the grid that it saves: `make tune`. Grids are written down in experiments/tune/grids.toml. Minutes a case, so that nobody
//! runs it by the way.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use freehold_lab::experiment::Experiment;
use freehold_lab::measurements::{Effect, KnobText};
use freehold_lab::replay::{Plan, RecordedOn, Source};
use freehold_lab::subject::{Side, Subject};
use freehold_lab::tune::{Answer, Ground, Journal, KnobChoice, Method, Prepared, Question};
use mm::{Knob, Policy};
use serde::Deserialize;
use sim::Profile;
use trace::Reader;

/// The grid's seeds, for every setting.
const SEEDS: u32 = 3;
/// Those of the race's finalists.
const FINAL_SEEDS: u32 = 5;
/// A search recommends nothing that is better by less than this, in percent (docs/tune.md).
const LEAST: f64 = 0.1;
/// Seeds that neither saw.
const UNSEEN: std::ops::Range<u64> = 20_000..20_010;

#[derive(Debug, Deserialize)]
struct Grids {
    case: Vec<Case>,
}

#[derive(Clone, Debug, Deserialize)]
struct Case {
    name: String,
    what: String,
    #[serde(default)]
    variant: String,
    machine: String,
    goal: String,
    keep: Vec<String>,
    knobs: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// CPU time of this process, in s.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let behind = stat.rsplit(')').next().unwrap();
    let ticks = |place: usize| behind.split_whitespace().nth(place).unwrap().parse::<f64>().unwrap();
    // utime and stime, in hundredths of a second on every Linux machine.
    (ticks(11) + ticks(12)) / 100.0
}

fn grounds(case: &Case) -> (Side, Vec<Ground>) {
    let path = root().join(&case.what);
    if path.extension().is_some_and(|ending| ending == "toml") {
        let experiment = Experiment::load(path.to_str().unwrap()).unwrap();
        let of = experiment.case(&case.variant).unwrap();
        let setup = &experiment.variants[of.variant].setup;
        let side = Side { policy: setup.policy.clone(), knobs: setup.knobs.clone() };
        let ground = |permille| Ground {
            subject: Subject::Case(Box::new(experiment.shortened(of, permille)), of),
            permille,
            content: String::new(),
        };
        return (side, [111, 333, 1000].map(ground).to_vec());
    }
    let profile = Profile::load(&case.machine).unwrap();
    let policy = Policy::parse("linux-6.18").unwrap();
    let ground = |permille: u64| {
        let mut reader: Reader<File> = Reader::open(&path).unwrap();
        let events = reader.event_count();
        reader.stop_after(events * permille / 1000);
        let on = RecordedOn::StandIn(Profile::load("kvm-genoa-2c").unwrap());
        let source = Source::read(&mut reader, "recording", &on).unwrap();
        let plan = Plan::new(profile.clone(), policy.clone());
        Ground {
            subject: Subject::Replay(Box::new(source), Box::new(plan)),
            permille,
            content: permille.to_string(),
        }
    };
    (Side { policy: policy.clone(), knobs: vec![] }, [111, 333, 1000].map(ground).to_vec())
}

fn prepared(case: &Case, method: Method) -> Prepared {
    let (base, grounds) = grounds(case);
    Prepared::of(Question {
        grounds,
        also: vec![],
        base,
        knobs: case.knobs.iter().map(|text| KnobChoice::parse(text).unwrap()).collect(),
        goals: vec![case.goal.clone()],
        keep: case.keep.clone(),
        seed: 1,
        seeds: if method == Method::Every { SEEDS } else { FINAL_SEEDS },
        unseen: 10,
        budget: None,
        method,
    })
    .unwrap()
}

/// An answer, and the CPU time that it took, in s.
fn timed(prepared: &Prepared) -> (Answer, f64) {
    let before = cpu();
    let answer = prepared.answer(&Journal::default(), &|_, _| {}).unwrap();
    (answer, cpu() - before)
}

fn values(prepared: &Prepared, knobs: &[KnobText]) -> Vec<f64> {
    let journal = Journal::default();
    let knob = |of: &KnobText| {
        let knob = Knob::from_name(&of.knob).unwrap();
        (knob, knob.parse_one(&of.value).unwrap())
    };
    let knobs: Vec<(Knob, u64)> = knobs.iter().map(knob).collect();
    let figure = &prepared.figures()[0];
    let value = |seed| prepared.evaluate(&knobs, seed, 1000, &journal).unwrap()[figure].unwrap();
    UNSEEN.map(value).collect()
}

fn words(knobs: &[KnobText]) -> String {
    let all: Vec<String> = knobs.iter().map(|of| format!("{}={}", of.knob, of.value)).collect();
    if all.is_empty() { "the current setting".to_owned() } else { all.join(" ") }
}

#[test]
#[ignore = "minutes: make tune"]
fn a_race_finds_what_a_grid_finds_in_a_quarter_of_its_time() {
    let text = fs::read_to_string(root().join("experiments/tune/grids.toml")).unwrap();
    let grids: Grids = toml::from_str(&text).unwrap();
    let only = std::env::var("FREEHOLD_TUNE_CASE").unwrap_or_default();
    for case in grids.case.iter().filter(|case| case.name.contains(&only)) {
        let every = prepared(case, Method::Every);
        let settings = every.space().settings;
        assert!(settings >= 256, "{}: {settings}", case.name);
        let (raced, tune_cpu) = timed(&prepared(case, Method::Race));
        let (gone_through, all_cpu) = timed(&every);
        // What came after the grid, to try its winner elsewhere, is not the grid's.
        let grid = &gone_through.tune.search;
        let part = grid.simulations as f64 / (grid.simulations + grid.simulations_after) as f64;
        let grid_cpu = all_cpu * part;
        let best = gone_through.tune.ranked[0].knobs.clone();
        let winner = raced.tune.winner.map(|winner| winner.knobs).unwrap_or_default();
        let [found, grids_best, now] = [&winner, &best, &vec![]].map(|knobs| values(&every, knobs));
        let effect = |one: &[f64], base: &[f64]| {
            let mean = base.iter().sum::<f64>() / base.len() as f64;
            let percent = Effect::of(one.iter().zip(base).map(|(one, base)| 100.0 * (one - base) / mean));
            (percent, format!("{:+.2} % ± {:.2} %", percent.mean, percent.half_width().unwrap_or(0.0)))
        };
        let (beside, beside_text) = effect(&found, &grids_best);
        println!("{} ({settings} settings, {} of the lowest wins)", case.name, case.goal);
        println!(
            "  grid  {:5} simulations  {grid_cpu:7.1} s CPU  {}  {} beside now",
            grid.simulations,
            words(&best),
            effect(&grids_best, &now).1
        );
        let search = &raced.tune.search;
        println!(
            "  tune  {:5} simulations  {tune_cpu:7.1} s CPU  {}  {} beside now",
            search.simulations + search.simulations_after,
            words(&winner),
            effect(&found, &now).1
        );
        println!(
            "  on 10 unseen seeds tune's is {beside_text} beside the grid's best; {:.1} % of its CPU time",
            100.0 * tune_cpu / grid_cpu
        );
        assert!(!beside.is_told() || beside.mean <= LEAST, "{}: worse than the grid's best", case.name);
        assert!(tune_cpu <= grid_cpu / 4.0, "{}: {tune_cpu} of {grid_cpu}", case.name);
    }
}
