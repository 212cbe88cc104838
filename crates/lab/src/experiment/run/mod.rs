//! Running experiments: every variant with every seed, side by side on as many threads as there are. What comes out
//! does not depend on how many that is.

mod explain;
mod perform;
mod repetition;
mod rows;
mod score;
mod sweep;

use std::collections::BTreeMap;

use mm::Knob;
use rayon::prelude::*;
use sim::Profile;

use self::explain::explanations;
use self::repetition::Repetition;
use self::rows::judge;
use self::score::score;
use super::error::ExperimentError;
use super::spec::{Experiment, Histogram, Variant};
use super::times::put_interval;
use crate::evidence::{self, Checked, Claim, Table};
use crate::measurements::{Account, Document, HistogramPair, Latency};
use crate::reach::mark_forced;
use crate::scene::Outcome;

pub use perform::refused as refusals;
pub use rows::inexact_rows;

/// How experiments are to be run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Machines in place of their own; none for their own.
    pub machines: Vec<Profile>,
    /// Repetitions, in place of what each experiment says.
    pub seeds: Option<u32>,
    /// The first repetition's seed; the others have the next ones.
    pub first_seed: u64,
    /// Whether to say where means come from.
    pub detail: Detail,
    /// Whether knobs that cannot act are to run all the same.
    pub forced: bool,
}

/// How much is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Rows, histograms, sweeps.
    Results,
    /// Where the means of refills and drains come from, too.
    Explained,
}

impl Default for Options {
    fn default() -> Self {
        Self { machines: vec![], seeds: None, first_seed: 1, detail: Detail::Results, forced: false }
    }
}

/// Simulates a variant with a seed: an outcome for each of its phases, or why that cannot be.
pub(super) type Performer<'a> = dyn Fn(&Variant, u64) -> Result<Vec<Outcome>, String> + Sync + 'a;

/// Runs `experiments`; `done` hears of each simulation that ends.
///
/// # Errors
/// The first variant's that could not be simulated.
pub fn run(
    experiments: Vec<Experiment>,
    options: &Options,
    done: &(dyn Fn(&str) + Sync),
) -> Result<Document, ExperimentError> {
    let mut notes = vec![];
    for experiment in &experiments {
        let moved = experiment.clone().on(&options.machines);
        if !options.forced {
            check_knobs(&moved)?;
        }
        notes.extend(forced_notes(&moved));
    }
    let ran = run_with(experiments, options, &perform::perform, done)?;
    Ok(Document { notes, ..ran })
}

/// A line for each knob that ran by force, with the first variant that it did in.
fn forced_notes(experiment: &Experiment) -> Vec<String> {
    let cells = experiment.sweeps.iter().flat_map(|sweep| &sweep.cells);
    let mut said: Vec<(Knob, String)> = vec![];
    for variant in experiment.variants.iter().chain(cells) {
        for refusal in perform::refused(variant) {
            if said.iter().all(|(knob, _)| *knob != refusal.knob) {
                let note = format!("{}, variant {}: by force: {refusal}", experiment.name, variant.name);
                said.push((refusal.knob, note));
            }
        }
    }
    said.into_iter().map(|(_, note)| note).collect()
}

/// Checks that each knob that a variant sets can act there.
pub(super) fn check_knobs(experiment: &Experiment) -> Result<(), ExperimentError> {
    let cells = experiment.sweeps.iter().flat_map(|sweep| &sweep.cells);
    for variant in experiment.variants.iter().chain(cells) {
        if let Some(refusal) = perform::refused(variant).first() {
            let problem = format!("variant {}: {refusal}; --force runs it all the same", variant.name);
            return Err(ExperimentError::new(&experiment.file, problem));
        }
    }
    Ok(())
}

/// How many simulations [`run`] makes of `experiments`.
pub fn simulations(experiments: &[Experiment], options: &Options) -> usize {
    let of = |experiment: &Experiment| {
        let moved = experiment.clone().on(&options.machines);
        let cells: usize = moved.sweeps.iter().map(|sweep| sweep.cells.len()).sum();
        (moved.variants.len() + cells) * seeds(&moved, options).len()
    };
    experiments.iter().map(of).sum()
}

