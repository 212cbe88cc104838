//! Which kernels mm was held against, gathered from captures, traces and scenes: `crates/lab/src/evidence/held.toml`.
//!
//! Of captures and traces the table has sums, for every figure is equal or not. Of scenes it has each by itself: where memory was short, a
//! figure is near or far, and a test that plays one scene can hold it against its own lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mm::policy::Mechanism;
use serde::Deserialize;

use crate::conform::{ConformError, FileKind, FileOutcome, conform_file};

/// What was held, and how much of it was equal.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The kernel, as a policy: `linux-6.18`.
    pub policy: String,
    /// Which mechanism's figures.
    #[serde(deserialize_with = "super::rows::mechanism")]
    pub mechanism: Mechanism,
    /// What of it.
    pub check: Check,
    /// The scene; empty of captures and traces.
    #[serde(default)]
    pub scene: String,
    /// Files that had such figures.
    pub files: u64,
    /// Figures.
    pub compared: u64,
    /// Those that were equal.
    pub equal: u64,
    /// Errors of a scene's counters where memory was short and the kernel counted over 1,000: parts of its count, in order; each figure once,
    /// whatever names it has.
    #[serde(default)]
    pub errors: Vec<f64>,
    /// Of a scene's regions and files, in how much of an eighth those pages differ that stayed, on average: a part, in order.
    #[serde(default)]
    pub stayed: Vec<f64>,
}

/// What a file tells of a mechanism.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// Sizes, marks and orders that the kernel computed for a machine.
    Captures,
    /// What it did, event by event.
    Traces,
    /// What it counted of a small program.
    Scenes,
}

impl Check {
    /// `captures`, `traces` or `scenes`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Captures => "captures",
            Self::Traces => "traces",
            Self::Scenes => "scenes",
        }
    }
}

/// What a constant of the player was chosen by (`conform::scenes`): evidence of nothing.
const FITTED: &[(&str, &[&str])] = &[
    // When statistics of groups are first brought up to date.
    ("exec-map-classic", &["workingset_activate_file", "workingset_restore_file"]),
    ("mix-max-classic", &["workingset_activate_file", "workingset_restore_file"]),
];

/// The scenes by which a child's own faults were chosen: what its process does beside its lines.
const FITTED_FAULTS: [&str; 2] = ["fork-cow-always", "fork-cow-never"];

/// Holds mm against every capture, trace and scene under `folder`, and says what of each kernel was held.
///
/// # Errors
/// A file that cannot be read or compared.
pub fn held_in(folder: &Path) -> Result<Vec<Held>, ConformError> {
    let mut held = held_but_scenes(folder)?;
    for file in files(&folder.join("scenes")) {
        held.extend(of_scene(&conform_file(&file)?));
    }
    Ok(held)
}

/// The same without scenes, which take longer.
///
/// # Errors
/// A file that cannot be read or compared.
pub fn held_but_scenes(folder: &Path) -> Result<Vec<Held>, ConformError> {
    let mut sums: BTreeMap<(String, Mechanism, Check), Held> = BTreeMap::new();
    for file in files(folder).into_iter().chain(files(&folder.join("traces"))) {
        add(&conform_file(&file)?, &mut sums);
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
        let key = (outcome.policy.clone(), mechanism, check);
        let of = sums.entry(key).or_insert_with(|| Held::nothing(outcome, mechanism, check));
        of.files += 1;
        of.compared += tally.compared;
        of.equal += tally.equal;
    }
}

