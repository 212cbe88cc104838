//! What is measured on this machine, not simulated: policies on its real threads, and the figures of its profile.

pub mod contention;
pub mod probe;
