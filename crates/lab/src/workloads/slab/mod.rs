//! Workloads of the slab allocator: system calls and messages, as far as the objects go that they allocate and free, and a
//! loop over caches alone. What each step was measured or read from stands in docs/slab-workloads.md.

mod bulk;
mod calls;
mod hackbench;
mod objects;
mod regions;
#[cfg(test)]
mod tests;

pub use bulk::SlabBulk;
pub use hackbench::{Hackbench, Ipc};
pub use regions::{Brk, Regions};
