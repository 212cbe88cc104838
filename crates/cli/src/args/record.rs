//! The options of `freehold record`, `inspect` and `heat`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use trace::Looking;

#[derive(Debug, Args)]
pub(crate) struct Record {
    /// Where to write the recording; an older one is kept as FILE.old
    #[arg(short, long, default_value = "freehold.rec", value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Record a process that runs, with what it has mapped, until it ends or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with = "all")]
    pub(crate) pid: Option<u32>,
    /// Record a cgroup (version 1 or 2), with who joins it: its folder, or its path as /proc/PID/cgroup has it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["all", "pid", "command"])]
    pub(crate) cgroup: Option<PathBuf>,
    /// Record everybody, while CMD runs or until Ctrl-C
    #[arg(long)]
    pub(crate) all: bool,
    /// Groups of events: page, sched, fault, space (maps, advice, forks), file (page cache), slab, lock
    #[arg(long, default_value = "page,sched,fault,space,file", value_name = "LIST")]
    pub(crate) events: String,
    /// Stop after this time; a command that still runs is asked to end
    #[arg(long = "for", value_parser = seconds::<0>, value_name = "SECONDS")]
    pub(crate) length: Option<Duration>,
    /// By programs in the kernel (bpf), by perf, or by the first that is possible here (auto)
    #[arg(long, default_value = "auto", value_name = "WAY")]
    pub(crate) via: String,
    /// Pages of each CPU's ring, a power of two
    #[arg(long, default_value_t = 2048, value_name = "PAGES")]
    pub(crate) ring: usize,
    /// Hide addresses and names of programs, files and cgroups
    #[arg(long)]
    pub(crate) mask: bool,
    /// Let CMD have transparent huge pages; without this it has none, so that each first touch of a page is seen
    #[arg(long)]
    pub(crate) keep_huge_pages: bool,
    /// Look from time to time which pages are accessed again and how many are all zeros, for about 2 % of the time and 20 ms
    /// more: by default of a command, not of what runs already, where it holds up faults and mmap for some ms a GiB; `often`, for up
    /// to 10 % and 300 ms, is for what is to be replayed with little memory
    #[arg(long, value_name = "WHETHER")]
    pub(crate) accesses: Option<Accesses>,
    /// What recording may cost the tasks, as a share of their CPU time, such as 2%: page events are sampled where it costs more
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(crate) budget: Option<f64>,
    /// Make a recording of a perf.data file, made with `perf record -e 'kmem:*' -a`, instead
    #[arg(long, value_name = "PERF.DATA", conflicts_with_all = ["pid", "cgroup", "all", "command"])]
    pub(crate) import: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// How often pages are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Accesses {
    /// From time to time.
    On,
    /// For ten times as long, and more at first.
    Often,
    /// Leave it out.
    Off,
}

impl Accesses {
    pub(crate) const fn looking(self) -> Looking {
        match self {
            Self::On => Looking::Seldom,
            Self::Often => Looking::Often,
            Self::Off => Looking::Never,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The recording, or a perf.data file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write a copy with addresses and names hidden
    #[arg(long, value_name = "FILE")]
    pub(crate) mask: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Heat {
    /// Where to write what was seen
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
    /// Watch a process that runs, until it ends or Ctrl-C; among its descendants the largest is watched
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=1 << 22))]
    pub(crate) pid: Option<u32>,
    /// From the start of a round to the start of the next; a round itself is 5 s
    #[arg(long, default_value = "5", value_parser = seconds::<5>, value_name = "SECONDS")]
    pub(crate) interval: Duration,
    /// Rounds, at most
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000), value_name = "N")]
    pub(crate) rounds: Option<u32>,
    /// Wait before the first round, while the program loads its data
    #[arg(long, default_value = "0", value_parser = seconds::<0>, value_name = "SECONDS")]
    pub(crate) after: Duration,
    /// Stop after this time; a command that still runs is asked to end
    #[arg(long = "for", value_parser = seconds::<5>, value_name = "SECONDS")]
    pub(crate) length: Option<Duration>,
    /// Name of the result
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// A share in percent: `2%`.
fn share(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).parse::<f64>() {
        Ok(percent) if (0.01..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("0.01% to 100% can be".into()),
    }
}

/// Seconds, with a fraction if need be, from `MIN` to a day.
fn seconds<const MIN: u32>(text: &str) -> Result<Duration, String> {
    const MAX: f64 = 86_400.0;
    match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        Ok(seconds) if (f64::from(MIN)..=MAX).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("{MIN} to {MAX} seconds can be")),
    }
}
