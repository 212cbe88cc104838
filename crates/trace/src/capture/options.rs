//! The options of a recording, its progress, and its summary.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Group;
use super::calibrate::RING_PAGES_MIN;
use super::source::Via;
use crate::error::RecordError;
use crate::meta::{AccessedCost, Keep, RecordingCost, Sampled};

/// How often accessed bits are looked at, and cleared for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Looking {
    /// Not at all.
    Never,
    /// For about 2 % of the time, and 20 ms beyond that.
    Seldom,
    /// For up to a tenth of the time, and 300 ms beyond that: of a program that fills memory and goes over it again within a second, little else is
    /// seen.
    Often,
}

/// What to record and how.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The file to write.
    pub output: PathBuf,
    /// Whom to record.
    pub target: Target,
    /// Which events.
    pub groups: BTreeSet<Group>,
    /// Whose events are kept; `None` for what fits the target: the workload's for a command or a process, the system's
    /// for everything.
    pub keep: Option<Keep>,
    /// By what.
    pub via: Via,
    /// Pages in each CPU's ring, a power of two.
    pub ring_pages: usize,
    /// Whether addresses and names are hidden from the start.
    pub masked: bool,
    /// Whether a command keeps the machine's setting of transparent huge pages. Otherwise it has none, so that each first
    /// touch of a page has its fault.
    pub keep_huge_pages: bool,
    /// How often it is looked at which pages are accessed after the first touch; `None` for what fits the target: seldom for a
    /// command, which is there to be recorded, never for what runs already, whose address space would be locked for it.
    pub accessed: Option<Looking>,
    /// What recording may cost the tasks, as a share of their own CPU time; what is too much is sampled. `None`: whatever it costs.
    pub budget: Option<f64>,
    /// Ends the recording after this time; a command that still runs is asked to end.
    pub length: Option<Duration>,
    /// Ends the recording cleanly when it becomes true; see [`super::stop_on_signals`].
    pub stop: Arc<AtomicBool>,
}

/// Whom to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A command and its descendants, from its first instruction until it ends.
    Command(Vec<OsString>),
    /// A process that runs, with its threads and descendants, until it ends or the recording is stopped.
    Process(u32),
    /// The processes of a cgroup and of those below it, with what descends from them and who joins, until stopped: its
    /// folder, or its name in the hierarchy.
    Cgroup(PathBuf),
    /// Everything, until stopped.
    All,
    /// Everything while a command runs.
    AllWhile(Vec<OsString>),
}

impl RecordOptions {
    /// The defaults: the groups of [`Group::DEFAULT`], rings of 2048 pages (8 MiB a CPU).
    pub fn new(output: PathBuf, target: Target) -> Self {
        Self {
            output,
            target,
            groups: Group::DEFAULT.into(),
            keep: None,
            via: Via::default(),
            ring_pages: 2048,
            masked: false,
            keep_huge_pages: false,
            accessed: None,
            budget: None,
            length: None,
            stop: Arc::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), RecordError> {
        let pages = self.ring_pages;
        if !pages.is_power_of_two() || !(4..=1 << 18).contains(&pages) {
            return Err(RecordError::Options(format!(
                "a ring of {pages} pages cannot be: a power of two from 4 to 262144 can"
            )));
        }
        if self.groups.is_empty() {
            return Err(RecordError::Options("no group of events is to be recorded".into()));
        }
        if self.target.command().is_some_and(<[_]>::is_empty) {
            return Err(RecordError::Options("there is no command to record".into()));
        }
        self.check_budget()
    }

    fn check_budget(&self) -> Result<(), RecordError> {
        let Some(budget) = self.budget else { return Ok(()) };
        let refuse = |why: &str| Err(RecordError::Options(format!("a budget cannot be kept: {why}")));
        match budget {
            _ if self.via == Via::Perf => {
                refuse("perf records all events or none; programs in the kernel sample (--via bpf)")
            }
            _ if !self.groups.contains(&Group::Sched) => {
                refuse("the tasks' CPU time comes from the group sched (--events)")
            }
            _ if self.ring_pages < RING_PAGES_MIN => {
                refuse("what an event costs is not measured with a ring under 512 pages (--ring)")
            }
            share if !(0.000_1..=1.0).contains(&share) => refuse("0.01% to 100% can be asked for"),
            _ => Ok(()),
        }
    }

    /// How often accessed bits are looked at: never where no mappings are recorded.
    pub(super) fn looking(&self) -> Looking {
        if !self.groups.contains(&Group::Space) {
            return Looking::Never;
        }
        let is_command = matches!(self.target, Target::Command(_));
        self.accessed.unwrap_or(if is_command { Looking::Seldom } else { Looking::Never })
    }

    pub(super) fn keep(&self) -> Keep {
        self.keep.unwrap_or(match self.target {
            Target::Command(_) | Target::Process(_) | Target::Cgroup(_) => Keep::Workload,
            Target::All | Target::AllWhile(_) => Keep::System,
        })
    }
}

impl Target {
    /// The command to run, if there is one.
    pub(super) fn command(&self) -> Option<&[OsString]> {
        match self {
            Self::Command(command) | Self::AllWhile(command) => Some(command),
            Self::Process(_) | Self::Cgroup(_) | Self::All => None,
        }
    }
}

/// Is told how a recording goes on.
pub trait Progress {
    /// Called some ten times a second.
    fn tick(&mut self, status: Status);
}

/// Nobody listens.
impl Progress for () {
    fn tick(&mut self, _status: Status) {}
}

/// How far a recording is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// Events recorded.
    pub events: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Events lost.
    pub lost: u64,
    /// ns since the start.
    pub elapsed_ns: u64,
}

/// What came of a recording.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// Events recorded.
    pub events: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// Events of others that were left out.
    pub left_out: u64,
    /// Events that could not be expressed.
    pub unreadable: u64,
    /// Tasks in the recording.
    pub tasks: u32,
    /// ns from start to end.
    pub duration_ns: u64,
    /// Tracepoints that this kernel lacks and the recording goes without.
    pub missing: Vec<String>,
    /// How it was recorded, `bpf` or `perf`.
    pub via: String,
    /// Why not by BPF, where that was tried.
    pub refusal: Option<String>,
    /// Whether the command ran without transparent huge pages.
    pub without_huge_pages: bool,
    /// What recording cost, if it could be measured.
    pub cost: Option<RecordingCost>,
    /// What looking at accessed bits cost, where that was done.
    pub accessed: Option<AccessedCost>,
    /// Of the lost events, those for which the kernel skipped a program that ran already on that CPU.
    pub skipped: u64,
    /// What was sampled to keep a budget, where there was one.
    pub sampled: Option<Sampled>,
    /// `/proc/zoneinfo` when events had just been stopped.
    pub zoneinfo: String,
    /// The command's exit status, or 128 + the signal that ended it.
    pub exit_status: Option<i32>,
    /// Whether it was stopped from outside.
    pub interrupted: bool,
}
