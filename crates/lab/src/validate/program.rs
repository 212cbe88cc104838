//! A program under several settings: the order of its real runs, the same predicted from one recording, and both compared.

use std::collections::{BTreeMap, BTreeSet};

use host::command::CommandUse;
use mm::Knob;
use rayon::prelude::*;
use sim::Profile;

use crate::measurements::{Moments, Run, Sample, Validated, ValidatedChange, ValidatedRow};
use crate::program::Surroundings;
use crate::replay::{Plan, ReplayError, Setting, Source, Variant, combinations, policy_of, replay};

/// The real runs under one setting, and the predictions, one for each seed.
#[derive(Clone, Debug, Default)]
pub struct UnderSetting {
    /// The setting, as [`Variant::name`] has it.
    pub setting: String,
    /// What each real run used.
    pub real: Vec<CommandUse>,
    /// What was predicted.
    pub predicted: Vec<Run>,
}

/// How a program is predicted.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The profile.
    pub profile: Profile,
    /// The knobs and all their values.
    pub settings: Vec<Setting>,
    /// The first seed.
    pub seed: u64,
    /// How many.
    pub seeds: u32,
}

/// The order of real runs, as numbers of settings: each round runs every setting once, and every second round in reverse, so that
/// what drifts on the machine meanwhile (ABBA) is shared by all.
pub fn order(settings: usize, rounds: u32) -> Vec<usize> {
    let round = |round: u32| -> Vec<usize> {
        if round % 2 == 0 { (0..settings).collect() } else { (0..settings).rev().collect() }
    };
    (0..rounds).flat_map(round).collect()
}

impl Prediction {
    /// Replays `source` under every setting with every seed. Knobs that are not set stand as they did on the machine while the real
    /// program ran.
    ///
    /// # Errors
    /// What [`replay`] says, and a recording without a program.
    pub fn runs(&self, source: &Source, done: &(dyn Fn(&Run) + Sync)) -> Result<Vec<Vec<Run>>, ReplayError> {
        let Source::Program(program) = source else {
            return Err(ReplayError::Plan("the recording has no events of address spaces".into()));
        };
        let plan = self.plan(&program.surroundings)?;
        let variants = combinations(&self.settings);
        let all: Vec<(&Variant, u64)> =
            variants.iter().flat_map(|variant| plan.seeds().map(move |seed| (variant, seed))).collect();
        let one = |(variant, seed): &(&Variant, u64)| {
            let knobs = with_surroundings(&variant.knobs, &program.surroundings, &plan);
            let plan = Plan { seed: *seed, seeds: 1, ..plan.clone() };
            let mut run = replay(source, &plan, &Variant { knobs, groups: variant.groups.clone() })?;
            run.variant = variant.name();
            done(&run);
            Ok(run)
        };
        let runs = all.par_iter().map(one).collect::<Result<Vec<Run>, ReplayError>>()?;
        Ok(runs.chunks(plan.seeds().count()).map(<[Run]>::to_vec).collect())
    }

    /// Why knobs that were set do nothing in the prediction, a sentence each.
    ///
    /// # Errors
    /// As [`Self::runs`].
    pub fn refusals(&self, source: &Source) -> Result<Vec<String>, ReplayError> {
        let Source::Program(program) = source else { return Ok(vec![]) };
        let refusals = self.plan(&program.surroundings)?.refusals(source);
        Ok(refusals.iter().map(ToString::to_string).collect())
    }

    /// The plan on this kernel's policy. What cannot act changes nothing, and the real runs had it too.
    ///
    /// # Errors
    /// A kernel without a policy.
    fn plan(&self, surroundings: &Surroundings) -> Result<Plan, ReplayError> {
        let plan = Plan::new(self.profile.clone(), policy_of(surroundings)?);
        let (seed, seeds) = (self.seed, self.seeds);
        Ok(Plan { settings: self.settings.clone(), seed, seeds, forced: true, ..plan })
    }

