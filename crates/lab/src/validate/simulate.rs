//! A case on the simulated machine.

use std::collections::BTreeMap;

use host::fault_loop::Memory;
use mm::{Knob, LockClass, Nanos, Policy, Span};
use sim::{Measurements, Profile};

use super::{Case, NAME};
use crate::conform::{FormatError, kernel_version};
use crate::evidence::{self, Checked, Table};
use crate::measurements::Run;
use crate::scene::{Outcome, Phase, Scene, SceneError, perform};
use crate::workloads::{FaultKind, PageFault, Sharing};

/// Simulated time in which page lists fill, and grow to what the workload makes of them. Refills and drains are looked at
/// in it, for later there may be few; recordings have begun as soon.
const FILLING: Nanos = Nanos(500_000_000);
/// Simulated time thereafter, in which faults are counted.
const FILLED: Nanos = Nanos(300_000_000);

/// The sysctls that say how large page lists are and how much memory is kept free.
const SYSCTLS: [(Knob, &str); 4] = [
    (Knob::MinFreeKbytes, "min_free_kbytes"),
    (Knob::WatermarkScaleFactor, "watermark_scale_factor"),
    (Knob::PercpuPagelistHighFraction, "percpu_pagelist_high_fraction"),
    (Knob::PcpBatchScaleMax, "pcp_batch_scale_max"),
];

/// What cases are simulated with.
#[derive(Clone, Debug)]
pub struct Plan {
    /// This machine's profile.
    pub profile: Profile,
    /// The rules of the kernel that runs.
    pub policy: Policy,
    /// Its sysctls, as far as they are knobs.
    pub knobs: Vec<(Knob, u64)>,
    /// Each task's mapping, MiB.
    pub mib: u32,
}

impl Plan {
    /// The plan for the kernel called `release` with the settings of its /proc/sys/vm.
    ///
    /// # Errors
    /// A release without rules.
    pub fn new(
        profile: Profile,
        release: &str,
        vm: &BTreeMap<String, String>,
        mib: u32,
    ) -> Result<Self, FormatError> {
        let mut policy = Policy::linux(kernel_version(release)?);
        let mut knobs = vec![];
        for (knob, name) in SYSCTLS {
            let Some(value) = vm.get(name).and_then(|value| value.parse().ok()) else { continue };
            if knob == Knob::PcpBatchScaleMax {
                // No released kernel has it; here it is, so the series is in.
                let name = format!("{}+pcp_batch_scale_max", policy.name());
                policy = Policy::parse(&name).map_err(|error| FormatError::new(0, error.to_string()))?;
            }
            if knob.check(value).is_ok() {
                knobs.push((knob, value));
            }
        }
        Ok(Self { profile, policy, knobs, mib })
    }
}

/// A case, simulated once.
#[derive(Clone, Debug)]
pub struct Simulated {
    runs: [Run; 2],
    filling: Measurements,
    filled: Measurements,
}

/// Simulates `case` with `seed`.
///
/// # Errors
/// A machine that cannot be simulated, or is too small for the workload.
pub fn simulate(plan: &Plan, case: Case, seed: u64) -> Result<Simulated, SceneError> {
    let memory = match case.memory {
        Memory::Private => FaultKind::Anonymous,
        Memory::Shared => FaultKind::Shared,
    };
    let fault = PageFault { tasks: case.tasks, sharing: Sharing::Processes, memory, mib: plan.mib };
    let scene = Scene {
        profile: plan.profile.clone(),
        policy: plan.policy.clone(),
        knobs: plan.knobs.clone(),
        workload: fault.into(),
        seed,
        cpus: vec![],
        shrink: 1,
        warm_up: Nanos(0),
        phases: vec![phase("filling", FILLING), phase("filled", FILLED)],
    };
    let [filling, filled] = <[Outcome; 2]>::try_from(perform(&scene)?)
        .map_err(|outcomes| SceneError::setup(format!("{} of 2 phases were simulated", outcomes.len())))?;
    let of_phase = |outcome: &Outcome| {
        let mut run = Run {
            experiment: NAME.into(),
            variant: format!("{case}, {}", outcome.phase),
            ..outcome.run.clone()
        };
        evidence::label(&mut run, Table::bundled(), &plan.policy, &plan.profile, Checked::Here);
        run
    };
    Ok(Simulated {
        runs: [of_phase(&filling), of_phase(&filled)],
        filling: filling.measured,
        filled: filled.measured,
    })
}

fn phase(name: &str, length: Nanos) -> Phase {
    Phase { name: name.into(), length, set: vec![] }
}

impl Simulated {
    /// The runs of both phases, for a document.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Faults of all tasks while lists were filling.
    pub(super) fn faults(&self) -> f64 {
        self.filling.span(Span::Fault).latency.count() as f64
    }

    /// Faults of all tasks when that was over.
    pub(super) fn faults_per_second(&self) -> f64 {
        self.filled.span(Span::Fault).latency.count() as f64 * 1e9 / self.filled.simulated.0 as f64
    }

    /// How many refills, or drains, there were.
    pub(super) fn count(&self, span: Span) -> f64 {
        self.filling.span(span).latency.count() as f64
    }

    /// Pages that one refill, or drain, moved: the mean.
    pub(super) fn mean_pages(&self, span: Span) -> f64 {
        self.filling.span(span).pages() as f64 / self.count(span)
    }

    /// How long the zone lock is held for a page of a refill, or drain.
    pub(super) fn hold_ns_per_page(&self, span: Span) -> f64 {
        let held = self.filling.cost(span).holds[LockClass::Zone as usize].time.0;
        held as f64 / self.filling.span(span).pages() as f64
    }
}
