//! One workload on one machine: what each variant changes against the first, or what a single one came to.

use std::fmt::Write as _;

use lab::measurements::{Change, Group, Sample, Scene, Told, changes, figures};

use super::item;
use crate::changes::{amount, estimate, figures as both, is_noticeable, is_real, is_seen, share, title};
use crate::interval::{self, Model};
use crate::style::Style;
use crate::units;

/// Time in a kind of span, or in a lock, matters from this part of the run on.
const WEIGHTY: f64 = 0.01;
/// Variants that have a paragraph; the tables have all.
const VARIANTS: usize = 8;

/// How many changes are listed with their figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Detail {
    /// The first: there are several paragraphs.
    First,
    /// A few: it is the only one.
    Several,
}

impl Detail {
    /// Changes that are listed each way.
    const fn listed(self) -> usize {
        match self {
            Self::First => 1,
            Self::Several => 2,
        }
    }
}

/// Which way a figure went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Better,
    Worse,
}

impl Way {
    const BOTH: [Self; 2] = [Self::Better, Self::Worse];

    const fn label(self) -> &'static str {
        match self {
            Self::Better => "better:",
            Self::Worse => "worse:",
        }
    }

    fn of<'a>(self, ranked: &[&'a Change]) -> Vec<&'a Change> {
        let wanted = Some(self == Self::Better);
        ranked.iter().copied().filter(|change| change.is_better() == wanted).collect()
    }
}

/// A single variant's figures, in the order in which they are said; those that it has.
const ALONE: [&str; 12] = [
    "elapsed_ns",
    "cpu_ns",
    "peak_rss",
    "page_faults",
    "pages_per_second",
    "fault.mean_ns",
    "fault.p99_ns",
    "refill.mean_ns",
    "refill.p99_ns",
    "drain.mean_ns",
    "lock.zone.wait_ns",
    "failed_allocations",
];

/// `before` is the scene above, whose workload and variants need not be named again.
pub(super) fn text(style: Style, scene: &Scene<'_>, before: Option<&Scene<'_>>, detail: Detail) -> String {
    if before.is_some_and(|before| is_same_elsewhere(scene, before)) {
        let heading = style.heading(&format!("the same on {}", scene.machine)) + "\n";
        return heading + &body(style, scene, detail);
    }
    let on = format!("{} on {}", scene.workload, scene.machine);
    let Some(base) = scene.groups.first() else { return String::new() };
    let what = match scene.groups.as_slice() {
        [] => on,
        [only] => format!("{on}, {}", under(only)),
        [base, other] => format!("{on}: {}", arrow(&base.label, &other.label)),
        [base, ..] => format!("{on}, against {}", base.label),
    };
    heading(style, &what, base) + &body(style, scene, detail)
}

/// Whether `scene` is another machine's `before`.
fn is_same_elsewhere(scene: &Scene<'_>, before: &Scene<'_>) -> bool {
    let names = |scene: &Scene<'_>| {
        let of = |group: &Group<'_>| (group.label.clone(), group.first().policy.clone(), group.runs.len());
        scene.groups.iter().map(of).collect::<Vec<_>>()
    };
    scene.workload == before.workload && names(scene) == names(before)
}

fn body(style: Style, scene: &Scene<'_>, detail: Detail) -> String {
    match scene.groups.as_slice() {
        [] => String::new(),
        [only] => alone(style, only),
        [base, other] => pair(style, base, other, detail),
        [base, others @ ..] => {
            let mut out = String::new();
            for other in others.iter().take(VARIANTS) {
                out += &item(style, 2, &format!("{}:", other.label), &in_a_line(base, other));
            }
            if others.len() > VARIANTS {
                let more = units::plural((others.len() - VARIANTS) as u64, "variant");
                let _ = writeln!(out, "  and {more} more: --full shows them");
            }
            out
        }
    }
}

