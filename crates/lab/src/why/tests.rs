//! Questions to which the answers are known.

use mm::policy::{DrainRule, FreeHighRule, HighRule, HoldRule, PcpOrders, Rules};
use mm::{Knob, Policy};

use super::{Question, explain};
use crate::measurements::{Run, ShareMethod, WhyGoal};
use crate::subject::{Side, Subject};

fn side(policy: &str) -> Side {
    Side { policy: Policy::parse(policy).unwrap(), knobs: vec![] }
}

fn question(from: &str, to: &str, make: fn(&Side, u64) -> Run) -> Question {
    let (from, to) = (side(from), side(to));
    Question { subject: Subject::Made(make), from, to, goals: vec![], seed: 1, seeds: 3 }
}

/// A run that took so long.
fn took(ns: u64) -> Run {
    Run { simulated_ns: ns, ..Run::default() }
}

fn rules(side: &Side) -> Rules {
    *side.policy.rules()
}

fn sum(goal: &WhyGoal) -> f64 {
    goal.causes.iter().map(|cause| cause.share.mean).sum()
}

#[test]
fn causes_are_found_among_many_rules_ranked_and_split_by_version() {
    // 4.4 and 6.18 differ in more than 30 rules; three of them act, alone and by themselves.
    let make = |side: &Side, seed: u64| {
        let rules = rules(side);
        let high = match rules.lists.high {
            HighRule::SixBatches => 0,
            HighRule::LowWatermark => 70,
            HighRule::AutoTuned => 100,
        };
        let drain = if rules.lists.drain == DrainRule::FreeCount { 40 } else { 0 };
        let orders = if rules.lists.pcp_orders == PcpOrders::Zero { 500 } else { 0 };
        took(10_000 + seed + high + drain + orders)
    };
    let why = explain(&question("linux-4.4", "linux-6.18", make), &|_| {}).unwrap().why;
    let goal = &why.goals[0];
    let told: Vec<(&str, f64)> =
        goal.causes.iter().map(|cause| (cause.name.as_str(), cause.share.mean.round())).collect();
    assert_eq!(told, [("pcp-orders", -500.0), ("high", 100.0), ("drain", 40.0)]);
    assert!((goal.change.mean - sum(goal)).abs() < 1e-9 && goal.interactions.is_empty());
    assert_eq!(why.set_aside.len() as u64, why.differences - 3);
    // Two halves, and on to three single rules from both ends: far fewer than one by one.
    assert!(why.differences > 30 && why.simulations < 80, "{} of {}", why.simulations, why.differences);
    let steps = |name: &str| {
        let cause = goal.causes.iter().find(|cause| cause.name == name).unwrap();
        cause.steps.iter().map(|step| (step.version.as_str(), step.alone.unwrap().mean)).collect::<Vec<_>>()
    };
    assert_eq!(steps("high"), [("5.14", 70.0), ("6.7", 30.0)]);
    assert_eq!(steps("drain"), [("5.14", 0.0), ("6.7", 40.0)]);
    // The way back is the same with the other sign.
    let back = explain(&question("linux-6.18", "linux-4.4", make), &|_| {}).unwrap().why;
    let high = back.goals[0].causes.iter().find(|cause| cause.name == "high").unwrap();
    let steps = high.steps.iter().map(|step| (step.version.as_str(), step.alone.unwrap().mean));
    assert_eq!(steps.collect::<Vec<_>>(), [("5.14", -70.0), ("6.7", -30.0)]);
}

#[test]
fn pairs_that_interact_are_named() {
    let make = |side: &Side, seed: u64| {
        let lists = rules(side).lists;
        let (auto, sequence) = (lists.high == HighRule::AutoTuned, lists.free_high == FreeHighRule::Sequence);
        took(1000 + seed + if auto && sequence { 90 } else { 0 } + if auto { 10 } else { 0 })
    };
    let why = explain(&question("linux-6.6", "linux-6.7", make), &|_| {}).unwrap().why;
    let goal = &why.goals[0];
    let causes: Vec<_> = goal
        .causes
        .iter()
        .map(|cause| (cause.name.as_str(), cause.share.mean, cause.alone.mean, cause.taken_back.mean))
        .collect();
    assert_eq!(causes, [("high", 55.0, 10.0, 100.0), ("free-high", 45.0, 0.0, 90.0)]);
    assert_eq!(goal.interactions.len(), 1);
    assert_eq!(
        (goal.interactions[0].names.join(" "), goal.interactions[0].effect.mean),
        ("high free-high".into(), 90.0)
    );
}

