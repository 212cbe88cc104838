//! Bounds held against the runs of a document: for CI, which asks whether a figure has passed its limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bound::{Bound, BoundError, BoundSide, Limit};
use super::change::figures;
use super::document::Run;
use super::group::{Group, scenes};
use super::interval::ModelInterval;
use super::judged::Held;
use super::number;
use super::statistics::Sample;

/// A bound beside one variant's figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BoundCheck {
    /// The bound as it was written.
    pub bound: String,
    /// The figure: `refill.p99_ns`.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// What ran.
    pub workload: String,
    /// Where.
    pub machine: String,
    /// The variant, as it is told from its siblings.
    pub variant: String,
    /// Whether the bound is kept.
    pub held: Held,
    /// The figure's mean over the seeds.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub mean: f64,
    /// Half of the 95 % interval of what lies between mean and limit; none of one seed.
    pub half_width: Option<f64>,
    /// The end of that interval which decided, as a value of the figure.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub deciding_end: f64,
    /// The limit, in the figure's unit.
    #[serde(with = "number")]
    #[schemars(with = "Option<f64>")]
    pub limit: f64,
    /// Where the machine itself has the figure with 80 %. It decides nothing: the same runs keep or break a bound whatever the evidence of
    /// the day; who reads the answer has to know whether the limit lies within.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelInterval>,
}

/// Every bound beside every variant that has its figure, in the document's order. A percentage is of the first variant of the same
/// workload on the same machine, which is not held against itself. A count of what did not happen is 0; another figure of it is
/// [`Held::Unsure`], for nobody knows it.
///
/// # Errors
/// A limit of another kind than its figure; a percentage where no machine has two variants.
pub fn check_bounds(bounds: &[Bound], runs: &[Run]) -> Result<Vec<BoundCheck>, BoundError> {
    let mut all = vec![];
    for bound in bounds {
        let before = all.len();
        for scene in scenes(runs) {
            let Some(first) = scene.groups.first() else { continue };
            let is_relative = matches!(bound.limit, Limit::OfFirst(_));
            for group in scene.groups.iter().skip(usize::from(is_relative)) {
                all.push(check(bound, first, group)?);
            }
        }
        if all.len() == before {
            return Err(BoundError::NoFirst(bound.to_string()));
        }
    }
    Ok(all)
}

fn check(bound: &Bound, first: &Group<'_>, group: &Group<'_>) -> Result<BoundCheck, BoundError> {
    let run = group.first();
    let unit = super::known::figure_unit(&bound.figure).unwrap_or_default();
    let blank = BoundCheck {
        bound: bound.to_string(),
        metric: bound.figure.clone(),
        unit: unit.to_owned(),
        workload: run.workload.clone(),
        machine: run.machine.clone(),
        variant: group.label.clone(),
        held: Held::Unsure,
        mean: f64::NAN,
        half_width: None,
        deciding_end: f64::NAN,
        limit: bound.limit_in(unit, f64::NAN)?,
        model: None,
    };
    let judged =
        bound.judge(unit, &sample(&bound.figure, unit, first), &sample(&bound.figure, unit, group))?;
    Ok(judged.map_or(blank.clone(), |judged| BoundCheck {
        held: judged.held,
        mean: judged.mean,
        half_width: judged.half_width,
        deciding_end: judged.deciding_end(bound.side),
        limit: judged.limit,
        ..blank
    }))
}

/// A figure's values, one for each seed.
fn sample(name: &str, unit: &str, group: &Group<'_>) -> Sample {
    let absent = (unit == "count" || name.starts_with("lock.")).then_some(0.0);
    let value = |run: &&Run| {
        let found = figures(run).into_iter().find(|(figure, _)| figure.name == name);
        found.map(|(_, value)| value).or(absent)
    };
    Sample::new(group.runs.iter().filter_map(value))
}

impl BoundCheck {
    /// Which side of the limit is forbidden.
    pub fn side(&self) -> BoundSide {
        if self.bound.contains(":min=") { BoundSide::Min } else { BoundSide::Max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Latency, Throughput};

    fn run(variant: &str, seed: u64, p99_ns: u64, pages_per_second: f64) -> Run {
        let latency = Latency { count: 10, total_ns: 10 * p99_ns, p99_ns, ..Latency::default() };
        Run {
            variant: variant.into(),
            seed,
            latency: [("refill".to_owned(), latency)].into(),
            throughput: Throughput { pages_per_second, operations_per_second: 0.0 },
            ..Run::default()
        }
    }

    fn runs() -> Vec<Run> {
        let of = |variant: &'static str, p99: u64, rate: f64| {
            (0..3).map(move |seed| run(variant, seed, p99 + 100 * seed, rate + seed as f64))
        };
        of("old", 60_000, 1000.0).chain(of("new", 5_000, 900.0)).collect()
    }

    fn told(bounds: &str) -> Vec<(String, Held)> {
        let checks = check_bounds(&Bound::parse_list(bounds).unwrap(), &runs()).unwrap();
        checks.into_iter().map(|check| (check.variant, check.held)).collect()
    }

    #[test]
    fn an_amount_is_held_against_every_variant_and_a_percentage_against_the_others() {
        let (old, new) = ("old".to_owned(), "new".to_owned());
        assert_eq!(told("refill.p99_ns:max=20us"), [(old, Held::Broken), (new.clone(), Held::Kept)]);
        assert_eq!(told("pages_per_second:min=98%"), [(new.clone(), Held::Broken)]);
        assert_eq!(told("pages_per_second:min=80%"), [(new.clone(), Held::Kept)]);
        assert_eq!(told("drain.count:max=0"), [("old".to_owned(), Held::Kept), (new.clone(), Held::Kept)]);
        assert_eq!(told("drain.p99_ns:max=1us")[0].1, Held::Unsure, "nothing was drained");
    }

    #[test]
    fn what_cannot_be_held_is_an_error() {
        let refused = |bound: &str, runs: &[Run]| {
            check_bounds(&Bound::parse_list(bound).unwrap(), runs).unwrap_err().to_string()
        };
        let alone = [run("only", 1, 5, 1.0)];
        assert!(refused("refill.p99_ns:max=90%", &alone).contains("no second variant"));
        assert!(refused("pages_per_second:max=3us", &runs()).contains("counted in pages/s"));
    }
}
