//! The options of `freehold tune`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// A recording (or a perf.data file), an experiment of `freehold lab list`, or one of your own (FILE.toml)
    #[arg(value_name = "FILE|EXPERIMENT")]
    pub(crate) what: String,
    /// Machines: names of `freehold machines list`, profiles of your own, or `this`; each gets an answer of its own [default: this, or the
    /// experiment's]
    #[arg(long, short, value_name = "this|NAME|FILE.toml[,…]", value_delimiter = ',')]
    pub(crate) machine: Vec<String>,
    /// Figures that are to become better, the most important first, as --json of replay or `freehold lab metrics` name them; FIGURE:lower
    /// or FIGURE:higher where nobody can tell [default: the run's time, or what was published]
    #[arg(long, value_name = "FIGURE[,…]", value_delimiter = ',')]
    pub(crate) goal: Vec<String>,
    /// What has to stay: parts of the current setting's figure (pages_per_second:min=98%, rss:max=105%), or amounts (fault.p99_ns:max=20us)
    #[arg(long, value_name = "FIGURE:min|max=LIMIT[,…]", value_delimiter = ',')]
    pub(crate) keep: Vec<String>,
    /// A knob to search, with its values or a range of them [default: every knob of a running kernel that can act here]
    #[arg(long, value_name = "KNOB[=V,V…|=LOW..HIGH]")]
    pub(crate) knob: Vec<String>,
    /// Knobs that are set in every setting
    #[arg(long, value_name = "KNOB=V")]
    pub(crate) set: Vec<String>,
    /// The policy: linux-X.Y, with parts [default: linux-6.18, or the variant's]
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// The experiment's variant [default: the first on the machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Copies of the recording that run at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) copies: Option<u32>,
    /// What the search may cost, in simulations of full length [default: a quarter of the settings, 64 to 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) budget: Option<u32>,
    /// Simulate every setting in full length with every seed, in place of the race
    #[arg(long, conflicts_with = "budget")]
    pub(crate) every: bool,
    /// Seeds of those that come to the end of the race, the same for all
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000), value_name = "N")]
    pub(crate) seeds: u32,
    /// Seeds that the search does not see, with which the winner has to win
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000), value_name = "N")]
    pub(crate) unseen: u32,
    /// Other recordings or experiments on which the winner is tried
    #[arg(long, value_name = "FILE|EXPERIMENT")]
    pub(crate) also: Vec<String>,
    /// Keep every simulation in a file, line by line; the same command goes on from there after it was stopped, and nothing runs twice
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Write what wins as a plan, which `freehold apply FILE` takes
    #[arg(long, value_name = "FILE", conflicts_with = "ask_tell")]
    pub(crate) plan: Option<PathBuf>,
    /// Speak JSON lines on stdin and stdout: another program searches and this one simulates, or this one searches and the other measures
    #[arg(long, conflicts_with = "json")]
    pub(crate) ask_tell: bool,
    /// Threads that simulate side by side; the results do not depend on it
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub(crate) jobs: usize,
}
