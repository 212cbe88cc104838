//! Measures the machine that this runs on: what it is made of, what its memory, caches, locks and kernel paths cost.
//!
//! Everything is measured from user space, by threads that are kept on their CPUs, several times over; the median is the
//! figure. What cannot be seen from here, or what this machine does not have, is listed in [`Probe::absent`] with the
//! reason. Figures are named as a machine profile names them; `lab::this_machine::probe` makes a profile of them.

mod affinity;
mod busy;
mod chase;
mod descriptors;
mod forks;
mod hardware;
mod kernel;
mod load;
mod loops;
mod memory;
mod noise;
mod pair;
mod plan;
pub(crate) mod region;
mod samples;
mod stores;
mod string;
mod walks;

use std::time::{Duration, Instant};
use std::{fmt, io, thread};

pub use affinity::allowed;
pub(crate) use affinity::pin;
pub use forks::ForkSlope;
pub use hardware::{Caches, CpuPlace, Hardware, HostCloseness, NodeMemory};
pub use loops::PageLoops;
pub use noise::load_average;
pub use samples::SampleSpread;
pub use walks::PageWalks;

use noise::Noise;

/// What went wrong with one measurement, in a line; the probe goes on without it.
type Result<T> = std::result::Result<T, String>;

/// A machine, measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Probe {
    /// What it is made of.
    pub hardware: Hardware,
    /// The CPUs that the probe could use, ascending: those that its process may run on.
    pub cpus: Vec<u32>,
    /// What was measured.
    pub figures: Vec<Measured>,
    /// What was not.
    pub absent: Vec<Absent>,
    /// What pages that come and go take as a whole; `None` if that could not be measured.
    pub loops: Option<PageLoops>,
    /// What walks of page tables cost; `None` if that could not be measured.
    pub walks: Option<PageWalks>,
    /// What pages add to a fork; `None` if that could not be measured.
    pub fork: Option<ForkSlope>,
    /// Latency of the memory of each node that has no CPUs, beyond that of the CPUs' own memory: index of the node, ns.
    pub extra_ns: Vec<(usize, f64)>,
    /// What to keep in mind.
    pub notes: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Its name in a profile: `cache.l1_ns`.
    pub key: &'static str,
    /// Its value is the median.
    pub spread: SampleSpread,
    /// Whether all of it was seen.
    pub grade: Grade,
    /// How it was measured.
    pub how: String,
}

/// How much of a figure was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grade {
    /// All.
    Seen,
    /// It is carried on from what was measured elsewhere; `how` says from where.
    Extrapolated,
}

/// A figure that there is none of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absent {
    /// Its name in a profile.
    pub key: &'static str,
    /// Why.
    pub why: String,
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum ProbeError {
    /// The system does not say where this process may run.
    Affinity(io::Error),
    /// The process may run on no CPU that sysfs knows.
    NoCpu,
    /// The system does not lend the memory to measure in.
    Memory {
        /// How much was asked for.
        mib: usize,
        /// What it said.
        error: io::Error,
    },
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Affinity(error) => write!(f, "sched_getaffinity: {error}"),
            Self::NoCpu => f.write_str("none of the CPUs that this process may use is online in sysfs"),
            Self::Memory { mib, error } => {
                write!(f, "{mib} MiB to measure in cannot be mapped: {error}; free some memory and try again")
            }
        }
    }
}

impl std::error::Error for ProbeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Affinity(error) | Self::Memory { error, .. } => Some(error),
            Self::NoCpu => None,
        }
    }
}

/// Measures this machine: 5 to 25 seconds. `progress` is told what comes next.
///
/// # Errors
/// See [`ProbeError`]. A single measurement that fails is none: it is in [`Probe::absent`].
pub fn run(progress: impl FnMut(&str)) -> std::result::Result<Probe, ProbeError> {
    let (start, noise) = (Instant::now(), Noise::now());
    let hardware = Hardware::this();
    let allowed = allowed().map_err(ProbeError::Affinity)?;
    let cpus: Vec<CpuPlace> =
        hardware.cpus.iter().copied().filter(|cpu| allowed.binary_search(&cpu.number).is_ok()).collect();
    let mut probe = plan::run(&hardware, &cpus, progress)?;
    probe.notes.extend(hardware.notes.iter().cloned());
    if cpus.len() < hardware.cpus.len() {
        probe.notes.push(format!(
            "this process may use {} of {} CPUs: only those were measured",
            cpus.len(),
            hardware.cpus.len()
        ));
    }
    probe.notes.extend(noise.and_then(|noise| noise.since()).and_then(disturbance));
    let cpus = cpus.iter().map(|cpu| cpu.number).collect();
    Ok(Probe { hardware, cpus, took: start.elapsed(), ..probe })
}

/// A note on what others did, if it was much.
fn disturbance(others: noise::OtherLoad) -> Option<String> {
    let (busy, stolen) = (others.busy * 100.0, others.stolen * 100.0);
    let much = busy >= 10.0 || stolen >= 1.0;
    much.then(|| {
        format!(
            "others used {busy:.0} % of the CPUs' time meanwhile, and {stolen:.1} % was stolen by the hypervisor: \
             figures of two CPUs, switches and wake-ups may be too high"
        )
    })
}

/// Runs `work` on a thread that is kept on `cpu`.
fn on_cpu<T: Send>(cpu: u32, work: impl FnOnce() -> T + Send) -> Result<T> {
    let kept = || match pin(cpu) {
        Ok(()) => Ok(work()),
        Err(error) => Err(format!("no thread can be kept on CPU {cpu}: {error}")),
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, kept);
        let thread = thread.map_err(|error| format!("no thread can be started: {error}"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
