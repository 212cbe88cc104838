//! What the kernel's own paths cost: a system call, a page fault, going from one thread to another, waking one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

use super::pair::CpuPair;
use super::region::{MappedRegion, PAGE_BYTES, PAGE_WORDS, Sharing};
use super::samples::Samples;
use super::{Result, memory, on_cpu};

/// Repetitions.
const TIMES: usize = 21;
/// Pages that fault in a repetition: few enough for a CPU's page lists and second-level cache.
const FAULT_PAGES: usize = 128;
const FAULT_TIMES: usize = 151;
/// How long a CPU is left idle before it is woken: as long as programs that wake each other often wait. A longer wait ends in a deeper sleep,
/// but is itself so long that leaving it matters little.
const IDLE: Duration = Duration::from_micros(50);

/// Nanoseconds of a system call that does nearly nothing (getppid).
pub(super) fn syscall() -> Samples {
    const CALLS: u32 = 5000;
    Samples::take(TIMES, || {
        let start = Instant::now();
        for _ in 0..CALLS {
            // SAFETY: the call has no arguments and no effect.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    })
}

/// A page's coming and going, in nanoseconds a page.
pub(super) struct Faults {
    /// The first write to private anonymous memory, from its beginning to its end.
    pub(super) private: Samples,
    /// The same pages brought in by one call.
    pub(super) populated: Result<Samples>,
    /// The first write to shared anonymous memory.
    pub(super) shared: Samples,
    /// Clearing a page that is in the second-level cache, as the pages are that come straight back.
    pub(super) clear: Samples,
    /// Taking a page of private memory out of the address space and freeing it.
    pub(super) private_gone: Samples,
    /// Taking a page of shared memory out of the address space; it stays in its file.
    pub(super) unmapped: Samples,
    /// Taking a page out of that file, and freeing it.
    pub(super) truncated: Samples,
}

/// Faults on a few pages that the kernel has just got back, so that they come from a CPU's lists and are in cache, and
/// gives them back again.
pub(super) fn faults() -> Result<Faults> {
    let mapped = |sharing| {
        let region = MappedRegion::untouched(FAULT_PAGES * PAGE_BYTES, sharing);
        region.map_err(|error| format!("memory cannot be mapped: {error}"))
    };
    let each = |start: Instant| start.elapsed().as_nanos() as f64 / FAULT_PAGES as f64;
    let touch = |region: &MappedRegion| {
        let start = Instant::now();
        for word in region.words().iter().step_by(PAGE_WORDS).take(FAULT_PAGES) {
            word.store(1, Relaxed);
        }
        each(start)
    };
    let timed = |work: &dyn Fn() -> io::Result<()>| -> io::Result<f64> {
        let start = Instant::now();
        work().map(|()| each(start))
    };
    let refused = |error: io::Error| format!("memory cannot be given back: {error}");
    let region = mapped(Sharing::Private)?;
    let private = times(|| Ok([touch(&region), timed(&|| region.unmap_pages())?])).map_err(refused)?;
    let populated =
        times(|| Ok([timed(&|| region.bring_in(FAULT_PAGES))?, timed(&|| region.unmap_pages())?]));
    let populated = populated.map(|[populated, _]| populated);
    let populated =
        populated.map_err(|error| format!("memory cannot be had by MADV_POPULATE_WRITE: {error}"));
    let clear = memory::clear_warm(&region, FAULT_PAGES);
    let region = mapped(Sharing::Shared)?;
    let once = || Ok([touch(&region), timed(&|| region.unmap_pages())?, timed(&|| region.truncate())?]);
    let shared = times(once).map_err(refused)?;
    let [private, private_gone] = private;
    let [shared, unmapped, truncated] = shared;
    Ok(Faults { private, populated, shared, clear, private_gone, unmapped, truncated })
}

/// Several figures that are measured in turn.
fn times<const N: usize>(mut once: impl FnMut() -> io::Result<[f64; N]>) -> io::Result<[Samples; N]> {
    let all: Vec<[f64; N]> = (0..FAULT_TIMES).map(|_| once()).collect::<io::Result<_>>()?;
    Ok(std::array::from_fn(|figure| Samples::of(all.iter().map(|each| each[figure]).collect())))
}

/// A pipe's two ends. Each side of a measurement owns its ends, so that a side that fails wakes the other.
struct Pipe {
    reader: File,
    writer: File,
}

impl Pipe {
    fn new() -> Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the call writes two descriptors to `ends`.
        let status = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
        if status != 0 {
            return Err(format!("no pipe: {}", io::Error::last_os_error()));
        }
        // SAFETY: both descriptors were opened just now, and nobody else has them.
        let [reader, writer] = ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) }));
        Ok(Self { reader, writer })
    }
}

/// Sends a byte.
fn send(mut to: &File) -> io::Result<()> {
    to.write_all(&[1])
}

