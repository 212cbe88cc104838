//! The command line.

mod apply;
mod record;
mod reference;
mod tune;
mod why;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use host::fault_loop::Memory;

pub(crate) use apply::Apply;
pub(crate) use record::{Accesses, Heat, Inspect, Record};
pub(crate) use reference::{Completions, Man};
pub(crate) use tune::Tune;
pub(crate) use why::Why;

/// Linux's memory management outside the kernel: record what a program asks of it, replay that on another machine with
/// other settings, see what changes.
#[derive(Debug, Parser)]
#[command(name = "freehold", version, propagate_version = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that may stand anywhere. A command that has no use for one refuses it: [`crate::shared_options`].
#[derive(Debug, ClapArgs)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Global {
    /// Print JSON (docs/schema)
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print the table as comma-separated values (commands that have one)
    #[arg(long, global = true, conflicts_with_all = ["json", "full"])]
    pub(crate) csv: bool,
    /// Print all that was measured, tables and histograms too, and not the answer alone (try, replay, why, tune, lab run, validate)
    #[arg(long, global = true, conflicts_with = "json")]
    pub(crate) full: bool,
    /// Write the output as an HTML page, too (every command but record and inspect --mask)
    #[arg(long, global = true, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Seed of every random choice (try, replay, why, tune, lab run, lab all, validate)
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Whether somebody asked for a seed.
    #[arg(skip)]
    pub(crate) seed_given: bool,
    /// No progress bars and no notes
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take the tour: record a real program here, replay it on other machines, explain the difference
    Try(Try),
    /// Record the kernel's memory events while a command runs; ends with its status
    Record(Record),
    /// Show what is in a recording
    Inspect(Inspect),
    /// Measure how often a program's pages are accessed, by mapping
    Heat(Heat),
    /// Replay a recording on a simulated machine
    Replay(Replay),
    /// Say which rule of which commit, or which setting, makes the difference between two kernels
    Why(Why),
    /// Write settings to this machine, watch it, and put back what was there
    Apply(Apply),
    /// Search the best setting, and try it where the search did not look
    Tune(Tune),
    /// Replay many recordings on many machines with many settings, each once, here or on a cluster
    Sweep(Sweep),
    /// Compare mm with captures, traces and scenes of stock kernels
    Conform(Conform),
    /// Simulate published experiments and print each figure beside the published one
    Lab(Lab),
    /// List machine profiles, show one, or measure this machine
    Machines(Machines),
    /// Compare the simulator with the kernel of this machine
    Validate(Validate),
    /// Time the allocator on this machine's real cores and memory
    Bench(Bench),
    /// Print an mmtests-style table of measurements; the first file is the baseline
    Compare(Compare),
    /// List every tunable, or explain one
    Knobs(Knobs),
    /// List policies, or show what each rule of one says
    Policies(Policies),
    /// Print completions for bash, zsh, fish, elvish or PowerShell
    Completions(Completions),
    /// Write man pages into a folder
    #[command(hide = true)]
    Man(Man),
    /// Print the JSON Schema of what --json prints
    Schema,
    /// Make the tables anew that labels come from; `make evidence` runs it
    #[command(hide = true)]
    Evidence(Evidence),
    /// Run the page-fault workload of validate on this machine
    #[command(hide = true)]
    FaultLoop(FaultLoopOptions),
}

