//! How often a program's pages are accessed: a few numbers for each mapping, from the accessed bits of a running program.
//!
//! The kernel offers two files for this. Writing to `/proc/PID/clear_refs` clears the accessed bits of a process;
//! `/proc/PID/smaps` says of each mapping how many pages have theirs set again. A round clears once, then looks
//! after each of [`WINDOWS`]. Rounds follow each other while the program runs; their medians are kept.
//! `bits` has the two files, `smaps` reads the second, `round` is one round on whatever is [`Watched`], `regions` finds the mappings of one round
//! again in the next ones, `document` is the result, `process` watches a running program. docs/heat.md says what the figures
//! are good for and what they are not.

pub(crate) mod bits;
mod date;
mod document;
mod process;
mod regions;
mod round;
mod smaps;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{fmt, io};

pub use document::Heat;
pub use process::{WatchProgress, watch};
pub use regions::{Region, regions, total};
pub use round::{Look, LooksOfRound, RoundEnd, Watched, round};
pub use smaps::{Mapping, parse};

/// How long after clearing accessed bits are looked at, shortest first.
pub const WINDOWS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(5)];

/// A mapping with less than this resident, in KiB, is counted with the rest.
pub const SMALL_KIB: u64 = 256;

/// Whose pages to look at, and for how long.
#[derive(Clone, Debug)]
pub struct HeatOptions {
    /// Whose.
    pub target: HeatTarget,
    /// What to call the result; the command if nothing is said.
    pub title: Option<String>,
    /// From the start of a round to the start of the next; rounds that are longer follow at once.
    pub interval: Duration,
    /// How long to wait before the first round: a program that loads its data is another one.
    pub after: Duration,
    /// How long to go on, from the start of the command on; until it ends if nothing is said.
    pub length: Option<Duration>,
    /// Rounds, at most.
    pub rounds: Option<u32>,
    /// Ends it after what was seen until then; see [`crate::stop_on_signals`].
    pub stop: Arc<AtomicBool>,
}

/// Whom to look at. Of a process and its descendants, the one with most memory resident at the start of a round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeatTarget {
    /// A command, started for this. It gets no transparent huge pages, for their accessed bits are one in 512.
    Command(Vec<OsString>),
    /// A process that runs, as it is.
    Process(u32),
}

/// Why nothing can be said of a program's pages. Each is one line.
#[derive(Debug)]
pub enum HeatError {
    /// There is no such process.
    NoProcess(u32),
    /// The command could not be started.
    Command {
        /// Its name.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The process is somebody else's.
    Permission {
        /// The file that we may not have.
        file: String,
    },
    /// The kernel was built without these files.
    Missing {
        /// The file.
        file: String,
    },
    /// The program ended, or had to, before a single round was over.
    Nothing {
        /// How long it was looked at.
        seconds: f64,
        /// The command's exit status, or 128 + the signal that ended it, if it has ended.
        exit_status: Option<i32>,
    },
    /// A system call failed.
    System {
        /// Which, and what for.
        what: String,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for HeatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Self::Command { program, error } => write!(f, "{program} cannot be started: {error}"),
            Self::Permission { file } => write!(
                f,
                "{file} may not be used: the process is another user's; run as that user or as root \
                 (CAP_SYS_PTRACE and CAP_DAC_OVERRIDE)"
            ),
            Self::Missing { file } => {
                write!(f, "there is no {file}: this kernel was built without CONFIG_PROC_PAGE_MONITOR")
            }
            Self::Nothing { seconds, exit_status } => {
                let round = WINDOWS[WINDOWS.len() - 1].as_secs_f64();
                match exit_status {
                    Some(status) => write!(f, "the program ended with status {status} after {seconds:.1} s")?,
                    None => write!(f, "it was over after {seconds:.1} s")?,
                }
                write!(f, ": nothing was sampled, for a round takes {round:.0} s of one process")
            }
            Self::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for HeatError {}