    /// Checks that the policy of `kernel` has every knob and takes every value.
    ///
    /// # Errors
    /// The first that it does not.
    pub fn check(&self, kernel: &str) -> Result<(), ReplayError> {
        let surroundings = Surroundings { kernel: kernel.to_owned(), ..Surroundings::default() };
        self.plan(&surroundings)?.check().map_err(|error| ReplayError::Plan(error.to_string()))
    }
}

/// What was set, and everything else as it stood.
fn with_surroundings(set: &[(Knob, u64)], surroundings: &Surroundings, plan: &Plan) -> Vec<(Knob, u64)> {
    let is_set = |knob: Knob| set.iter().any(|(other, _)| *other == knob);
    let stood = surroundings.unrecorded.iter().copied();
    let stood = stood.filter(|(knob, value)| !is_set(*knob) && plan.policy.check_knob(*knob, *value).is_ok());
    stood.chain(set.iter().copied()).collect()
}

/// All figures of all settings, and what changes from the first to each other.
pub fn compare(workload: String, all: &[UnderSetting]) -> Validated {
    let figures = figures(all);
    let row = |under: &UnderSetting, figure: &Figure| {
        let sample = figure.real(under);
        let real = sample.mean()?;
        let half = sample.mean_interval().map(|interval| (interval.high - interval.low) / 2.0);
        Some(ValidatedRow {
            setting: under.setting.clone(),
            metric: figure.name.clone(),
            unit: figure.unit.to_owned(),
            real,
            half,
            predicted: figure.predicted(under).mean(),
        })
    };
    let rows = all.iter().flat_map(|under| figures.iter().filter_map(move |figure| row(under, figure)));
    let changes = all.iter().skip(1).flat_map(|under| {
        figures.iter().filter(|figure| figure.is_own).filter_map(move |figure| change(figure, &all[0], under))
    });
    let run = all.iter().find_map(|under| under.predicted.first());
    Validated {
        workload,
        machine: run.map(|run| run.machine.clone()).unwrap_or_default(),
        policy: run.map(|run| run.policy.clone()).unwrap_or_default(),
        settings: all.iter().map(|under| under.setting.clone()).collect(),
        repeats: all.first().map_or(0, |under| under.real.len() as u64),
        rows: rows.collect(),
        changes: changes.collect(),
        left_out: vec![],
    }
}

/// A change of a figure that is the command's own: others move the machine's counters, too.
fn change(figure: &Figure, first: &UnderSetting, under: &UnderSetting) -> Option<ValidatedChange> {
    let (from, to) = (figure.real(first), figure.real(under));
    let (mean_from, mean_to) = (from.mean()?, to.mean()?);
    let half = match (Moments::of(&from), Moments::of(&to)) {
        (Some(from), Some(to)) => from.change(to).1,
        _ => None,
    };
    let (predicted_from, predicted) = (figure.predicted(first).mean()?, figure.predicted(under).mean()?);
    let mut change = ValidatedChange {
        setting: under.setting.clone(),
        metric: figure.name.clone(),
        unit: figure.unit.to_owned(),
        from: mean_from,
        real: mean_to - mean_from,
        half,
        predicted_from,
        predicted: predicted - predicted_from,
        ..ValidatedChange::default()
    };
    change.agreement = change.judge();
    Some(change)
}

/// Where a real run has a figure.
type OfReal = Box<dyn Fn(&CommandUse) -> Option<f64>>;
/// Where a prediction has a figure.
type OfPredicted = Box<dyn Fn(&Run) -> Option<f64>>;

/// Something that real runs and predictions both may have.
struct Figure {
    name: String,
    unit: &'static str,
    /// Whether it is the command's own, and not a counter of the machine.
    is_own: bool,
    of_real: OfReal,
    of_predicted: OfPredicted,
}

impl Figure {
    fn real(&self, under: &UnderSetting) -> Sample {
        // Of what one run does not tell, the others' mean is none of the command's.
        let all: Option<Vec<f64>> = under.real.iter().map(&self.of_real).collect();
        Sample::new(all.unwrap_or_default())
    }