#[derive(Debug, ClapArgs)]
#[command(disable_help_flag = true)]
pub(crate) struct Sweep {
    /// PLAN.toml and options of `freehold-sweep`, the Python package's command (`freehold sweep --help`)
    #[arg(value_name = "PLAN.toml", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) words: Vec<std::ffi::OsString>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Try {
    /// Memory that the recorded loop maps, in MiB
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(4..=4096))]
    pub(crate) mib: u32,
    /// Use the recording that comes with freehold instead of making one
    #[arg(long)]
    pub(crate) bundled: bool,
    /// Keep the recording here
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) bounds: FailIf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Replay {
    /// The recording, or a perf.data file; several run side by side on one machine
    #[arg(value_name = "FILE", required = true)]
    pub(crate) file: Vec<PathBuf>,
    /// The machines: names of `freehold machines list`, profiles of your own (FILE.toml), or the machine at hand, which is
    /// measured once (5 to 25 seconds) and kept in the user's cache directory
    #[arg(
        long,
        short,
        default_value = "this",
        value_name = "this|NAME|FILE.toml[,…]",
        value_delimiter = ','
    )]
    pub(crate) machine: Vec<String>,
    /// Copies that run at once: of all, or of the recording of that name (NAME.rec)
    #[arg(long, value_name = "[NAME=]N")]
    pub(crate) copies: Vec<String>,
    /// Times that each copy goes through the recording
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) repeat: u32,
    /// Set a knob to a word, number, size or range (madvise, 10, 64M, 0-100:20); every combination of several is run
    #[arg(long, value_name = "KNOB=V[,V…]")]
    pub(crate) set: Vec<String>,
    /// Begin with the settings of the recorded machine in place of the kernel's defaults; --set and --at come on top
    #[arg(long)]
    pub(crate) as_recorded: bool,
    /// Change a knob while it runs
    #[arg(long, value_name = "T:KNOB=V")]
    pub(crate) at: Vec<String>,
    /// Run even with knobs that cannot act on this recording, machine or policy; every output says so
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) bounds: FailIf,
    /// Replay the recorded page and slab events one for one, though the recording says what the program did to its memory
    #[arg(long)]
    pub(crate) events: bool,
    /// CPUs to use, as 0-3,8, or `recorded`: those that tasks ran on when they were recorded
    #[arg(long, value_name = "[NAME=]LIST|recorded")]
    pub(crate) cpus: Vec<String>,
    /// Nodes that memory may be on, as 0-1 (cpuset.mems)
    #[arg(long, value_name = "[NAME=]LIST")]
    pub(crate) mems: Vec<String>,
    /// Memory policy: local, preferred:N, bind:LIST, interleave or interleave:LIST, weighted-interleave likewise (numactl)
    #[arg(long, value_name = "[NAME=]POLICY")]
    pub(crate) mempolicy: Vec<String>,
    /// Policy: linux-X.Y
    #[arg(long, default_value = "linux-6.18", value_name = "POLICY")]
    pub(crate) policy: String,
    /// Repetitions, each with another seed: --seed, and so on upwards; 1 gives no interval
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    pub(crate) seeds: u32,
    /// Threads that run variants and seeds side by side; the results do not depend on it
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub(crate) jobs: usize,
}

