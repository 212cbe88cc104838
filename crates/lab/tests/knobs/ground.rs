//! A small workload on a small machine, on which a knob acts or rests.

use freehold_lab::reach::{Where, refusals};
use freehold_lab::scene::{Outcome, Phase, Scene, perform};
use mm::{Cpu, Knob, Nanos, Policy};
use sim::Profile;

/// A workload on a machine under a policy.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    machine: &'static str,
    /// Memory of each node, MiB; the file's where there are fewer.
    memory: &'static [u64],
    /// Where memory below 4 GiB ends, MiB; 0: the file's.
    low_end: u64,
    /// How many of the first CPUs tasks are placed on; 0: all.
    cpus: u16,
    policy: &'static str,
    knobs: Vec<(Knob, u64)>,
    workload: String,
    run_ms: u64,
}

impl Ground {
    pub(crate) fn new(machine: &'static str, policy: &'static str) -> Self {
        let (knobs, workload) = (vec![], String::new());
        Self { machine, memory: &[], low_end: 0, cpus: 0, policy, knobs, workload, run_ms: 1 }
    }

    pub(crate) fn memory(self, memory: &'static [u64]) -> Self {
        Self { memory, ..self }
    }

    pub(crate) fn low_end(self, low_end: u64) -> Self {
        Self { low_end, ..self }
    }

    pub(crate) fn cpus(self, cpus: u16) -> Self {
        Self { cpus, ..self }
    }

    pub(crate) fn under(self, policy: &'static str) -> Self {
        Self { policy, ..self }
    }

    /// With another knob set as well.
    pub(crate) fn with(mut self, knob: Knob, value: u64) -> Self {
        self.knobs.retain(|(other, _)| *other != knob);
        self.knobs.push((knob, value));
        self
    }

    /// Runs so many ms of `workload`, which is written as in an experiment's file.
    pub(crate) fn runs(self, run_ms: u64, workload: &str) -> Self {
        Self { run_ms, workload: workload.to_owned(), ..self }
    }

    fn profile(&self) -> Profile {
        let mut memory = self.memory.iter();
        let mut low_end = Some(self.low_end).filter(|mib| *mib > 0);
        let mut changed = |line: &str| match line.split(" = ").next() {
            Some("memory_mib") => memory.next().map(|mib| format!("memory_mib = {mib}")),
            Some("low_end_mib") => low_end.take().map(|mib| format!("low_end_mib = {mib}")),
            _ => None,
        };
        let text = Profile::load(self.machine).expect("a machine").to_toml();
        let lines: Vec<String> =
            text.lines().map(|line| changed(line).unwrap_or_else(|| line.to_owned())).collect();
        assert!(memory.next().is_none() && low_end.is_none(), "{self:?}");
        Profile::parse("small", &lines.join("\n")).expect("a machine")
    }

    /// The scene with `set` besides, which holds where a knob is set twice.
    fn scene(&self, set: &[(Knob, u64)]) -> Scene {
        let own = self.knobs.iter().filter(|(knob, _)| set.iter().all(|(other, _)| other != knob));
        let workload: toml::Table = self.workload.parse().expect("TOML");
        Scene {
            profile: self.profile(),
            policy: Policy::parse(self.policy).expect("a policy"),
            knobs: own.chain(set).copied().collect(),
            workload: workload.try_into().unwrap_or_else(|error| panic!("{error}: {self:?}")),
            seed: 1,
            cpus: (0..self.cpus).map(Cpu).collect(),
            shrink: 1,
            warm_up: Nanos(0),
            phases: vec![Phase::only(Nanos(self.run_ms * 1_000_000))],
        }
    }

    /// Those of the knobs that are `set` that are refused here.
    pub(crate) fn refused(&self, set: &[(Knob, u64)]) -> Vec<Knob> {
        let scene = self.scene(set);
        let (topology, brings) = (scene.profile.topology(), scene.workload.brings());
        let place = Where { brings, topology: &topology, policy: &scene.policy, set: &scene.knobs };
        refusals(&place).into_iter().map(|refusal| refusal.knob).collect()
    }

    /// Whether the policy's kernel has `knob`, and takes `value`.
    pub(crate) fn takes(&self, knob: Knob, value: u64) -> bool {
        Policy::parse(self.policy).expect("a policy").check_knob(knob, value).is_ok()
    }

    /// What comes of it with `set`.
    pub(crate) fn run(&self, set: &[(Knob, u64)]) -> Outcome {
        let outcomes = perform(&self.scene(set)).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        outcomes.into_iter().next_back().expect("a phase")
    }
}
