//! The answer of `freehold why`: the whole difference, what makes it, what interacts, what was set aside.

use std::fmt::Write as _;

use lab::measurements::{
    Cause, CauseStep, Document, Effect, Interaction, Run, ShareMethod, Told, Why, WhyGoal, changes, scenes,
};

use crate::effect::{Scale, plain};
use crate::style::Style;
use crate::table::{Table, wrap};
use crate::{changes, heading, interval, units, verdict};

/// What part of a figure a change has to be to be worth an explanation.
const NOTICEABLE: f64 = 0.001;

/// The whole answer on a terminal, with how sure each mechanism is.
pub fn full(style: Style, document: &Document) -> String {
    answered(style, document) + "\n" + &heading::confidence(style, &document.runs)
}

/// The answer on a terminal, with how sure its weakest part is.
pub fn answer(style: Style, document: &Document) -> String {
    answered(style, document) + "\n" + &verdict::sure(style, &document.runs)
}

fn answered(style: Style, document: &Document) -> String {
    document.why.as_ref().map_or_else(String::new, |why| text(style, why, &document.runs))
}

/// What makes the difference, without how sure it is. `runs` are those of the first side, then those of the second.
pub fn text(style: Style, why: &Why, runs: &[Run]) -> String {
    let mut out = String::new();
    let title = format!("{} on {}: {} -> {}", why.workload, why.machine, why.from, why.to);
    lines(&mut out, style, "", &title, |line| style.heading(line));
    for goal in &why.goals {
        out += "\n";
        out += &of_goal(style, why, goal);
    }
    if !why.goals.iter().any(is_noticeable) {
        lines(&mut out, style, "  ", &elsewhere(runs), str::to_owned);
    }
    out += "\n";
    lines(&mut out, style, "", &set_aside(why), str::to_owned);
    if why.goals.iter().any(|goal| !goal.causes.is_empty()) {
        lines(&mut out, style, "", &how(why), |line| style.faint(line));
    }
    out
}

/// Whether it changed, and by more than anybody would care to know.
fn is_noticeable(goal: &WhyGoal) -> bool {
    goal.change.is_told() && goal.change.mean.abs() >= NOTICEABLE * goal.before.abs()
}

fn of_goal(style: Style, why: &Why, goal: &WhyGoal) -> String {
    let mut out = String::new();
    let [before, after] = [goal.before, goal.after].map(|value| plain(&goal.unit, value));
    let change = estimate(goal, &goal.change);
    let model = interval::beside(&goal.metric, &goal.unit, [goal.before, goal.after]);
    let title = format!("{}: {before} -> {after}, {change}{model}", goal.metric);
    lines(&mut out, style, "", &title, |line| style.heading(line));
    if goal.causes.is_empty() {
        return out;
    }
    let (named, others): (Vec<&Cause>, Vec<&Cause>) =
        goal.causes.iter().partition(|cause| cause.share.is_told());
    let mut table = Table::new(["its share", "of all", "alone", "with the rest", "<cause"]);
    for cause in &named {
        let of_all =
            goal.part(&cause.share).map_or_else(String::new, |part| format!("{:.0} %", 100.0 * part));
        let [alone, back] = [&cause.alone, &cause.taken_back].map(|effect| relative(goal, effect.mean));
        table.row([estimate(goal, &cause.share), of_all, alone, back, described(goal, cause)]);
    }
    if !table.is_empty() {
        out += &table.text(2, style.columns());
    }
    if !others.is_empty() {
        let all: Vec<String> = others.iter().map(|cause| cause.name.clone()).collect();
        let sum = Effect { mean: others.iter().map(|cause| cause.share.mean).sum(), ..Effect::default() };
        let text = format!(
            "Not beyond the seeds' own differences: {} ({} in all).",
            all.join(", "),
            relative(goal, sum.mean)
        );
        lines(&mut out, style, "  ", &text, str::to_owned);
    }
    lines(&mut out, style, "  ", &interactions(why, goal), str::to_owned);
    out
}

