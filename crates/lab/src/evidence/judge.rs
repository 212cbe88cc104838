//! From what was checked to a label: what a mechanism does under a policy, and how long that takes on a machine.

use mm::Policy;
use mm::policy::{FREEHOLD, Mechanism};
use mm::version::Version;
use sim::Profile;

use super::Table;
use super::held::{Check, Held};
use super::rows::{FigureKind, Rows};
use crate::measurements::{Confidence, Label};

/// Rows that are further off than this in the median are no reason to believe the next one.
const MISSED: f64 = 0.5;

/// A policy's mechanism on a machine, to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Judgement<'a> {
    /// What was checked.
    pub table: &'a Table,
    /// Whose rules.
    pub policy: &'a Policy,
    /// Which mechanism.
    pub mechanism: Mechanism,
}

impl<'a> Judgement<'a> {
    /// How sure it is what the mechanism does, by kernels alone: no machine's published rows are looked at.
    pub fn rules(&self) -> Label {
        let kernel = self.policy.kernel();
        let own = self.held_of(|policy| is_same(policy, self.policy));
        if let Some(label) = self.directly(&own) {
            return label;
        }
        if self.policy.touched().contains(&self.mechanism) {
            if let Some(label) = self.by_same_rules() {
                return label;
            }
            return extrapolated(format!(
                "{} its rules, and nothing was held against that",
                changer(self.policy)
            ));
        }
        // Parts that leave the mechanism alone still change what surrounds it.
        let on_top =
            if self.policy.touched().is_empty() { "" } else { ", without what is on top of it here" };
        let plain = Policy::linux(kernel);
        let of_kernel = self.held_of(|policy| is_same(policy, &plain));
        if let Some(label) = self.directly(&of_kernel) {
            let reason = format!("{} under {}{on_top}", label.reason, plain.name());
            return Label::new(label.label.max(Confidence::Predicted), reason);
        }
        self.nearby(kernel)
    }

    /// The same, with the published counts of this policy on `profile`.
    pub fn counts(&self, profile: &Profile) -> Label {
        let rules = self.rules();
        if rules.label != Confidence::Extrapolated || !is_builtin(profile) {
            return rules;
        }
        let own = self.rows(profile, FigureKind::Counts, |policy| is_same(policy, self.policy));
        summary(&own).map_or(rules, |rows| rows.label(profile, ""))
    }

    /// How sure times are on `profile`; `None` for a mechanism that takes none by itself.
    pub fn times(&self, profile: &Profile) -> Option<Label> {
        let measured_by = self.timed_by()?;
        let on = Judgement { mechanism: measured_by, ..*self };
        if !is_builtin(profile) {
            let name = profile.name();
            return Some(extrapolated(format!("nothing was published to hold the profile `{name}` against")));
        }
        let is_touched = self.policy.touched().contains(&measured_by);
        let same_rules = |policy: &Policy| is_touched && on.answers(policy) == on.answers(self.policy);
        let own =
            on.rows(profile, FigureKind::Times, |policy| is_same(policy, self.policy) || same_rules(policy));
        if let Some(rows) = summary(&own) {
            return Some(rows.label(profile, ""));
        }
        if is_touched {
            let reason = format!("{} its rules, and no figure was published of that", changer(self.policy));
            return Some(extrapolated(reason));
        }
        let others = on.rows(profile, FigureKind::Times, |policy| !policy.touched().contains(&measured_by));
        let patched = on.rows(profile, FigureKind::Times, |_| true);
        let rows = if others.is_empty() { patched } else { others };
        Some(match summary(&rows) {
            None => extrapolated(self.unchecked(profile)),
            Some(_) if self.rules().label == Confidence::Extrapolated => extrapolated(format!(
                "rows of {} were checked under {} alone, whose rules are others",
                profile.name(),
                policies(&rows)
            )),
            Some(found) => found.label(profile, &format!(", run under {}", policies(&rows))),
        })
    }

    /// Whose spans say how long the mechanism takes: an order of zones shows in requests for pages, and so does most of a fault.
    fn timed_by(&self) -> Option<Mechanism> {
        match self.mechanism {
            Mechanism::Watermarks => None,
            Mechanism::Zonelists | Mechanism::AddressSpaces => {
                let has_own = self.table.rows.iter().any(|rows| rows.mechanism == self.mechanism);
                Some(if has_own { self.mechanism } else { Mechanism::PageLists })
            }
            other => Some(other),
        }
    }

    fn unchecked(&self, profile: &Profile) -> String {
        let fitted: u64 = self.rows_there(profile).map(|rows| rows.fitted).sum();
        let what = self.mechanism.words();
        match fitted {
            0 => format!("no published figure of {what} on {}", profile.name()),
            _ => format!("figures of {what} on {} were fitted, none predicted", profile.name()),
        }
    }

