//! Memory under load: what a node's CPUs draw from it together, and its latency while they do.

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::chase::Chain;
use super::region::{MappedRegion, PAGE_WORDS, Pages};
use super::samples::Samples;
use super::{Result, memory, on_cpu};

/// Windows in which what was read is counted.
const WINDOWS: usize = 15;
const WINDOW: Duration = Duration::from_millis(20);
/// Times that latency is measured without load and with it, in turn.
const PHASES: usize = 25;
/// How long readers take to stop or to be at full speed, at most.
const SETTLE: Duration = Duration::from_millis(2);
/// Pages that a reader reads between two looks at its flag.
const CHUNK_PAGES: usize = 16;

/// CPUs that read memory in sequence until they are told to stop.
struct Readers {
    stop: AtomicBool,
    started: AtomicU64,
    failed: AtomicBool,
    /// They spin instead of reading.
    pause: AtomicBool,
    bytes: Vec<Count>,
}

#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicU64);

impl Readers {
    fn new(count: usize) -> Self {
        let bytes = (0..count).map(|_| Count::default()).collect();
        Self { stop: false.into(), started: 0.into(), failed: false.into(), pause: false.into(), bytes }
    }

    /// What one of them does, on memory of its own, which its CPU's node gives.
    fn read(&self, reader: usize, bytes: usize) -> io::Result<()> {
        let region =
            MappedRegion::new(bytes, Pages::Huge).inspect_err(|_| self.failed.store(true, Relaxed))?;
        self.started.fetch_add(1, Relaxed);
        for chunk in region.words().chunks_exact(CHUNK_PAGES * PAGE_WORDS).cycle() {
            std::hint::black_box(memory::sum(chunk));
            self.bytes[reader].0.fetch_add(size_of_val(chunk) as u64, Relaxed);
            while self.pause.load(Relaxed) && !self.stop.load(Relaxed) {
                std::hint::spin_loop();
            }
            if self.stop.load(Relaxed) {
                break;
            }
        }
        Ok(())
    }

    fn total(&self) -> u64 {
        self.bytes.iter().map(|count| count.0.load(Relaxed)).sum()
    }

    /// Runs `measure` while `cpus` read, `bytes` of memory each.
    fn during<T>(cpus: &[u32], bytes: usize, measure: impl FnOnce(&Self) -> T) -> Result<T> {
        let readers = Self::new(cpus.len());
        thread::scope(|scope| {
            let readers = &readers;
            let read = |(index, cpu): (usize, u32)| {
                scope.spawn(move || {
                    let ran = on_cpu(cpu, || readers.read(index, bytes));
                    readers.failed.fetch_or(ran.is_err(), Relaxed);
                    ran
                })
            };
            let running: Vec<_> = cpus.iter().copied().enumerate().map(read).collect();
            let all = cpus.len() as u64;
            while readers.started.load(Relaxed) < all && !readers.failed.load(Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            let measured = measure(readers);
            readers.stop.store(true, Release);
            for reader in running {
                let ran = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                ran?.map_err(|error| format!("memory cannot be mapped: {error}"))?;
            }
            Ok(measured)
        })
    }
}

/// GB/s that `cpus` read together, in sequence, from `bytes` of memory each.
pub(super) fn bandwidth(cpus: &[u32], bytes: usize) -> Result<Samples> {
    Readers::during(cpus, bytes, |readers| {
        Samples::take(WINDOWS, || {
            let (before, start) = (readers.total(), Instant::now());
            thread::sleep(WINDOW);
            (readers.total() - before) as f64 / start.elapsed().as_nanos() as f64
        })
    })
}

/// Latency of memory under a load.
pub(super) struct Loaded {
    /// What was read meanwhile, GB/s.
    pub(super) gbps: f64,
    /// Latency over that without load, in turn.
    pub(super) ratio: Samples,
}

/// The latency that `cpu` sees, along a chain through `region`, while `readers` read from `bytes` of memory each.
pub(super) fn latency(cpu: u32, region: &MappedRegion, readers: &[u32], bytes: usize) -> Result<Loaded> {
    let mut chain = on_cpu(cpu, || Chain::new(region, region.bytes()))?;
    let steps = chain.cold_steps(2 * PHASES);
    let phases = Readers::during(readers, bytes, |readers| {
        on_cpu(cpu, || {
            let phase = |_| {
                readers.pause.store(true, Relaxed);
                thread::sleep(SETTLE);
                let idle = chain.walk(steps);
                readers.pause.store(false, Relaxed);
                thread::sleep(SETTLE);
                let (before, start) = (readers.total(), Instant::now());
                let loaded = chain.walk(steps);
                let gbps = (readers.total() - before) as f64 / start.elapsed().as_nanos() as f64;
                (gbps, loaded / idle.max(0.1))
            };
            (0..PHASES).map(phase).collect::<Vec<(f64, f64)>>()
        })
    })??;
    let (gbps, ratio): (Vec<f64>, Vec<f64>) = phases.into_iter().unzip();
    Ok(Loaded { gbps: Samples::of(gbps).median(), ratio: Samples::of(ratio) })
}

#[cfg(test)]
mod tests {
    use super::super::affinity::allowed;
    use super::*;

    #[test]
    fn readers_are_counted_and_stop() {
        let cpus = allowed().unwrap();
        assert!(bandwidth(&cpus[..1], 4 << 20).unwrap().median() > 0.01);
        let region = MappedRegion::new(8 << 20, Pages::Small).unwrap();
        let loaded = latency(cpus[0], &region, &cpus[1..], 4 << 20).unwrap();
        assert!(loaded.ratio.median() > 0.1);
    }

    #[test]
    fn a_reader_without_a_cpu_is_an_error() {
        assert!(bandwidth(&[60_000], 1 << 20).is_err());
    }
}
