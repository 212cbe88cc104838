//! An experiment file as it is written: every key with its meaning. Nothing is resolved or checked here beyond what the
//! types say; [`crate::experiment::read`] does that. docs/experiments.md is this file for people who do not read Rust.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, Deserializer};
use toml::{Spanned, Value};

use crate::experiment::spec::Form;
use crate::measurements::{Confidence, Role};

/// The whole file. What the top level says holds for every variant and sweep that does not say otherwise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Lower-case letters, digits and dashes.
    pub(super) name: Spanned<String>,
    /// Its place among those that come with the program: the smallest runs first.
    #[serde(default)]
    #[expect(dead_code, reason = "the build script puts them in order")]
    order: u32,
    /// A line.
    pub(super) title: String,
    /// What was published, on what, and what is left out here.
    pub(super) about: String,
    /// What running it taught that the source could not know.
    #[serde(default)]
    pub(super) learnt: String,
    /// Where: message ID, link. Figures that do not name their own source have this one.
    pub(super) source: String,
    /// Repetitions, each with another seed.
    #[serde(default = "three")]
    pub(super) seeds: Spanned<u32>,
    #[serde(default)]
    pub(super) variant: Vec<VariantEntry>,
    #[serde(default)]
    pub(super) compare: Vec<CompareEntry>,
    #[serde(default)]
    pub(super) sweep: Vec<SweepEntry>,
    /// What was published and cannot be simulated.
    #[serde(default)]
    pub(super) not_compared: Vec<NotComparedEntry>,

    // The same keys as in a variant: `flatten` would lose the places.
    pub(super) machine: Option<Spanned<String>>,
    pub(super) policy: Option<Spanned<String>>,
    pub(super) cpus: Option<Spanned<String>>,
    pub(super) shrink: Option<Spanned<u32>>,
    pub(super) warm_up_ms: Option<Spanned<u64>>,
    pub(super) run_ms: Option<Spanned<u64>>,
    #[serde(default)]
    pub(super) knobs: KnobEntries,
    #[serde(default)]
    pub(super) workload: Parameters,
    pub(super) confidence: Option<Confidence>,
    pub(super) because: Option<String>,
    /// What measuring cost, inside of what was measured.
    pub(super) tracer: Option<TracerEntry>,
}

/// What took the published times, and is in them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TracerEntry {
    /// On each refill and each drain.
    pub(super) ns: Spanned<f64>,
    /// Which tracer, and where the figure is from.
    pub(super) because: String,
}

fn three() -> Spanned<u32> {
    Spanned::new(0..0, 3)
}

/// Published figures that nothing is set beside.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NotComparedEntry {
    /// Which, with their values.
    pub(super) figures: String,
    /// Why not.
    pub(super) because: String,
}

/// One thing that is run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantEntry {
    /// Unique in the file; no slash.
    pub(super) name: Spanned<String>,
    /// A name of `freehold machines`, or a profile's path, from the folder of this file.
    pub(super) machine: Option<Spanned<String>>,
    /// `linux-X.Y` …
    pub(super) policy: Option<Spanned<String>>,
    /// `0-3,8`; without it the machine's own.
    pub(super) cpus: Option<Spanned<String>>,
    /// Simulated time that is not measured.
    pub(super) shrink: Option<Spanned<u32>>,
    pub(super) warm_up_ms: Option<Spanned<u64>>,
    /// Simulated time that is.
    pub(super) run_ms: Option<Spanned<u64>>,
    /// Laid over the top level's.
    #[serde(default)]
    pub(super) knobs: KnobEntries,
    /// Laid over the top level's; another `kind` replaces it.
    #[serde(default)]
    pub(super) workload: Parameters,
    /// How sure the answers are.
    pub(super) confidence: Option<Confidence>,
    /// Why that sure and no surer.
    pub(super) because: Option<String>,
    /// Parts of the run, measured apart; in place of `run_ms`.
    #[serde(default)]
    pub(super) phase: Vec<PhaseEntry>,
    /// Figures that were published of it.
    #[serde(default)]
    pub(super) published: Vec<FigureEntry>,
    /// Histograms that were published of it.
    #[serde(default)]
    pub(super) histogram: Vec<HistogramEntry>,
}

