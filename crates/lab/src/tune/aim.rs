//! What is to become better, and what has to stay.

use super::bench::Values;
use crate::measurements::{
    Better, Bound, BoundError, BoundSide, Effect, FAILED_ALLOCATIONS, Held, HeldLimit, Limit as Amount,
    TuneGoal, TuneLimit, figure_names,
};
use crate::subject::{AskError, Goal, Subject};

/// A figure that is to become better.
#[derive(Clone, Debug)]
pub(super) struct Aim {
    pub(super) goal: Goal,
    pub(super) better: Better,
}

/// A figure that has to stay within a limit.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub(super) goal: Goal,
    bound: Bound,
    /// The part of the current setting's that is the limit, or the limit in the figure's unit.
    number: f64,
    /// The figure's unit.
    pub(super) unit: String,
}

/// What is said of a figure of which nobody can tell which way is better: it may be half of a known one's name.
fn no_way(name: &str) -> String {
    let meant = figure_names().into_iter().find(|known| known.starts_with(name) && known != name);
    let meant = meant.map_or_else(String::new, |known| format!(" did you mean {known}? Else"));
    format!(
        "which way {name} is better nobody can tell from its name;{meant} write {name}:lower or {name}:higher"
    )
}

impl Aim {
    /// Reads `NAME`, or `NAME:lower` and `NAME:higher` where nobody can tell from its name which way is better.
    pub(super) fn parse(subject: &Subject, text: &str) -> Result<Self, AskError> {
        let (name, way) = text.split_once(':').map_or((text, None), |(name, way)| (name, Some(way)));
        let goal = subject.goal(name);
        let better = match way {
            Some("lower") => Better::Lower,
            Some("higher") => Better::Higher,
            Some(other) => {
                return Err(AskError::new(format!(
                    "--goal {name}:{other}: after the colon stands lower or higher"
                )));
            }
            None => goal.better().ok_or_else(|| AskError::new(no_way(name)))?,
        };
        Ok(Self { goal, better })
    }

    /// `value`, so that less is better.
    pub(super) fn loss(&self, value: f64) -> f64 {
        match self.better {
            Better::Lower => value,
            Better::Higher => -value,
        }
    }

    /// Whether a difference in the figure's unit is one for the better.
    pub(super) fn is_better(&self, effect: &Effect) -> bool {
        effect.is_told() && self.loss(effect.mean) < 0.0
    }

    /// Whether it is one for the worse.
    pub(super) fn is_worse(&self, effect: &Effect) -> bool {
        effect.is_told() && self.loss(effect.mean) > 0.0
    }

    pub(super) fn described(&self, unit: &str) -> TuneGoal {
        let better = match self.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
        };
        TuneGoal { metric: self.goal.name().to_owned(), unit: unit.to_owned(), better: better.to_owned() }
    }
}

impl Limit {
    /// Reads `NAME:min=98%`, `NAME:max=105%`, `NAME:max=20us`, `NAME:min=1000`.
    pub(super) fn parse(subject: &Subject, text: &str) -> Result<Self, AskError> {
        let bound: Bound =
            text.parse().map_err(|error: BoundError| AskError::new(format!("--keep {error}")))?;
        let goal = subject.goal(&bound.figure);
        let unit = usual_unit(goal.name()).to_owned();
        let limit = Self { goal, bound, number: f64::NAN, unit: String::new() };
        // Where its name does not say what the figure is counted in, a run does.
        if unit.is_empty() && !limit.is_part() { Ok(limit) } else { limit.in_unit(&unit) }
    }

    /// No allocation may fail that did not fail before.
    pub(super) fn no_failures(subject: &Subject) -> Self {
        let text = format!("{FAILED_ALLOCATIONS}:max=100%");
        Self::parse(subject, &text).expect("a part of any figure is a limit")
    }

    /// The same where the figure is known to be in `unit`.
    pub(super) fn in_unit(self, unit: &str) -> Result<Self, AskError> {
        let number = match self.bound.limit {
            Amount::OfFirst(part) => part,
            Amount::Amount { .. } => self
                .bound
                .limit_in(unit, f64::NAN)
                .map_err(|error: BoundError| AskError::new(format!("--keep {error}")))?,
        };
        Ok(Self { number, unit: unit.to_owned(), ..self })
    }

    /// Whether it is known in the figure's unit.
    pub(super) const fn is_known(&self) -> bool {
        !self.number.is_nan()
    }

    /// Why a limit that is not known cannot be held.
    pub(super) fn of_no_unit(&self) -> AskError {
        let name = self.goal.name();
        AskError::new(format!(
            "--keep {name}: what it is counted in nobody knows here; write a part of it, as min=98%"
        ))
    }

    /// As it was asked for.
    pub(super) fn written(&self) -> String {
        self.bound.to_string()
    }

    const fn is_part(&self) -> bool {
        matches!(self.bound.limit, Amount::OfFirst(_))
    }

    fn is_least(&self) -> bool {
        self.bound.side == BoundSide::Min
    }

    /// What the limit is compared with: the figure, or its part of the current setting's.
    fn seen(&self, value: f64, current: f64) -> f64 {
        match self.bound.limit {
            Amount::Amount { .. } => value,
            // All of nothing is nothing.
            Amount::OfFirst(_) if current == 0.0 && value == 0.0 => 1.0,
            Amount::OfFirst(_) if current == 0.0 => f64::MAX,
            Amount::OfFirst(_) => value / current,
        }
    }

