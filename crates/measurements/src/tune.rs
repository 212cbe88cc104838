//! Which setting is the best for a workload on a machine, how sure that is, and where else it holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judged::Held;
use super::number;
use super::why::Effect;

/// The answer of `tune` for one machine.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Tune {
    /// What ran.
    pub workload: String,
    /// The machine profile's name.
    pub machine: String,
    /// The policy, and knobs that are set in every setting.
    pub side: String,
    /// What is to become better, the most important first.
    pub goals: Vec<TuneGoal>,
    /// What has to stay.
    pub limits: Vec<TuneLimit>,
    /// Where was searched.
    pub space: TuneSpace,
    /// How.
    pub search: TuneSearch,
    /// The setting as it is.
    pub current: TuneCandidate,
    /// The setting that is recommended; none where the current one stays.
    pub winner: Option<TuneCandidate>,
    /// Why the current one stays; empty where it does not.
    pub stays: String,
    /// Of several goals: settings of which none is better than another in every goal.
    pub front: Vec<TuneCandidate>,
    /// The best settings by the seeds of the search, the best first, whether beyond the noise or not.
    pub ranked: Vec<TuneCandidate>,
    /// What each knob of the best setting does there.
    pub contributions: Vec<Contribution>,
    /// Of one numeric knob: every value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Where the winner was tried that the search did not see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robustness: Option<Robustness>,
    /// Settings that could not be simulated, and why.
    pub failed: Vec<FailedSetting>,
}

/// A figure that is to become better.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct TuneGoal {
    /// Its name: `fault.p99_ns`.
    pub metric: String,
    /// `ns`, `pages/s` …
    pub unit: String,
    /// `lower` or `higher`.
    pub better: String,
}

/// A figure that has to stay within a limit.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct TuneLimit {
    /// Its name.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// As it was asked for: `min=98%`.
    pub limit: String,
}

/// Where was searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct TuneSpace {
    /// Knobs that are searched.
    pub axes: Vec<TuneAxis>,
    /// Knobs that are not, and why.
    pub set_aside: Vec<SetAside>,
    /// How many settings there are.
    pub settings: u64,
}

/// A knob that is searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct TuneAxis {
    /// The knob.
    pub knob: String,
    /// Its values, as they are written.
    pub values: Vec<String>,
    /// The value as it is.
    pub current: String,
}

/// A knob that is not searched.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct SetAside {
    /// The knob.
    pub knob: String,
    /// Why not.
    pub why: String,
}

/// How it was searched.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct TuneSearch {
    /// The shortened forms that there are, the shortest first.
    pub levels: Vec<Level>,
    /// How many settings were simulated.
    pub tried: u64,
    /// How many simulations the search took.
    pub simulations: u64,
    /// What they cost, in simulations of full length.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub cost: f64,
    /// What it was allowed to cost.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub budget: f64,
    /// Seeds that finalists ran with.
    pub seeds: u64,
    /// The mean of each goal in the current setting with these seeds, in its unit: what contributions and curves are beside.
    pub means: Vec<f64>,
    /// How many simulations came after it: contributions and robustness.
    pub simulations_after: u64,
}

/// A shortened form of the workload.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Level {
    /// What part of the whole it is, in thousandths.
    pub permille: u64,
    /// What a simulation of it costs beside one of the whole, in thousandths, by the events that each has to simulate: more than its
    /// part of the time where much happens before the clock starts.
    pub cost_permille: u64,
    /// How far it tells settings apart as the whole does: of the differences between settings in full length, what part has the
    /// same sign there, less what part has the other; 1 is all, 0 is chance.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub agreement: f64,
    /// Whether settings were raced on it.
    pub used: bool,
}

/// A setting, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct TuneCandidate {
    /// Knobs that differ from the current setting, with their values as they are written.
    pub knobs: Vec<KnobText>,
    /// How many seeds what follows is over.
    pub seeds: u64,
    /// The mean of each goal, in its unit.
    pub means: Vec<f64>,
    /// By how much each goal differs from the current setting's, in its unit, seed by seed.
    pub changes: Vec<Effect>,
    /// What each limit's figure is in parts of the current setting's (or in its unit, where the limit is).
    pub held: Vec<HeldLimit>,
}

/// A knob with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct KnobText {
    /// The knob.
    pub knob: String,
    /// Its value, as it is written.
    pub value: String,
}

/// What a limit's figure came to.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldLimit {
    /// The figure, in what the limit is in.
    pub value: Effect,
    /// Whether the limit is kept.
    pub verdict: Held,
}

/// What a knob of the best setting does there.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Contribution {
    /// The knob.
    pub knob: String,
    /// Its value in the current setting.
    pub from: String,
    /// Its value in the best one.
    pub to: String,
    /// What each goal loses when this knob alone is put back: the best setting less the same with the knob as it was.
    pub effects: Vec<Effect>,
    /// Whether it is recommended: it does something beyond the seeds' noise.
    pub kept: bool,
}

/// Every value of one numeric knob.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Curve {
    /// The knob.
    pub knob: String,
    /// Its values in order.
    pub points: Vec<CurvePoint>,
    /// The value at the knee: where more of it begins to give less. None where the curve has none beyond the noise.
    pub knee: Option<String>,
    /// The least value that is not worse than the best one beyond the noise.
    pub enough: Option<String>,
    /// How the knee was found.
    pub method: String,
}

/// A value of a curve.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct CurvePoint {
    /// The knob's value, as it is written.
    pub value: String,
    /// The first goal there, with its interval, in its unit.
    pub goal: Effect,
    /// By how much it differs from the current setting's, seed by seed.
    pub change: Effect,
    /// Whether all limits are kept.
    pub verdict: Held,
}

/// Where the winner was tried that the search did not see. A win is: the first goal is better, and no limit is broken.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Robustness {
    /// Seeds.
    pub seeds: Wins,
    /// Machines of which one latency is a fifth longer or shorter.
    pub variants: Wins,
    /// Other recordings, a line each.
    pub others: Vec<Elsewhere>,
}

/// How often the winner wins.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Wins {
    /// How often.
    pub wins: u64,
    /// Of how many.
    pub of: u64,
    /// Where it does not.
    pub lost: Vec<String>,
}

/// The winner on another workload or machine.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Elsewhere {
    /// What ran, and where.
    pub name: String,
    /// The first goal's mean with the current setting there.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub before: f64,
    /// By how much the winner changes it, in its unit.
    pub change: Effect,
    /// Whether it wins, beyond the noise.
    pub verdict: ElsewhereVerdict,
}

/// Whether the winner wins elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElsewhereVerdict {
    /// Beyond the noise.
    #[default]
    Wins,
    /// It makes no difference beyond the noise.
    NoDifference,
    /// It loses, or breaks a limit.
    Loses,
    /// Nothing of the kind happens there, or the setting cannot be there.
    CannotBe,
}

/// A setting that could not be simulated.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedSetting {
    /// Its knobs.
    pub setting: String,
    /// Why.
    pub why: String,
}
