//! What a tunable has where its line in the table says nothing else.

use super::need::Compares;
use super::need::Need::Spaces;
use super::words::{UNLIMITED, UP_TO_MAX};
use super::{Kernels, Knob, KnobSpec, Leaves, StandsFor};
use crate::rules::policy::DEFAULT_POLICY;

/// What a knob has where its line says nothing else.
pub(super) const MAINLINE: KnobSpec = KnobSpec {
    knob: Knob::PcpBatchScaleMax,
    name: "",
    min: 0,
    max: 0,
    gap: None,
    searched: None,
    default: 0,
    distributed: None,
    computed: None,
    unit: "",
    meaning: "",
    kernels: Some(Kernels::ALL),
    limited: &[],
    stands_for: StandsFor::Nothing(""),
    words: &[],
    needs: &[],
    compares: Compares::Nothing,
    tried_under: DEFAULT_POLICY,
    leaves: Leaves::Nothing,
};

/// The same for one that no mainline kernel has.
pub(super) const PATCHED: KnobSpec = KnobSpec { kernels: None, ..MAINLINE };

const CHARGED: Compares = Compares::Memory("what is charged to the cgroup");

/// A file of the program's cgroup.
pub(super) const CGROUP: KnobSpec = KnobSpec {
    max: UNLIMITED,
    unit: "bytes",
    searched: Some((16 << 20, 64 << 30)),
    words: UP_TO_MAX,
    // Version 2 was made official by 4.5; from memory.
    kernels: Some(Kernels::since(4, 5)),
    needs: &[Spaces],
    compares: CHARGED,
    ..MAINLINE
};