fn seeds(experiment: &Experiment, options: &Options) -> Vec<u64> {
    let count = u64::from(options.seeds.unwrap_or(experiment.seeds));
    (0..count).map(|repetition| options.first_seed.wrapping_add(repetition)).collect()
}

/// [`run`] with another simulation, for tests.
pub(super) fn run_with(
    experiments: Vec<Experiment>,
    options: &Options,
    perform: &Performer<'_>,
    done: &(dyn Fn(&str) + Sync),
) -> Result<Document, ExperimentError> {
    let experiments: Vec<Experiment> =
        experiments.into_iter().map(|experiment| experiment.on(&options.machines)).collect();
    // One list over everything, so that no thread waits for the end of an experiment.
    let mut jobs = vec![];
    for experiment in &experiments {
        let cells = experiment.sweeps.iter().flat_map(|sweep| &sweep.cells);
        for variant in experiment.variants.iter().chain(cells) {
            jobs.extend(seeds(experiment, options).into_iter().map(|seed| (experiment, variant, seed)));
        }
    }
    let one = |&(experiment, variant, seed): &(&Experiment, &Variant, u64)| {
        let repetition = repetition(experiment, variant, seed, perform)?;
        done(&format!("{} {}", experiment.name, variant.name));
        Ok(repetition)
    };
    // Of several errors the first in the order of the jobs, whichever thread was quicker.
    let ended: Vec<Result<Repetition, ExperimentError>> = jobs.par_iter().map(one).collect();
    let mut ended = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut document = Document::new("");
    for experiment in &experiments {
        let seeds = seeds(experiment, options).len();
        let mut take = |variants: &[Variant]| -> Vec<Vec<Repetition>> {
            variants.iter().map(|_| ended.drain(..seeds).collect()).collect()
        };
        let variants = take(&experiment.variants);
        let sweeps: Vec<Vec<Vec<Repetition>>> =
            experiment.sweeps.iter().map(|sweep| take(&sweep.cells)).collect();
        account(experiment, &variants, &sweeps, options.detail, &mut document);
        let of_sweeps = sweeps.into_iter().flatten();
        let outcomes = variants.into_iter().chain(of_sweeps).flatten().flat_map(|repetition| repetition.0);
        document.runs.extend(outcomes.map(|outcome| outcome.run));
    }
    evidence::intervals(Table::bundled(), &mut document);
    Ok(document)
}

/// Simulates a variant of `experiment`, as it is or changed, with a seed: an outcome for each of its phases, labelled. Knobs that
/// cannot act ([`refusals`]) run all the same.
///
/// # Errors
/// It could not be simulated.
pub fn simulate(
    experiment: &Experiment,
    variant: &Variant,
    seed: u64,
) -> Result<Vec<Outcome>, ExperimentError> {
    repetition(experiment, variant, seed, &perform::perform).map(|repetition| repetition.0)
}

fn repetition(
    experiment: &Experiment,
    variant: &Variant,
    seed: u64,
    perform: &Performer<'_>,
) -> Result<Repetition, ExperimentError> {
    let failed = |problem: String| {
        ExperimentError::new(&experiment.file, format!("variant {}, seed {seed}: {problem}", variant.name))
    };
    let mut outcomes = perform(variant, seed).map_err(failed)?;
    if outcomes.len() != variant.phases.len() {
        let (got, asked) = (outcomes.len(), variant.phases.len());
        return Err(failed(format!("{got} phases were simulated of {asked}")));
    }
    let refused = perform::refused(variant);
    for (phase, outcome) in outcomes.iter_mut().enumerate() {
        let run = &mut outcome.run;
        run.experiment.clone_from(&experiment.name);
        run.variant = variant.case_name(phase);
        run.seed = seed;
        mark_forced(&mut run.knob_uses, &refused);
        let setup = &variant.setup;
        evidence::label(run, Table::bundled(), &setup.policy, &setup.profile, Checked::ByRows);
        Claim { label: variant.confidence, because: &variant.because, about: setup.tests() }.bound(run);
    }
    Ok(Repetition(outcomes))
}