/// A part of a run, with knobs that change when it begins.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PhaseEntry {
    /// The variant's name, a slash and this name what was measured in it.
    pub(super) name: Spanned<String>,
    /// Simulated time.
    pub(super) run_ms: Spanned<u64>,
    /// Set when it begins.
    #[serde(default)]
    pub(super) knobs: KnobEntries,
}

/// A figure that was published.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureEntry {
    pub(super) metric: Spanned<String>,
    /// Its value, or the values of a sequence; not a number where nothing was published.
    pub(super) value: Option<Spanned<Values>>,
    /// In place of a value: the ends of what was published, the lower one first.
    pub(super) range: Option<Spanned<[f64; 2]>>,
    /// The published standard deviation, in the value's unit.
    pub(super) stddev: Option<Spanned<f64>>,
    /// Of how many runs that is; without it the deviation is taken for that of a mean.
    pub(super) runs: Option<Spanned<u32>>,
    /// The value's unit where it is not the metric's own.
    pub(super) unit: Option<Spanned<String>>,
    /// For how many seconds the value was counted; it is compared per second.
    pub(super) over_seconds: Option<Spanned<f64>>,
    /// Where, if elsewhere than the experiment.
    pub(super) source: Option<String>,
    /// Whether something was chosen by it, or it follows from others.
    pub(super) role: Option<Spanned<Role>>,
    /// Why it has this role.
    pub(super) because: Option<String>,
    /// In which phase, if there are several.
    pub(super) phase: Option<Spanned<String>>,
}

/// A histogram as bcc's funclatency prints it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistogramEntry {
    pub(super) span: Spanned<String>,
    /// What was printed, its last line included.
    pub(super) text: Spanned<String>,
    /// For how many seconds it was counted.
    pub(super) over_seconds: Option<Spanned<f64>>,
    /// Where, if elsewhere than the experiment.
    pub(super) source: Option<String>,
    /// Its figures that something was chosen by.
    #[serde(default)]
    pub(super) fitted: Vec<Spanned<String>>,
    /// Why these.
    pub(super) because: Option<String>,
    /// In which phase, if there are several.
    pub(super) phase: Option<Spanned<String>>,
}

/// One variant against another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareEntry {
    pub(super) variant: Spanned<String>,
    /// The baseline.
    pub(super) against: Spanned<String>,
    pub(super) metric: Spanned<String>,
    #[serde(rename = "as")]
    pub(super) form: Form,
    /// What was published; without it, it follows from what was published of the two. Not a number where nothing was.
    pub(super) value: Option<Spanned<f64>>,
    /// Where, if elsewhere than the experiment.
    pub(super) source: Option<String>,
    /// Whether something was chosen by it, or it follows from others.
    pub(super) role: Option<Spanned<Role>>,
    /// Why it has this role.
    pub(super) because: Option<String>,
    /// Of a derived one: whether its direction is scored all the same, since no other row tells it.
    #[serde(default)]
    pub(super) own_direction: bool,
    /// The published standard deviation of the value, in its unit.
    pub(super) stddev: Option<Spanned<f64>>,
    /// Why the change is within what two runs of one kernel differ by there, if the source says so.
    pub(super) noise: Option<String>,
}