    fn rows_there(&self, profile: &Profile) -> impl Iterator<Item = &'a Rows> {
        let (name, mechanism) = (profile.name().to_owned(), self.mechanism);
        self.table.rows.iter().filter(move |rows| rows.machine == name && rows.mechanism == mechanism)
    }

    fn rows(&self, profile: &Profile, kind: FigureKind, whose: impl Fn(&Policy) -> bool) -> Vec<&'a Rows> {
        let is_whose = |rows: &&Rows| Policy::parse(&rows.policy).is_ok_and(|policy| whose(&policy));
        let there = self.rows_there(profile).filter(|rows| rows.figures == kind && !rows.errors.is_empty());
        there.filter(is_whose).collect()
    }

    fn held_of(&self, whose: impl Fn(&Policy) -> bool) -> Vec<&'a Held> {
        let of = self.table.held.iter().filter(|held| held.mechanism == self.mechanism);
        of.filter(|held| Policy::parse(&held.policy).is_ok_and(|policy| whose(&policy))).collect()
    }

    /// What was held of this very policy, if anything was.
    fn directly(&self, held: &[&Held]) -> Option<Label> {
        let sums = Sums::of(held)?;
        let said = sums.said();
        if let Some(missed) = sums.missed() {
            return Some(extrapolated(format!("{said}: {missed}")));
        }
        let is_enough = !sums.errors.is_empty()
            || sums.checks.iter().any(|(check, _)| *check != Check::Captures)
            || matches!(self.mechanism, Mechanism::Watermarks | Mechanism::Zonelists);
        Some(match (sums.is_equal(), is_enough) {
            (true, true) => Label::new(Confidence::Exact, said),
            (false, true) => Label::new(Confidence::Predicted, said),
            (_, false) => Label::new(
                Confidence::Predicted,
                format!("{said}, but what it then does was traced under {} only", self.traced()),
            ),
        })
    }

    /// What traces and scenes of another kernel with the same parts say, where all of the mechanism's rules are the same there.
    fn by_same_rules(&self) -> Option<Label> {
        let kernel = self.policy.kernel();
        let seen = self.table.held.iter().filter(|held| held.check != Check::Captures);
        let of = seen.filter(|held| held.mechanism == self.mechanism);
        let policies = of.filter_map(|held| Policy::parse(&held.policy).ok());
        let mut same: Vec<Policy> =
            policies.filter(|policy| self.answers(policy) == self.answers(self.policy)).collect();
        // The nearest: newer ones before older, each by its distance in the order of versions.
        same.sort_by_key(Policy::kernel);
        let newer = same.iter().find(|policy| policy.kernel() >= kernel);
        let nearest = newer.or_else(|| same.iter().rfind(|policy| policy.kernel() < kernel))?;
        let there = self.held_of(|policy| is_same(policy, nearest));
        let label = self.directly(&there)?;
        let reason = format!("its rules are those of {}, where {}", nearest.name(), label.reason);
        Some(Label::new(label.label.max(Confidence::Predicted), reason))
    }

    /// What the rules of the mechanism say under `policy`.
    fn answers(&self, policy: &Policy) -> Vec<String> {
        let rules = policy.rules_in_force().into_iter();
        rules.filter(|rule| rule.mechanisms.contains(&self.mechanism)).map(|rule| rule.answer).collect()
    }

    /// The policies whose traces were held, for a sentence.
    fn traced(&self) -> String {
        let traces = self.table.held.iter().filter(|held| held.check == Check::Traces);
        let of = traces.filter(|held| held.mechanism == self.mechanism).map(|held| held.policy.as_str());
        let names: Vec<&str> = of.collect();
        if names.is_empty() { "no kernel".to_owned() } else { names.join(" and ") }
    }

    /// What is known of a kernel that nothing was held against, by those before and after it.
    fn nearby(&self, kernel: Version) -> Label {
        let of = self.table.held.iter().filter(|held| held.mechanism == self.mechanism);
        let mut versions: Vec<Version> =
            of.filter_map(|held| Some(Policy::parse(&held.policy).ok()?.kernel())).collect();
        versions.sort_unstable();
        let before = versions.iter().rfind(|version| **version < kernel);
        let after = versions.iter().find(|version| **version > kernel);
        match (before, after) {
            (Some(before), Some(after)) => Label::new(
                Confidence::Predicted,
                format!(
                    "no figure of linux-{kernel} was held, but of linux-{before} and linux-{after} before and after it"
                ),
            ),
            (None, Some(after)) => self.by_same_rules().unwrap_or_else(|| {
                extrapolated(format!("linux-{kernel} is older than linux-{after}, the oldest that was held"))
            }),
            (Some(before), None) => self.by_same_rules().unwrap_or_else(|| {
                extrapolated(format!("linux-{kernel} is newer than linux-{before}, the newest that was held"))
            }),
            (None, None) => extrapolated("no capture, no trace and no scene tells of it"),
        }
    }
}

/// Whether two policies are one: the same kernel, the same parts in any order.
fn is_same(one: &Policy, other: &Policy) -> bool {
    one.kernel() == other.kernel() && one.rules() == other.rules()
}

/// Whether `profile` is what comes with the program under its name: rows were simulated on that.
fn is_builtin(profile: &Profile) -> bool {
    Profile::builtin_names().any(|name| name == profile.name())
        && Profile::load(profile.name()).is_ok_and(|builtin| builtin == *profile)
}

