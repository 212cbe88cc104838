//! What a task does with its memory between operations, as a statistical model: how many accesses, spread over how much
//! memory, which lies on which nodes. Single accesses are not simulated, so a call costs the same for any
//! number of them. docs/model.md has the formulas.

use mm::Node;

/// How the addresses of accesses follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Anywhere in the working set, each address found where the access before it led, as in linked lists: nothing
    /// overlaps.
    Dependent,
    /// Anywhere in the working set, no address depending on another, as in hash tables: as many misses are under way as
    /// the profile's `memory.random_overlap_ratio` says.
    Random,
    /// Through the working set from end to end, again and again. A line that is written is read first, and written back.
    Sequential,
    /// The same, with stores that go past the caches, as compilers make them for STREAM.
    Streaming,
}

impl Pattern {
    /// Whether lines come in the order of their addresses, so that a CPU's bandwidth and not a latency is what limits.
    pub(crate) const fn is_sequential(self) -> bool {
        matches!(self, Self::Sequential | Self::Streaming)
    }
}

/// Accesses of a task for a while. Each is to one cache line, which is 64 bytes; what the task computes on what it finds
/// there is its own ([`crate::SimMachine::compute`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessMix<'a> {
    /// Lines read.
    pub reads: u64,
    /// Lines written.
    pub writes: u64,
    /// In which order.
    pub pattern: Pattern,
    /// Over how many bytes they spread. Caches hold as much of them as fits.
    pub working_set: u64,
    /// Where these bytes lie: nodes, and how much of them is on each, in any unit. Nodes that the machine does not have
    /// count for nothing; if there is no other, all is on the node that the task runs on.
    pub nodes: &'a [(Node, u64)],
}
