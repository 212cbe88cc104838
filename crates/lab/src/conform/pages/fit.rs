//! Finds a run's hidden figures: those with which its refills and drains come out best. There are few, and each is held
//! to what it can be: one phase for the ticks of all CPUs, at most the pages of a small program on a pageset.

use super::counts::{DrainAt, Telling, Told, tell};
use super::hidden::{Hidden, Phase, SECOND_US, SeenTicks};

/// Pages that may come and go between the reading of zoneinfo and the beginning of a trace: a small program ends.
const MOST_MORE: u32 = 2048;
/// The cost of a drain for which the other side has none, in pages freed between two drains that should be one.
const LONE_DRAIN: u64 = 5_000;

/// A lower cost than by so much explains something; less is chance.
const EXPLAINS: u64 = 500;

/// The hidden figures that fit best.
pub(super) fn fit(telling: Telling<'_>) -> Hidden {
    let seen = SeenTicks::of(telling.story, telling.trace);
    let mut best = Trial::new(telling, Hidden::none(telling.story.shape));
    best.hidden.alloc_factor.clone_from(&best.told.alloc_factor);
    let mut phase = None;
    let coarse = (0..40).map(|part| Phase(part * SECOND_US / 40));
    let at_seen = seen
        .phases()
        .into_iter()
        .flat_map(|Phase(at)| [Phase(at), Phase((at + SECOND_US - 4_000) % SECOND_US)]);
    for trial in coarse.chain(at_seen) {
        try_phase(telling, &seen, trial, &mut best, &mut phase);
    }
    if best.told.leaves_something() {
        fit_counts(telling, &mut best);
        for part in 0..200 {
            try_phase(telling, &seen, Phase(part * SECOND_US / 200), &mut best, &mut phase);
        }
    }
    for step_us in [5_000, 1_000, 200] {
        fit_counts(telling, &mut best);
        let Some(Phase(around)) = phase else { continue };
        for part in 0..21 {
            let trial = Phase((around + SECOND_US + part * step_us - 10 * step_us) % SECOND_US);
            try_phase(telling, &seen, trial, &mut best, &mut phase);
        }
    }
    fit_both(telling, &seen, &mut best, phase);
    fit_late_ticks(telling, &mut best);
    fit_counts(telling, &mut best);
    best.hidden
}

/// How late a tick is tried to have been, in microseconds: its worker waits for its turn.
const LATE_US: [u64; 10] = [1_000, 2_000, 4_000, 6_000, 9_000, 13_000, 20_000, 30_000, 45_000, 70_000];

/// Ticks come one by one a little late, where that explains what is left.
fn fit_late_ticks(telling: Telling<'_>, best: &mut Trial) {
    for cpu in 0..best.hidden.ticks.len() {
        for tick in 0..best.hidden.ticks[cpu].len() {
            if !best.told.leaves_something() {
                return;
            }
            for late_us in LATE_US {
                let mut hidden = best.hidden.clone();
                hidden.ticks[cpu][tick].at_us += late_us;
                let trial = Trial::new(telling, hidden);
                if trial.cost + EXPLAINS < best.cost {
                    *best = trial;
                    break;
                }
            }
        }
    }
}

struct Trial {
    hidden: Hidden,
    told: Told,
    cost: u64,
}

impl Trial {
    fn new(telling: Telling<'_>, hidden: Hidden) -> Self {
        let told = tell(telling, &hidden);
        let cost = cost(telling, &told);
        Self { hidden, told, cost }
    }
}

fn try_phase(
    telling: Telling<'_>,
    seen: &SeenTicks,
    trial: Phase,
    best: &mut Trial,
    phase: &mut Option<Phase>,
) {
    let hidden = Hidden { ticks: seen.others(trial), ..best.hidden.clone() };
    let trial_of = Trial::new(telling, hidden);
    // Without any tick is no better than with one where both explain the run as well.
    if trial_of.cost < best.cost || (phase.is_none() && trial_of.cost == best.cost) {
        *best = trial_of;
        *phase = Some(trial);
    }
}

