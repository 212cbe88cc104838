//! Schedules of reclaim explored by shuttle, as in `shuttle.rs`: two threads bring pages of files into a machine that is too
//! small for them while each frees for itself, batches are drained from elsewhere, and files end in mid-work. Every page
//! stays on one list or none, none is lost and none freed twice.
#![cfg(shuttle)]

mod explored;

use std::sync::atomic::{AtomicU64, Ordering};

use explored::{Cpus, Tiny, assert_met, check_whole, explore, join, on_cpu, tiny};
use freehold_mm::Node;
use freehold_mm::vm::{FileKind, Placement};
use shuttle::sync::Arc;

/// Reads pages of a file of one's own, some twice, and ends the file.
fn read_and_drop(mm: &Tiny, pages: u32) {
    let file = mm.files().new_file(FileKind::Disk);
    for page in 0..pages {
        // Out of memory is an answer: the other one's pages may all be in use at the moment.
        let _ = mm.files().read_file(&file, page, Placement::default());
        let _ = mm.files().read_file(&file, page / 2, Placement::default());
    }
    mm.files().drop_file(&file);
}

/// Adds the pages that reclaim freed to `reclaimed`: a test in which there are none in any schedule shows nothing.
fn end(mm: &Tiny, reclaimed: &AtomicU64) {
    let counters = mm.views().counters();
    let freed = counters.0.iter().filter(|(name, _)| name.starts_with("pgsteal"));
    reclaimed.fetch_add(freed.map(|(_, pages)| pages).sum(), Ordering::Relaxed);
    mm.lru().lru_drain_all();
    mm.spaces().check_vm().unwrap();
    check_whole(mm);
}

#[test]
fn two_that_free_for_themselves() {
    static RECLAIMED: AtomicU64 = AtomicU64::new(0);
    explore(|| {
        let mm = tiny(16, Cpus::Pinned, "linux-6.18");
        let threads = (0..2).map(|cpu| {
            let mm = Arc::clone(&mm);
            on_cpu(cpu, move || read_and_drop(&mm, 14))
        });
        join(threads.collect());
        end(&mm, &RECLAIMED);
    });
    assert_met(RECLAIMED.load(Ordering::Relaxed));
}

#[test]
fn kswapd_and_drains_beside_a_reader() {
    static RECLAIMED: AtomicU64 = AtomicU64::new(0);
    explore(|| {
        let mm = tiny(16, Cpus::Pinned, "linux-4.4");
        let reader = Arc::clone(&mm);
        let daemon = Arc::clone(&mm);
        let threads = vec![
            on_cpu(0, move || read_and_drop(&reader, 10)),
            on_cpu(1, move || {
                for _ in 0..2 {
                    daemon.lru().lru_drain_all();
                    daemon.reclaim().kswapd(Node(0));
                }
            }),
        ];
        join(threads);
        end(&mm, &RECLAIMED);
    });
    assert_met(RECLAIMED.load(Ordering::Relaxed));
}
