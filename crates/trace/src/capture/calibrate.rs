//! What recording costs: a loop of page faults, with the events on and off in turn.

use std::{io, ptr};

use super::bpf::Belongs;
use super::source::Source;
use crate::error::RecordError;
use crate::heat::bits::{AccessedBits, Translations};
use crate::meta::RecordingCost;

/// How often events are stopped and started: who has a core's other thread makes all of it slower for tenths of a second, so that what is
/// compared has to lie close together.
const TURNS: usize = 7;
/// Rounds with events stopped, and as many with events running, of a turn. The first of each warms up and is not counted.
const TURN_ROUNDS: usize = 4;
/// Rounds that count; an odd number for the median's sake.
const ROUNDS: usize = TURNS * (TURN_ROUNDS - 1);
/// Pages that a round faults in and gives back.
const PAGES: usize = 1024;
const PAGE_SIZE: usize = mm::ids::PAGE_SIZE as usize;
/// Smaller rings would lose events, and a lost one costs less than a recorded one.
pub(super) const RING_PAGES_MIN: usize = 512;

/// Measures with `events`, which are stopped before and after. `None` if it cannot be measured: the rings are too small,
/// or the loop caused no events.
pub(super) fn measure(events: &mut Source, ring_pages: usize) -> Result<Option<RecordingCost>, RecordError> {
    if ring_pages < RING_PAGES_MIN {
        return Ok(None);
    }
    events.set_members([own_tid()], Belongs::Yes);
    let measured = measure_as_member(events);
    events.set_members([own_tid()], Belongs::No);
    measured
}

fn measure_as_member(events: &mut Source) -> Result<Option<RecordingCost>, RecordError> {
    let [mut off, mut on, mut costs, mut counts] = [const { vec![] }; 4];
    for _ in 0..TURNS {
        let stopped = rounds(|| Ok((fault_loop()?, ())))?;
        events.enable()?;
        let running = rounds(|| Ok((fault_loop()?, events.count(own_tid()))));
        events.disable()?;
        for ((stopped, ()), (running, count)) in stopped.into_iter().zip(running?) {
            if count == 0 {
                return Ok(None);
            }
            let (stopped, running, count) = (stopped as f64, running as f64, count as f64);
            off.push(stopped / PAGES as f64);
            on.push(running / PAGES as f64);
            costs.push((running - stopped).max(0.0) / count);
            counts.push(count / PAGES as f64);
        }
    }
    Ok(Some(RecordingCost {
        ns_per_event: median(&mut costs),
        fault_ns_recorded: median(&mut on),
        fault_ns: median(&mut off),
        events_per_fault: median(&mut counts),
        rounds: ROUNDS as u32,
        bit_ns: 0,
    }))
}

/// What a page event costs that is counted and not recorded, ns, where a recorded one costs `recorded_ns`: the same loop. `None` if there
/// were none.
pub(super) fn counted_ns(events: &mut Source, recorded_ns: f64) -> Result<Option<f64>, RecordError> {
    events.set_members([own_tid()], Belongs::Yes);
    events.sample_pages(1 << 31);
    let measured = counted_rounds(events, recorded_ns);
    events.sample_pages(1);
    events.set_members([own_tid()], Belongs::No);
    Ok(measured?.filter(|costs| !costs.is_empty()).map(|mut costs| median(&mut costs).max(0.0)))
}

fn counted_rounds(events: &mut Source, recorded_ns: f64) -> Result<Option<Vec<f64>>, RecordError> {
    let mut costs = vec![];
    for _ in 0..TURNS {
        let stopped = rounds(fault_loop)?;
        events.enable()?;
        let running = rounds(|| {
            let before = events.counted().events;
            let took = fault_loop()?;
            Ok((took, events.count(own_tid()), events.counted().events - before))
        });
        events.disable()?;
        for (stopped, (running, recorded, counted)) in stopped.into_iter().zip(running?) {
            if counted == 0 {
                return Ok(None);
            }
            let more = running as f64 - stopped as f64 - recorded as f64 * recorded_ns;
            costs.push(more / counted as f64);
        }
    }
    Ok(Some(costs))
}

/// What the rounds of half a turn say, but for the first.
fn rounds<T>(mut round: impl FnMut() -> Result<T, RecordError>) -> Result<Vec<T>, RecordError> {
    round()?;
    (1..TURN_ROUNDS).map(|_| round()).collect()
}

