//! What the answers rest on: a table of what was checked, and the labels that follow from it.
//!
//! The table has three parts, each a file that a program wrote and that travels with this one. `held.toml` says which kernels'
//! parameters, traces and scenes mm was held against (`make evidence`, from conformance/). docs/results.toml (`make results`) says how far the rows of
//! the published experiments were off, by machine, policy and mechanism. `intervals.toml` (`make fit`) says how far times were off on
//! machines that had no part in a fit. `judge` derives a label from the first two and from nothing else; [`used`] says which mechanisms a
//! run used, [`label`] puts labels and intervals on a run.

mod apply;
mod changes;
mod held;
mod intervals;
mod judge;
mod rows;
#[cfg(test)]
mod tests;
mod used;

use std::sync::OnceLock;

use serde::Deserialize;

pub use apply::{Checked, Claim, label};
pub use changes::ChangeInterval;
pub use held::{Check, Held, held_but_scenes, held_in, held_toml, of_scene};
pub use intervals::{Kind, PERCENT, TimeKind, intervals};
pub use judge::Judgement;
pub use rows::{FigureKind, Rows, Times};
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
    /// Those of them that are times which nothing was chosen by, both sides.
    #[serde(default)]
    pub times: Vec<Times>,
    /// What left-out rows say of each kind of times.
    #[serde(default)]
    pub kinds: Vec<Kind>,
}

/// What of docs/results.toml labels need.
#[derive(Deserialize)]
struct Published {
    #[serde(default)]
    rows: Vec<Rows>,
    #[serde(default)]
    times: Vec<Times>,
}

const HELD: &str = include_str!("held.toml");
const INTERVALS: &str = include_str!("intervals.toml");
const RESULTS: &str = include_str!("../../../../docs/results.toml");

impl Table {
    /// The table that comes with the program.
    pub fn bundled() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| {
            let read = |text| Self::parse(text).expect("a test reads what comes with the program");
            let published: Published =
                toml::from_str(RESULTS).expect("a test reads what comes with the program");
            Self { rows: published.rows, times: published.times, kinds: read(INTERVALS).kinds, ..read(HELD) }
        })
    }

    /// The interval of changes that the bundled table gives; it is asked for often.
    pub fn bundled_changes() -> Option<&'static ChangeInterval> {
        static CHANGES: OnceLock<Option<ChangeInterval>> = OnceLock::new();
        CHANGES.get_or_init(|| ChangeInterval::of(&Self::bundled().times)).as_ref()
    }

    /// Reads a table: `held.toml`, or one with rows, too.
    ///
    /// # Errors
    /// Text that is not such a table.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}
