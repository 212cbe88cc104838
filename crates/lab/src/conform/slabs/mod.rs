//! Slab caches: their sizes held against a capture, and their paths against a slab trace.

mod dice;
mod paths;
pub(super) mod replay;
pub(super) mod sizing;
mod start;