/// Fewer events in a round than this are too few to tell their cost from noise.
const ROUND_EVENTS_MIN: usize = 2000;
/// Rounds with enough of them that are wanted; twice as many are tried.
const EVENT_ROUNDS: usize = 15;

/// What an event of `events`, which are stopped before and after, adds to a task that does `round` on the calling thread;
/// a round says how many ns it took. The median over rounds with the events on and off in turn; rounds with few events
/// are made up for, up to a point. `None` if there were no others.
pub(super) fn event_cost(
    events: &mut Source,
    round: &mut dyn FnMut() -> io::Result<u64>,
) -> Result<Option<f64>, RecordError> {
    let mut timed =
        || round().map_err(|error| RecordError::System { what: "measuring what an event costs", error });
    let mut costs = vec![];
    for _ in 0..2 * EVENT_ROUNDS {
        let stopped = timed()? as f64;
        events.enable()?;
        let running = timed();
        events.disable()?;
        let running = running? as f64;
        let count = events.count(own_tid());
        if count >= ROUND_EVENTS_MIN {
            costs.push((running - stopped) / count as f64);
        }
        if costs.len() == EVENT_ROUNDS {
            break;
        }
    }
    Ok((!costs.is_empty()).then(|| median(&mut costs).max(0.0)))
}

/// Pages whose bits are cleared: more than a TLB has room for, or few of them would be walked to.
const BIT_PAGES: usize = 8192;
const BIT_ROUNDS: usize = 5;

/// What a page's next access takes longer once its accessed bit was cleared, ns; 0 where the system clears none.
pub(super) fn bit_ns() -> u64 {
    bit_rounds().map_or(0, |mut costs| median(&mut costs).max(0.0) as u64)
}

fn bit_rounds() -> Result<Vec<f64>, RecordError> {
    let denied = |error| RecordError::System { what: "clearing accessed bits", error };
    let mut bits = AccessedBits::open(std::process::id()).map_err(|(_, error)| denied(error))?;
    let memory = SmallPages::map(BIT_PAGES)?;
    memory.touch();
    let timed = || {
        let start = own_ns();
        memory.touch();
        (own_ns() - start) as f64
    };
    let round = |_| {
        let before = timed();
        bits.clear(Translations::Kept).map_err(denied)?;
        Ok((timed() - before) / BIT_PAGES as f64)
    };
    (0..BIT_ROUNDS).map(round).collect()
}

/// This thread's own time in ns, which stands still while others have its CPU.
fn own_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call, which fills it in.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Touches fresh pages and gives them back. Gives the ns that this took.
fn fault_loop() -> Result<u64, RecordError> {
    let start = own_ns();
    touch_pages(PAGES)?;
    Ok(own_ns() - start)
}

/// Maps so many pages, writes a byte to each, unmaps them.
pub(super) fn touch_pages(pages: usize) -> Result<(), RecordError> {
    SmallPages::map(pages)?.touch();
    Ok(())
}

/// Private memory without huge pages, unmapped when it is dropped.
struct SmallPages {
    memory: *mut libc::c_void,
    pages: usize,
}

impl SmallPages {
    fn map(pages: usize) -> Result<Self, RecordError> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh private mapping at an address of the kernel's choice touches no memory of ours.
        let memory = unsafe { libc::mmap(ptr::null_mut(), pages * PAGE_SIZE, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(RecordError::system("mapping memory to measure the cost of recording"));
        }
        // SAFETY: advice on this mapping changes no contents.
        unsafe { libc::madvise(memory, pages * PAGE_SIZE, libc::MADV_NOHUGEPAGE) };
        Ok(Self { memory, pages })
    }

    /// Writes a byte to each page; the first time each write is a fault.
    fn touch(&self) {
        for page in 0..self.pages {
            // SAFETY: the byte lies in this mapping, which is ours alone.
            unsafe { self.memory.cast::<u8>().add(page * PAGE_SIZE).write_volatile(1) };
        }
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and nothing of it is used from here on.
        unsafe { libc::munmap(self.memory, self.pages * PAGE_SIZE) };
    }
}

/// This thread's number.
pub(super) fn own_tid() -> u32 {
    // SAFETY: gettid has no conditions.
    unsafe { libc::gettid() as u32 }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