/// Waits for a byte.
fn receive(mut from: &File) -> io::Result<()> {
    from.read_exact(&mut [0])
}

/// Nanoseconds of writing a byte to a pipe and reading it back, with nobody waiting.
pub(super) fn pipe() -> Result<Samples> {
    const CALLS: u32 = 2000;
    let Pipe { reader, writer } = Pipe::new()?;
    let once = || -> io::Result<f64> {
        let start = Instant::now();
        for _ in 0..CALLS {
            send(&writer)?;
            receive(&reader)?;
        }
        Ok(start.elapsed().as_nanos() as f64 / f64::from(CALLS))
    };
    all(TIMES, once)
}

/// Nanoseconds from one thread to the other on CPU `cpu`: half of a byte's way to and fro through pipes, with all system
/// calls in it.
pub(super) fn switch(cpu: u32) -> Result<Samples> {
    const TRIPS: u32 = 300;
    let (there, back) = (Pipe::new()?, Pipe::new()?);
    let (asked, answer) = (there.reader, back.writer);
    let echo = move || -> io::Result<()> {
        for _ in 0..(TIMES as u32 + 1) * TRIPS {
            receive(&asked)?;
            send(&answer)?;
        }
        Ok(())
    };
    let (ask, answered) = (there.writer, back.reader);
    let trips = move |count: u32| -> io::Result<f64> {
        let start = Instant::now();
        for _ in 0..count {
            send(&ask)?;
            receive(&answered)?;
        }
        Ok(start.elapsed().as_nanos() as f64 / f64::from(2 * count))
    };
    with_echo(CpuPair { one: cpu, other: cpu }, echo, move || {
        trips(TRIPS).map_err(broken)?;
        all(TIMES, || trips(TRIPS))
    })
}

/// Nanoseconds from before the write that wakes a thread on the idle CPU `cpus.other` until it has read, its system calls in
/// it; the waker is on `cpus.one`.
pub(super) fn wakeup(cpus: CpuPair) -> Result<Samples> {
    const WAKES: usize = 101;
    let Pipe { reader, writer } = Pipe::new()?;
    let (epoch, woken) = (Instant::now(), &AtomicU64::new(0));
    let echo = move || -> io::Result<()> {
        for _ in 0..WAKES {
            let received = receive(&reader);
            // Whether or not, for the waker spins until it sees a time.
            woken.store((epoch.elapsed().as_nanos() as u64).max(1), Release);
            received?;
        }
        Ok(())
    };
    let once = move || -> io::Result<f64> {
        // The waker stays awake: its own way out of idleness is not what is measured.
        let idle = Instant::now();
        while idle.elapsed() < IDLE {
            std::hint::spin_loop();
        }
        woken.store(0, Relaxed);
        let start = epoch.elapsed().as_nanos() as u64;
        send(&writer)?;
        let end = loop {
            match woken.load(Acquire) {
                0 => std::hint::spin_loop(),
                end => break end,
            }
        };
        Ok(end.saturating_sub(start) as f64)
    };
    with_echo(cpus, echo, move || all(WAKES, once))
}

/// Runs `first` on `cpus.one` while `echo` runs on `cpus.other`. A failure on one side closes the pipes for the other.
fn with_echo(
    cpus: CpuPair,
    echo: impl FnOnce() -> io::Result<()> + Send,
    first: impl FnOnce() -> Result<Samples> + Send,
) -> Result<Samples> {
    // Both CPUs are tried first, so that neither side waits for one that never came.
    on_cpu(cpus.one, || ())?;
    on_cpu(cpus.other, || ())?;
    thread::scope(|scope| {
        let echoing = scope.spawn(|| on_cpu(cpus.other, echo));
        let measured = on_cpu(cpus.one, first).and_then(|samples| samples);
        let echoed = echoing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        echoed.and_then(|done| done.map_err(broken))?;
        measured
    })
}

fn all(times: usize, mut once: impl FnMut() -> io::Result<f64>) -> Result<Samples> {
    let values: io::Result<Vec<f64>> = (0..times).map(|_| once()).collect();
    values.map(Samples::of).map_err(broken)
}

#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
fn broken(error: io::Error) -> String {
    format!("a pipe failed: {error}")
}

#[cfg(test)]
mod tests {
    use super::super::affinity::allowed;
    use super::*;

    #[test]
    fn the_kernels_paths_cost_something() {
        let cpus = allowed().unwrap();
        let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
        assert!(syscall().median() > 1.0);
        let (pipe, switch) = (pipe().unwrap(), switch(first).unwrap());
        assert!(switch.spread().max > pipe.spread().min);
        let faults = faults().unwrap();
        assert!(faults.private.spread().max > faults.clear.spread().min);
        assert!(faults.truncated.median() > 0.0 && faults.unmapped.median() > 0.0);
        if first != last {
            assert!(wakeup(CpuPair { one: first, other: last }).unwrap().spread().max > 100.0);
        }
    }
}