    /// How far beyond the limit a value is, in parts of the limit; 0 within it.
    pub(super) fn breach(&self, value: f64, current: f64) -> f64 {
        let (seen, bound) = (self.seen(value, current), self.number);
        let beyond = if self.is_least() { bound - seen } else { seen - bound };
        // Two means that are equal but for the last bit keep the limit.
        let beyond = if beyond <= bound.abs() * 1e-12 { 0.0 } else { beyond };
        beyond / bound.abs().max(f64::MIN_POSITIVE)
    }

    /// What several seeds say: pairs of a value and the current setting's.
    pub(super) fn held(&self, pairs: impl IntoIterator<Item = [f64; 2]>) -> HeldLimit {
        let value = Effect::of(pairs.into_iter().map(|[value, current]| self.seen(value, current)));
        let (low, high) = (value.low.unwrap_or(value.mean), value.high.unwrap_or(value.mean));
        let slack = self.number.abs() * 1e-12;
        let (worst, best) = if self.is_least() { (low, high) } else { (-high, -low) };
        let bound = if self.is_least() { self.number } else { -self.number };
        let verdict = if worst >= bound - slack {
            Held::Kept
        } else if best < bound - slack {
            Held::Broken
        } else {
            Held::Unsure
        };
        HeldLimit { value, verdict }
    }

    pub(super) fn described(&self) -> TuneLimit {
        let unit = if self.is_part() { "part of the current setting's" } else { &self.unit };
        TuneLimit { metric: self.goal.name().to_owned(), unit: unit.to_owned(), limit: self.written() }
    }
}

/// What a figure is counted in, as far as its name says so.
fn usual_unit(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or(name) {
        last if last.ends_with("_ns") => "ns",
        "peak_rss" | "rss" | "peak_pages" | "held_pages" | "pcp_pages" | "slab_pages" => "pages",
        _ => "",
    }
}

/// All figures that are looked at: those of the aims, then those of the limits.
#[derive(Clone, Debug)]
pub(super) struct Aims {
    pub(super) aims: Vec<Aim>,
    pub(super) limits: Vec<Limit>,
}

impl Aims {
    pub(super) fn goals(&self) -> Vec<Goal> {
        let aims = self.aims.iter().map(|aim| aim.goal.clone());
        aims.chain(self.limits.iter().map(|limit| limit.goal.clone())).collect()
    }

    /// The value of an aim; what did not happen took no time.
    pub(super) fn aim(values: &Values, aim: usize) -> f64 {
        values[aim].unwrap_or(0.0)
    }

    /// The value of a limit's figure.
    pub(super) fn limit(&self, values: &Values, limit: usize) -> f64 {
        values[self.aims.len() + limit].unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements::Run;

    fn subject() -> Subject {
        Subject::Made(|_, _| Run::default())
    }

    fn limit(text: &str) -> Limit {
        Limit::parse(&subject(), text).unwrap()
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_limit_is_judged_by_its_interval() {
        let verdict =
            |text: &str, ratios: &[f64]| limit(text).held(ratios.iter().map(|&of| [of * 50.0, 50.0])).verdict;
        assert_eq!(verdict("rate:min=98%", &[0.99, 0.992, 0.991]), Held::Kept);
        assert_eq!(verdict("rate:min=98%", &[0.97, 0.99, 1.01]), Held::Unsure);
        assert_eq!(verdict("rate:min=98%", &[0.90, 0.91, 0.92]), Held::Broken);
        assert_eq!(verdict("rss:max=105%", &[1.0, 1.0]), Held::Kept);
        assert_eq!(verdict("rss:max=105%", &[1.2]), Held::Broken);
        assert_eq!(verdict("rss:max=60", &[1.0, 1.1]), Held::Unsure);
    }

    #[test]
    fn limits_are_parts_amounts_and_times() {
        assert!(near(limit("refill.p99_ns:max=20us").number, 20_000.0));
        assert!(near(limit("rss:max=105%").number, 1.05));
        assert!(near(limit("rss:max=64M").number, 16_384.0));
        assert!(limit("page_faults:max=20ns").in_unit("count").is_err());
        assert!((limit("rss:max=105%").breach(210.0, 100.0) - 1.0).abs() < 1e-9);
        assert!(near(limit("rss:max=105%").breach(100.0, 100.0), 0.0));
        assert!(near(limit("failed:max=100%").breach(0.0, 0.0), 0.0));
        assert!(limit("failed:max=100%").breach(1.0, 0.0) > 0.0);
        for wrong in ["rss", "rss:105%", "rss:most=1", "rss:max=x", "rss:max=-1", "rss:max=inf%"] {
            assert!(Limit::parse(&subject(), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_better_way_follows_from_the_name_or_is_said() {
        let better = |text: &str| Aim::parse(&subject(), text).map(|aim| aim.better);
        assert_eq!(better("fault.p99_ns"), Ok(Better::Lower));
        assert_eq!(better("operations_per_second"), Ok(Better::Higher));
        assert_eq!(better("huge_faults:higher"), Ok(Better::Higher));
        let said = |text: &str| better(text).unwrap_err().to_string();
        assert!(
            said("huge_faults").ends_with("from its name; write huge_faults:lower or huge_faults:higher")
        );
        assert!(said("fault.p99").contains("; did you mean fault.p99_ns? Else write fault.p99:lower"));
        assert!(better("fault.p99_ns:up").is_err());
    }
}
