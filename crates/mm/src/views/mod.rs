//! What others see of all rooms: /proc's files, counters under vmstat's names, the report when memory is out, and the walk
//! that checks every invariant. Views read; they change nothing.

mod blocks;
pub(crate) mod check;
pub(crate) mod counters;
pub mod oom;
pub mod procfs;
