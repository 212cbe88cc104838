//! An experiment that has been read and could be run: names are resolved, figures are in their metrics' units.

use std::fmt;

use mm::policy::Mechanism;
use mm::{Cpu, Knob, Nanos, Policy};
use serde::Deserialize;
use sim::{Profile, ProfileError};

use super::metric::Metric;
use super::tracer::Tracer;
use crate::measurements::{Confidence, Latency, NotCompared, Role};
use crate::scene::Phase;
use crate::workloads::WorkloadSpec;

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// What was published, on what, and what is left out here.
    pub about: String,
    /// What running it taught that the source could not know; empty if nothing was written down.
    pub learnt: String,
    /// Where most of its figures come from.
    pub source: String,
    /// How often each variant is run, each time with another seed.
    pub seeds: u32,
    /// What is run.
    pub variants: Vec<Variant>,
    /// Variants set against each other.
    pub comparisons: Vec<Comparison>,
    /// Machines by values of a knob.
    pub sweeps: Vec<Sweep>,
    /// What was published and is not set beside anything.
    pub not_compared: Vec<NotCompared>,
    /// What messages call its file.
    pub(super) file: String,
}

/// One thing that is run.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// On what, and with what.
    pub setup: Setup,
    /// The parts of the run, at least one.
    pub phases: Vec<Phase>,
    /// How sure its answers are.
    pub confidence: Confidence,
    /// Why that sure and no surer.
    pub because: String,
    /// What was published of it.
    pub figures: Vec<Figure>,
    /// Histograms that were published of it.
    pub histograms: Vec<Histogram>,
}

/// The machine and all that it is given.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine.
    pub profile: Profile,
    /// What took the published times, where its cost is known.
    pub tracer: Option<Tracer>,
    /// Whose rules.
    pub policy: Policy,
    /// Knobs that are set before anything runs.
    pub knobs: Vec<(Knob, u64)>,
    /// CPUs to use; empty: the profile's own.
    pub cpus: Vec<Cpu>,
    /// What runs: the parameters as written, `kind` among them.
    pub workload: toml::Table,
    /// Memory and the larger caches are divided by this ([`Scene::shrink`](crate::scene::Scene)).
    pub shrink: u32,
    /// Simulated time before the first phase.
    pub warm_up: Nanos,
}

/// Which phase of which variant, both by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// The variant.
    pub variant: usize,
    /// Its phase.
    pub phase: usize,
}

/// Something that was published of a variant.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Of which phase.
    pub phase: usize,
    /// What.
    pub metric: Metric,
    /// The figure, in the metric's unit.
    pub published: Published,
    /// Where.
    pub source: String,
    /// The published standard error of the value, in the metric's unit, where it is known.
    pub uncertainty: Option<f64>,
    /// What it is used for.
    pub role: Role,
    /// Why it has this role; empty if that was not said.
    pub because: String,
}

/// What a published figure is.
#[derive(Clone, PartialEq, Debug)]
pub enum Published {
    /// A number; not a number where it was published of another machine than this.
    Value(f64),
    /// The ends of a range.
    Range([f64; 2]),
    /// Numbers in order.
    Sequence(Vec<f64>),
    /// A histogram, which the simulated one's distance is taken from.
    Histogram(Latency),
}

/// A published histogram.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Of which phase.
    pub phase: usize,
    /// The span, with its group if it has one.
    pub span: String,
    /// As published.
    pub published: Latency,
    /// For how many seconds it was counted, if that was said.
    pub over_seconds: Option<f64>,
}

/// A variant against another one.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Which.
    pub case: Case,
    /// The baseline.
    pub against: Case,
    /// In what.
    pub metric: Metric,
    /// How.
    pub form: Form,
    /// What was published.
    pub published: f64,
    /// Where.
    pub source: String,
    /// What it is used for.
    pub role: Role,
    /// Why it has this role; empty if that was not said.
    pub because: String,
    /// What is asked of its direction.
    pub way: Way,
    /// Whether the noise of the published change is known, by deviations or by what the source says.
    pub is_noise_known: bool,
}

/// What a comparison's direction is worth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Way {
    /// Another row tells it, or something was chosen by it.
    NotAsked,
    /// The source says that the change is within its noise.
    Noise,
    /// It says something if the published change is larger than this, in the comparison's unit.
    Beyond(f64),
}

/// Machines by values of a knob.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What is asked.
    pub title: String,
    /// The knob.
    pub knob: Knob,
    /// Its values.
    pub values: Vec<u64>,
    /// What its rows are called: the machine, with the policy where there are several.
    pub rows: Vec<String>,
    /// What is looked at.
    pub metrics: Vec<Metric>,
    /// A variant for each row and value, all of a row's together.
    pub cells: Vec<Variant>,
    /// What makes a machine need another value.
    pub criterion: Option<Criterion>,
}

/// When a machine needs another value than the usual one: if a metric is over a limit with it.
#[derive(Clone, Debug)]
pub struct Criterion {
    /// The usual value.
    pub usual: u64,
    /// The metric.
    pub metric: Metric,
    /// The limit.
    pub at_most: f64,
    /// What another value may cost.
    pub cost: Metric,
    /// Why this limit.
    pub because: String,
}

