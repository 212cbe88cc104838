//! Conformance: mm held against what stock Linux kernels said and did.
//!
//! A *capture* is a kernel's own account of its machine and its parameters: [`Capture`] reads it, [`params`] compares what
//! mm computes from the topology alone. A *page trace* is every page event of a run: mm is given its allocations and
//! frees and must refill and drain as the kernel did. A *slab trace* is every allocation and free of a cache's objects: mm
//! must take them from the same slabs by the same paths. A *scene* is
//! a program of a few operations with what a kernel counted at its marks: mm plays it and must count the same. [`conform_file`] tells them apart by content.

mod live;
mod outcome;
mod pages;
mod pairs;
pub mod params;
mod read;
mod scenes;
mod slabs;

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use self::read::sections::Sections;
use self::read::{slab_trace, trace_csv};

pub use live::{Live, conform_recording};
pub use outcome::{
    CachesCompared, Counted, CounterRow, Difference, Figure, FileKind, FileOutcome, Moves, PagesMoved,
    Shortage, Sides, StayedRow, Tally,
};
pub use pairs::{Both, Kept, PairRow, pair_rows, pairs_in, table};
pub use read::beside::Beside;
pub(crate) use read::capture::kernel_version;
pub use read::capture::{Capture, CaptureNode};
pub use read::sections::FormatError;
pub use read::slab_cache::SlabCacheInfo;
pub use read::trace_csv::{Event, EventKind, PageTrace, unpack};
pub use read::zoneinfo::{PagesetInfo, ZoneInfo};
pub use scenes::TraceRow;

/// Why a file could not be held against mm: one line that names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConformError {
    /// The file.
    pub file: String,
    /// What is wrong with it and where.
    pub what: String,
}

impl fmt::Display for ConformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.what)
    }
}

impl std::error::Error for ConformError {}

/// Holds mm against a capture, a page trace or a slab trace, whichever `path` is. Beside a trace `NAME.csv` or `NAME.csv.xz` there must
/// be its `NAME.txt`.
///
/// # Errors
/// If the file cannot be read, is neither, or is of a kernel without rules.
pub fn conform_file(path: &Path) -> Result<FileOutcome, ConformError> {
    let text = read(path)?;
    let compared = if trace_csv::is_trace(&text) {
        let beside = beside_path(path);
        let beside_text = read(&beside)?;
        conform_trace(&text, &beside_text)
    } else if scenes::is_scene(&text) {
        scenes::conform(&text)
    } else if is_beside_trace(&text) {
        Ok(FileOutcome::new(FileKind::BesideTrace))
    } else {
        Capture::parse(&text).and_then(|capture| params::compare(&capture))
    };
    let mut outcome = compared.map_err(|cause| error(path, cause.to_string()))?;
    outcome.file = path.display().to_string();
    Ok(outcome)
}

/// Plays a scene, and gives a row for each batch of reclaim, by kswapd or by the program, and for each mark, in order: what Linux tells by
/// `vmscan:mm_vmscan_lru_shrink_inactive` and `_active`, in base pages.
///
/// # Errors
/// If the file cannot be read, is no scene, or is of a kernel without rules.
pub fn trace_scene(path: &Path) -> Result<Vec<TraceRow>, ConformError> {
    let text = read(path)?;
    if !scenes::is_scene(&text) {
        return Err(error(
            path,
            "no scene; batches of reclaim and steps of compaction are told of scenes (conformance/scenes)"
                .into(),
        ));
    }
    scenes::trace(&text).map_err(|cause| error(path, cause.to_string()))
}

fn is_beside_trace(text: &str) -> bool {
    let sections = Sections::of(text);
    ["zoneinfo-before", "slab-before"].iter().any(|name| sections.get(name).is_some())
}

/// Plays the scene of `text`, which is what a stock kernel said of it (`conformance/scenes`), and compares what was counted.
///
/// # Errors
/// The line that cannot be read, or a kernel without rules.
pub fn conform_scene(text: &str) -> Result<FileOutcome, FormatError> {
    scenes::conform(text)
}

/// Holds mm against a page trace or a slab trace, given the text beside it.
///
/// # Errors
/// If either cannot be read, or the kernel is one without rules.
pub fn conform_trace(trace: &str, beside: &str) -> Result<FileOutcome, FormatError> {
    if slab_trace::is_slab_trace(trace) {
        return slabs::replay::conform(trace, beside);
    }
    let beside =
        Beside::parse(beside).map_err(|cause| FormatError::new(0, format!("the text beside it: {cause}")))?;
    pages::conform(&PageTrace::parse(trace)?, &beside)
}

fn error(path: &Path, what: String) -> ConformError {
    ConformError { file: path.display().to_string(), what }
}

fn read(path: &Path) -> Result<String, ConformError> {
    let bytes = fs::read(path).map_err(|cause| error(path, format!("cannot be read: {cause}")))?;
    unpack(bytes).map_err(|cause| error(path, cause.to_string()))
}

/// `NAME.txt` beside `NAME.csv.xz`.
fn beside_path(trace: &Path) -> PathBuf {
    let plain = if trace.extension().is_some_and(|kind| kind == "xz") {
        trace.with_extension("")
    } else {
        trace.into()
    };
    plain.with_extension("txt")
}
