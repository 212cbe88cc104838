//! The options of `freehold why`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// A recording (or a perf.data file), an experiment of `freehold lab list`, or one of your own (FILE.toml)
    #[arg(value_name = "FILE|EXPERIMENT")]
    pub(crate) what: String,
    /// The first side: a policy (linux-X.Y, with parts), or a variant of the experiment [default: linux-6.18, or the variant]
    #[arg(long, value_name = "POLICY|VARIANT")]
    pub(crate) from: Option<String>,
    /// The second side: the same, or +PART for the first side's policy with it [default: the first side]
    #[arg(long, value_name = "POLICY|VARIANT|+PART")]
    pub(crate) to: Option<String>,
    /// Set a knob on both sides, or to the first value on the first side and to the second on the second
    #[arg(long, value_name = "KNOB=V[,V]")]
    pub(crate) set: Vec<String>,
    /// Figures to explain, as --json of replay or `freehold lab metrics` name them [default: the run's time, or what was published]
    #[arg(long, value_name = "METRIC[,…]", value_delimiter = ',')]
    pub(crate) goal: Vec<String>,
    /// The experiment's variant [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// The machine: a name of `freehold machines list`, a profile of your own, or `this` [default: this, or the experiment's]
    #[arg(long, short, value_name = "this|NAME|FILE.toml")]
    pub(crate) machine: Option<String>,
    /// Copies of the recording that run at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) copies: Option<u32>,
    /// Ask even of knobs that cannot act on either side
    #[arg(long)]
    pub(crate) force: bool,
    /// Repetitions, each with another seed, the same on both sides; 1 gives no interval
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    pub(crate) seeds: u32,
    /// Threads that simulate side by side; the results do not depend on it
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub(crate) jobs: usize,
}
