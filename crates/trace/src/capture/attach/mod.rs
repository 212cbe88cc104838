//! What is there of processes that run already: their maps (`maps`), what is present of them (`present`), what of huge
//! pages holds zeros (`zeros`), what is cached of their files (`cached`).
//!
//! It is looked at after the events have started, so that nothing falls between: what happens meanwhile is in both.

mod cached;
mod maps;
pub(super) mod present;
pub(super) mod zeros;

use std::fs;

use super::procs;
use crate::event::MapFlags;
use crate::stream::attached::{Attached, AttachedSpace};

/// Place of `start_brk` among the figures of /proc/PID/stat.
const START_BRK: usize = 43;

/// What is there of these processes. One that is gone, or that may not be looked at, has nothing.
pub(super) fn look(pids: impl IntoIterator<Item = u32>) -> Attached {
    let spaces: Vec<AttachedSpace> = pids.into_iter().filter_map(look_at).collect();
    let cached = cached::of(&spaces);
    Attached { spaces, cached }
}

fn look_at(pid: u32) -> Option<AttachedSpace> {
    let text = fs::read(format!("/proc/{pid}/smaps")).ok()?;
    let maps = maps::parse(&text);
    if maps.is_empty() {
        return None;
    }
    let heap = maps.iter().rfind(|map| map.flags.contains(MapFlags::HEAP));
    let heap_end = heap.map(|map| map.address + (u64::from(map.pages) << mm::ids::PAGE_SHIFT));
    // A program that has no heap yet will have it from here on.
    let start = || procs::stat_figures(pid)?.get(START_BRK).copied().filter(|start| *start > 0);
    let present = zeros::beside(pid, present::of(pid, &maps).unwrap_or_default());
    Some(AttachedSpace { pid, heap_end: heap_end.or_else(start), maps, present })
}
