//! Runs a scene: sets up, warms up, and takes a snapshot at the end of each phase.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::{Knob, Machine, Nanos, Node, Span};
use sim::{Measurements, SpanRecord};

use super::{Outcome, Scene, SceneError};
use crate::drive::Drive;
use crate::drive::figures::{self, About};
use crate::measurements::Confidence;
use crate::stage::Stage;

/// Refills and drains of a phase that are noted in order, each kind; an exact sequence is a few at its beginning.
const NOTED_MAX: usize = 100_000;

/// Runs `scene`: one outcome for each phase, in order.
///
/// # Errors
/// An impossible machine, workload or knob, or a simulation that cannot go on.
pub fn perform(scene: &Scene) -> Result<Vec<Outcome>, SceneError> {
    play(scene, None)
}

/// [`perform`], and notes in [`Run::sequences`](crate::measurements::Run::sequences) how many pages each refill and each drain moved, in the order in which
/// they ended, and in which order each node's requests ask nodes.
///
/// # Errors
/// As [`perform`].
pub fn perform_in_order(scene: &Scene) -> Result<Vec<Outcome>, SceneError> {
    play(scene, Some(Rc::default()))
}

/// What is noted in order: a list for each kind of span.
type Notes = Rc<RefCell<BTreeMap<&'static str, Vec<u64>>>>;

fn play(scene: &Scene, notes: Option<Notes>) -> Result<Vec<Outcome>, SceneError> {
    check(scene)?;
    let scene = &shrunk(scene)?;
    let mut drive = Drive::new(&scene.setup())?;
    drive.start_daemons();
    let end = Nanos(scene.warm_up.0 + scene.phases.iter().map(|phase| phase.length.0).sum::<u64>());
    let snapshots = Rc::new(RefCell::new(vec![]));
    if let Some(notes) = &notes {
        let notes = Rc::clone(notes);
        drive.on_span(move |record| note(&mut notes.borrow_mut(), record));
    }
    schedule(&drive, scene, &snapshots, notes);
    let now = drive.run(&*scene.workload.workload)?;
    let mut outcomes = snapshots.take();
    if outcomes.len() < scene.phases.len() {
        return Err(SceneError::Early { at: now, end });
    }
    if let Some(last) = outcomes.last_mut() {
        // They are a lock for each event, cache and CPU, which busy tasks may hold: in simulated time some 100 ms on a
        // large machine, for all of which tasks would go on.
        last.run.counters.extend(figures::slab_counters(drive.stage()));
    }
    for outcome in &mut outcomes {
        outcome.run.wall_ns = drive.wall_ns();
        outcome.run.events = drive.stage().events();
        outcome.run.timeline = drive.timeline();
    }
    Ok(outcomes)
}

fn check(scene: &Scene) -> Result<(), SceneError> {
    if scene.phases.iter().all(|phase| phase.length.0 == 0) {
        return Err(SceneError::setup("there is no phase that lasts any time"));
    }
    let set = scene.phases.iter().flat_map(|phase| &phase.set);
    for &(knob, value) in set {
        scene.policy.check_knob(knob, value).map_err(|error| SceneError::setup(error.to_string()))?;
    }
    Ok(())
}

/// The scene at its scale.
fn shrunk(scene: &Scene) -> Result<Scene, SceneError> {
    let by = scene.shrink.max(1);
    let profile = scene.profile.shrunk(by).map_err(|error| SceneError::setup(error.to_string()))?;
    let workload = scene.workload.with_less_memory(by);
    let mut scene = Scene { profile, workload, ..scene.clone() };
    let tick = Knob::StatInterval;
    if by > 1 && scene.knobs.iter().all(|(knob, _)| *knob != tick) {
        scene.knobs.push((tick, tick.spec().default * u64::from(by)));
    }
    Ok(scene)
}

