//! The answer of `freehold tune`: the setting, what it changes, where it holds, what to write, and how it was found.

use lab::measurements::{
    Contribution, Curve, Document, Effect, Elsewhere, ElsewhereVerdict, Held, KnobText, Run, Tune,
    TuneCandidate, TuneSpace, Wins,
};

use crate::effect::{Scale, plain};
use crate::style::Style;
use crate::table::Table;
use crate::why::lines;
use crate::{heading, interval, to_set, units, verdict};

/// So many of the places where the winner does not win are named.
const NAMED: usize = 6;

/// The answer on a terminal: what wins and what to write, what each knob of it does, how sure its weakest part is.
pub fn answer(style: Style, document: &Document) -> String {
    let parts: Vec<String> = document
        .tune
        .iter()
        .map(|tune| won_or_stays(style, tune, &document.runs) + &chosen(style, tune) + &in_short(style, tune))
        .collect();
    parts.join("\n") + &verdict::sure(style, &document.runs) + &verdict::more(style, "all of it")
}

/// The whole answer, with how sure each mechanism is.
pub fn full(style: Style, document: &Document) -> String {
    let mut out = text(style, document);
    let confidence = heading::confidence(style, &document.runs);
    if !confidence.is_empty() {
        out += "\n";
        out += &confidence;
    }
    out
}

/// The same without how sure it is.
pub fn text(style: Style, document: &Document) -> String {
    let parts: Vec<String> =
        document.tune.iter().map(|tune| of_machine(style, tune, &document.runs)).collect();
    parts.join("\n")
}

/// Where is searched, for a terminal, before anything runs.
pub fn ahead(space: &TuneSpace) -> String {
    let names: Vec<&str> = space.axes.iter().map(|axis| axis.knob.as_str()).collect();
    let left = match space.set_aside.len() as u64 {
        0 => String::new(),
        aside => format!("; {} left out (--full says why)", units::plural(aside, "knob")),
    };
    format!("to be searched: {}: {}{left}", settings_of(space), names.join(", "))
}

/// `288 settings of 4 knobs`.
fn settings_of(space: &TuneSpace) -> String {
    let knobs = units::plural(space.axes.len() as u64, "knob");
    format!("{} of {knobs}", units::plural(space.settings, "setting"))
}

/// The same in full.
pub fn space(style: Style, space: &TuneSpace) -> String {
    let mut out = axes(style, space);
    if !space.set_aside.is_empty() {
        let mut whys: Vec<(&str, Vec<&str>)> = vec![];
        for aside in &space.set_aside {
            match whys.iter_mut().find(|(why, _)| *why == aside.why) {
                Some((_, knobs)) => knobs.push(&aside.knob),
                None => whys.push((&aside.why, vec![&aside.knob])),
            }
        }
        for (why, knobs) in whys {
            lines(&mut out, style, "  ", &format!("left out: {} ({why})", knobs.join(", ")), |line| {
                style.faint(line)
            });
        }
    }
    out
}

/// The same in the answer: knobs that were left out are counted.
fn searched(style: Style, space: &TuneSpace) -> String {
    let mut out = axes(style, space);
    let idle =
        space.set_aside.iter().filter(|aside| aside.why.starts_with("alone it changes nothing")).count();
    let refused = space.set_aside.len() - idle;
    let mut left = vec![];
    if refused > 0 {
        left.push(format!("{} that cannot act here", units::plural(refused as u64, "knob")));
    }
    if idle > 0 {
        left.push(format!("{} that alone changed nothing", units::plural(idle as u64, "knob")));
    }
    if !left.is_empty() {
        lines(&mut out, style, "  ", &format!("left out: {} (--json names them)", left.join(", ")), |line| {
            style.faint(line)
        });
    }
    out
}

