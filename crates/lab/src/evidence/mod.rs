//! What the answers rest on: a table of what was checked, and the labels that follow from it.
//!
//! The table has two halves, each a file that a program wrote and that travels with this one. `held.toml` says which kernels'
//! parameters and traces mm was held against (`make evidence`, from conformance/). docs/results.toml (`make results`) says how far the rows of
//! the published experiments were off, by machine, policy and mechanism. `judge` derives a
//! label from both and from nothing else; [`used`] says which mechanisms a run used, [`label`] puts labels on a run.

mod apply;
mod held;
mod judge;
mod rows;
#[cfg(test)]
mod tests;
mod used;

use std::sync::OnceLock;

use serde::Deserialize;

pub use apply::{Checked, Claim, label};
pub use held::{Check, Held, held_in, held_toml};
pub use judge::Judgement;
pub use rows::{FigureKind, Rows};
pub(crate) use used::of_counter;
pub use used::used;

/// Everything that was checked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Kernels that mm was held against.
    #[serde(default)]
    pub held: Vec<Held>,
    /// Published rows that were simulated.
    #[serde(default)]
    pub rows: Vec<Rows>,
}

/// What of docs/results.toml labels need.
#[derive(Deserialize)]
struct Published {
    #[serde(default)]
    rows: Vec<Rows>,
}

const HELD: &str = include_str!("held.toml");
const RESULTS: &str = include_str!("../../../../docs/results.toml");

impl Table {
    /// The table that comes with the program.
    pub fn bundled() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| {
            let held = Self::parse(HELD).expect("a test reads what comes with the program");
            let published: Published =
                toml::from_str(RESULTS).expect("a test reads what comes with the program");
            Self { rows: published.rows, ..held }
        })
    }

    /// Reads a table: `held.toml`, or one with rows, too.
    ///
    /// # Errors
    /// Text that is not such a table.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}