/// What a scene tells, by mechanism.
pub fn of_scene(outcome: &FileOutcome) -> Vec<Held> {
    let scene = scene_of(&outcome.file);
    let mut all: BTreeMap<Mechanism, Held> = BTreeMap::new();
    let of = |mechanism| Held {
        scene: scene.clone(),
        files: 1,
        ..Held::nothing(outcome, mechanism, Check::Scenes)
    };
    for (&mechanism, tally) in &outcome.mechanisms {
        if mechanism == Mechanism::AddressSpaces && FITTED_FAULTS.contains(&scene.as_str()) {
            continue;
        }
        let held = all.entry(mechanism).or_insert_with(|| of(mechanism));
        (held.compared, held.equal) = (tally.compared, tally.equal);
    }
    let short = outcome.kept_by.unwrap_or(Mechanism::Reclaim);
    let fitted = FITTED.iter().filter(|(of, _)| *of == scene).flat_map(|(_, counters)| *counters);
    let fitted: Vec<&str> = fitted.copied().collect();
    let mut seen = BTreeSet::new();
    for row in &outcome.counters {
        // A group's counters come after its name.
        let counter = row.counter.rsplit(": ").next().unwrap_or(&row.counter);
        // Counted from the first kill on, not from 1,000: that is right or wrong.
        if fitted.contains(&counter) || counter.ends_with("oom_kill") {
            continue;
        }
        // The same counts on both sides are one figure under two names: a group's that is all of the machine's, kswapd's that are all of files.
        if !seen.insert((row.kernel, row.freehold)) {
            continue;
        }
        let mechanism = if counter.starts_with("numa_") { Mechanism::Promotion } else { short };
        let held = all.entry(mechanism).or_insert_with(|| of(mechanism));
        held.errors.push(thousandth(row.percent.abs() / 100.0));
    }
    if !outcome.stayed.is_empty() {
        let held = all.entry(short).or_insert_with(|| of(short));
        held.stayed.extend(outcome.stayed.iter().map(|row| thousandth(row.mean_points / 100.0)));
    }
    for held in all.values_mut() {
        held.errors.sort_by(f64::total_cmp);
        held.stayed.sort_by(f64::total_cmp);
    }
    all.into_values().collect()
}

/// As it stands in the table.
fn thousandth(part: f64) -> f64 {
    (part * 1000.0).round() / 1000.0
}

/// `conformance/scenes/oom.txt.xz`: `oom`.
fn scene_of(file: &str) -> String {
    let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_default().trim_end_matches(".xz").trim_end_matches(".txt").to_owned()
}

impl Held {
    fn nothing(outcome: &FileOutcome, mechanism: Mechanism, check: Check) -> Self {
        Self {
            policy: outcome.policy.clone(),
            mechanism,
            check,
            scene: String::new(),
            files: 0,
            compared: 0,
            equal: 0,
            errors: vec![],
            stayed: vec![],
        }
    }
}

/// Captures, traces or scenes in `folder`, in the order of their names; texts beside traces go with them.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_held = |path: &PathBuf| {
        let ending = path.extension().unwrap_or_default();
        let packed = ["csv", "txt"].into_iter().find(|inner| {
            let stem = path.file_stem().map(Path::new);
            ending == "xz" && stem.and_then(Path::extension) == Some(inner.as_ref())
        });
        packed.is_some() || (ending == "txt" && !folder.ends_with("traces"))
    };
    let mut files: Vec<PathBuf> = entries.filter(is_held).collect();
    files.sort();
    files
}

/// The table as text.
pub fn held_toml(held: &[Held]) -> String {
    let mut out = String::from(
        "# Written by `make evidence` from conformance/. Change captures, traces and scenes, not this file: tests compare them.\n",
    );
    for of in held {
        let Held { policy, mechanism, check, scene, files, compared, equal, errors, stayed } = of;
        let _ = write!(
            out,
            "\n[[held]]\npolicy = \"{policy}\"\nmechanism = \"{mechanism}\"\ncheck = \"{}\"\n",
            check.name()
        );
        if !scene.is_empty() {
            let _ = writeln!(out, "scene = \"{scene}\"");
        }
        let _ = writeln!(out, "files = {files}\ncompared = {compared}\nequal = {equal}");
        for (name, parts) in [("errors", errors), ("stayed", stayed)] {
            if !parts.is_empty() {
                let _ = writeln!(out, "{name} = {parts:?}");
            }
        }
    }
    out
}