/// How one variant is set against another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// So many times the other.
    Ratio,
    /// So many percent of the other.
    Percent,
    /// So many percent more than the other.
    Change,
}

impl Form {
    /// `value` beside `base`; `None` beside 0.
    pub(super) fn set_against(self, value: f64, base: f64) -> Option<f64> {
        let ratio = (base != 0.0).then(|| value / base)?;
        Some(match self {
            Self::Ratio => ratio,
            Self::Percent => 100.0 * ratio,
            Self::Change => 100.0 * (ratio - 1.0),
        })
    }

    /// The unit of a comparison's rows.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Percent | Self::Change => "percent",
        }
    }

    /// What a comparison gives where nothing changed.
    pub(super) const fn unchanged(self) -> f64 {
        match self {
            Self::Ratio => 1.0,
            Self::Percent => 100.0,
            Self::Change => 0.0,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ratio => "ratio",
            Self::Percent => "percent",
            Self::Change => "change",
        })
    }
}

impl Setup {
    /// The machine as it is while somebody measures.
    ///
    /// # Errors
    /// The tracer's cost is more than a path of a machine can have, which may be so on another machine than the file's.
    pub fn measured(&self) -> Result<Profile, ProfileError> {
        self.tracer.as_ref().map_or_else(|| Ok(self.profile.clone()), |tracer| tracer.on(&self.profile))
    }

    /// The mechanisms that its workload is there to test.
    pub fn tests(&self) -> &'static [Mechanism] {
        self.workload.clone().try_into::<WorkloadSpec>().map_or(&[], |workload| workload.tests())
    }
}

impl Variant {
    /// The name of what was measured in a phase.
    pub fn case_name(&self, phase: usize) -> String {
        match self.phases[phase].name.as_str() {
            "" => self.name.clone(),
            phase => format!("{}/{phase}", self.name),
        }
    }
}

impl Sweep {
    /// Names rows and cells by what tells them apart.
    pub(super) fn name(&mut self) {
        let first = self.cells.first().map(|cell| cell.setup.policy.name().to_owned());
        let several = self.cells.iter().any(|cell| Some(cell.setup.policy.name()) != first.as_deref());
        self.rows.clear();
        for cells in self.cells.chunks_mut(self.values.len()) {
            let setup = &cells[0].setup;
            let machine = setup.profile.name();
            let row = if several { format!("{machine} {}", setup.policy.name()) } else { machine.to_owned() };
            for (cell, value) in cells.iter_mut().zip(&self.values) {
                cell.name = format!("{row} {}={}", self.knob.spec().name, self.knob.written(*value));
            }
            self.rows.push(row);
        }
    }
}

impl Experiment {
    /// The name of what was measured in a case.
    pub fn case_name(&self, case: Case) -> String {
        self.variants[case.variant].case_name(case.phase)
    }

    /// The case called so.
    pub fn case(&self, name: &str) -> Option<Case> {
        self.cases().find(|case| self.case_name(*case) == name)
    }

    /// Every phase of every variant.
    pub fn cases(&self) -> impl Iterator<Item = Case> {
        let phases =
            |(variant, of): (usize, &Variant)| (0..of.phases.len()).map(move |phase| Case { variant, phase });
        self.variants.iter().enumerate().flat_map(phases)
    }

    /// In what two cases differ besides their policies and knobs; `None` if in nothing.
    pub fn differs_in(&self, one: Case, other: Case) -> Option<&'static str> {
        let [a, b] = [one, other].map(|case| &self.variants[case.variant]);
        let (left, right) = (&a.setup, &b.setup);
        let differs = [
            ("machine", left.profile.digest() != right.profile.digest()),
            ("workload", left.workload != right.workload),
            ("CPUs", left.cpus != right.cpus),
            ("size", left.shrink != right.shrink),
            ("time", left.warm_up != right.warm_up || one.phase != other.phase || a.phases != b.phases),
        ];
        differs.into_iter().find(|(_, differs)| *differs).map(|(what, _)| what)
    }

    /// The machines that its variants run on, each once.
    pub fn machines(&self) -> Vec<&str> {
        let mut names: Vec<&str> = vec![];
        let cells = self.sweeps.iter().flat_map(|sweep| &sweep.cells);
        for name in self.variants.iter().chain(cells).map(|variant| variant.setup.profile.name()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// How many published figures have a role; a histogram counts once for each of its figures.
    pub fn figures(&self, role: Role) -> usize {
        let figures = self.variants.iter().flat_map(|variant| &variant.figures);
        let roles = figures.filter(|figure| figure.published.is_known()).map(|figure| figure.role);
        let compared = self.comparisons.iter().filter(|comparison| comparison.published.is_finite());
        roles.chain(compared.map(|comparison| comparison.role)).filter(|of| *of == role).count()
    }
}

impl Published {
    /// Whether anything was published: a figure may be asked for that was not.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Value(value) if value.is_nan())
    }
}