/// Has each phase begin and end in time.
fn schedule(drive: &Drive, scene: &Scene, snapshots: &Rc<RefCell<Vec<Outcome>>>, notes: Option<Notes>) {
    let in_order = notes.is_some();
    let notes = notes.unwrap_or_default();
    let mut at = scene.warm_up;
    let shared = Rc::new(scene.clone());
    for index in 0..=scene.phases.len() {
        let (played, snapshots) = (Rc::clone(&shared), Rc::clone(snapshots));
        let notes = Rc::clone(&notes);
        drive.at(at, "phase", move |stage| {
            if let Some(ended) = index.checked_sub(1) {
                let mut outcome = take(stage, &played, ended);
                if index < played.phases.len() {
                    outcome.run.counters.extend(figures::slab_counters(stage));
                }
                let noted = notes.take().into_iter();
                outcome.run.sequences = noted.map(|(span, sizes)| (span.to_owned(), sizes)).collect();
                if in_order {
                    outcome.run.sequences.extend(zonelists(stage));
                }
                snapshots.borrow_mut().push(outcome);
            }
            begin(stage, &played, index);
            // Reading counters and setting knobs may have drained.
            notes.borrow_mut().clear();
        });
        at.0 += scene.phases.get(index).map_or(0, |phase| phase.length.0);
    }
}

/// For each node, the nodes that its requests ask, in order.
fn zonelists(stage: &Stage) -> impl Iterator<Item = (String, Vec<u64>)> {
    let order = |node: u16| {
        let asked = stage.mm.pages().fallback_order(Node(node)).iter().map(|node| u64::from(node.0));
        (format!("zonelist.{node}"), asked.collect())
    };
    (0..stage.mm.topology().nodes.len() as u16).map(order)
}

fn note(notes: &mut BTreeMap<&'static str, Vec<u64>>, record: &SpanRecord) {
    let count = u64::from(record.work.count);
    let pages = match record.span {
        Span::Refill => count * u64::from(record.work.order.pages()),
        Span::Drain => count,
        _ => return,
    };
    let sizes = notes.entry(record.span.name()).or_default();
    if pages > 0 && sizes.len() < NOTED_MAX {
        sizes.push(pages);
    }
}

/// Begins the phase `index`; behind the last one, tasks are to end. They go on until then: CPU 0 may be late.
fn begin(stage: &Stage, scene: &Scene, index: usize) {
    if index == scene.phases.len() {
        stage.end.set(stage.machine().now());
    }
    for &(knob, value) in scene.phases.get(index).map_or(&[][..], |phase| &phase.set) {
        stage.machine().forget_knob(knob);
        stage.set_knob(knob, value).expect("knobs of phases were checked");
    }
    stage.machine().reset_measurements();
    stage.tally.forget();
}

/// What the phase `index` measured.
fn take(stage: &Stage, scene: &Scene, index: usize) -> Outcome {
    let phase = scene.phases[index].name.clone();
    let about = About {
        setup: scene.setup(),
        workload: scene.workload.workload.title(),
        variant: phase.clone(),
        knobs: &knobs_in(scene, index),
        changed: &[],
        refused: &[],
    };
    let (mut run, measured) = figures::measured(stage, &about);
    run.confidence = Confidence::Extrapolated;
    "nothing says yet what this profile was checked against".clone_into(&mut run.confidence_reason);
    run.latency.extend(by_group(scene, &measured));
    Outcome { phase, run, measured }
}

/// The knobs that are set in the phase `index`: what was set last holds.
fn knobs_in(scene: &Scene, index: usize) -> Vec<(Knob, u64)> {
    let later = scene.phases[..=index].iter().flat_map(|phase| &phase.set);
    let mut knobs: Vec<(Knob, u64)> = vec![];
    for &(knob, value) in scene.knobs.iter().chain(later) {
        knobs.retain(|(other, _)| *other != knob);
        knobs.push((knob, value));
    }
    knobs
}

/// Latencies of each group of tasks, under `group/span`, where the workload has more than one.
fn by_group(scene: &Scene, measured: &Measurements) -> Vec<(String, crate::measurements::Latency)> {
    let groups = scene.workload.kind.groups;
    let mut latencies = vec![];
    for (name, spans) in groups.iter().zip(&measured.spans).filter(|_| groups.len() > 1) {
        for span in mm::Span::ALL {
            let histogram = &spans[span as usize].latency;
            if histogram.count() > 0 {
                latencies.push((format!("{name}/{}", span.name()), figures::latency(histogram)));
            }
        }
    }
    latencies
}
