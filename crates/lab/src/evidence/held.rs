//! Which kernels mm was held against, gathered from captures and traces: `crates/lab/src/evidence/held.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mm::policy::Mechanism;
use serde::Deserialize;

use crate::conform::{ConformError, FileKind, FileOutcome, conform_file};

/// What was held, and how much of it was equal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The kernel, as a policy: `linux-6.18`.
    pub policy: String,
    /// Which mechanism's figures.
    #[serde(deserialize_with = "super::rows::mechanism")]
    pub mechanism: Mechanism,
    /// What of it.
    pub check: Check,
    /// Files that had such figures.
    pub files: u64,
    /// Figures.
    pub compared: u64,
    /// Those that were equal.
    pub equal: u64,
}

/// What a file tells of a mechanism.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// Sizes, marks and orders that the kernel computed for a machine.
    Captures,
    /// What it did, event by event.
    Traces,
}

impl Check {
    /// `captures` or `traces`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Captures => "captures",
            Self::Traces => "traces",
        }
    }
}

/// Holds mm against every capture and trace under `folder`, and says what of each kernel was held.
///
/// # Errors
/// A file that cannot be read or compared.
pub fn held_in(folder: &Path) -> Result<Vec<Held>, ConformError> {
    let mut sums: BTreeMap<(String, Mechanism, Check), Held> = BTreeMap::new();
    for file in files(folder).into_iter().chain(files(&folder.join("traces"))) {
        let outcome = conform_file(&file)?;
        add(&outcome, &mut sums);
    }
    Ok(sums.into_values().collect())
}

fn add(outcome: &FileOutcome, sums: &mut BTreeMap<(String, Mechanism, Check), Held>) {
    let check = match outcome.kind {
        FileKind::Capture => Check::Captures,
        FileKind::PageTrace | FileKind::SlabTrace => Check::Traces,
        FileKind::Scene | FileKind::BesideTrace => return,
    };
    for (&mechanism, tally) in &outcome.mechanisms {
        let of = sums.entry((outcome.policy.clone(), mechanism, check)).or_insert_with(|| Held {
            policy: outcome.policy.clone(),
            mechanism,
            check,
            files: 0,
            compared: 0,
            equal: 0,
        });
        of.files += 1;
        of.compared += tally.compared;
        of.equal += tally.equal;
    }
}

/// Captures and traces in `folder`, in the order of their names; texts beside traces go with them.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_held = |path: &PathBuf| {
        let ending = path.extension().unwrap_or_default();
        let is_trace = ending == "xz"
            && path.file_stem().is_some_and(|stem| Path::new(stem).extension() == Some("csv".as_ref()));
        is_trace || (ending == "txt" && !folder.ends_with("traces"))
    };
    let mut files: Vec<PathBuf> = entries.filter(is_held).collect();
    files.sort();
    files
}

/// The table as text.
pub fn held_toml(held: &[Held]) -> String {
    let mut out = String::from(
        "# Written by `make evidence` from conformance/. Change captures and traces, not this file: a test compares them.\n",
    );
    for of in held {
        let _ = write!(
            out,
            "\n[[held]]\npolicy = \"{}\"\nmechanism = \"{}\"\ncheck = \"{}\"\nfiles = {}\ncompared = {}\nequal = {}\n",
            of.policy,
            of.mechanism,
            of.check.name(),
            of.files,
            of.compared,
            of.equal
        );
    }
    out
}
