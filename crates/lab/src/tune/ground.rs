//! On what trials run: the workload, shortened or whole, on the machine or one like it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use sim::Profile;
use sim::profile::{Figure, FigureKind};

use super::bench::{Evaluator, Trial, Tried};
use super::journal::{Journal, Line};
use super::space::Space;
use crate::measurements::{Run, figures};
use crate::subject::{AskError, Goal, Outcome, Subject};

/// A workload on a machine.
#[derive(Clone, Debug)]
pub struct Ground {
    /// What is simulated.
    pub subject: Subject,
    /// What part of the whole it is, in thousandths: 1000, or less of a shortened form.
    pub permille: u64,
    /// Stands for the events of a recording; empty of an experiment, which says all by itself.
    pub content: String,
}

/// Latencies of a profile that may be other than they are said to be, by section.
const LATENCIES: [&str; 4] = ["cache.", "transfer.", "handover.", "dram."];

impl Ground {
    /// The same on machines that differ in one latency: a fifth longer, and a fifth shorter. What would come out of order (a second
    /// level as slow as the third) is left out, and so is what the machine has nothing of.
    pub(super) fn variants(&self) -> Vec<(String, Self)> {
        let Some(profile) = self.subject.profile() else { return vec![] };
        let keys = profile.figures().map(|(spec, figure)| (spec.key, figure.value));
        let latencies = keys.filter(|(key, _)| {
            key.ends_with("_ns")
                && LATENCIES.iter().any(|section| key.starts_with(section))
                && is_there(profile, key)
        });
        let mut variants = vec![];
        for (key, value) in latencies {
            for (part, word) in [(1.2, "a fifth up"), (0.8, "a fifth down")] {
                let mut profile = profile.clone();
                let figure = Figure::new(value * part, FigureKind::Estimated, "to see whether it matters");
                if profile.set(key, figure).is_ok() {
                    let ground = Self { subject: self.subject.on(&profile), ..self.clone() };
                    variants.push((format!("{key} {word}"), ground));
                }
            }
        }
        variants
    }

    /// What runs, and on which machine.
    pub fn name(&self) -> String {
        let [workload, machine] = self.subject.names();
        format!("{workload} on {machine}")
    }

    /// Stands for all that is simulated, apart from policy and knobs.
    fn digest(&self) -> String {
        self.subject.digest(&self.content)
    }
}

/// Whether the machine has what the latency is of: threads of a core, other sockets.
fn is_there(profile: &Profile, key: &str) -> bool {
    let topology = profile.topology();
    let several_nodes = topology.nodes.iter().filter(|node| !node.zones.is_empty()).count() > 1;
    let shape = profile.shape();
    match key.rsplit('.').next() {
        Some("smt_ns") => shape.threads_per_core > 1,
        Some("cross_socket_ns") => shape.sockets > 1,
        Some("remote_ns") => several_nodes,
        _ => true,
    }
}

/// Makes trials by simulation.
pub(super) struct Simulator<'a> {
    pub(super) grounds: &'a [Ground],
    pub(super) space: &'a Space,
    pub(super) goals: &'a [Goal],
    pub(super) journal: &'a Journal,
    /// Hears of each trial that ends, with what part of a simulation of full length it was, in thousandths.
    pub(super) done: &'a (dyn Fn(&str, u64) + Sync),
    /// Of which trials the whole run is kept.
    pub(super) keep: fn(&Trial) -> Keep,
    /// Where.
    pub(super) kept: &'a Mutex<BTreeMap<Trial, Run>>,
}

/// What of a run is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keep {
    /// Its figures.
    Figures,
    /// All of it.
    Run,
}

impl Simulator<'_> {
    fn key(&self, trial: &Trial) -> String {
        let side = self.space.side(&trial.setting);
        Journal::key(&self.grounds[trial.ground].digest(), &side, trial.seed)
    }

    fn one(&self, trial: &Trial) -> Result<(Tried, Option<Run>), AskError> {
        let ground = &self.grounds[trial.ground];
        let side = self.space.side(&trial.setting);
        let key = self.key(trial);
        let keep = (self.keep)(trial);
        if let Some(found) = self.journal.find(&key, self.goals, keep) {
            return Ok(found);
        }
        let came = ground.subject.simulate(&side, trial.seed, self.goals);
        if sim::is_stopped() {
            // Nothing is known of it, so nothing is kept.
            return Err(AskError::new("stopped from outside"));
        }
        let (tried, run) = match came {
            // What is not finite cannot be written down.
            Ok(Outcome { values, run }) => {
                let values =
                    values.into_iter().map(|value| value.filter(|value| value.is_finite())).collect();
                (Ok(values), Some(run))
            }
            Err(error) => (Err(error.to_string()), None),
        };
        let all = run.as_ref().map(figures).unwrap_or_default();
        let events = run.as_ref().map_or(0, |run| run.events);
        let kept = run.filter(|_| keep == Keep::Run);
        let mut line = Line::new(key, &side, trial.seed, ground.permille).of_events(events);
        line.came(self.goals, &tried, all, kept.clone());
        self.journal.write(&line)?;
        (self.done)(&side.name(), ground.permille);
        Ok((tried, kept))
    }
}

impl Evaluator for Simulator<'_> {
    fn evaluate(&mut self, trials: &[Trial]) -> Result<Vec<Tried>, AskError> {
        let this = &*self;
        let ended: Vec<Result<(Tried, Option<Run>), AskError>> =
            trials.par_iter().map(|trial| this.one(trial)).collect();
        // Of several errors the first in order, whichever thread was quicker.
        let ended = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut all = vec![];
        for (trial, (tried, run)) in trials.iter().zip(ended) {
            let run = run.map(|run| (trial.clone(), run));
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).extend(run);
            all.push(tried);
        }
        Ok(all)
    }

    fn events(&self, trial: &Trial) -> u64 {
        self.journal.events(&self.key(trial))
    }
}
