//! Why two runs of one workload differ: which rule, part or knob makes how much of the difference.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number;
use super::statistics::Sample;

/// The answer of `why`: from one side to the other, what makes the difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Why {
    /// What ran.
    pub workload: String,
    /// The machine profile's name.
    pub machine: String,
    /// The first side: its policy, and knobs that are set.
    pub from: String,
    /// The second.
    pub to: String,
    /// How many seeds; each ran on both sides.
    pub seeds: u64,
    /// How many simulations the answer took.
    pub simulations: u64,
    /// In how many things the sides differ.
    pub differences: u64,
    /// Those of them that change nothing here, to the bit in one seed, when they are changed alone from either side.
    pub set_aside: Vec<String>,
    /// How shares were made.
    pub method: ShareMethod,
    /// The answer for each figure that was asked for.
    pub goals: Vec<WhyGoal>,
}

/// How a difference is shared out among several causes. Both add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShareMethod {
    /// Mean over all orders in which causes could be changed one by one (Shapley's values).
    #[default]
    AllOrders,
    /// Mean over one order and its reverse: the same wherever causes interact in pairs at most.
    TwoOrders,
}

/// One figure on both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WhyGoal {
    /// Its name: `refill.p99_ns`.
    pub metric: String,
    /// `ns`, `pages/s` …
    pub unit: String,
    /// Its mean over the seeds on the first side.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub before: f64,
    /// And on the second.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub after: f64,
    /// The whole difference.
    pub change: Effect,
    /// What makes it, the largest share first; shares add up to the whole.
    pub causes: Vec<Cause>,
    /// Pairs of causes that do together what neither does alone.
    pub interactions: Vec<Interaction>,
}

/// A difference between runs of the same seeds, in the figure's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Effect {
    /// Its mean over the seeds.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub mean: f64,
    /// Where it lies with 95 % confidence, from; none of one seed.
    pub low: Option<f64>,
    /// And to.
    pub high: Option<f64>,
}

/// What makes part of a difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cause {
    /// The rule (`free-high`), part (`+yield`) or knob.
    pub name: String,
    /// What it decides or does.
    pub about: String,
    /// What it says on the first side.
    pub from: String,
    /// And on the second.
    pub to: String,
    /// What kernels changed about the rule between the two sides, the oldest first.
    pub steps: Vec<CauseStep>,
    /// Its share of the whole difference.
    pub share: Effect,
    /// What it does when it alone is changed on the first side.
    pub alone: Effect,
    /// What of the difference is lost when it alone is changed back on the second side.
    pub taken_back: Effect,
    /// By how much what it does with some of the others moved differs from what it does alone, where that is most: more than
    /// nothing where it interacts.
    pub depends: Effect,
}

/// A version that changed a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CauseStep {
    /// The version: `6.7`.
    pub version: String,
    /// What the rule says from there on.
    pub says: String,
    /// The commit, abbreviated; empty where nobody wrote it down.
    pub commit: String,
    /// Of a rule that changed several times, and makes a difference alone on the first side: what of that is this version's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<Effect>,
}

/// What two causes do together beyond what each does alone on the first side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interaction {
    /// Their names.
    pub names: [String; 2],
    /// How much.
    pub effect: Effect,
}

impl Effect {
    /// The mean of `differences`, one for each seed, with its interval.
    pub fn of(differences: impl IntoIterator<Item = f64>) -> Self {
        let sample = Sample::new(differences);
        let interval = sample.mean_interval();
        Self {
            mean: sample.mean().unwrap_or(f64::NAN),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        }
    }

    /// Whether it is more than the seeds make of nothing: its interval leaves 0 out. Of one seed, whether it is anything at all.
    pub fn is_told(&self) -> bool {
        match (self.low, self.high) {
            (Some(low), Some(high)) => low > 0.0 || high < 0.0,
            _ => self.mean.abs() > 0.0,
        }
    }

    /// Half the width of its interval.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

impl WhyGoal {
    /// What part of the whole difference `effect` is; `None` where there is no difference.
    pub fn part(&self, effect: &Effect) -> Option<f64> {
        (self.change.mean != 0.0).then(|| effect.mean / self.change.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_told_where_its_interval_leaves_nothing_out() {
        assert!(Effect::of([10.0, 11.0, 12.0]).is_told());
        assert!(Effect::of([-2.0, -2.0]).is_told(), "every seed says the same");
        assert!(!Effect::of([-1.0, 0.0, 2.0]).is_told());
        assert!(!Effect::of([0.0, 0.0]).is_told());
        assert!(Effect::of([3.0]).is_told() && Effect::of([3.0]).half_width().is_none());
    }

    #[test]
    fn it_is_written_and_read_back() {
        let goal = WhyGoal { change: Effect::of([2.0, 4.0]), ..WhyGoal::default() };
        assert_eq!(goal.part(&Effect::of([1.5])), Some(0.5));
        let why = Why { goals: vec![goal], method: ShareMethod::TwoOrders, ..Why::default() };
        let text = serde_json::to_string(&why).unwrap();
        assert!(text.contains("\"two-orders\""), "{text}");
        assert_eq!(serde_json::from_str::<Why>(&text).unwrap(), why);
    }
}
