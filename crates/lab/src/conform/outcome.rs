//! What a comparison with a stock kernel came to: how many figures, how many equal, and each that is not.

use std::collections::BTreeMap;
use std::fmt;

use mm::policy::Mechanism;
use schemars::JsonSchema;
use serde::Serialize;

/// The outcome of one file.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct FileOutcome {
    /// The file, as it was named.
    pub file: String,
    /// What it holds.
    pub kind: FileKind,
    /// The policy that it was held against.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Figures compared.
    pub compared: u64,
    /// Those that were equal.
    pub equal: u64,
    /// Those that were not, in the order of the file.
    pub differences: Vec<Difference>,
    /// Pages that moved, for a page trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<PagesMoved>,
    /// Slab caches, for a capture that names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<CachesCompared>,
    /// What was counted while memory was short, for a scene.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRow>,
    /// Which pages stayed, for a scene.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stayed: Vec<StayedRow>,
    /// What the shortage of memory cost, for a scene.
    #[serde(skip)]
    pub short: Shortage,
    /// The figures by mechanism.
    #[serde(skip)]
    pub mechanisms: BTreeMap<Mechanism, Tally>,
    /// Whose the counters of a scene are in which memory was short: how its kernel kept pages.
    #[serde(skip)]
    pub kept_by: Option<Mechanism>,
    /// Whose figures come next; `None` for those that test no mechanism.
    #[serde(skip)]
    pub mechanism: Option<Mechanism>,
    /// What a reader should know besides, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl FileOutcome {
    pub(in crate::conform) fn new(kind: FileKind) -> Self {
        Self {
            file: String::new(),
            kind,
            policy: String::new(),
            compared: 0,
            equal: 0,
            differences: vec![],
            pages: None,
            caches: None,
            counters: vec![],
            stayed: vec![],
            short: Shortage::default(),
            mechanisms: BTreeMap::new(),
            kept_by: None,
            mechanism: match kind {
                FileKind::PageTrace => Some(Mechanism::PageLists),
                FileKind::SlabTrace => Some(Mechanism::Slabs),
                FileKind::Capture | FileKind::Scene | FileKind::BesideTrace => None,
            },
            notes: vec![],
        }
    }

    /// Counts a figure that was equal.
    pub(in crate::conform) fn agree(&mut self) {
        self.compared += 1;
        self.equal += 1;
        if let Some(tally) = self.tally() {
            tally.compared += 1;
            tally.equal += 1;
        }
    }

    /// Counts a figure that was not.
    pub(in crate::conform) fn differ(
        &mut self,
        what: impl Into<String>,
        kernel: impl Into<Figure>,
        freehold: impl Into<Figure>,
    ) {
        self.compared += 1;
        if let Some(tally) = self.tally() {
            tally.compared += 1;
        }
        self.differences.push(Difference {
            what: what.into(),
            kernel: kernel.into(),
            freehold: freehold.into(),
        });
    }

    fn tally(&mut self) -> Option<&mut Tally> {
        Some(self.mechanisms.entry(self.mechanism?).or_default())
    }

    /// Compares two figures; `what` is only asked for if they differ.
    pub(in crate::conform) fn compare<F: Into<Figure> + PartialEq>(
        &mut self,
        what: impl FnOnce() -> String,
        kernel: F,
        freehold: F,
    ) {
        if kernel == freehold { self.agree() } else { self.differ(what(), kernel, freehold) }
    }
}

/// A counter of a scene in which memory was short: since the first mark, at the last one.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CounterRow {
    /// Its name in vmstat, or the group and its name there.
    pub counter: String,
    /// What the kernel counted.
    pub kernel: u64,
    /// What mm did.
    pub freehold: u64,
    /// By how much that is off, in percent of the kernel's.
    pub percent: f64,
    /// The same at the mark where it is worst, of those at which the kernel had counted 1,000.
    pub worst_percent: f64,
    /// That mark; empty if there is none.
    pub worst_mark: String,
}

/// Which pages of a region or file stayed, in points of an eighth of it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct StayedRow {
    /// Its name, and what of it is counted.
    pub name: String,
    /// On average over eighths and marks.
    pub mean_points: f64,
    /// At most.
    pub worst_points: f64,
    /// The mark of that.
    pub worst_mark: String,
}

/// A count of a kernel, and mm's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// The kernel's.
    pub kernel: u64,
    /// mm's.
    pub freehold: u64,
}

/// What a shortage of memory cost a scene, from its first mark to its last: pages, all counted, be they ever so few.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shortage {
    /// Pages that were evicted and came back, of private memory and of files.
    pub refaults: Counted,
    /// Pages read from swap.
    pub swapped_in: Counted,
    /// Pages that reclaim looked at.
    pub scanned: Counted,
}

/// Figures of one mechanism.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Figures compared.
    pub compared: u64,
    /// Those that were equal.
    pub equal: u64,
}

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A kernel's parameters on a machine.
    Capture,
    /// Every page event of a run.
    PageTrace,
    /// Every allocation and free of a slab cache's objects in a run.
    SlabTrace,
    /// What a scene's program and its kernel counted, mark by mark.
    Scene,
    /// The text beside a trace; it is read with the trace.
    BesideTrace,
}

/// How many caches were compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct CachesCompared {
    /// All of them.
    pub compared: u64,
    /// Those of which every figure was equal.
    pub equal: u64,
}

/// A figure on which kernel and mm disagree.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Difference {
    /// Which figure, and where in the file.
    pub what: String,
    /// What the kernel has.
    pub kernel: Figure,
    /// What mm has.
    pub freehold: Figure,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: kernel {}, freehold {}", self.what, self.kernel, self.freehold)
    }
}

/// A figure: a number, or a short text such as an order of nodes.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ConformedFigure")]
pub enum Figure {
    /// A number, mostly of pages.
    Number(u64),
    /// A text.
    Text(String),
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl From<u64> for Figure {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Figure {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<String> for Figure {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Figure {
    fn from(text: &str) -> Self {
        Self::Text(text.to_string())
    }
}

/// Times that pages moved between pagesets and buddy lists, and how many base pages in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Moves {
    /// How often.
    pub count: u64,
    /// Base pages.
    pub pages: u64,
}

impl Moves {
    pub(in crate::conform) fn add(&mut self, pages: u64) {
        self.count += 1;
        self.pages += pages;
    }
}

/// The same thing, done by a kernel and by mm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Sides {
    /// By the kernel.
    pub kernel: Moves,
    /// By mm.
    pub freehold: Moves,
}

/// What moved in a page trace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct PagesMoved {
    /// Refills of pagesets.
    pub refills: Sides,
    /// Drains by frees and by the vmstat tick of the zone's own CPUs.
    pub drains: Sides,
    /// Drains that kswapd's frees caused; these are not compared.
    pub drains_by_kswapd: Sides,
    /// Pagesets emptied by `drain_all_pages` or its like; mm is told of them, for their cause lies outside of it.
    pub drains_of_all: Moves,
    /// Batches taken from idle pagesets of other nodes' zones by the vmstat tick; mm is told of them.
    pub drains_of_idle: Moves,
}