fn heading(style: Style, text: &str, group: &Group<'_>) -> String {
    let seeds = match group.runs.len() {
        1 => "one seed, so no interval".to_owned(),
        seeds => format!("{seeds} seeds"),
    };
    let line = format!("{text}, {seeds}");
    crate::table::wrap(&line, style.columns()).iter().map(|line| style.heading(line) + "\n").collect()
}

/// `linux-6.18, vm.swappiness=10`.
fn under(group: &Group<'_>) -> String {
    let run = group.first();
    let knobs = run.knobs.iter().map(|(name, value)| format!("{name}={value}"));
    std::iter::once(run.policy.clone()).chain(knobs).collect::<Vec<_>>().join(", ")
}

/// `K=5 -> 0` of `K=5` and `K=0`.
fn arrow(one: &str, other: &str) -> String {
    match (one.rsplit_once('='), other.rsplit_once('=')) {
        (Some((knob, _)), Some((same, value))) if knob == same => format!("{one} -> {value}"),
        _ => format!("{one} -> {other}"),
    }
}

/// What a variant came to, where there is none to compare it with.
fn alone(style: Style, group: &Group<'_>) -> String {
    let said = |name: &&str| {
        let values = group.runs.iter().filter_map(|run| {
            figures(run)
                .into_iter()
                .find(|(figure, _)| figure.name == **name)
                .map(|(figure, value)| (figure.unit, value))
        });
        let (units, values): (Vec<&str>, Vec<f64>) = values.unzip();
        let sample = Sample::new(values);
        sample.mean().filter(|mean| *mean > 0.0)?;
        Some(format!("{} {}", short(name), tight(&estimate(units.first()?, &sample))))
    };
    let said: Vec<String> = ALONE.iter().filter_map(said).collect();
    let nothing = "nothing to compare: --set KNOB=A,B or --machine A,B gives two";
    let levels = interval::of_levels(group.first()).map(|levels| item(style, 2, "times:", &levels));
    let nothing = format!("  {}\n", style.faint(nothing));
    item(style, 2, "came to:", &said.join(", ")) + &levels.unwrap_or_default() + &nothing
}

/// What got better and what got worse, a paragraph each.
fn pair(style: Style, base: &Group<'_>, other: &Group<'_>, detail: Detail) -> String {
    let all = changes(base, other);
    let ranked = ranked(&all, is_real);
    let mut out = String::new();
    for way in Way::BOTH {
        let those = way.of(&ranked);
        if !those.is_empty() {
            out += &item(style, 2, way.label(), &listed(&those, detail.listed()));
        }
    }
    let open = open(&all);
    if !open.is_empty() {
        out += &item(style, 2, "not told apart:", &interval::of_open(open.len()));
    }
    out + &item_of_same(style, &all, &ranked)
}

/// What differs on the simulated machine by less than the model may be off.
fn open(all: &[Change]) -> Vec<&Change> {
    ranked(all, |change| is_seen(change) && Model::of(change) == Model::Open)
}

/// The same in one line, for one of several.
fn in_a_line(base: &Group<'_>, other: &Group<'_>) -> String {
    let all = changes(base, other);
    let ranked = ranked(&all, is_real);
    let ways = Way::BOTH.map(|way| (way.label(), way.of(&ranked)));
    let told = ways.iter().filter(|(_, those)| !those.is_empty());
    let said: Vec<String> = told.map(|(label, those)| format!("{label} {}", listed(those, 1))).collect();
    match (said.is_empty(), open(&all)) {
        (false, _) => said.join("; "),
        (true, open) if open.is_empty() => unchanged(&all).to_owned(),
        (true, open) => format!("not told apart: {}", named(&open, 1)),
    }
}

