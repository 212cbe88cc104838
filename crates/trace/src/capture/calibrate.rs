//! What recording costs: a loop of page faults, with the events on and off in turn.

use std::{io, ptr};

use super::perf::Events;
use super::ring::records;
use crate::error::RecordError;
use crate::meta::RecordingCost;
use crate::stream::record::{Layout, Record};

/// Rounds, an odd number for the median's sake.
const ROUNDS: usize = 15;
/// Pages that a round faults in and gives back.
const PAGES: usize = 1024;
const PAGE_SIZE: usize = mm::ids::PAGE_SIZE as usize;
/// Smaller rings would lose events, and a lost one costs less than a recorded one.
const RING_PAGES_MIN: usize = 512;

/// Measures with `events`, which are stopped before and after. `None` if it cannot be measured: the rings are too small,
/// or the loop caused no events.
pub(super) fn measure(events: &mut Events, ring_pages: usize) -> Result<Option<RecordingCost>, RecordError> {
    if ring_pages < RING_PAGES_MIN {
        return Ok(None);
    }
    let [mut off, mut on, mut costs, mut counts] = [const { vec![] }; 4];
    fault_loop()?;
    for _ in 0..ROUNDS {
        let stopped = fault_loop()? as f64;
        events.enable()?;
        let running = fault_loop();
        events.disable()?;
        let running = running? as f64;
        let count = count_own(events) as f64;
        if count == 0.0 {
            return Ok(None);
        }
        off.push(stopped / PAGES as f64);
        on.push(running / PAGES as f64);
        costs.push((running - stopped).max(0.0) / count);
        counts.push(count / PAGES as f64);
    }
    Ok(Some(RecordingCost {
        ns_per_event: median(&mut costs),
        fault_ns_recorded: median(&mut on),
        fault_ns: median(&mut off),
        events_per_fault: median(&mut counts),
        rounds: ROUNDS as u32,
    }))
}

/// Fewer events in a round than this are too few to tell their cost from noise.
const ROUND_EVENTS_MIN: usize = 2000;

/// What an event of `events`, which are stopped before and after, adds to a task that does `round` on the calling thread;
/// a round says how many ns it took. The median over rounds with the events on and off in turn; rounds with few events
/// are made up for, up to a point. `None` if there were no others.
pub(super) fn event_cost(
    events: &mut Events,
    round: &mut dyn FnMut() -> io::Result<u64>,
) -> Result<Option<f64>, RecordError> {
    let mut timed =
        || round().map_err(|error| RecordError::System { what: "measuring what an event costs", error });
    let mut costs = vec![];
    for _ in 0..2 * ROUNDS {
        let stopped = timed()? as f64;
        events.enable()?;
        let running = timed();
        events.disable()?;
        let running = running? as f64;
        let count = count_own(events);
        if count >= ROUND_EVENTS_MIN {
            costs.push((running - stopped) / count as f64);
        }
        if costs.len() == ROUNDS {
            break;
        }
    }
    Ok((!costs.is_empty()).then(|| median(&mut costs).max(0.0)))
}

/// This thread's own time in ns, which stands still while others have its CPU.
fn own_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call, which fills it in.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Maps memory, writes a byte to each page, unmaps it. Gives the ns that this took.
fn fault_loop() -> Result<u64, RecordError> {
    let len = PAGES * PAGE_SIZE;
    let start = own_ns();
    // SAFETY: a fresh private mapping at an address of the kernel's choice touches no memory of ours.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(RecordError::system("mapping memory to measure the cost of recording"));
    }
    // SAFETY: `memory` is ours alone, `len` bytes long, and not used after it is unmapped. Without huge pages each
    // write is a fault.
    unsafe {
        libc::madvise(memory, len, libc::MADV_NOHUGEPAGE);
        for page in 0..PAGES {
            memory.cast::<u8>().add(page * PAGE_SIZE).write_volatile(1);
        }
        libc::munmap(memory, len);
    }
    Ok(own_ns() - start)
}

/// Empties the rings and counts the samples of this thread.
fn count_own(events: &mut Events) -> usize {
    // SAFETY: gettid has no conditions.
    let me = unsafe { libc::gettid() } as u32;
    let mut count = 0;
    let mut bytes = vec![];
    for ring in &mut events.rings {
        bytes.clear();
        ring.drain(&mut bytes);
        let parsed = records(&bytes).filter_map(|(head, body)| Layout::OURS.parse(head, body));
        count +=
            parsed.filter(|(origin, record)| origin.tid == me && matches!(record, Record::Sample(_))).count();
    }
    count
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
