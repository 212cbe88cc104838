//! Two CPUs at once: a line that goes to and fro between them, and a lock that does.
//!
//! Both threads spin; where one of them loses its CPU to somebody else, the repetition is long, and the median passes
//! over it.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;
use std::time::Instant;

use super::busy::{delay, steps_of};
use super::samples::Samples;
use super::{Result, on_cpu};
use crate::lock::RawLock;
use crate::queue_lock::QueueLock;

/// Repetitions of a round, each of so many round trips or takings.
const TIMES: usize = 7;
const TRIPS: u32 = 1000;
/// Spins before a waiting thread lets others run, should the other thread want this CPU.
const PATIENCE: u32 = 1 << 16;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

/// Waits until `done`, and lets others run should that take long.
fn until(mut done: impl FnMut() -> bool) {
    loop {
        for _ in 0..PATIENCE {
            if done() {
                return;
            }
        }
        thread::yield_now();
    }
}

/// Two CPUs that something goes between, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuPair {
    /// Where it begins.
    pub(super) one: u32,
    /// Where it goes.
    pub(super) other: u32,
}

/// Nanoseconds of a line's way from one of `cpus` to the other: half of a round trip by compare-and-exchange, as
/// core-to-core-latency measures it.
pub(super) fn transfer(cpus: CpuPair) -> Result<Samples> {
    let turn = Padded(AtomicU32::new(0));
    let pass = |from: u32, to: u32| {
        for _ in 0..TRIPS {
            until(|| turn.0.compare_exchange(from, to, Relaxed, Relaxed).is_ok());
        }
    };
    let pong = || (0..=TIMES).for_each(|_| pass(1, 0));
    let ping = || {
        pass(0, 1);
        Samples::take(TIMES, || {
            let start = Instant::now();
            pass(0, 1);
            start.elapsed().as_nanos() as f64 / f64::from(2 * TRIPS)
        })
    };
    both(cpus, ping, pong)
}

/// Runs `first` on one CPU and `second` on the other; what `first` says.
fn both<T: Send>(cpus: CpuPair, first: impl FnOnce() -> T + Send, second: impl FnOnce() + Send) -> Result<T> {
    // Nobody begins before both have their CPU, for a thread alone would wait for ever.
    let ready = AtomicU32::new(0);
    let failed = AtomicBool::new(false);
    let meet = || {
        ready.fetch_add(1, Relaxed);
        until(|| ready.load(Relaxed) == 2 || failed.load(Relaxed));
        !failed.load(Relaxed)
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let ran = on_cpu(cpus.other, || {
                if meet() {
                    second();
                }
            });
            failed.fetch_or(ran.is_err(), Relaxed);
            ran
        });
        let ran = on_cpu(cpus.one, || meet().then(first));
        failed.fetch_or(ran.is_err(), Relaxed);
        let joined = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ran.and_then(|value| joined.map(|()| value))?.ok_or_else(|| "the other CPU failed".into())
    })
}

/// Nanoseconds from one CPU's giving back a lock until the other, which waits for it, has it.
///
/// Each holds it long enough (`hold_ns`, about) that the other is in line again. The time of a round less what each
/// holds is two hand-overs; what is held is measured with one CPU alone, in turn with the other measurement.
pub(super) fn handover(cpus: CpuPair, hold_ns: f64, lock_ns: f64) -> Result<Samples> {
    const ROUNDS: u32 = 400;
    const WARMUP: u32 = 20;
    let lock = Padded(QueueLock::default());
    // Which repetition the other CPU takes part in, and which it has finished.
    let (wanted, finished, contend) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
    let round = |hold: u32| {
        lock.0.lock();
        delay(hold);
        lock.0.unlock();
    };
    let hold = steps_of(hold_ns);
    let other = || {
        for repetition in 1..=TIMES as u32 {
            until(|| wanted.load(Acquire) == repetition);
            while contend.load(Relaxed) {
                round(hold);
            }
            finished.store(repetition, Release);
        }
    };
    let first = || {
        let timed = |rounds: u32| {
            (0..WARMUP).for_each(|_| round(hold));
            let start = Instant::now();
            (0..rounds).for_each(|_| round(hold));
            start.elapsed().as_nanos() as f64 / f64::from(rounds)
        };
        let mut repetition = 0;
        Samples::take(TIMES, || {
            repetition += 1;
            let alone = timed(ROUNDS);
            contend.store(true, Relaxed);
            wanted.store(repetition, Release);
            // The other is there once it has queued up behind us.
            until(|| {
                lock.0.lock();
                delay(hold);
                let there = lock.0.is_contended();
                lock.0.unlock();
                there
            });
            let contended = timed(ROUNDS);
            contend.store(false, Relaxed);
            until(|| finished.load(Acquire) == repetition);
            contended / 2.0 - (alone - lock_ns)
        })
    };
    both(cpus, first, other)
}

/// Nanoseconds of taking a free lock and giving it back: a compare-and-exchange and a store, on a line that this CPU
/// has.
pub(super) fn lock() -> Samples {
    const TAKINGS: u32 = 20_000;
    let lock = Padded(AtomicU32::new(0));
    Samples::take(3 * TIMES, || {
        let start = Instant::now();
        for _ in 0..TAKINGS {
            let taken = lock.0.compare_exchange(0, 1, Acquire, Relaxed);
            black_box(taken.is_ok());
            lock.0.store(0, Release);
        }
        start.elapsed().as_nanos() as f64 / f64::from(TAKINGS)
    })
}

#[cfg(test)]
mod tests {
    use super::super::affinity::allowed;
    use super::*;

    #[test]
    fn two_cpus_pass_a_line_and_a_lock() {
        let [first, second, ..] = allowed().unwrap()[..] else { return };
        assert!(transfer(CpuPair { one: first, other: second }).unwrap().median() > 0.1);
        let handover = handover(CpuPair { one: first, other: second }, 300.0, 1.0).unwrap().spread();
        assert!(handover.max > 0.0 && handover.samples == TIMES as u32);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_and_not_a_wait() {
        let first = allowed().unwrap()[0];
        assert!(transfer(CpuPair { one: first, other: 60_000 }).is_err());
        assert!(transfer(CpuPair { one: 60_000, other: first }).is_err());
    }

    #[test]
    fn a_free_lock_costs_something() {
        assert!(lock().median() > 0.1);
    }
}
