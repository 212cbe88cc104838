//! The options of `freehold apply`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// A plan: lines of KNOB = VALUE, as `freehold tune --plan FILE` leaves it or as you write it
    #[arg(value_name = "PLAN", conflicts_with_all = ["revert", "set"])]
    pub(crate) plan: Option<PathBuf>,
    /// A setting, in place of a plan's line
    #[arg(long, value_name = "KNOB=V", conflicts_with = "revert")]
    pub(crate) set: Vec<String>,
    /// Say what would be written, what is there now and what cannot be undone; write nothing
    #[arg(long, conflicts_with = "revert")]
    pub(crate) dry_run: bool,
    /// Say what the plan comes to on another kernel; write nothing
    #[arg(long, value_name = "X.Y", conflicts_with_all = ["revert", "watch"])]
    pub(crate) kernel: Option<String>,
    /// Stay so long and look at the machine every second; put all back if a bound of --keep is broken, or when interrupted
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with_all = ["revert", "dry_run"])]
    pub(crate) watch: Option<Duration>,
    /// What has to hold while it is watched: psi.memory.some|full, allocstall, fault.p50_ns|p99_ns, or a name of /proc/vmstat (a second);
    /// a percentage is of ten seconds before, of psi of the time [default: psi.memory.full:max=5%,allocstall:max=100,oom_kill:max=0]
    #[arg(long, value_name = "FIGURE:max=V[,…]", requires = "watch")]
    pub(crate) keep: Vec<String>,
    /// Put back what was there before
    #[arg(long)]
    pub(crate) revert: bool,
    /// With --revert: also what somebody else has changed since
    #[arg(long, requires = "revert")]
    pub(crate) force: bool,
}

/// `90`, `90s`, `10m`, `1h`.
fn span(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    match number.parse::<f64>().map(|number| number * unit) {
        Ok(seconds) if (4.0..=604_800.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a time from 4 s to 7 days, such as 90s, 10m or 2h".to_owned()),
    }
}
