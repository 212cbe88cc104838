//! Promotion at work: what the controllers of [`mm::tier`] see of programs whose accesses follow a statistical model, on a
//! simulated machine. The memory is the memory manager's own: pages are mapped, moved and demoted by [`mm::Mm`]; modelled is
//! only which of them a program touches, and when.
//!
//! ```text
//!   Program: regions in segments of even use ──(threads make accesses)──▶ a count of accesses for each segment
//!                                                                            │ accessed since the last look?
//!   mm::tier: Kmmscand, Seeker, Balancing ──(Ground)──▶ World ───────────────┘ by chance, from that count
//!                                                         └──▶ Mm::move_page
//! ```
//!
//! On a machine at a 32nd of its memory (`shrink`) a page of the model stands for 32 that are all alike (its *grain*): controllers
//! see all 32, and looking at it, moving it and faulting on it cost 32 times as much. docs/promotion.md has the model.

mod balancer;
mod chance;
mod ground;
mod hints;
mod program;
mod rounds;
mod segment;
mod world;

pub(crate) use balancer::Balancer;
pub(crate) use program::{Program, ProgramSpec};
pub(crate) use segment::RegionSpec;
pub(crate) use world::World;
