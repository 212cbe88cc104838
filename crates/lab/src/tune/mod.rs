//! Which setting is the best for a workload on a machine: found by a race, tried where the search did not look (docs/tune.md).
//!
//! ```text
//!   space ─▶ screen: which knobs act ─▶ race: short forms, few seeds ─▶ whole, more seeds ─▶ finalists
//!         └▶ curve, of one numeric knob                                                          │
//!     robustness: unseen seeds, machine variants, other recordings ◀─ prune: what each knob does ◀┘
//! ```
//!
//! Every comparison is seed by seed with the current setting. A trial is made once; a [`Journal`] keeps what was made.

mod aim;
mod answer;
mod bench;
mod curve;
mod draw;
mod ground;
mod journal;
mod judge;
mod ladder;
mod maker;
mod outside;
mod prune;
mod question;
mod race;
mod recorded;
mod robust;
mod screen;
mod space;
mod terms;
#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use ground::Ground;
pub use journal::Journal;
pub use outside::{Asked, Figures, Told};
pub use question::{Method, Prepared, Question};
pub use recorded::Recorded;
pub use space::KnobChoice;
pub use terms::{Terms, Workload};
