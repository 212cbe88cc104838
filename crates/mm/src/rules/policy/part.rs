//! A part of a policy: what can stand on top of a kernel's rules. [`super::parts`] has them all.

use super::Rules;

/// A part of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name, as it stands after a `+`.
    pub name: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Puts it in force.
    pub(super) set: fn(&mut Rules),
    /// Whether `freehold` has it.
    pub(super) pays: bool,
}

impl Part {
    /// Whether `freehold` has it: whether it pays.
    pub const fn is_in_freehold(&self) -> bool {
        self.pays
    }
}