/// A tick a little earlier and some pages more look much the same at the first drain: where something is left to explain,
/// the two are tried together.
fn fit_both(telling: Telling<'_>, seen: &SeenTicks, best: &mut Trial, phase: Option<Phase>) {
    let Some(Phase(around)) = phase.filter(|_| best.told.leaves_something()) else { return };
    for part in 0..41 {
        let phase = Phase((around + SECOND_US + part * 100 - 20 * 100) % SECOND_US);
        let hidden = Hidden { ticks: seen.others(phase), ..best.hidden.clone() };
        let mut trial = Trial::new(telling, hidden);
        fit_counts(telling, &mut trial);
        if trial.cost < best.cost {
            *best = trial;
        }
    }
}

/// The first drain of a pageset says how many pages were on it: as many frees as the model's comes too late, so many
/// pages more there were. And what a tick drains is all that is too much.
fn fit_counts(telling: Telling<'_>, best: &mut Trial) {
    for pageset in 0..telling.story.shape.pagesets() {
        for more in missing_pages(&best.told.kernel[pageset], &best.told.model[pageset]) {
            let mut hidden = best.hidden.clone();
            hidden.more[pageset] += more;
            if hidden.more[pageset].unsigned_abs() > MOST_MORE {
                continue;
            }
            let trial = Trial::new(telling, hidden);
            if trial.cost < best.cost {
                *best = trial;
            }
        }
    }
}

/// How many pages more there may have been.
fn missing_pages(kernel: &[DrainAt], model: &[DrainAt]) -> Vec<i32> {
    let mut candidates = vec![];
    if let (Some(kernel), Some(model)) = (kernel.first(), model.first()) {
        let later = model.freed as i32 - kernel.freed as i32;
        if later != 0 {
            candidates.extend([later, later + 1, later - 1]);
        }
    }
    let mut pairs = kernel.iter().zip(model);
    if let Some((kernel, model)) = pairs.find(|(kernel, model)| kernel.pages != model.pages) {
        candidates.push(kernel.pages as i32 - model.pages as i32);
    }
    candidates
}

/// How far a telling is from the run: a drain that comes at another time costs the pages freed in between.
fn cost(telling: Telling<'_>, told: &Told) -> u64 {
    let drains: u64 =
        told.kernel.iter().zip(&told.model).map(|(kernel, model)| drains_apart(kernel, model)).sum();
    let high_apart: u64 = telling.beside.after.iter().map(|zone| high_apart(telling, told, zone)).sum();
    u64::from(told.wrong_refills) * 3_000 + u64::from(told.missing) + drains + high_apart / 10
}

fn drains_apart(kernel: &[DrainAt], model: &[DrainAt]) -> u64 {
    let both = kernel.iter().zip(model);
    let apart: u64 = both
        .map(|(kernel, model)| {
            let freed = u64::from(kernel.freed.abs_diff(model.freed)).min(LONE_DRAIN);
            freed + u64::from(kernel.pages.abs_diff(model.pages)).min(LONE_DRAIN)
        })
        .sum();
    apart + kernel.len().abs_diff(model.len()) as u64 * LONE_DRAIN
}

/// How far `high` is at the end from what zoneinfo says then.
fn high_apart(telling: Telling<'_>, told: &Told, after: &crate::conform::ZoneInfo) -> u64 {
    let zones = &telling.beside.before;
    let Some(zone) = zones.iter().position(|zone| (zone.node, &zone.name) == (after.node, &after.name))
    else {
        return 0;
    };
    let shape = telling.story.shape;
    let known = after.pagesets.iter().filter(|set| usize::from(set.cpu) < shape.cpus && set.high > 0);
    known
        .map(|set| u64::from(told.tunings[shape.pageset(zone, set.cpu).index()].high.abs_diff(set.high)))
        .sum()
}