/// What did not change though it is what is asked: everything, or a program's run time.
fn item_of_same(style: Style, all: &[Change], ranked: &[&Change]) -> String {
    if ranked.is_empty() && open(all).is_empty() {
        return item(style, 2, "same:", unchanged(all));
    }
    let time = all.iter().find(|change| change.figure.name == "elapsed_ns");
    // Of a program that was killed it is no answer.
    let Some(time) = time.filter(|time| !is_seen(time) && time.figure.better.is_some()) else {
        return String::new();
    };
    let label = if is_noticeable(time) { "not told apart:" } else { "same:" };
    item(style, 2, label, &format!("run time ({})", tight(&both(time))))
}

/// Whether nothing is said to differ between two variants, not even as untold.
pub(super) fn is_same(base: &Group<'_>, other: &Group<'_>) -> bool {
    let all = changes(base, other);
    ranked(&all, is_real).is_empty() && open(&all).is_empty()
}

fn unchanged(all: &[Change]) -> &'static str {
    if all.iter().all(|change| change.told() == Told::Same) {
        "identical in all seeds"
    } else {
        "no difference beyond the seeds'"
    }
}

/// The changes that are to be said, one of each span, lock or program figure for each way, its mean where that is one of them: what matters first,
/// then what changed most.
fn ranked(all: &[Change], is_said: fn(&Change) -> bool) -> Vec<&Change> {
    let mut real: Vec<&Change> = all.iter().filter(|change| is_said(change)).collect();
    // A mean says more than a tail, a tail more than one extreme.
    real.sort_by_key(|change| match change.figure.name.rsplit_once('.') {
        Some((_, "p99_ns")) => 1,
        Some((_, what)) if what.contains("max") => 2,
        _ => 0,
    });
    let mut said: Vec<(&str, Option<bool>)> = vec![];
    real.retain(|change| {
        let this = (subject(&change.figure.name), change.is_better());
        let is_new = !said.contains(&this);
        said.push(this);
        is_new
    });
    real.sort_by(|one, other| {
        let place = |change: &Change| class(all, change);
        place(one).cmp(&place(other)).then(other.ratio().total_cmp(&one.ratio()))
    });
    real
}

/// `refill` of `refill.p99_ns`.
fn subject(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(subject, _)| subject)
}

/// A program's run time first; then rates, counts and times that take a part of the run worth speaking of; then the rest.
fn class(all: &[Change], change: &Change) -> u8 {
    let name = change.figure.name.as_str();
    let of_span =
        |span: &str| all.iter().find(|other| other.figure.name.strip_suffix(".mean_ns") == Some(span));
    let weight = match name.strip_suffix(".p99_ns").and_then(of_span) {
        Some(mean) => share(all, mean),
        None => share(all, change),
    };
    match name {
        "elapsed_ns" => 0,
        _ if name.ends_with("max_ns") => 2,
        _ if weight >= WEIGHTY => 1,
        _ => 2,
    }
}

/// The first few with their figures, and how many more there are.
fn listed(changes: &[&Change], most: usize) -> String {
    let one = |change: &&Change| {
        format!("{} {} ({})", short(&change.figure.name), amount(change), tight(&both(change)))
    };
    let said: Vec<String> = changes.iter().take(most).map(one).collect();
    let more = changes.len().saturating_sub(most);
    if more > 0 { format!("{}; {more} more", said.join(", ")) } else { said.join(", ") }
}

/// The first few without their figures, and how many more there are.
fn named(changes: &[&Change], most: usize) -> String {
    let said: Vec<String> = changes.iter().take(most).map(|change| short(&change.figure.name)).collect();
    let more = changes.len().saturating_sub(most);
    if more > 0 { format!("{}; {more} more", said.join(", ")) } else { said.join(", ") }
}

/// A figure's name without the kernel's function.
fn short(name: &str) -> String {
    let title = title(name);
    match (title.find(" ("), title.find(')')) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &title[..from], &title[to + 1..]),
        _ => title,
    }
}

/// Intervals close to their means: `62.44 µs ±4%`.
fn tight(figures: &str) -> String {
    figures.replace("± ", "±").replace(" %", "%")
}
