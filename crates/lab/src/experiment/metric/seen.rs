//! What metrics are read from.

use sim::Measurements;

use crate::measurements::Run;

/// What a run left behind.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its measurements.
    pub run: &'a Run,
    /// What the simulator measured besides.
    pub measured: &'a Measurements,
}