/// What there is to say of an experiment.
fn account(
    experiment: &Experiment,
    variants: &[Vec<Repetition>],
    sweeps: &[Vec<Vec<Repetition>>],
    detail: Detail,
    document: &mut Document,
) {
    let mut judged = judge(experiment, variants);
    for row in &mut judged {
        put_interval(Table::bundled(), row);
    }
    let mut account = Account {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        about: experiment.about.clone(),
        learnt: experiment.learnt.clone(),
        not_compared: experiment.not_compared.clone(),
        ..Account::default()
    };
    for (variant, repetitions) in experiment.variants.iter().zip(variants) {
        let pairs = variant.histograms.iter().map(|histogram| pair(variant, histogram, repetitions));
        account.histograms.extend(pairs);
    }
    account.sweeps =
        experiment.sweeps.iter().zip(sweeps).map(|(sweep, ran)| sweep::table(sweep, ran)).collect();
    if detail == Detail::Explained {
        let cells = experiment.sweeps.iter().flat_map(|sweep| &sweep.cells);
        let ran = variants.iter().chain(sweeps.iter().flatten());
        for (variant, repetitions) in experiment.variants.iter().chain(cells).zip(ran) {
            for phase in 0..variant.phases.len() {
                let measured = repetitions.iter().map(|repetition| repetition.seen(phase).measured);
                account.explanations.extend(explanations(&variant.case_name(phase), &measured));
            }
        }
    }
    if !judged.is_empty() {
        document.score.push(score(&experiment.name, &judged));
    }
    document.rows.extend(judged);
    document.experiments.push(account);
}

/// A published histogram and the simulated one, scaled to as many seconds, or else to as many spans.
fn pair(variant: &Variant, of: &Histogram, repetitions: &[Repetition]) -> HistogramPair {
    let runs = || repetitions.iter().map(|repetition| repetition.seen(of.phase).run);
    let pooled = pooled(runs().filter_map(|run| run.latency.get(&of.span)));
    let seconds: f64 = runs().map(|run| run.simulated_ns as f64 / 1e9).sum();
    let factor = match of.over_seconds {
        Some(published) if seconds > 0.0 => published / seconds,
        None if pooled.count > 0 => of.published.count as f64 / pooled.count as f64,
        _ => 1.0,
    };
    HistogramPair {
        variant: variant.case_name(of.phase),
        span: of.span.clone(),
        over_seconds: of.over_seconds.unwrap_or(0.0),
        published: of.published.clone(),
        simulated: scaled(&pooled, factor),
    }
}

fn pooled<'a>(latencies: impl Iterator<Item = &'a Latency>) -> Latency {
    let mut pool = Latency::default();
    let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
    for latency in latencies {
        pool.count += latency.count;
        pool.total_ns += latency.total_ns;
        pool.max_ns = pool.max_ns.max(latency.max_ns);
        for &(low, count) in &latency.log2 {
            *rows.entry(low).or_default() += count;
        }
    }
    pool.mean_ns = pool.total_ns.checked_div(pool.count).unwrap_or(0);
    pool.log2 = rows.into_iter().collect();
    pool
}

/// Every count times `factor`; a row that would round to nothing keeps one. The mean stays what it was.
fn scaled(latency: &Latency, factor: f64) -> Latency {
    let times = |count: u64| (count as f64 * factor).round() as u64;
    let log2: Vec<(u64, u64)> = latency
        .log2
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|&(low, count)| (low, times(count).max(1)))
        .collect();
    Latency {
        count: log2.iter().map(|row| row.1).sum(),
        total_ns: times(latency.total_ns),
        log2,
        ..latency.clone()
    }
}
