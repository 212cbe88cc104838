//! Workloads, replay, conformance, measurements: what turns recordings and experiments into figures.

pub mod conform;
pub mod contention;
pub mod disk;
pub mod evidence;
pub mod experiment;
mod flusher;
mod kcompactd;
mod khugepaged;
pub mod measurements;
mod placement;
pub mod probe;
mod promotion;
pub mod reach;
pub mod replay;
mod results;
pub mod scene;
pub mod stage;
pub mod survey;
pub mod validate;
pub mod workload;
pub mod workloads;
