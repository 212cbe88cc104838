//! What one watches while a setting is tried: the machine's counters, how long tasks waited for memory (PSI), and what faults of
//! this program's own take.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use std::{fs, io};

use crate::probe::region::{MappedRegion, PAGE_WORDS, Sharing};

/// A look at the machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// When, ns after the first look.
    pub at_ns: u64,
    /// /proc/vmstat.
    pub vmstat: BTreeMap<String, u64>,
    /// How long, since boot, at least one task waited for memory, and how long all did, µs; `None` where the kernel does not say
    /// (`CONFIG_PSI`, /proc/pressure/memory).
    pub stalled: Option<Stalled>,
    /// What each of some faults of this program took by the clock, ns: first touches of small pages. Empty unless asked for.
    pub fault_ns: Vec<u64>,
}

/// Pressure stall information of memory, µs since boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stalled {
    /// Some task waited.
    pub some_us: u64,
    /// All tasks that could have run waited.
    pub full_us: u64,
}

/// Who looks.
#[derive(Clone, Copy, Debug)]
pub struct Watcher {
    start: Instant,
    faults: usize,
}

impl Watcher {
    /// With so many faults of its own at each look.
    pub fn new(faults: usize) -> Self {
        Self { start: Instant::now(), faults }
    }

    /// Looks.
    ///
    /// # Errors
    /// A /proc that cannot be read; no memory for faults.
    pub fn look(&self) -> io::Result<Sample> {
        let fault_ns = if self.faults > 0 { faults(self.faults)? } else { vec![] };
        Ok(Sample {
            at_ns: self.start.elapsed().as_nanos() as u64,
            vmstat: counters(&fs::read_to_string("/proc/vmstat")?),
            stalled: fs::read_to_string("/proc/pressure/memory").ok().as_deref().and_then(stalled),
            fault_ns,
        })
    }
}

fn counters(text: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

fn stalled(text: &str) -> Option<Stalled> {
    let total = |of: &str| {
        let line = text.lines().find(|line| line.starts_with(of))?;
        line.rsplit_once("total=")?.1.trim().parse().ok()
    };
    // Before 5.13 the machine's own file may lack `full`.
    Some(Stalled { some_us: total("some")?, full_us: total("full").unwrap_or(0) })
}

/// Touches so many fresh small pages, and says what each touch took.
fn faults(count: usize) -> io::Result<Vec<u64>> {
    let region = MappedRegion::untouched(count * PAGE_WORDS * 8, Sharing::Private)?;
    let touch = |word: &std::sync::atomic::AtomicU64| {
        let start = Instant::now();
        word.store(1, Relaxed);
        start.elapsed().as_nanos() as u64
    };
    Ok(region.words().iter().step_by(PAGE_WORDS).take(count).map(touch).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_sees_counters_and_its_own_faults() {
        let watcher = Watcher::new(200);
        let (first, second) = (watcher.look().unwrap(), watcher.look().unwrap());
        assert_eq!(second.fault_ns.len(), 200);
        assert!(second.at_ns > first.at_ns);
        let faults = second.vmstat["pgfault"] - first.vmstat["pgfault"];
        assert!(faults >= 200, "{faults}");
        assert!(Watcher::new(0).look().unwrap().fault_ns.is_empty());
    }

    #[test]
    fn pressure_is_read_as_the_kernel_writes_it() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=56\n";
        assert_eq!(stalled(text), Some(Stalled { some_us: 1234, full_us: 56 }));
        assert_eq!(stalled("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n").unwrap().full_us, 0);
        assert_eq!(stalled("nothing\n"), None);
    }
}
