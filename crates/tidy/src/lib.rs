//! The rules of the house, as a test: what CONTRIBUTING.md asks for and a program can see.
//!
//! A rule is a function from the tree to its findings; its name is the one that a reviewer cites. `tests/house.rs` holds
//! this repository against all of them.

pub mod rules;
mod source;
mod tree;

use std::fmt;

pub use source::{Line, lines};
pub use tree::{File, Tree};

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name in CONTRIBUTING.md.
    pub rule: &'static str,
    /// The file, from the repository's root.
    pub path: String,
    /// The line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {} [{}]", self.path, self.what, self.rule),
            line => write!(f, "{}:{line}: {} [{}]", self.path, self.what, self.rule),
        }
    }
}
