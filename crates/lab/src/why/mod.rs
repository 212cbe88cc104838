//! Why two policies, settings or cases of an experiment differ: which rule, part or knob makes how much of the difference
//! (docs/why.md).
//!
//! ```text
//!   two sides ─▶ levers ─▶ screen: which act at all ─▶ share: what each makes of the whole ─▶ pairs that interact
//! ```
//!
//! Every simulation is of a mixture: the first side with some levers moved to where the second has them. Figures are compared seed
//! by seed.

mod answer;
mod asked;
mod lever;
mod screen;
mod share;
mod taken;
#[cfg(test)]
mod tests;
mod trials;

pub use answer::{Answer, Question, explain};
pub use asked::Asked;