impl Replay {
    /// What is said of what recordings get of a machine.
    pub(crate) fn shares(&self) -> lab::replay::ShareOptions<'_> {
        let Self { copies, cpus, mems, mempolicy: policies, .. } = self;
        lab::replay::ShareOptions { copies, cpus, mems, policies }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Conform {
    /// Captures (.txt) and traces (.csv, .csv.xz)
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print each batch of reclaim and step of compaction of a scene, as Linux's tracepoints tell them, in place of what was compared
    #[arg(long)]
    pub(crate) trace: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) what: Option<LabWhat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabWhat {
    /// List the experiments that come with freehold
    List,
    /// List every metric of an experiment
    Metrics,
    /// Run some experiments
    Run {
        /// Names, or files of your own (FILE.toml)
        #[arg(value_name = "NAME|FILE.toml", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        how: LabHow,
        #[command(flatten)]
        files: LabFiles,
    },
    /// Run all experiments that come with freehold
    All {
        #[command(flatten)]
        how: LabHow,
        #[command(flatten)]
        files: LabFiles,
    },
}

/// Bounds of figures, for CI.
#[derive(Debug, ClapArgs)]
pub(crate) struct FailIf {
    /// End with status 1 if a figure passes its bound beyond the seeds' differences: refill.p99_ns:max=20us, or in percent of the
    /// first variant on the same machine, pages_per_second:min=98%; may be given several times
    #[arg(long, value_name = "FIGURE:min|max=VALUE")]
    pub(crate) fail_if: Vec<String>,
}

/// Files to write besides.
#[derive(Debug, ClapArgs)]
pub(crate) struct LabFiles {
    /// Bring a folder of results up to date, too: scores, a page of each experiment, and what labels rest on. Experiments that
    /// did not run stay as they are
    #[arg(long, value_name = "FOLDER")]
    pub(crate) results: Option<PathBuf>,
}

/// How experiments are run.
#[derive(Debug, ClapArgs)]
pub(crate) struct LabHow {
    /// Run them on these machines instead of their own; `this` is the machine at hand
    #[arg(long, short, value_name = "this|NAME|FILE.toml[,…]", value_delimiter = ',')]
    pub(crate) machine: Vec<String>,
    /// Repetitions, each with another seed; without it, what each experiment says
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    pub(crate) seeds: Option<u32>,
    #[command(flatten)]
    pub(crate) bounds: FailIf,
    /// Say what the mean refill and the mean drain spend their time on
    #[arg(long)]
    pub(crate) explain: bool,
    /// Run even with knobs that cannot act on a variant's workload, machine or policy; every output says so
    #[arg(long)]
    pub(crate) force: bool,
    /// Threads that simulate side by side; the results do not depend on it
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub(crate) jobs: usize,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Machines {
    #[command(subcommand)]
    pub(crate) what: Option<MachinesWhat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MachinesWhat {
    /// List the profiles that come with freehold
    List,
    /// Show all figures of a profile, each with its source
    Show {
        /// A name, a profile of your own (FILE.toml), or `this`: the machine at hand
        #[arg(value_name = "this|NAME|FILE.toml")]
        machine: String,
        /// Show the zonelists instead of the figures: which zones a request asks, in which order, and why
        #[arg(long)]
        zonelists: bool,
        /// Whose zonelists: linux-X.Y
        #[arg(long, requires = "zonelists", default_value = "linux-6.18", value_name = "POLICY")]
        policy: String,
        /// vm.numa_zonelist_order for them: default (the kernel chooses), node or zone
        #[arg(long, requires = "zonelists", default_value = "default", value_name = "ORDER")]
        order: String,
    },
    /// Measure this machine, in a few seconds; -o makes a profile of it for --machine
    Probe {
        /// Where to write the profile
        #[arg(short, long, value_name = "FILE.toml")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Validate {
    /// A profile of this machine (FILE.toml of `freehold machines probe -o`); `this` is measured once (5 to 25 seconds) and
    /// kept in the user's cache directory
    #[arg(long, short, default_value = "this", value_name = "this|NAME|FILE.toml")]
    pub(crate) machine: String,
    /// Numbers of tasks [default: 1 and 2]
    #[arg(long, value_delimiter = ',', value_name = "N[,N…]", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) tasks: Vec<u32>,
    /// What tasks map [default: private and shared memory]
    #[arg(long, value_enum)]
    pub(crate) memory: Option<MappedMemory>,
    /// Memory that each task maps, in MiB; much less may stay within a CPU's page lists, which then never refill
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(2..=65_536), value_name = "MIB")]
    pub(crate) mib: u32,
    /// How long each unrecorded workload runs
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=600_000), value_name = "MS")]
    pub(crate) ms: u64,
    /// Simulations of each workload, each with another seed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    pub(crate) seeds: u32,
    /// End with status 1 if a figure is outside of its target, or with CMD if a change went another way than predicted
    #[arg(long)]
    pub(crate) strict: bool,
    /// With CMD: what it is to run under, in turn; settings are put back at the end. It is recorded under the first
    #[arg(long, value_name = "KNOB=V[,V…]", requires = "command")]
    pub(crate) set: Vec<String>,
    /// With CMD: counted runs under each setting
    #[arg(long, default_value_t = 5, requires = "command", value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    pub(crate) repeats: u32,
    #[command(flatten)]
    pub(crate) bounds: FailIf,
    /// Run this program for real under each setting of --set, and predict the same; its stdin is empty, its output goes nowhere
    #[arg(last = true, value_name = "CMD", requires = "set", conflicts_with_all = ["tasks", "memory", "mib", "ms"])]
    pub(crate) command: Vec<OsString>,
}

/// Tasks that map memory, write to it, unmap it.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct FaultLoopOptions {
    #[arg(long, value_enum, default_value_t = MappedMemory::Private)]
    pub(crate) memory: MappedMemory,
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(2..=65_536), value_name = "MIB")]
    pub(crate) mib: u32,
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=600_000), value_name = "MS")]
    pub(crate) ms: u64,
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024), value_name = "N")]
    pub(crate) tasks: u32,
    /// Be this one of the tasks
    #[arg(long, value_name = "N")]
    pub(crate) task: Option<usize>,
}

/// What a task maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MappedMemory {
    /// Private anonymous memory.
    Private,
    /// Shared anonymous memory.
    Shared,
}

impl MappedMemory {
    /// The word on the command line.
    pub(crate) fn name(self) -> &'static str {
        Memory::from(self).name()
    }
}

