//! The order of measurements, and what each becomes: a figure, or the reason why there is none.

mod memory;
mod pairs;
mod paths;

use std::fs;
use std::time::{Duration, Instant};

use super::hardware::{CpuPlace, Hardware};
use super::loops::Rounds;
use super::region::{MappedRegion, Pages};
use super::samples::Samples;
use super::{Absent, Grade, Measured, Probe, ProbeError, Result, on_cpu};
use pairs::PairFigures;

/// Caches' sizes where sysfs does not tell.
const L1_BYTES: u64 = 32 << 10;
const L2_BYTES: u64 = 1 << 20;
const L3_BYTES: u64 = 32 << 20;
/// The memory to measure in: this many times the last-level cache, within these bounds.
const REGION_CACHES: u64 = 4;
const REGION_BYTES: std::ops::RangeInclusive<u64> = 64 << 20..=1 << 30;

/// What no program can see of its machine from outside of the kernel.
const HIDDEN: &[(&str, &str)] = &[
    (
        "cpu.speed",
        "a recording made here is replayed at its own pace: there is no other machine to compare with",
    ),
    ("cpu.touch_ns", "instructions inside of the kernel cannot be timed from user space"),
    ("cpu.irq_ns", "interrupts cannot be switched off from user space"),
    ("cpu.window_ns", "how far a CPU looks ahead depends on the instructions, and the kernel's are not here"),
    ("path.page_alloc_ns", "instructions inside of the kernel cannot be timed from user space"),
    ("path.page_free_ns", "instructions inside of the kernel cannot be timed from user space"),
    ("path.refill_ns", "instructions inside of the kernel cannot be timed from user space"),
    ("path.drain_ns", "instructions inside of the kernel cannot be timed from user space"),
    ("path.interrupt_ns", "interrupts cannot be caused from user space without more around them"),
];

/// A probe in progress.
struct ProbeRun<'h> {
    hardware: &'h Hardware,
    cpus: &'h [CpuPlace],
    /// Where what needs one CPU is measured.
    home: CpuPlace,
    region: MappedRegion,
    l1: u64,
    l2: u64,
    l3: u64,
    /// Bytes of memory that were to be had before, beside the region.
    available: u64,
    /// Lines' ways and locks' hand-overs, by closeness, so far.
    pairs: [PairFigures; 4],
    /// Pages that came and went so far.
    rounds: Rounds,
    probe: Probe,
}

type ProbeStep<'h> = fn(&mut ProbeRun<'h>);

/// Measures with those of the machine's CPUs that are in `cpus`.
pub(super) fn run<'h>(
    hardware: &'h Hardware,
    cpus: &'h [CpuPlace],
    mut progress: impl FnMut(&str),
) -> std::result::Result<Probe, ProbeError> {
    let home = *cpus.first().ok_or(ProbeError::NoCpu)?;
    let caches = hardware.caches;
    let l2 = caches.l2.unwrap_or(L2_BYTES);
    let l3 = caches.l3.unwrap_or(if caches.l2.is_some() { l2 } else { L3_BYTES });
    let bytes = region_bytes(l3);
    let region = on_cpu(home.number, || MappedRegion::new(bytes, Pages::Huge));
    let memory = |error| ProbeError::Memory { mib: bytes >> 20, error };
    let region = region.map_err(|_| ProbeError::NoCpu)?.map_err(memory)?;
    let probe = Probe {
        hardware: hardware.clone(),
        cpus: vec![],
        figures: vec![],
        absent: vec![],
        loops: None,
        walks: None,
        fork: None,
        extra_ns: vec![],
        notes: vec![],
        took: Duration::ZERO,
    };
    let l1 = caches.l1.unwrap_or(L1_BYTES);
    let (pairs, rounds, available) = (Default::default(), Rounds::default(), available_bytes());
    let mut plan = ProbeRun { hardware, cpus, home, region, l1, l2, l3, available, pairs, rounds, probe };
    plan.hidden();
    // Some is measured again and again over the whole time: hypervisors move virtual CPUs about, and who has a core's other thread
    // makes the kernel's paths slower for seconds.
    let steps: [(&str, ProbeStep<'h>); 18] = [
        ("locks", ProbeRun::lock),
        ("lines between CPUs", ProbeRun::pairs),
        ("pages that come and go", ProbeRun::pages),
        ("caches", ProbeRun::caches),
        ("memory", ProbeRun::memory),
        ("page walks", ProbeRun::walks),
        ("lines between CPUs", ProbeRun::pairs),
        ("pages that come and go", ProbeRun::pages),
        ("descriptors", ProbeRun::descriptors),
        ("stores", ProbeRun::stores),
        ("kernel paths", ProbeRun::paths),
        ("lines between CPUs", ProbeRun::pairs),
        ("pages that come and go", ProbeRun::pages),
        ("forks", ProbeRun::forks),
        ("memory under load", ProbeRun::load),
        ("memory of other nodes", ProbeRun::remote),
        ("lines between CPUs", ProbeRun::pairs),
        ("pages that come and go", ProbeRun::pages),
    ];
    for (what, step) in steps {
        progress(what);
        step(&mut plan);
    }
    plan.finish_pairs();
    plan.finish_pages();
    Ok(plan.probe)
}

impl ProbeRun<'_> {
    fn add(&mut self, key: &'static str, samples: &Samples, how: impl Into<String>) {
        self.add_graded(key, samples, Grade::Seen, how);
    }

    fn add_graded(&mut self, key: &'static str, samples: &Samples, grade: Grade, how: impl Into<String>) {
        self.probe.figures.push(Measured { key, spread: samples.spread(), grade, how: how.into() });
    }

    fn lack(&mut self, key: &'static str, why: impl Into<String>) {
        self.probe.absent.push(Absent { key, why: why.into() });
    }

    /// A figure, or the reason why there is none.
    fn offer(&mut self, key: &'static str, samples: Result<Samples>, how: impl Into<String>) {
        match samples {
            Ok(samples) => self.add(key, &samples, how),
            Err(why) => self.lack(key, why),
        }
    }

    fn median(&self, key: &str) -> Option<f64> {
        self.probe.figures.iter().find(|figure| figure.key == key).map(|figure| figure.spread.median)
    }

    fn hidden(&mut self) {
        for &(key, why) in HIDDEN {
            self.lack(key, why);
        }
    }

    /// `what` on the home CPU.
    fn at_home<T: Send>(&self, what: impl FnOnce(&MappedRegion) -> T + Send) -> Result<T> {
        on_cpu(self.home.number, || {
            awake();
            what(&self.region)
        })
    }
}

/// Quiet CPUs are slow for a moment.
fn awake() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(5) {
        std::hint::spin_loop();
    }
}

/// How much memory to measure in.
fn region_bytes(l3: u64) -> usize {
    let wanted = (l3 * REGION_CACHES).clamp(*REGION_BYTES.start(), *REGION_BYTES.end());
    wanted.min(available_bytes() / 4).max(16 << 20) as usize
}

/// Memory that the kernel says is to be had; much where it does not say.
fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(1 << 40, |kib| kib << 10)
}
