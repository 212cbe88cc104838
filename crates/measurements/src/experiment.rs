//! What an experiment has to say beyond rows: histograms beside published ones, sweeps over machines and values, and
//! where a mean comes from. Pure data, filled in by `experiment` and set by `report`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::latency::Latency;
use super::number;

/// One experiment's account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Account {
    /// The experiment's name.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// What was published, and what was left out here.
    pub about: String,
    /// What running it taught that the source could not know.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub learnt: String,
    /// What was published and is not set beside anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<NotCompared>,
    /// Histograms beside published ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<HistogramPair>,
    /// Sweeps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<SweepTable>,
    /// Where means come from, where that was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<Explanation>,
}

/// Published figures that nothing here can be set beside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NotCompared {
    /// Which, with their values.
    pub figures: String,
    /// Why not.
    pub because: String,
}

/// A published histogram and the simulated one for as long a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HistogramPair {
    /// The variant.
    pub variant: String,
    /// The kind of span.
    pub span: String,
    /// Seconds that the published one covers; counts of the simulated one are scaled to as many. 0: it was not said, and
    /// the simulated counts are scaled to the published number of spans.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub over_seconds: f64,
    /// As published.
    pub published: Latency,
    /// As simulated, all repetitions together.
    pub simulated: Latency,
}

/// Machines, or machines and policies, by values of a knob.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SweepTable {
    /// What is asked.
    pub title: String,
    /// The knob.
    pub knob: String,
    /// Its values.
    pub values: Vec<u64>,
    /// The machines, each with its policy where there are several.
    pub rows: Vec<String>,
    /// What was looked at.
    pub metrics: Vec<SweepMetric>,
    /// What makes a machine need another value than the usual one; empty where nothing is asked.
    pub criterion: String,
    /// Unit of what the criterion looks at.
    pub criterion_unit: String,
    /// A verdict for each row, where there is a criterion.
    pub verdicts: Vec<Verdict>,
}

/// One metric over a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SweepMetric {
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// `means[row][value]`, over repetitions; none where nothing of the kind happened.
    pub means: Vec<Vec<Option<f64>>>,
}

/// Whether a machine needs another value than the usual one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Verdict {
    /// Which row.
    pub row: String,
    /// The criterion's metric at the usual value.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub usual: f64,
    /// Whether that is over the limit.
    pub needed: bool,
    /// The value nearest to the usual one that keeps the limit, if any does.
    pub advised: Option<u64>,
    /// What the advised value changes in the metric that it may cost, in percent; not a number where nothing is advised.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub cost_percent: f64,
}

/// Where the time of a kind of span goes, over all repetitions of a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Explanation {
    /// The variant.
    pub variant: String,
    /// The kind of span.
    pub span: String,
    /// Spans.
    pub count: u64,
    /// Base pages that they moved.
    pub pages: u64,
    /// How long they took altogether.
    pub total_ns: u64,
    /// What they took it for; together as long as they took.
    pub parts: Vec<Part>,
    /// Of the waits for the zone lock: the lock's way from the CPU that gave it back.
    pub hand_overs: Part,
    /// The zone lock held. What is done under it is among the parts.
    pub holds: Part,
    /// Lines touched, by where they were found; together one of the parts.
    pub touches: Vec<Part>,
}

/// Something that took a part of the time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Part {
    /// What.
    pub name: String,
    /// How often; 0 where that is not counted.
    pub count: u64,
    /// How long altogether.
    pub ns: u64,
}
