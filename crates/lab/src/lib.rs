//! Workloads, replay, conformance: what turns recordings and experiments into measurements.

pub mod apply;
pub mod conform;
mod daemons;
pub mod drive;
pub mod evidence;
pub mod experiment;
pub mod findings;
pub mod program;
mod promotion;
pub mod reach;
pub mod recorded;
pub mod replay;
pub mod scene;
mod script;
pub mod stage;
pub mod subject;
pub mod this_machine;
pub mod tune;
pub mod validate;
pub mod why;
pub mod workloads;

pub use measurements;
