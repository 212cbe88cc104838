//! Tiers of memory: how pages that are in use on slow nodes (CXL, persistent memory) are found and brought to fast ones.
//! The other direction, demotion, is reclaim's (`reclaim/demote.rs`).
//!
//! ```text
//!            looks at pages, wants some moved                     takes from the list, moves
//!   Scanner ──────────────────────────────▶ Wanted ◀──────────────────────────────────── Mover
//!      │ which pages of a range                                                            │
//!      ▼ were accessed                                                                     ▼
//!   Ground: address spaces, of a simulated machine or of real processes             Ground::promote
//! ```
//!
//! Controllers see the world through [`Ground`] alone (NUMA balancing through the part of it that is [`HintGround`]) and know neither [`crate::Mm`] nor the simulator: the same code
//! drives real processes. `kmmscand` is Raghavendra K T's daemon, its revisions are data (`rules::revision`); `slot` what
//! it keeps of an address space, with the four cases by which period and size of scans change; `hot` its tests of what is
//! hot; `balancing` the kernel's own NUMA balancing, modes 1 and 2; `regions` and `seeker` are ours. Facts:
//! docs/rules/numa-balancing-and-tiers.md.

mod balancing;
mod feedback;
mod ground;
mod history;
mod hot;
mod kmmscand;
mod list;
mod mover;
mod regions;
mod seeker;
mod slot;
#[cfg(test)]
mod tests;

pub use crate::rules::revision::{
    HotRule, Revision, Span3, TargetRule, Threads, V0, V0_NOTHROTTLE, V1, V2, V3,
};
pub use balancing::{Balancing, BalancingSettings, EARLY_PASSES, HintFault, HintScan, Mode, Moved, Users};
pub use feedback::Feedback;
pub use ground::{Area, Ground, HintGround, PageRange, Seen, Stayed};
pub use history::{AreaHistory, Looker};
pub use kmmscand::Kmmscand;
pub use list::{Wanted, WantedPage};
pub use mover::{Flush, Mover, Pass};
pub use seeker::{Budget, Seeker};
pub use slot::Slot;