fn axes(style: Style, space: &TuneSpace) -> String {
    let mut table = Table::new(["<knob", "<now", "<values"]);
    for axis in &space.axes {
        table.row([axis.knob.clone(), axis.current.clone(), axis.values.join(" ")]);
    }
    let settings = units::plural(space.settings, "setting");
    format!("{}\n{}", style.heading(&format!("searched: {settings}")), table.text(2, style.columns()))
}

/// How it was found, in a line.
fn in_short(style: Style, tune: &Tune) -> String {
    let failed = match tune.failed.len() {
        0 => String::new(),
        failed => format!("; {failed} could not be simulated"),
    };
    let text = format!("searched: {} of {}{failed}", tune.search.tried, settings_of(&tune.space));
    let mut out = String::new();
    lines(&mut out, style, "", &text, |line| style.faint(line));
    out
}

/// What each knob of the winner does, where it has several; a curve, or else a front.
fn chosen(style: Style, tune: &Tune) -> String {
    let mut out = String::new();
    if tune.contributions.iter().filter(|of| of.kept).count() > 1 {
        out += &kept(style, tune);
    }
    match &tune.curve {
        Some(curve) => out += &of_curve(style, tune, curve),
        None if tune.front.len() > 1 => out += &front(style, tune),
        None => {}
    }
    if !out.is_empty() {
        out += "\n";
    }
    out
}

/// The setting that wins, what it changes and what to write; or why the current one stays.
fn won_or_stays(style: Style, tune: &Tune, runs: &[Run]) -> String {
    let mut out = String::new();
    let title = format!("{} on {}: {}", tune.workload, tune.machine, tune.side);
    lines(&mut out, style, "", &title, |line| style.heading(line));
    out += "\n";
    match &tune.winner {
        Some(winner) => out += &won(style, tune, winner, runs),
        None => lines(&mut out, style, "", &stays(tune), str::to_owned),
    }
    out
}

/// All that there is to say of one machine's answer.
fn of_machine(style: Style, tune: &Tune, runs: &[Run]) -> String {
    let mut out = won_or_stays(style, tune, runs);
    out += &contributions(style, tune);
    if let Some(curve) = &tune.curve {
        out += &of_curve(style, tune, curve);
    }
    if !tune.front.is_empty() {
        out += &front(style, tune);
    }
    out += "\n";
    out += &searched(style, &tune.space);
    lines(&mut out, style, "  ", &how(tune), |line| style.faint(line));
    for failed in &tune.failed {
        let text = format!("could not be simulated: {}: {}", failed.setting, failed.why);
        lines(&mut out, style, "  ", &text, |line| style.bad(line));
    }
    out
}

fn stays(tune: &Tune) -> String {
    let now = |(goal, mean): (&lab::measurements::TuneGoal, &f64)| {
        format!("{} {}", goal.metric, plain(&goal.unit, *mean))
    };
    let now: Vec<String> = tune.goals.iter().zip(&tune.current.means).map(now).collect();
    let now = if now.is_empty() { String::new() } else { format!(" It has {}.", now.join(", ")) };
    format!("The current setting stays: {}.{now}", tune.stays)
}

