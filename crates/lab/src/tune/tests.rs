//! Questions to which the answers are known.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mm::{Knob, Policy};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::aim::{Aim, Aims};
use super::bench::{Bench, Evaluator, Trial, Tried};
use super::judge::Judge;
use super::race::{Course, race};
use super::space::{Axis, Setting, Space};
use super::{Answer, Ground, Journal, KnobChoice, Method, Prepared, Question};
use crate::measurements::{Held, Memory, Run};
use crate::subject::{AskError, Side, Subject};

const KNOBS: [Knob; 4] =
    [Knob::PcpBatchScaleMax, Knob::WatermarkScaleFactor, Knob::Swappiness, Knob::StatInterval];

fn base() -> Side {
    Side { policy: Policy::parse("linux-6.18").unwrap(), knobs: vec![] }
}

/// Four knobs of six values each.
fn space() -> Space {
    let axis = |&knob: &Knob| Axis { knob, values: (1..=6).collect(), current: 2 };
    Space { axes: KNOBS.iter().map(axis).collect(), base: base(), set_aside: vec![] }
}

fn noise(words: &[u64]) -> f64 {
    let mixed = words.iter().fold(0x9e37_79b9_7f4a_7c15_u64, |mixed, word| {
        (mixed ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29)
    });
    (mixed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

/// A bowl with a step and an interaction, seen through noise: part of it common to all settings of a seed.
struct Bowl {
    best: [u8; 4],
    weights: [f64; 4],
    noise: f64,
    /// What shortened forms make of a value.
    short: fn(f64) -> f64,
}

impl Bowl {
    fn truth(&self, setting: &[u8]) -> f64 {
        let away = |at: usize| f64::from(setting[at].abs_diff(self.best[at]));
        let bowl: f64 = (0..4).map(|at| self.weights[at] * away(at) * away(at)).sum();
        let step = if setting[0] == self.best[0] { 0.0 } else { 5.0 };
        1000.0 + bowl + step + self.weights[0] * away(0) * away(1)
    }
}

impl Evaluator for Bowl {
    fn evaluate(&mut self, trials: &[Trial]) -> Result<Vec<Tried>, AskError> {
        let one = |trial: &Trial| {
            let words: Vec<u64> = trial.setting.iter().map(|&at| u64::from(at)).collect();
            let own = noise(&[&words[..], &[trial.seed, trial.ground as u64]].concat());
            let common = noise(&[trial.seed]);
            let truth = self.truth(&trial.setting);
            let seen = if trial.ground == 2 { truth } else { (self.short)(truth) };
            Ok(vec![Some(seen + 20.0 * common + self.noise * own)])
        };
        Ok(trials.iter().map(one).collect())
    }
}

fn judge() -> Judge {
    let aim = Aim::parse(&Subject::Made(|_, _| Run::default()), "simulated_ns").unwrap();
    Judge { aims: Aims { aims: vec![aim], limits: vec![] }, current: space().current() }
}

fn course(budget: u64, seed: u64) -> Course {
    Course { permille: vec![111, 333, 1000], seeds: (seed..seed + 5).collect(), budget: 1000 * budget, seed }
}

fn every() -> Vec<Setting> {
    super::draw::every(&space())
}

proptest! {
    // What is found among noise is found nearly always; the same cases each time, so that a change that finds less is told from chance.
    #![proptest_config(ProptestConfig { cases: 48, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn the_race_finds_what_is_known_to_be_best(
        best in prop::array::uniform4(0_u8..6),
        weights in prop::array::uniform4(2.0_f64..12.0),
        seed in 1_u64..1000,
    ) {
        let mut bowl = Bowl { best, weights, noise: 4.0, short: |value| value / 9.0 };
        let judge = judge();
        let mut bench = Bench::new(&mut bowl, vec![111, 333, 1000]);
        // 96 simulations of 1296 settings: a thirteenth of trying each once.
        let raced = race(&space(), &judge, &mut bench, &course(96, seed)).unwrap();
        prop_assert!(bench.spent() <= 110_000, "{}", bench.spent());
        prop_assert!(raced.levels.iter().all(|level| level.used && level.agreement > 0.7), "{:?}", raced.levels);
        drop(bench);
        let found = bowl.truth(&raced.finalists[0]);
        let better = every().iter().filter(|setting| bowl.truth(setting) < found).count();
        prop_assert!(better <= 13, "{better} of 1296 are better than {:?}; {best:?} is the best", raced.finalists[0]);
    }

    #[test]
    fn seeds_tell_a_step_from_noise(seed in 1_u64..10_000) {
        let mut flat = Bowl { best: [0; 4], weights: [0.0; 4], noise: 4.0, short: |value| value };
        let judge = judge();
        let mut bench = Bench::new(&mut flat, vec![111, 333, 1000]);
        let settings = [vec![0, 1, 1, 1], vec![1, 1, 1, 1], space().current()];
        let seeds: Vec<u64> = (seed..seed + 12).collect();
        bench.make(2, &settings, &seeds).unwrap();
        // The step at the first value makes 5; the noise of 12 differences is less than 2.
        prop_assert!(judge.wins(&bench, 2, &settings[0], &seeds));
        prop_assert!(judge.is_beaten(&bench, 2, [&settings[1], &settings[0]], &seeds));
        prop_assert!(!judge.is_beaten(&bench, 2, [&settings[0], &settings[1]], &seeds));
        prop_assert!(!judge.is_beaten(&bench, 2, [&settings[1], &settings[0]], &seeds[..1]));
    }
}

#[test]
fn a_short_form_that_lies_is_not_raced_on() {
    let mut bowl = Bowl { best: [4, 0, 5, 3], weights: [6.0; 4], noise: 2.0, short: |value| 3000.0 - value };
    let judge = judge();
    let mut bench = Bench::new(&mut bowl, vec![111, 333, 1000]);
    let raced = race(&space(), &judge, &mut bench, &course(96, 7)).unwrap();
    assert!(raced.levels.iter().all(|level| !level.used && level.agreement < -0.8), "{:?}", raced.levels);
    drop(bench);
    let found = bowl.truth(&raced.finalists[0]);
    let better = every().iter().filter(|setting| bowl.truth(setting) < found).count();
    assert!(better <= 13, "{better}");
}

/// Of which shortened forms cost more than their part of the time: so many events each.
struct Heavy(Bowl, [u64; 3]);
impl Evaluator for Heavy {
    fn evaluate(&mut self, trials: &[Trial]) -> Result<Vec<Tried>, AskError> {
        self.0.evaluate(trials)
    }

    fn events(&self, trial: &Trial) -> u64 {
        self.1[trial.ground]
    }
}

#[test]
fn a_form_costs_what_there_is_to_simulate_and_is_raced_on_where_that_pays() {
    let raced = |events| {
        let bowl = Bowl { best: [4, 0, 5, 3], weights: [6.0; 4], noise: 2.0, short: |value| value / 9.0 };
        let (judge, mut heavy) = (judge(), Heavy(bowl, events));
        let mut bench = Bench::new(&mut heavy, vec![111, 333, 1000]);
        let raced = race(&space(), &judge, &mut bench, &course(96, 7)).unwrap();
        let level = |level: &crate::measurements::Level| (level.cost_permille, level.used);
        assert!(bench.spent() <= 110_000, "{}", bench.spent());
        raced.levels.iter().map(level).collect::<Vec<_>>()
    };
    assert_eq!(raced([111, 333, 1000]), [(111, true), (333, true)]);
    assert_eq!(raced([1020, 1260, 2000]), [(510, true), (630, false)]);
    assert_eq!(raced([180, 190, 200]), [(900, false), (950, false)]);
    // Of what nobody counted the part of the time stands.
    assert_eq!(raced([0, 0, 0]), [(111, true), (333, true)]);
}

/// Two knobs more, at their best.
struct Padded<'a>(&'a mut Bowl);
impl Evaluator for Padded<'_> {
    fn evaluate(&mut self, trials: &[Trial]) -> Result<Vec<Tried>, AskError> {
        let pad = |trial: &Trial| Trial { setting: [&trial.setting[..], &[2, 2]].concat(), ..trial.clone() };
        self.0.evaluate(&trials.iter().map(pad).collect::<Vec<_>>())
    }
}

