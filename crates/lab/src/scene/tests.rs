//! Small scenes.

use mm::{Knob, Nanos, Policy};
use sim::Profile;

use super::{Outcome, Phase, Scene, SceneError, perform};
use crate::workloads::{PageFault, PythonLoop, WorkloadSpec};

fn scene(workload: WorkloadSpec) -> Scene {
    Scene {
        profile: Profile::load("xeon-8260-1n").unwrap(),
        policy: Policy::parse("linux-6.11+pcp_batch_scale_max").unwrap(),
        knobs: vec![(Knob::PcpBatchScaleMax, 5)],
        workload,
        seed: 1,
        cpus: vec![],
        shrink: 1,
        warm_up: Nanos(20_000_000),
        phases: vec![Phase::only(Nanos(30_000_000))],
    }
}

fn python() -> WorkloadSpec {
    PythonLoop { processes: 3, mib: 8, stagger_ms: 5, rounds_before: 0 }.into()
}

fn without_wall(mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
    for outcome in &mut outcomes {
        outcome.run.wall_ns = 0;
    }
    outcomes
}

#[test]
fn one_seed_gives_one_result_and_another_another() {
    let run = |seed| {
        let scene = Scene { seed, ..scene(python()) };
        let mut outcomes = without_wall(perform(&scene).unwrap());
        let outcome = outcomes.pop().unwrap();
        (outcome.run, outcome.measured)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_phase_measures_its_own_time_and_sets_its_knobs() {
    let mut scene = scene(python());
    // Pagesets that are smaller than the mappings, so that refills go on.
    scene.knobs = vec![(Knob::PcpHighBatches, 64)];
    let phase = |name: &str, value| Phase {
        name: name.to_owned(),
        length: Nanos(30_000_000),
        set: vec![(Knob::PcpBatchScaleMax, value)],
    };
    scene.phases = vec![phase("before", 5), phase("after", 0)];
    let outcomes = perform(&scene).unwrap();
    let [before, after] = &outcomes[..] else { panic!("two phases") };
    assert_eq!((before.phase.as_str(), after.phase.as_str()), ("before", "after"));
    // The end of a phase waits until CPU 0 has its lock's section behind it.
    assert!(before.run.simulated_ns.abs_diff(30_000_000) < 300_000, "{}", before.run.simulated_ns);
    let mean = |outcome: &Outcome| {
        let refills = outcome.measured.span(mm::Span::Refill);
        refills.pages() as f64 / refills.latency.count() as f64
    };
    assert!(mean(before) > 200.0, "{}", mean(before));
    // A pageset's refills stay large until its next frees: the knob only bounds their growth.
    assert!(mean(after) < mean(before) / 2.0, "{} {}", mean(before), mean(after));
}

#[test]
fn a_scale_model_has_less_memory_and_the_same_rounds() {
    let spec = PythonLoop { processes: 3, mib: 512, stagger_ms: 80, rounds_before: 0 }.into();
    let outcome = perform(&Scene { shrink: 32, ..scene(spec) }).unwrap().pop().unwrap();
    // Each process holds 2 * 512 MiB / 32 at most, page tables apart.
    let most = 3 * 2 * (512 << 8) / 32;
    let peak = outcome.run.memory.peak_pages;
    assert!(peak > most / 2 && peak < most + most / 100, "{peak} of {most}");
    let too_small = Scene { shrink: 1 << 20, ..scene(python()) };
    assert!(perform(&too_small).unwrap_err().to_string().starts_with("machine xeon-8260-1n: "));
}

#[test]
fn everything_is_given_back_at_the_end() {
    let scene = scene(
        PageFault {
            tasks: 2,
            sharing: crate::workloads::Sharing::Threads,
            memory: crate::workloads::FaultKind::File,
            mib: 4,
        }
        .into(),
    );
    let outcome = perform(&scene).unwrap().pop().unwrap();
    assert!(outcome.run.operations > 10_000, "{}", outcome.run.operations);
    assert!(outcome.run.omissions.is_empty());
}

#[test]
fn what_cannot_be_is_said() {
    let mut none = scene(PythonLoop { processes: 0, mib: 8, stagger_ms: 0, rounds_before: 0 }.into());
    let said = perform(&none).unwrap_err().to_string();
    assert_eq!(said, "workload: processes is 0, but must be from 1 to 100000");
    none.workload = python();
    none.phases[0].set = vec![(Knob::PcpBatchScaleMax, 7)];
    assert!(matches!(perform(&none), Err(SceneError::Drive(_))));
}
