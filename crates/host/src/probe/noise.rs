//! What others did on this machine meanwhile: CPU time that was not ours, and time that the hypervisor gave to others.

use std::fs;
use std::time::Duration;

use crate::clock::process_time;

/// CPU time so far, of the whole machine and of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    /// Of all CPUs, in clock ticks.
    all: u64,
    busy: u64,
    stolen: u64,
    own: Duration,
}

/// Shares of all CPUs' time, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct OtherLoad {
    /// Other processes' and the kernel's.
    pub(super) busy: f64,
    /// Other guests'.
    pub(super) stolen: f64,
}

impl Noise {
    /// The counters now; `None` where the kernel does not tell.
    pub(super) fn now() -> Option<Self> {
        let CpuTimes { all, busy, stolen } = times(&fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { all, busy, stolen, own: process_time() })
    }

    /// What happened since.
    pub(super) fn since(&self) -> Option<OtherLoad> {
        let now = Self::now()?;
        // SAFETY: asking for a configuration value has no preconditions.
        let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
        let all = now.all.saturating_sub(self.all).max(1) as f64;
        let busy = now.busy.saturating_sub(self.busy) as f64;
        let own = now.own.saturating_sub(self.own).as_secs_f64() * hz;
        let stolen = now.stolen.saturating_sub(self.stolen) as f64;
        Some(OtherLoad { busy: (busy - own).max(0.0) / all, stolen: stolen / all })
    }
}

/// The load averages of the last 1, 5 and 15 minutes; `None` where the kernel does not tell.
pub fn load_average() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let averages: Vec<&str> = text.split_ascii_whitespace().take(3).collect();
    (averages.len() == 3).then(|| averages.join(", "))
}

/// Time of all CPUs, in ticks of the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CpuTimes {
    all: u64,
    busy: u64,
    stolen: u64,
}

/// The times in the first line of /proc/stat.
fn times(stat: &str) -> Option<CpuTimes> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; what follows is counted in the first two as well.
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields[..] else { return None };
    let busy = user + nice + system + irq + softirq;
    Some(CpuTimes { all: busy + idle + iowait + steal, busy, stolen: steal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_stat_is_summed() {
        assert_eq!(
            times("cpu  10 1 5 100 4 2 3 7 9 9\ncpu0 1 2"),
            Some(CpuTimes { all: 132, busy: 21, stolen: 7 })
        );
        assert_eq!(times("cpu  10 1 5\n"), None);
        assert_eq!(times("intr 5"), None);
    }

    #[test]
    fn own_time_is_not_others() {
        let Some(before) = Noise::now() else { return };
        let others = before.since().unwrap();
        assert!((0.0..=1.5).contains(&others.busy) && (0.0..=1.5).contains(&others.stolen));
    }
}