/// Machines by values of a knob.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SweepEntry {
    /// What is asked.
    pub(super) title: String,
    pub(super) machines: Vec<Spanned<String>>,
    /// The policies, if there are several: each machine has a row for each.
    #[serde(default)]
    pub(super) policies: Vec<Spanned<String>>,
    pub(super) knob: Spanned<String>,
    pub(super) values: Spanned<Vec<u64>>,
    /// What is looked at.
    pub(super) metrics: Vec<Spanned<String>>,
    /// As in a variant.
    pub(super) policy: Option<Spanned<String>>,
    /// As in a variant.
    pub(super) shrink: Option<Spanned<u32>>,
    pub(super) warm_up_ms: Option<Spanned<u64>>,
    /// As in a variant.
    pub(super) run_ms: Option<Spanned<u64>>,
    /// As in a variant.
    #[serde(default)]
    pub(super) knobs: KnobEntries,
    /// As in a variant.
    #[serde(default)]
    pub(super) workload: Parameters,
    /// As in a variant.
    pub(super) confidence: Option<Confidence>,
    /// As in a variant.
    pub(super) because: Option<String>,
    /// What makes a machine need another value.
    pub(super) criterion: Option<CriterionEntry>,
}

/// When a machine needs another value than the usual one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CriterionEntry {
    /// The value in force where nobody sets one; one of the sweep's.
    pub(super) usual: Spanned<u64>,
    /// What must not be over the limit.
    pub(super) metric: Spanned<String>,
    /// The limit.
    pub(super) at_most: Spanned<f64>,
    /// What another value may cost.
    pub(super) cost: Spanned<String>,
    /// Why this limit.
    pub(super) because: String,
}

/// A number or several.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    One(f64),
    Many(Vec<f64>),
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a number or a list of numbers";
        let number = |value: &Value| match value {
            Value::Integer(number) => Ok(*number as f64),
            Value::Float(number) if !number.is_infinite() => Ok(*number),
            other => Err(de::Error::invalid_type(unexpected(other), &EXPECTED)),
        };
        match Value::deserialize(deserializer)? {
            Value::Array(values) => Ok(Self::Many(values.iter().map(number).collect::<Result<_, _>>()?)),
            value => Ok(Self::One(number(&value)?)),
        }
    }
}

fn unexpected(value: &Value) -> de::Unexpected<'_> {
    match value {
        Value::String(text) => de::Unexpected::Str(text),
        Value::Boolean(answer) => de::Unexpected::Bool(*answer),
        Value::Float(number) => de::Unexpected::Float(*number),
        other => de::Unexpected::Other(other.type_str()),
    }
}

/// Knobs and values. A name with a dot may be written with quotes (`"vm.stat_interval" = 1`) or without.
#[derive(Debug, Default)]
pub(super) struct KnobEntries(pub(super) Vec<KnobEntry>);

/// A knob that is set.
#[derive(Debug)]
pub(super) struct KnobEntry {
    pub(super) name: String,
    /// As it is written: a number, a word, a size.
    pub(super) value: String,
    pub(super) span: Range<usize>,
}

impl<'de> Deserialize<'de> for KnobEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = BTreeMap::<Spanned<String>, Value>::deserialize(deserializer)?;
        let mut entries = vec![];
        for (key, value) in table {
            flatten(key.as_ref(), &value, &key.span(), &mut entries).map_err(de::Error::custom)?;
        }
        Ok(Self(entries))
    }
}

fn flatten(
    name: &str,
    value: &Value,
    span: &Range<usize>,
    entries: &mut Vec<KnobEntry>,
) -> Result<(), String> {
    match value {
        Value::Table(table) => {
            table.iter().try_for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, span, entries))
        }
        Value::Integer(number) => {
            let value = u64::try_from(*number).map_err(|_| format!("{name} is {number}, less than 0"))?;
            entries.push(KnobEntry { name: name.to_owned(), value: value.to_string(), span: span.clone() });
            Ok(())
        }
        Value::String(text) => {
            entries.push(KnobEntry { name: name.to_owned(), value: text.clone(), span: span.clone() });
            Ok(())
        }
        other => Err(format!("{name} must be a whole number, a word or a size, not {}", other.type_str())),
    }
}

/// A workload's parameters, each with its place in the file; what they mean is the workload's business.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Parameters(pub(super) BTreeMap<Spanned<String>, Spanned<Value>>);