#[test]
fn what_acts_only_together_is_not_lost() {
    // Taken alone on the first side, or alone back on the second, neither of four changes anything: any two are enough.
    let make = |side: &Side, _: u64| {
        let lists = rules(side).lists;
        let new = [
            lists.free_high == FreeHighRule::LongSequence,
            lists.hold == HoldRule::Batch,
            side.knobs.contains(&(Knob::MinFreeKbytes, 8192)),
            side.knobs.contains(&(Knob::WatermarkScaleFactor, 20)),
        ];
        took(if new.into_iter().filter(|new| *new).count() > 1 { 200 } else { 100 })
    };
    let mut question = question("linux-6.15", "linux-6.19", make);
    question.to.knobs = vec![(Knob::MinFreeKbytes, 8192), (Knob::WatermarkScaleFactor, 20)];
    let why = explain(&question, &|_| {}).unwrap().why;
    let goal = &why.goals[0];
    assert_eq!(goal.causes.len(), 1, "{:?}", goal.causes);
    assert_eq!((goal.causes[0].name.as_str(), goal.causes[0].share.mean), ("together", 100.0));
    assert!(goal.causes[0].about.contains("free-high, hold"), "{}", goal.causes[0].about);
    assert!(why.set_aside.is_empty(), "{:?}", why.set_aside);
}

#[test]
fn what_acts_with_another_seed_is_found_by_it() {
    let make = |side: &Side, seed: u64| {
        let lists = rules(side).lists;
        let (high, drain) = (lists.high == HighRule::AutoTuned, lists.drain == DrainRule::FreeCount);
        took(100 + if high { 7 } else { 0 } + if drain && seed == 3 { 30 } else { 0 })
    };
    for (from, to, sign) in [("linux-6.6", "linux-6.12", 1.0), ("linux-6.12", "linux-6.6", -1.0)] {
        let why = explain(&question(from, to, make), &|_| {}).unwrap().why;
        let causes = &why.goals[0].causes;
        let told: Vec<(&str, f64)> =
            causes.iter().map(|cause| (cause.name.as_str(), cause.share.mean)).collect();
        assert_eq!(told, [("drain", 10.0 * sign), ("high", 7.0 * sign)]);
        assert!(causes[1].share.is_told() && !causes[0].share.is_told(), "one seed of three is no certainty");
        assert_eq!(why.set_aside.len() as u64, why.differences - 2);
    }
}

#[test]
fn many_causes_share_over_two_orders_and_still_add_up() {
    let make = |side: &Side, seed: u64| {
        let steps = side.policy.rules_in_force().iter().fold(0, |sum, rule| sum + rule.answer.len() as u64);
        took(1000 + steps * steps + seed % 2 * steps)
    };
    let why = explain(&question("linux-5.4", "linux-6.18", make), &|_| {}).unwrap().why;
    let goal = &why.goals[0];
    assert_eq!(why.method, ShareMethod::TwoOrders);
    assert!(
        goal.causes.len() > 4 && (goal.change.mean - sum(goal)).abs() < 1e-6,
        "{} {}",
        goal.change.mean,
        sum(goal)
    );
}

#[test]
fn sides_of_the_same_rules_leave_nothing_to_explain() {
    let make = |_: &Side, seed: u64| took(seed);
    let why = explain(&question("linux-5.11", "linux-5.12", make), &|_| {}).unwrap().why;
    assert_eq!((why.differences, why.goals[0].causes.len(), why.goals[0].change.mean), (0, 0, 0.0));
    let unknown =
        Question { goals: vec!["falt.p99_ns".into()], ..question("linux-6.12", "linux-6.18", make) };
    let error = explain(&unknown, &|_| {}).unwrap_err().to_string();
    assert!(
        error.starts_with("there is no figure `falt.p99_ns` here; there are ") && error.lines().count() == 1,
        "{error}"
    );
}