fn won(style: Style, tune: &Tune, winner: &TuneCandidate, runs: &[Run]) -> String {
    let mut out = String::new();
    lines(&mut out, style, "", &words(&winner.knobs), |line| style.good(line));
    for (at, goal) in tune.goals.iter().enumerate() {
        let [before, after] = [&tune.current, winner].map(|of| plain(&goal.unit, of.means[at]));
        let change = scale(tune, at).estimate(&winner.changes[at]);
        let model = interval::beside(&goal.metric, &goal.unit, [tune.current.means[at], winner.means[at]]);
        let text = format!("{}: {before} -> {after}, {change}{model}", goal.metric);
        lines(&mut out, style, "  ", &text, str::to_owned);
    }
    for (limit, held) in tune.limits.iter().zip(&winner.held) {
        let part = limit.unit.starts_with("part");
        let value = if part {
            format!("{:.1} %", 100.0 * held.value.mean)
        } else {
            plain(&limit.unit, held.value.mean)
        };
        let text = format!("{}: {value}, {} ({})", limit.metric, verdict(held.verdict), limit.limit);
        lines(&mut out, style, "  ", &text, str::to_owned);
    }
    if let Some(robustness) = &tune.robustness {
        let [seeds, variants] =
            [(&robustness.seeds, "unseen seed"), (&robustness.variants, "machine variant")]
                .map(|(of, what)| wins(of, what));
        let text = format!("wins on {seeds}, {variants}");
        lines(&mut out, style, "  ", &text, str::to_owned);
        for other in &robustness.others {
            lines(&mut out, style, "  ", &elsewhere(tune, other), str::to_owned);
        }
    }
    let is_own = |run: &&Run| run.machine == tune.machine && sets(run, &winner.knobs);
    let own: Vec<Run> = runs.iter().filter(is_own).take(1).cloned().collect();
    out += "\n";
    out + &to_set::text(style, &own)
}

/// Whether a run has these knobs with these values.
fn sets(run: &Run, knobs: &[KnobText]) -> bool {
    knobs.iter().all(|of| run.knobs.get(&of.knob).is_some_and(|value| value.to_string() == of.value))
}

fn wins(of: &Wins, what: &str) -> String {
    let mut said = format!("{} of {}", of.wins, units::plural(of.of, what));
    if !of.lost.is_empty() {
        let more = if of.lost.len() > NAMED { ", …" } else { "" };
        let named: Vec<&str> = of.lost.iter().take(NAMED).map(String::as_str).collect();
        said = format!("{said} (not: {}{more})", named.join(", "));
    }
    said
}

fn elsewhere(tune: &Tune, other: &Elsewhere) -> String {
    let unit = tune.goals.first().map_or("", |goal| goal.unit.as_str());
    let change = || Scale { unit, before: other.before }.estimate(&other.change);
    let said = match other.verdict {
        ElsewhereVerdict::Wins => format!("wins, {}", change()),
        ElsewhereVerdict::NoDifference => "makes no difference beyond the noise".to_owned(),
        ElsewhereVerdict::Loses => format!("loses, {}", change()),
        ElsewhereVerdict::CannotBe => "cannot be tried".to_owned(),
    };
    format!("on {}: {said}", other.name)
}

fn words(knobs: &[KnobText]) -> String {
    knobs.iter().map(|of| format!("{}={}", of.knob, of.value)).collect::<Vec<_>>().join(" ")
}

fn verdict(held: Held) -> &'static str {
    match held {
        Held::Kept => "kept",
        Held::Unsure => "perhaps not kept",
        Held::Broken => "not kept",
    }
}

fn scale(tune: &Tune, goal: usize) -> Scale<'_> {
    Scale { unit: &tune.goals[goal].unit, before: tune.current.means.get(goal).copied().unwrap_or(0.0) }
}

/// Beside the current setting with the seeds of the search.
fn searched_scale(tune: &Tune, goal: usize) -> Scale<'_> {
    Scale { unit: &tune.goals[goal].unit, before: tune.search.means.get(goal).copied().unwrap_or(0.0) }
}

/// What each knob of the best setting does.
fn kept(style: Style, tune: &Tune) -> String {
    let heads = tune.goals.iter().map(|goal| goal.metric.clone());
    let mut table = Table::new(heads.chain(["<what the knob does among the others".to_owned()]));
    for of in tune.contributions.iter().filter(|of| of.kept) {
        let cells =
            of.effects.iter().enumerate().map(|(at, effect)| searched_scale(tune, at).estimate(effect));
        table.row(cells.chain([format!("{}: {} -> {}", of.knob, of.from, of.to)]).collect::<Vec<_>>());
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.text(2, style.columns())) }
}

