//! Every workload with the smallest parameters that it accepts, each of these at 0 and at 1, and some with large ones, for
//! a moment: it runs, or is refused in one line. A task that stood still would end the run with
//! [`sim::SimError::Standstill`], which is neither.

use mm::{Knob, Nanos};
use serde::Deserialize;
use sim::Profile;

use super::{KINDS, WorkloadKind, WorkloadSpec};
use crate::drive::DriveError;
use crate::scene::{Scene, SceneError, perform};

/// WorkloadKind, and parameters of it, for each that `chosen` gives.
fn tried(
    chosen: fn(&WorkloadKind) -> &'static [&'static str],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let kinds = KINDS.iter().copied().flatten();
    kinds.flat_map(move |kind| chosen(kind).iter().map(|parameters| (kind.name, *parameters)))
}

/// What became of a workload.
#[derive(PartialEq, Eq, Debug)]
enum End {
    /// It ran, or came to an end of its own.
    Ran,
    /// It was refused.
    Refused,
}

/// A machine of a few nodes with 512 MiB each.
fn machine() -> Profile {
    let text = Profile::load("westmere-ex").unwrap().to_toml();
    Profile::parse("small", &text.replace("memory_mib = 16384", "memory_mib = 512")).unwrap()
}

/// A millisecond of it.
fn end_of(kind: &str, parameters: &str) -> End {
    let text = format!("kind = '{kind}'\n{parameters}");
    let refused = |why: &str| {
        assert!(!why.is_empty() && !why.contains('\n'), "{text}\n{why}");
        End::Refused
    };
    let table: toml::Table = text.parse().unwrap();
    let workload = match WorkloadSpec::deserialize(table) {
        Ok(workload) => workload,
        Err(error) => return refused(error.message()),
    };
    let scene = Scene {
        workload,
        knobs: vec![(Knob::OvercommitMemory, 1)],
        ..Scene::of(machine(), "linux-6.18", "kind = 'alloc-loop'\ntasks = 1\nblocks = 1", Nanos(1_000_000))
    };
    match perform(&scene) {
        Ok(_) | Err(SceneError::Early { .. }) => End::Ran,
        Err(SceneError::Drive(DriveError::Setup(why))) => refused(&why),
        Err(error) => panic!("{text}\n{error}"),
    }
}

/// The parameters with one that is a number at `value`, for each of them.
fn with_each_at(parameters: &str, value: i64) -> Vec<String> {
    let table: toml::Table = parameters.parse().unwrap();
    let numbers = table.iter().filter(|(_, at)| at.is_integer() && at.as_integer() != Some(value));
    let changed = |name: &str| {
        let mut table = table.clone();
        table.insert(name.to_owned(), toml::Value::Integer(value));
        table.to_string()
    };
    numbers.map(|(name, _)| changed(name)).collect()
}

#[test]
fn all_run_at_their_smallest() {
    for (kind, parameters) in tried(|kind| kind.smallest) {
        assert_eq!(end_of(kind, parameters), End::Ran, "{kind}\n{parameters}");
    }
}

#[test]
fn each_parameter_at_0_and_at_1_runs_or_is_refused() {
    let mut ends = vec![];
    for (kind, parameters) in tried(|kind| kind.smallest) {
        for value in [0, 1] {
            ends.extend(with_each_at(parameters, value).iter().map(|changed| end_of(kind, changed)));
        }
    }
    assert!(ends.contains(&End::Ran) && ends.contains(&End::Refused));
}

#[test]
fn all_run_at_their_largest() {
    for (kind, parameters) in tried(|kind| kind.largest) {
        assert_eq!(end_of(kind, parameters), End::Ran, "{kind}\n{parameters}");
    }
}

#[test]
fn every_kind_is_tried() {
    for kind in KINDS.iter().copied().flatten() {
        assert!(!kind.smallest.is_empty(), "{}", kind.name);
    }
}