    fn predicted(&self, under: &UnderSetting) -> Sample {
        Sample::new(under.predicted.iter().filter_map(&self.of_predicted))
    }

    /// A counter of the kernel's, which mm may have under the same name.
    fn counter(name: &str) -> Self {
        let (real, predicted) = (name.to_owned(), name.to_owned());
        Self {
            name: name.to_owned(),
            unit: "count",
            is_own: false,
            of_real: Box::new(move |used| Some(counted(used, &real) as f64)),
            of_predicted: Box::new(move |run| run.counters.get(&predicted).map(|count| *count as f64)),
        }
    }
}

/// What a command's figures are called, their unit, and where each side has them.
type Known = (&'static str, &'static str, fn(&CommandUse) -> Option<u64>, fn(&Run) -> Option<u64>);

/// The counter of faults that mapped a huge page.
const HUGE: &str = "thp_fault_alloc";

const KNOWN: [Known; 5] = [
    (
        "page faults",
        "count",
        |used| Some(used.minor_faults + used.major_faults),
        |run| run.program.map(|used| used.faults()),
    ),
    (
        "huge faults",
        "count",
        |used| Some(counted(used, HUGE)),
        |run| run.program.map(|used| used.huge_faults),
    ),
    ("peak RSS", "pages", |used| used.peak_rss_pages, |run| run.program.map(|used| used.peak_rss_pages)),
    ("CPU time", "ns", |used| Some(used.user_ns + used.system_ns), |run| run.program.map(|used| used.cpu_ns)),
    ("run time", "ns", |used| Some(used.wall_ns), |run| Some(run.simulated_ns)),
];

/// The same of programs under limits; left out where no real run has any.
const UNDER_LIMITS: [Known; 5] = [
    (
        "major faults",
        "count",
        |used| Some(used.major_faults),
        |run| run.program.map(|used| used.major_faults),
    ),
    ("pages swapped in", "count", |used| Some(counted(used, "pswpin")), |run| Some(run.counter("pswpin"))),
    ("pages swapped out", "count", |used| Some(counted(used, "pswpout")), |run| Some(run.counter("pswpout"))),
    (
        "refaults of anonymous pages",
        "count",
        |used| Some(counted(used, "workingset_refault_anon")),
        |run| Some(run.counter("workingset_refault_anon")),
    ),
    (
        "killed",
        "count",
        |used| Some(u64::from(used.cgroup.get("oom_kill").is_some_and(|times| *times > 0))),
        |run| Some(run.cgroups.iter().filter(|group| group.killed_ns.is_some()).count() as u64),
    ),
];

fn counted(used: &CommandUse, name: &str) -> u64 {
    used.counters.get(name).copied().unwrap_or(0)
}