impl From<MappedMemory> for Memory {
    fn from(memory: MappedMemory) -> Self {
        match memory {
            MappedMemory::Private => Self::Private,
            MappedMemory::Shared => Self::Shared,
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) what: Option<BenchWhat>,
    /// Threads, at most; figures are given for 1, 2, 4 … up to this
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub(crate) threads: usize,
    /// Memory to work in, in MiB
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(64..=1_048_576), value_name = "MIB")]
    pub(crate) mib: u64,
    /// Rounds; the median is shown
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    pub(crate) rounds: u32,
    /// Whose rules: linux-X.Y
    #[arg(long, default_value = "linux-6.18", value_name = "POLICY")]
    pub(crate) policy: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchWhat {
    /// Compare policies while threads contend for one zone lock: real threads, locks and memory
    Contention(Contention),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Contention {
    /// Numbers of threads; one thread alone is measured, too [default: as many as CPUs]
    #[arg(long, value_delimiter = ',', value_name = "N[,N…]", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Vec<u32>,
    /// A policy; give the option several times for several [default: linux-6.18, its parts, freehold]
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Vec<String>,
    /// Set a knob; with several values, or several times, every combination is measured
    #[arg(long, value_name = "KNOB=V[,V…]")]
    pub(crate) set: Vec<String>,
    /// Measure even with knobs that cannot act here; every output says so
    #[arg(long)]
    pub(crate) force: bool,
    /// Pages that each thread allocates before it frees them
    #[arg(long, default_value_t = 32_768, value_parser = clap::value_parser!(u32).range(1..=1 << 24), value_name = "N")]
    pub(crate) pages: u32,
    /// Rounds; each measures all policies in turn
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    pub(crate) rounds: u32,
    /// CPU time of each thread in a round of one policy, twice: without time stamps and with them
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=60_000), value_name = "MS")]
    pub(crate) slice_ms: u64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Compare {
    /// Measurements that --json printed
    #[arg(value_name = "FILE.json", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Format of the table: mmtests' compare-kernels or the kernel test robot's
    #[arg(long, value_enum, default_value_t = Table::Mmtests)]
    pub(crate) table: Table,
    /// Compare measurements of different machines, workloads or labels; the output says that they are
    #[arg(long)]
    pub(crate) force: bool,
}

/// A way to set a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Table {
    /// A positive change is always better.
    Mmtests,
    /// The plain change: a time that fell is negative.
    Lkp,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Knobs {
    #[command(subcommand)]
    pub(crate) what: Option<KnobsWhat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KnobsWhat {
    /// List all knobs
    List,
    /// Explain one knob
    Show {
        /// Its name
        #[arg(value_name = "KNOB")]
        knob: String,
        /// Print the line that gives it this value
        #[arg(value_name = "VALUE")]
        value: Option<String>,
    },
    /// Write a page that says what each knob does to recordings at its smallest and largest value (`make knobs`)
    #[command(hide = true)]
    Page(KnobPage),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KnobPage {
    /// The recordings
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The machines
    #[arg(long, required = true, value_name = "M[,M…]", value_delimiter = ',')]
    pub(crate) machine: Vec<String>,
    /// The page to write
    #[arg(short, long, value_name = "FILE.md")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Policies {
    #[command(subcommand)]
    pub(crate) what: Option<PoliciesWhat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PoliciesWhat {
    /// List kernels that have rules, parts that can go on top, and what freehold consists of
    List,
    /// Show every rule in force under a policy, with the kernels in which it holds
    Show {
        /// Its name: linux-X.Y, freehold, with any parts: linux-6.18+yield
        #[arg(value_name = "POLICY")]
        policy: String,
        /// Say how sure times are on this machine, too
        #[arg(long, short, value_name = "NAME|FILE.toml")]
        machine: Option<String>,
    },
}

/// What labels come from.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Evidence {
    /// Captures, and traces in its folder `traces`
    #[arg(long, value_name = "FOLDER", required_unless_present_any = ["results", "programs", "how_wrong"], conflicts_with = "results")]
    pub(crate) conformance: Option<PathBuf>,
    /// What `freehold lab run NAME… --json` printed
    #[arg(long, value_name = "FILE.json")]
    pub(crate) results: Option<PathBuf>,
    /// What `freehold validate --set … --json -- CMD` printed, a file NAME.WHAT.json for each command; `make programs` makes it
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["conformance", "results"])]
    pub(crate) programs: Option<PathBuf>,
    /// The page of how far all of it was off, of the tables that come with the program
    #[arg(long, conflicts_with_all = ["conformance", "results", "programs"])]
    pub(crate) how_wrong: bool,
    /// The table of captures to write, the folder of results to bring up to date, or the page of programs to write
    #[arg(short, long, value_name = "FILE|FOLDER")]
    pub(crate) output: PathBuf,
}