#[test]
fn a_small_space_is_gone_through() {
    let small = Space { axes: space().axes[..2].to_vec(), ..space() };
    let mut bowl = Bowl { best: [5, 0, 2, 2], weights: [3.0; 4], noise: 1.0, short: |value| value };
    let judge = Judge { current: small.current(), ..judge() };
    let mut padded = Padded(&mut bowl);
    let mut bench = Bench::new(&mut padded, vec![111, 333, 1000]);
    let raced = race(&small, &judge, &mut bench, &course(96, 1)).unwrap();
    assert_eq!((raced.finalists[0].clone(), bench.settings()), (vec![5, 0], 36));
}

fn answer(
    make: fn(&Side, u64) -> Run,
    knobs: &[&str],
    goals: &[&str],
    keep: &[&str],
) -> Result<Answer, AskError> {
    Ok(prepared(make, knobs, goals, keep)?.answer(&Journal::default(), &|_, _| {}).unwrap())
}

fn prepared(
    make: fn(&Side, u64) -> Run,
    knobs: &[&str],
    goals: &[&str],
    keep: &[&str],
) -> Result<Prepared, AskError> {
    let ground =
        |permille| Ground { subject: Subject::Made(make), permille, content: format!("made {permille}") };
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Prepared::of(Question {
        grounds: [111, 1000].map(ground).to_vec(),
        also: vec![("another".to_owned(), ground(1000))],
        base: base(),
        knobs: knobs.iter().map(|text| KnobChoice::parse(text).unwrap()).collect(),
        goals: owned(goals),
        keep: owned(keep),
        seed: 1,
        seeds: 4,
        unseen: 6,
        budget: None,
        method: Method::Race,
    })
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// Swappiness at 100 helps much and costs memory, the watermarks help a little, laptop_mode and the rest do nothing.
fn machine(side: &Side, seed: u64) -> Run {
    let swappiness = side.value(Knob::Swappiness).unwrap_or(60);
    let marks = side.value(Knob::WatermarkScaleFactor).unwrap_or(10);
    let helps = if swappiness >= 100 { 300 } else { 0 } + if marks > 100 { 40 } else { 0 };
    let memory = Memory { peak_pages: 1000 + swappiness, ..Memory::default() };
    Run { simulated_ns: 10_000 + seed % 7 * 10 - helps, memory, seed, ..Run::default() }
}

const MACHINE_KNOBS: [&str; 3] =
    ["vm.swappiness=0,60,100,200", "vm.watermark_scale_factor=10,100,500", "vm.stat_interval=1,10"];

#[test]
fn knobs_that_do_nothing_are_not_recommended() {
    let Answer { tune, .. } = answer(machine, &MACHINE_KNOBS, &[], &[]).unwrap();
    let winner = tune.winner.expect("there is a better setting");
    let knobs: Vec<(&str, &str)> =
        winner.knobs.iter().map(|of| (of.knob.as_str(), of.value.as_str())).collect();
    assert!(knobs.contains(&("vm.watermark_scale_factor", "500")) && knobs.len() == 2, "{knobs:?}");
    assert!(near(winner.changes[0].mean, -340.0));
    let kept: Vec<(&str, i64)> = tune
        .contributions
        .iter()
        .filter(|of| of.kept)
        .map(|of| (of.knob.as_str(), of.effects[0].mean.round() as i64))
        .collect();
    assert_eq!(kept, [("vm.swappiness", -300), ("vm.watermark_scale_factor", -40)]);
    let robustness = tune.robustness.unwrap();
    assert_eq!((robustness.seeds.wins, robustness.seeds.of), (6, 6));
    assert!(near(robustness.others[0].change.mean, -340.0));
}

/// Each of three knobs helps by less than what matters, all of them by more.
fn crumbs(side: &Side, seed: u64) -> Run {
    let of = |knob: Knob, default: u64| if side.value(knob).unwrap_or(default) > default { 6 } else { 0 };
    let helps = of(Knob::Swappiness, 60) + of(Knob::WatermarkScaleFactor, 10) + of(Knob::StatInterval, 1);
    Run { simulated_ns: 10_000 + seed % 7 * 10 - helps, seed, ..Run::default() }
}

#[test]
fn what_is_taken_out_matters_in_sum_no_more_than_alone() {
    let knobs = ["vm.swappiness=60,100", "vm.watermark_scale_factor=10,500", "vm.stat_interval=1,10"];
    let Answer { tune, .. } = answer(crumbs, &knobs, &[], &[]).unwrap();
    let winner = tune.winner.expect("there is a better setting");
    assert_eq!(winner.knobs.len(), 2, "{winner:?}");
    assert!(near(winner.changes[0].mean, -12.0), "{winner:?}");
}

#[test]
fn what_is_to_be_kept_is_kept() {
    // Swappiness 100 takes 3.8 % more memory, 200 takes 13 %.
    let Answer { tune, .. } = answer(machine, &MACHINE_KNOBS, &[], &["rss:max=105%"]).unwrap();
    let winner = tune.winner.unwrap();
    assert!(winner.knobs.iter().any(|of| of.knob == "vm.swappiness" && of.value == "100"), "{winner:?}");
    assert_eq!(winner.held[0].verdict, Held::Kept);
    let Answer { tune, .. } = answer(machine, &MACHINE_KNOBS, &[], &["rss:max=101%"]).unwrap();
    let winner = tune.winner.unwrap();
    assert!(winner.knobs.len() == 1 && near(winner.changes[0].mean, -40.0), "{winner:?}");
}

#[test]
fn several_goals_have_a_front() {
    let Answer { tune, .. } = answer(machine, &MACHINE_KNOBS, &["simulated_ns", "rss"], &[]).unwrap();
    // Less memory costs no time; less time costs memory.
    assert!(tune.front.len() > 1, "{:?}", tune.front);
    let winner = tune.winner.unwrap();
    assert!(winner.changes[0].mean < 0.0 && winner.changes[1].mean <= 0.0, "{winner:?}");
}

#[test]
fn without_knobs_those_that_act_are_found() {
    let prepared = prepared(machine, &[], &[], &[]).unwrap();
    assert!(prepared.space().axes.len() > 10);
    let Answer { tune, .. } = prepared.answer(&Journal::default(), &|_, _| {}).unwrap();
    let axes: Vec<&str> = tune.space.axes.iter().map(|axis| axis.knob.as_str()).collect();
    assert_eq!(axes, ["vm.watermark_scale_factor", "vm.swappiness"]);
    assert!(tune.space.set_aside.iter().any(|aside| aside.knob == "vm.stat_interval"));
    assert!(near(tune.winner.unwrap().changes[0].mean, -340.0));
}

#[test]
fn where_nothing_helps_the_current_setting_stays() {
    let noise = |side: &Side, seed: u64| {
        let word = side.knobs.iter().map(|(_, value)| value * 31).sum::<u64>();
        Run { simulated_ns: 100_000 + (noise(&[word, seed]) * 1000.0) as u64, ..Run::default() }
    };
    let Answer { tune, runs } = answer(noise, &MACHINE_KNOBS, &[], &[]).unwrap();
    assert!(tune.winner.is_none() && tune.stays.contains("beyond the noise"), "{tune:?}");
    assert!(!runs.is_empty());
}

#[test]
fn one_numeric_knob_is_a_curve() {
    let sized = |side: &Side, seed: u64| {
        let value = side.value(Knob::MinFreeKbytes).unwrap_or(0);
        let time = [90_000, 50_000, 20_000, 10_000, 9_500, 9_100, 9_000][(value / 1000).min(6) as usize];
        Run { simulated_ns: time + seed % 3, ..Run::default() }
    };
    let Answer { tune, .. } =
        answer(sized, &["vm.min_free_kbytes=1000,2000,3000,4000,5000,6000"], &[], &[]).unwrap();
    let curve = tune.curve.unwrap();
    let values: Vec<&str> = curve.points.iter().map(|point| point.value.as_str()).collect();
    assert_eq!(values, ["0", "1000", "2000", "3000", "4000", "5000", "6000"]);
    assert_eq!((curve.knee.as_deref(), curve.enough.as_deref()), (Some("2000"), Some("6000")));
    assert_eq!(tune.winner.unwrap().knobs[0].value, "6000");
}

#[test]
fn a_journal_gives_the_same_and_simulates_nothing_again() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    fn counted(side: &Side, seed: u64) -> Run {
        RUNS.fetch_add(1, Relaxed);
        machine(side, seed)
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let asked = || prepared(counted, &MACHINE_KNOBS, &[], &[]).unwrap();
    let ask = |prepared: &Prepared| prepared.answer(&Journal::open(&path, "b").unwrap(), &|_, _| {}).unwrap();
    let first = ask(&asked());
    let ran = RUNS.load(Relaxed);
    let again = ask(&asked());
    assert_eq!((again.tune == first.tune, again.runs == first.runs, RUNS.load(Relaxed)), (true, true, ran));
    // Half of it gone, the other half is enough to go on from.
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count() as u64, ran, "each was written once");
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let resumed = ask(&asked());
    let left = text[..text.len() / 2].lines().count() as u64 - 1;
    assert_eq!((resumed.tune == first.tune, RUNS.load(Relaxed)), (true, ran + ran - left));
}

#[test]
fn what_cannot_be_asked_is_a_line() {
    let refused = |knobs: &[&str], goals: &[&str], keep: &[&str]| {
        prepared(machine, knobs, goals, keep).unwrap_err().to_string()
    };
    assert!(refused(&["vm.swappiness=60"], &[], &[]).contains("nothing to choose"));
    assert!(refused(&["vm.swappiness=1,2", "vm.swappiness"], &[], &[]).contains("twice"));
    assert!(refused(&[], &["huge_faults"], &[]).contains("huge_faults:lower"));
    assert!(refused(&[], &[], &["rss"]).contains("--keep `rss`"));
    let error = prepared(machine, &MACHINE_KNOBS, &["falt.p99_ns"], &[]).unwrap();
    let error = error.answer(&Journal::default(), &|_, _| {}).unwrap_err().to_string();
    assert!(error.starts_with("there is no figure `falt.p99_ns` here; there are "), "{error}");
}
