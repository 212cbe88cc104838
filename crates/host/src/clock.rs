//! Time stamps that cost little: the CPU's own counter where it has one that a program can read, else the system's clock.
//! And what threads have had of CPUs' time.

use std::time::{Duration, Instant};

/// How long the counter is held beside the system's clock.
const CALIBRATION: Duration = Duration::from_millis(10);

/// Makes nanoseconds of the counter's ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    ns_per_tick: f64,
}

impl Clock {
    /// Holds the counter beside the system's clock for a moment.
    pub(crate) fn calibrated() -> Self {
        let (start, first) = (Instant::now(), ticks());
        while start.elapsed() < CALIBRATION {
            std::hint::spin_loop();
        }
        let (elapsed, last) = (start.elapsed(), ticks());
        Self { ns_per_tick: elapsed.as_nanos() as f64 / last.saturating_sub(first).max(1) as f64 }
    }

    /// Nanoseconds of so many ticks.
    pub(crate) fn ns(self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick) as u64
    }
}

/// The counter now. It counts at one rate on all CPUs, on every machine of the last ten years.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 has the instruction. A system that forbids it to programs ends the process, as none does.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The counter now. It counts at one rate on all CPUs.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: the virtual counter is readable from programs on Linux, and reading it changes nothing.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags))
    };
    ticks
}

/// Nanoseconds of the system's clock since the first call.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub(crate) fn ticks() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// CPU time of this process so far.
pub(crate) fn process_time() -> Duration {
    cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of this thread so far: its turns on a CPU, spinning included.
pub(crate) fn thread_time() -> Duration {
    cpu_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time` alone.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_agree_with_the_systems_clock() {
        let clock = Clock::calibrated();
        let (start, first) = (Instant::now(), ticks());
        std::thread::sleep(Duration::from_millis(30));
        let (told, seen) = (clock.ns(ticks() - first) as f64, start.elapsed().as_nanos() as f64);
        assert!((told / seen - 1.0).abs() < 0.05, "{told} of {seen}");
    }

    #[test]
    fn sleep_is_no_cpu_time() {
        let (thread, process) = (thread_time(), process_time());
        std::thread::sleep(Duration::from_millis(30));
        assert!(thread_time().saturating_sub(thread) < Duration::from_millis(10));
        assert!(process_time() >= process);
    }
}