/// What every program has, then each counter of the machine that moved, those apart that are there already.
fn figures(all: &[UnderSetting]) -> Vec<Figure> {
    let of_limits = all.iter().flat_map(|under| &under.real).any(|used| !used.cgroup.is_empty());
    let has = |known: &&Known| {
        of_limits && all.iter().flat_map(|under| &under.real).any(|used| known.2(used) > Some(0))
    };
    let known = KNOWN.iter().chain(UNDER_LIMITS.iter().filter(has));
    let known = known.map(|&(name, unit, real, predicted)| Figure {
        name: name.to_owned(),
        unit,
        is_own: true,
        of_real: Box::new(move |used| real(used).map(|value| value as f64)),
        of_predicted: Box::new(move |run| predicted(run).map(|value| value as f64)),
    });
    let used = all.iter().flat_map(|under| &under.real);
    let moved = |used: &BTreeMap<String, u64>| {
        used.iter().filter(|(_, grown)| **grown > 0).map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let names: BTreeSet<String> = used.flat_map(|used| moved(&used.counters)).collect();
    let counters = names.iter().filter(|name| *name != HUGE).map(|name| Figure::counter(name));
    known.chain(counters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements::{Agreement, ProgramUse};

    fn under(setting: &str, faults: [u64; 3], predicted: u64, huge: u64) -> UnderSetting {
        let real = faults.map(|minor_faults| CommandUse {
            minor_faults,
            user_ns: 500,
            system_ns: 500,
            peak_rss_pages: (minor_faults != 90).then_some(2000),
            counters: [
                (HUGE.to_owned(), huge),
                ("pgfault".to_owned(), minor_faults),
                ("compact_stall".to_owned(), 0),
            ]
            .into(),
            ..CommandUse::default()
        });
        let program =
            ProgramUse { minor_faults: predicted, huge_faults: huge, cpu_ns: 900, ..ProgramUse::default() };
        let run = Run { program: Some(program), ..Run::default() };
        UnderSetting { setting: setting.into(), real: real.into(), predicted: vec![run] }
    }

    #[test]
    fn runs_are_interleaved() {
        assert_eq!(order(2, 4), [0, 1, 1, 0, 0, 1, 1, 0]);
        assert_eq!(order(3, 2), [0, 1, 2, 2, 1, 0]);
        assert_eq!(order(1, 3), [0, 0, 0]);
        assert!(order(2, 0).is_empty());
    }

    #[test]
    fn both_sides_stand_beside_each_other() {
        let all = [under("never", [1000, 1010, 990], 1020, 0), under("always", [100, 110, 90], 95, 3)];
        let validated = compare("x".into(), &all);
        assert_eq!((validated.settings.len(), validated.repeats), (2, 3));
        let row = |setting: &str, metric: &str| {
            validated.rows.iter().find(|row| row.setting == setting && row.metric == metric).unwrap().clone()
        };
        let faults = row("never", "page faults");
        // t(0.975, 2) = 4.302653, deviation 10, three runs.
        assert!((faults.half.unwrap() - 4.302_652_73 * 10.0 / 3f64.sqrt()).abs() < 1e-4, "{faults:?}");
        assert_eq!(
            (faults.real, faults.predicted, faults.error_percent()),
            (1000.0, Some(1020.0), Some(2.0))
        );
        assert_eq!(row("always", "pgfault").predicted, None, "only the kernel has it");
        assert!(!validated.rows.iter().any(|row| row.metric == "compact_stall"), "nothing moved");
        assert!(!validated.rows.iter().any(|row| row.metric == HUGE), "stands there as huge faults");
        let change = |metric: &str| validated.changes.iter().find(|change| change.metric == metric).unwrap();
        let faults = change("page faults");
        assert_eq!((faults.real, faults.predicted, faults.agreement), (-900.0, -925.0, Agreement::Right));
        assert_eq!(change("huge faults").agreement, Agreement::Right);
        assert_eq!(change("CPU time").agreement, Agreement::Small);
        assert!(!validated.changes.iter().any(|change| change.metric == "pgfault"));
        assert_eq!(row("never", "peak RSS").half, Some(0.0), "three runs of 2000 pages");
        let is_peak_under_always = |setting: &str, metric: &str| (setting, metric) == ("always", "peak RSS");
        assert!(
            !validated.rows.iter().any(|row| is_peak_under_always(&row.setting, &row.metric)),
            "one run had none"
        );
    }

    #[test]
    fn what_is_set_comes_before_what_stood() {
        let surroundings = Surroundings {
            unrecorded: vec![(Knob::TransparentHugepage, 2), (Knob::WatermarkScaleFactor, 200)],
            ..Surroundings::default()
        };
        let plan = Plan::new(Profile::load("kvm-genoa-2c").unwrap(), policy_of(&surroundings).unwrap());
        let knobs = with_surroundings(&[(Knob::TransparentHugepage, 1)], &surroundings, &plan);
        assert_eq!(knobs, [(Knob::WatermarkScaleFactor, 200), (Knob::TransparentHugepage, 1)]);
    }
}
