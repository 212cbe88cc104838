//! What runs beside the threads of a stress run on address spaces: a thread that compacts nodes by hand, plays kcompactd and
//! khugepaged, and writes dirty pages to a disk that is done at once. There is no other flusher here. Without this one,
//! a request that meets only dirty pages waits 100 ms at each priority of each round: some 20 s before it fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mm::Node;

use super::SpaceTally;
use crate::host::Host;

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(1);

/// Dirty pages that are written together.
const WRITES: u64 = 64;

/// Goes on until `done`; gives what it did.
pub(super) fn run(host: &Host, done: &AtomicBool) -> SpaceTally {
    let (mm, nodes) = (host.raw(), host.topology().nodes.len() as u32);
    let mut tally = SpaceTally::default();
    let mut round = 0_u32;
    while !done.load(Ordering::Relaxed) {
        tally.flushed += flush(host);
        let node = Node((round % nodes) as u16);
        mm.compaction().kcompactd(node);
        mm.compaction().compact_proactively(node);
        mm.compaction().compact_node(node);
        mm.collapses().khugepaged();
        round += 1;
        thread::sleep(PAUSE);
    }
    tally.helped = u64::from(round);
    tally
}

/// Writes what reclaim or the limits want written; gives the pages.
fn flush(host: &Host) -> u64 {
    let mm = host.raw();
    let mut wanted = mm.files().take_flush_request();
    let mut written = 0;
    while wanted > 0 || mm.files().wants_writeback() {
        let pages = mm.files().take_dirty(WRITES);
        if pages.is_empty() {
            break;
        }
        mm.files().written(&pages);
        written += pages.len() as u64;
        wanted = wanted.saturating_sub(pages.len() as u64);
    }
    written
}