fn changer(policy: &Policy) -> String {
    let name = policy.name();
    match name.split_once('+') {
        Some((_, parts)) if parts.contains('+') => format!("+{} change", parts.replace('+', " +")),
        Some((_, part)) => format!("+{part} changes"),
        None if name == FREEHOLD => "freehold changes".to_owned(),
        None => format!("{name} changes"),
    }
}

fn extrapolated(reason: impl Into<String>) -> Label {
    Label::new(Confidence::Extrapolated, reason)
}

/// What captures, traces and scenes of one policy come to, together.
struct Sums {
    /// How many figures were compared, and how many of these were equal, by check; only where there are any.
    checks: Vec<(Check, (u64, u64))>,
    /// Errors of counters, in order.
    errors: Vec<f64>,
    /// From how many scenes these are.
    scenes: usize,
}

impl Sums {
    /// `None` where there is nothing.
    fn of(held: &[&Held]) -> Option<Self> {
        let sum = |check: Check| {
            let of = held.iter().filter(|held| held.check == check);
            let sum = of.fold((0, 0), |sum, held| (sum.0 + held.compared, sum.1 + held.equal));
            (sum.0 > 0).then_some((check, sum))
        };
        let checks: Vec<_> =
            [Check::Captures, Check::Traces, Check::Scenes].into_iter().filter_map(sum).collect();
        let mut errors: Vec<f64> = held.iter().flat_map(|held| &held.errors).copied().collect();
        errors.sort_by(f64::total_cmp);
        let scenes = held.iter().filter(|held| !held.errors.is_empty()).count();
        (!checks.is_empty() || !errors.is_empty()).then_some(Self { checks, errors, scenes })
    }

    /// `1,336 of 1,336 figures of traces are equal and the median error of 40 counters of 2 scenes is 1.3 %`.
    fn said(&self) -> String {
        let equal = self.checks.iter().map(|(check, (compared, equal))| {
            let (equal, compared) = (thousands(*equal), thousands(*compared));
            format!("{equal} of {compared} figures of {} are equal", check.name())
        });
        let near = self.median().map(|median| {
            let scenes = if self.scenes == 1 { "scene" } else { "scenes" };
            let (counters, scenes) = (self.errors.len(), format!("{} {scenes}", self.scenes));
            format!("the median error of {counters} counters of {scenes} is {}", percent(median))
        });
        equal.chain(near).collect::<Vec<_>>().join(" and ")
    }

    fn median(&self) -> Option<f64> {
        let middle = self.errors.len() / 2;
        Some(f64::midpoint(*self.errors.get(self.errors.len().checked_sub(1)? / 2)?, self.errors[middle]))
    }

    fn is_equal(&self) -> bool {
        self.errors.is_empty() && self.checks.iter().all(|(_, (compared, equal))| compared == equal)
    }

    /// Why it is no reason to believe the next figure, if it is not.
    fn missed(&self) -> Option<&'static str> {
        let few = |(_, (compared, equal)): &(Check, (u64, u64))| 2 * equal < *compared;
        if self.median().is_some_and(|median| median > MISSED) {
            return Some("half of them are missed by more than half");
        }
        self.checks.iter().any(few).then_some("fewer than half")
    }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn policies(rows: &[&Rows]) -> String {
    let mut names: Vec<&str> = vec![];
    for of in rows {
        if !names.contains(&of.policy.as_str()) {
            names.push(&of.policy);
        }
    }
    match names[..] {
        [] | [_] | [_, _] => names.join(" and "),
        [first, ..] => format!("{first} and {} others", names.len() - 1),
    }
}

/// Rows that were predicted, together.
struct Summary {
    count: usize,
    median: f64,
    experiments: Vec<String>,
}

fn summary(rows: &[&Rows]) -> Option<Summary> {
    let mut errors: Vec<f64> = rows.iter().flat_map(|rows| &rows.errors).copied().collect();
    errors.sort_by(f64::total_cmp);
    let (low, high) = (errors.get(errors.len().saturating_sub(1) / 2)?, errors[errors.len() / 2]);
    let mut experiments: Vec<String> = rows.iter().map(|rows| rows.experiment.clone()).collect();
    experiments.dedup();
    Some(Summary { count: errors.len(), median: f64::midpoint(*low, high), experiments })
}

impl Summary {
    fn label(&self, profile: &Profile, under: &str) -> Label {
        let rows = if self.count == 1 { "row" } else { "rows" };
        let (count, name, from) = (self.count, profile.name(), self.experiments.join(", "));
        if self.median > MISSED {
            let off = if self.median.is_finite() { percent(self.median) } else { "without end".to_owned() };
            return extrapolated(format!(
                "half of {count} published {rows} on {name} were missed by {off} or more ({from}{under})"
            ));
        }
        let median = percent(self.median);
        Label::new(
            Confidence::Predicted,
            format!("median error {median} over {count} published {rows} on {name} ({from}{under})"),
        )
    }
}

fn percent(fraction: f64) -> String {
    let percent = 100.0 * fraction;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
