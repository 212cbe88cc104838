//! The slab allocator: caches of objects of one size, which take their pages from the page allocator.
//!
//! `spec` says what a cache is asked to be, `sizing` what follows from that, the policy and the machine: orders, counts
//! and limits; `kmalloc` the caches by size, `merge` which caches are one, `known` what some caches ask for. All of these are
//! pure rules (facts/ALGORITHMS.md 3.1 to 3.6), which conformance holds against what kernels print.

pub mod kmalloc;
pub mod known;
pub mod merge;
mod sizing;
mod spec;

pub use sizing::{CacheSizing, SlabSystem};
pub use spec::{CacheFlags, CacheSpec, SpecError};