/// `free-high (5.18 f26b3fa04611): when frees of orders 1 to 3 empty a list: never -> after drain`.
fn described(goal: &WhyGoal, cause: &Cause) -> String {
    let step = |step: &CauseStep| {
        let alone = step.alone.map(|effect| format!("alone {}", relative(goal, effect.mean)));
        let words = [step.version.clone(), step.commit.clone(), alone.unwrap_or_default()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let steps: Vec<String> = cause.steps.iter().map(step).collect();
    let by = if steps.is_empty() { String::new() } else { format!(" ({})", steps.join(", ")) };
    let says = match (cause.from.as_str(), cause.to.as_str()) {
        ("without", "with") => " (added)".to_owned(),
        ("with", "without") => " (removed)".to_owned(),
        ("", "") => String::new(),
        (from, to) => format!(": {from} -> {to}"),
    };
    format!("{}{by}: {}{says}", cause.name, cause.about)
}

fn interactions(why: &Why, goal: &WhyGoal) -> String {
    let pair =
        |of: &Interaction| format!("{} with {} ({})", of.names[0], of.names[1], estimate(goal, &of.effect));
    let pairs: Vec<String> = goal.interactions.iter().map(pair).collect();
    if !pairs.is_empty() {
        return format!("What interacts, and what that makes on {}: {}.", why.from, pairs.join(", "));
    }
    let depends: Vec<&str> =
        goal.causes.iter().filter(|cause| cause.depends.is_told()).map(|cause| cause.name.as_str()).collect();
    match depends.len() {
        0 if goal.causes.len() < 2 => String::new(),
        0 => "Nothing interacts beyond the seeds: each does alone what it does among the others.".to_owned(),
        _ => format!(
            "What interacts: {} (not the same alone as among the others), with no single other one.",
            depends.join(", ")
        ),
    }
}

fn set_aside(why: &Why) -> String {
    let names = why.set_aside.join(", ");
    match (why.differences, why.set_aside.len() as u64) {
        (0, _) => format!("{} and {} have the same rules here.", why.from, why.to),
        (all, aside) if aside == all => {
            format!(
                "The two differ in {}, and none of it changes anything here, to the bit: {names}.",
                things(all)
            )
        }
        (_, 0) => String::new(),
        (all, aside) => {
            format!("Set aside, for they change nothing here: {aside} of {}: {names}.", things(all))
        }
    }
}

fn things(count: u64) -> String {
    units::plural(count, "thing")
}

fn how(why: &Why) -> String {
    let interval = match why.seeds {
        1 => "one seed: no interval".to_owned(),
        seeds => format!("± half of the 95 % interval over {seeds} seeds"),
    };
    let orders = match why.method {
        ShareMethod::AllOrders => "all orders of changing them one by one",
        ShareMethod::TwoOrders => "one order of changing them one by one and its reverse",
    };
    format!(
        "Shares add up to the whole: each is the mean over {orders}. {}; {interval}",
        units::plural(why.simulations, "simulation")
    )
}

/// What else changed, where the figure that was asked for did not.
fn elsewhere(runs: &[Run]) -> String {
    // Both sides may go by one policy and one variant's name.
    let named = |(place, run): (usize, &Run)| {
        let variant = if place < runs.len() / 2 { "first" } else { "second" };
        Run { variant: variant.to_owned(), ..run.clone() }
    };
    let sides: Vec<Run> = runs.iter().enumerate().map(named).collect();
    let scenes = scenes(&sides);
    let [scene] = &scenes[..] else { return String::new() };
    let [one, two] = &scene.groups[..] else { return String::new() };
    let all = changes(one, two);
    if all.iter().all(|change| change.told() == Told::Same) {
        return String::new();
    }
    // What changed most; the rest of the headline is not about that.
    let headline = changes::headline(&all, [one, two]);
    match headline.split_once("Changed most: ").and_then(|(_, rest)| rest.split_once(").")) {
        Some((most, _)) => {
            format!("Little changes there. What changes most: {most}); --goal asks about another figure.")
        }
        None => "No other figure differs beyond the seeds either.".to_owned(),
    }
}

/// An effect with half of its interval, in percent of the first side's figure.
fn estimate(goal: &WhyGoal, effect: &Effect) -> String {
    scale(goal).estimate(effect)
}

/// In percent of the first side's figure; in its unit where that is 0.
fn relative(goal: &WhyGoal, value: f64) -> String {
    scale(goal).relative(value)
}

fn scale(goal: &WhyGoal) -> Scale<'_> {
    Scale { unit: &goal.unit, before: goal.before }
}

/// Adds `text` to `out`, wrapped, each line after `indent` and as `set` sets it; nothing of an empty text.
pub(crate) fn lines(out: &mut String, style: Style, indent: &str, text: &str, set: impl Fn(&str) -> String) {
    if text.is_empty() {
        return;
    }
    for line in wrap(text, style.columns() - indent.len()) {
        let _ = writeln!(out, "{indent}{}", set(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(mean: f64, half: f64) -> Effect {
        Effect { mean, low: Some(mean - half), high: Some(mean + half) }
    }

    fn cause(name: &str, share: Effect, depends: Effect) -> Cause {
        let (about, from, to) = ("what it decides".into(), "old".into(), "new".into());
        Cause { name: name.into(), about, from, to, share, depends, alone: share, ..Cause::default() }
    }

    fn answer_of(goal: WhyGoal) -> String {
        let why = Why {
            workload: "loop".into(),
            machine: "m".into(),
            from: "linux-6.6".into(),
            to: "linux-6.12".into(),
            seeds: 3,
            simulations: 12,
            differences: 3,
            set_aside: vec!["batch".into()],
            goals: vec![goal],
            ..Why::default()
        };
        text(Style::plain(), &why, &[])
    }

    #[test]
    fn causes_stand_in_order_and_the_rest_is_said_in_a_line() {
        let step = |version: &str, commit: &str, alone: Option<Effect>| CauseStep {
            version: version.into(),
            says: String::new(),
            commit: commit.into(),
            alone,
        };
        let steps = vec![
            step("5.18", "f26b3fa04611", Some(effect(-15.0, 0.0))),
            step("6.7", "", Some(effect(0.0, 0.0))),
        ];
        let goal = WhyGoal {
            metric: "refill.mean_ns".into(),
            unit: "ns".into(),
            before: 100.0,
            after: 80.2,
            change: effect(-19.8, 1.0),
            causes: vec![
                Cause { steps, ..cause("high", effect(-20.0, 2.0), effect(3.0, 1.0)) },
                cause("drain", effect(0.2, 0.3), effect(0.0, 0.5)),
            ],
            interactions: vec![],
        };
        let text = answer_of(goal);
        for line in [
            "loop on m: linux-6.6 -> linux-6.12",
            "refill.mean_ns: 100 ns -> 80 ns, -19.8 % ± 1.0 %",
            "-20.0 % ± 2.0 %   101 %  -20.0 %           0 %  high (5.18 f26b3fa04611 alone -15.0 %, 6.7 alone 0 %): what it",
            "what it decides: old -> new",
            "Not beyond the seeds' own differences: drain (+0.20 % in all).",
            "What interacts: high (not the same alone as among the others), with no single other one.",
            "Set aside, for they change nothing here: 1 of 3 things: batch.",
            "over 3 seeds",
        ] {
            let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat(&text).contains(&flat(line)), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn what_was_nothing_before_is_said_in_its_unit() {
        let goal = WhyGoal {
            metric: "lock.zone.wait_ns".into(),
            unit: "ns".into(),
            before: 0.0,
            after: 1500.0,
            change: effect(1500.0, 10.0),
            causes: vec![cause("high", effect(1500.0, 10.0), Effect::default())],
            interactions: vec![],
        };
        let text = answer_of(goal);
        assert!(text.contains("lock.zone.wait_ns: 0 ns -> 1.500 µs, +1.500 µs ± 10 ns"), "{text}");
    }
}