/// The same, and which knobs do nothing.
fn contributions(style: Style, tune: &Tune) -> String {
    let idle: Vec<&Contribution> = tune.contributions.iter().filter(|of| !of.kept).collect();
    let mut out = kept(style, tune);
    if !idle.is_empty() {
        let names: Vec<&str> = idle.iter().map(|of| of.knob.as_str()).collect();
        let text = format!("Left as they are, for they do nothing beyond the noise: {}.", names.join(", "));
        lines(&mut out, style, "  ", &text, str::to_owned);
    }
    out
}

fn of_curve(style: Style, tune: &Tune, curve: &Curve) -> String {
    let goal = &tune.goals[0];
    let mut table = Table::new([curve.knob.as_str(), goal.metric.as_str(), "beside now", "<"]);
    for point in &curve.points {
        let mut marks = vec![];
        if tune.space.axes.first().is_some_and(|axis| axis.current == point.value) {
            marks.push("now");
        }
        marks.extend((curve.knee.as_ref() == Some(&point.value)).then_some("knee"));
        marks.extend((point.verdict != Held::Kept).then_some(verdict(point.verdict)));
        let value = with_half(&goal.unit, &point.goal);
        table.row([
            point.value.clone(),
            value,
            searched_scale(tune, 0).estimate(&point.change),
            marks.join(", "),
        ]);
    }
    let mut out = format!("\n{}", table.text(2, style.columns()));
    let knee = curve.knee.as_ref().map_or_else(|| "no knee".to_owned(), |knee| format!("knee at {knee}"));
    let enough = curve.enough.as_ref().map_or_else(String::new, |value| {
        format!("; {value} is the least value that is not worse than the best beyond the noise")
    });
    lines(&mut out, style, "  ", &format!("{knee}{enough}. By {}.", curve.method), |line| style.faint(line));
    out
}

fn with_half(unit: &str, effect: &Effect) -> String {
    let mean = plain(unit, effect.mean);
    match effect.half_width() {
        Some(half) if half > 0.0 => format!("{mean} ± {}", plain(unit, half)),
        _ => mean,
    }
}

fn front(style: Style, tune: &Tune) -> String {
    let heads = tune.goals.iter().map(|goal| goal.metric.clone());
    let mut table =
        Table::new(heads.chain(["<none of these is better than another in every goal".to_owned()]));
    for candidate in &tune.front {
        let cells = candidate.changes.iter().zip(&candidate.means).enumerate();
        // What it changes is set beside what the same seeds gave with the current setting.
        let cells = cells.map(|(at, (change, mean))| {
            Scale { unit: &tune.goals[at].unit, before: mean - change.mean }.estimate(change)
        });
        let name = if candidate.knobs.is_empty() {
            "the current setting".to_owned()
        } else {
            words(&candidate.knobs)
        };
        table.row(cells.chain([name]).collect::<Vec<_>>());
    }
    format!("\n{}", table.text(2, style.columns()))
}

fn how(tune: &Tune) -> String {
    let search = &tune.search;
    let levels: Vec<String> = search
        .levels
        .iter()
        .map(|level| {
            let used = if level.used { "" } else { ", not raced on" };
            let [part, cost] = [level.permille, level.cost_permille].map(|part| part as f64 / 10.0);
            format!("{part:.0} % of the workload for {cost:.0} % ({:.2}{used})", level.agreement)
        })
        .collect();
    let forms = if levels.is_empty() {
        String::new()
    } else {
        format!(
            "; shortened forms, what each costs, and how far it tells settings apart as the whole does (1 is all): {}",
            levels.join(", ")
        )
    };
    format!(
        "{} tried in {}, which cost as much as {:.1} of full length ({:.0} were allowed), finalists with {}; {} after it{forms}",
        units::plural(search.tried, "setting"),
        units::plural(search.simulations, "simulation"),
        search.cost,
        search.budget,
        units::plural(search.seeds, "seed"),
        units::plural(search.simulations_after, "simulation"),
    )
}
