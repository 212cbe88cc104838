//! Schedules explored by shuttle: a tiny machine, two or three threads, thousands of interleavings at every lock and
//! atomic of the allocator, and `check()` after each. `scripts/shuttle.sh` runs it; a failing schedule is printed and can
//! be replayed with `shuttle::replay`. Shuttle explores sequentially consistent executions: weaker orderings are
//! ThreadSanitizer's to find.
#![cfg(shuttle)]

mod explored;

use std::sync::atomic::{AtomicU64, Ordering};

use explored::{Cpus, Tiny, check_whole, explore, join, on_cpu, order, tiny};
use freehold_mm::{Cpu, Knob, MigrateType, Node, Order, Pfn, Request, Urgency, watermark};
use shuttle::sync::{Arc, Mutex};

type Block = (Pfn, Order);

fn alloc(mm: &Tiny, me: u32, request: Request) -> Option<Block> {
    let pfn = mm.alloc(request).ok()?;
    for page in 0..request.order.pages() {
        let owner = mm.machine().owners[pfn.add(page).0 as usize].swap(me, Ordering::Relaxed);
        assert_eq!(owner, 0, "{} was given to {me} while it is {owner}'s", pfn.add(page));
    }
    Some((pfn, request.order))
}

fn free(mm: &Tiny, (pfn, order): Block) {
    for page in 0..order.pages() {
        let owner = mm.machine().owners[pfn.add(page).0 as usize].swap(0, Ordering::Relaxed);
        assert_ne!(owner, 0, "{} is freed and nobody's", pfn.add(page));
    }
    mm.free(pfn, order).unwrap();
}

fn free_all(mm: &Tiny, blocks: impl IntoIterator<Item = Block>) {
    for block in blocks {
        free(mm, block);
    }
}

/// Two threads allocate, then each frees what the other allocated.
fn exchange(cpus: [u16; 2], mode: Cpus, policy: &'static str) {
    explore(move || {
        let mm = tiny(1024, mode, policy);
        let shelf: Arc<Mutex<Vec<Block>>> = Arc::default();
        let threads: Vec<_> = cpus
            .into_iter()
            .zip(1..)
            .map(|(cpu, me)| {
                let (mm, shelf) = (Arc::clone(&mm), Arc::clone(&shelf));
                on_cpu(cpu, move || {
                    for size in [0, 0, 1, 4] {
                        let block = alloc(&mm, me, Request::USER.of_order(order(size))).unwrap();
                        shelf.lock().unwrap().push(block);
                        let first = shelf.lock().unwrap().remove(0);
                        free(&mm, first);
                    }
                })
            })
            .collect();
        join(threads);
        check_whole(&mm);
    });
}

#[test]
fn blocks_cross_cpus() {
    exchange([0, 1], Cpus::Pinned, "linux-6.18");
}

#[test]
fn two_threads_share_a_pageset() {
    exchange([0, 0], Cpus::Pinned, "linux-6.18");
}

#[test]
fn threads_roam() {
    exchange([0, 1], Cpus::Roaming, "linux-6.19");
}

#[test]
fn old_rules() {
    exchange([0, 1], Cpus::Roaming, "linux-6.1");
}

#[test]
fn who_gives_way() {
    exchange([0, 1], Cpus::Roaming, "linux-6.18+yield+touch");
}

/// Two threads take whole ranges, more than their arenas have, so that they borrow from each other; then each frees
/// what the other took.
///
/// Gives the most ranges that were borrowed in any schedule.
fn borrowing(mode: Cpus, policy: &'static str, large: Request) -> u64 {
    let borrowed = std::sync::Arc::new(AtomicU64::new(0));
    let most = std::sync::Arc::clone(&borrowed);
    explore(move || {
        let mm = tiny(6 << 10, mode, policy);
        let shelf: Arc<Mutex<Vec<Block>>> = Arc::default();
        let threads: Vec<_> = [0, 1]
            .into_iter()
            .zip(1..)
            .map(|(cpu, me)| {
                let (mm, shelf) = (Arc::clone(&mm), Arc::clone(&shelf));
                on_cpu(cpu, move || {
                    // Not all succeed: a range on its way is nobody's.
                    for size in [10, 0, 10, 10, 9] {
                        let block = alloc(&mm, me, large.of_order(order(size)));
                        shelf.lock().unwrap().extend(block);
                    }
                    for _ in 0..3 {
                        let block = shelf.lock().unwrap().pop();
                        free_all(&mm, block);
                    }
                })
            })
            .collect();
        join(threads);
        let left = std::mem::take(&mut *shelf.lock().unwrap());

        free_all(&mm, left);
        check_whole(&mm);
        assert_eq!(whole_ranges(&mm), 6, "contiguity is kept");
        most.fetch_max(mm.views().counters().get("freehold_ranges_borrowed"), Ordering::Relaxed);
    });
    borrowed.load(Ordering::Relaxed)
}

fn whole_ranges(mm: &Tiny) -> u32 {
    mm.views().buddyinfo().split_whitespace().last().unwrap().parse().unwrap()
}

#[test]
fn arenas_borrow_from_each_other() {
    assert!(borrowing(Cpus::Pinned, "linux-6.18+arenas", Request::USER) > 0);
}

#[test]
fn arenas_borrow_what_they_must_claim() {
    assert!(borrowing(Cpus::Roaming, "freehold", Request::KERNEL) > 0);
}

#[test]
fn divided_zones_do_not_borrow() {
    assert_eq!(borrowing(Cpus::Roaming, "linux-6.18+zones", Request::USER), 0);
}

/// Two CPUs at home in one arena meet at its lock and part, while a third thread drains and moves the homes.
#[test]
fn homes_change() {
    explore(|| {
        let mm = tiny(4 << 10, Cpus::Roaming, "freehold");
        let mut threads: Vec<_> = (1..3)
            .map(|me| {
                let mm = Arc::clone(&mm);
                on_cpu(0, move || {
                    let user = Request::USER;
                    let held: Vec<Block> = [0, 3, 9, 0]
                        .into_iter()
                        .filter_map(|size| alloc(&mm, me, user.of_order(order(size))))
                        .collect();
                    free_all(&mm, held);
                })
            })
            .collect();
        threads.push({
            let mm = Arc::clone(&mm);
            on_cpu(1, move || {
                mm.set_knob(Knob::Arenas, 1).unwrap();
                mm.drain_all();
                mm.set_knob(Knob::Arenas, 0).unwrap();
            })
        });
        join(threads);
        check_whole(&mm);
    });
}

/// One thread allocates and frees; another does `disturb` meanwhile.
fn disturbed(disturb: impl Fn(&Tiny) + Send + Sync + Copy + 'static) {
    explore(move || {
        let mm = tiny(1024, Cpus::Pinned, "linux-6.18");
        let worker = {
            let mm = Arc::clone(&mm);
            on_cpu(0, move || {
                let kernel = Request::KERNEL;
                let held: Vec<Block> =
                    [0, 0, 1, 0, 2].map(|size| alloc(&mm, 1, kernel.of_order(order(size))).unwrap()).into();
                free_all(&mm, held);
            })
        };
        let other = {
            let mm = Arc::clone(&mm);
            on_cpu(1, move || disturb(&mm))
        };
        worker.join().unwrap();
        other.join().unwrap();
        check_whole(&mm);
    });
}

#[test]
fn remote_drains() {
    disturbed(|mm| {
        mm.drain_all();
        mm.pages().drain_cpu(Cpu(0));
    });
}

#[test]
fn ticks_of_another_cpu() {
    disturbed(|mm| {
        mm.vmstat_tick(Cpu(0));
        mm.reclaim().kswapd(Node(0));
        mm.vmstat_tick(Cpu(0));
    });
}

#[test]
fn knobs_in_mid_run() {
    disturbed(|mm| {
        mm.set_knob(Knob::PcpBatchScaleMax, 0).unwrap();
        mm.set_knob(Knob::PercpuPagelistHighFraction, 8).unwrap();
        mm.set_knob(Knob::MinFreeKbytes, 64).unwrap();
    });
}

/// Whoever writes last: what is in force is what the knobs say.
#[test]
fn knobs_from_two_sides() {
    explore(|| {
        let mm = tiny(1024, Cpus::Pinned, "linux-6.18");
        let writers: Vec<_> = [(0, 64), (1, 256)]
            .map(|(cpu, kib)| {
                let mm = Arc::clone(&mm);
                on_cpu(cpu, move || mm.set_knob(Knob::MinFreeKbytes, kib).unwrap())
            })
            .into();
        join(writers);
        let zone = &mm.zones()[0];
        let rules = mm.policy().rules();
        let wanted = watermark::watermarks(mm.topology(), mm.knobs(), rules, zone.kind(), zone.managed());
        assert_eq!(zone.watermarks(), wanted);
    });
}

/// Three threads take all they can, of several types and orders, then give it back.
#[test]
fn used_up_by_three() {
    explore(|| {
        let mm = tiny(64, Cpus::Roaming, "linux-6.18");
        let threads: Vec<_> = (1..4)
            .map(|me| {
                let mm = Arc::clone(&mm);
                on_cpu(0, move || {
                    let migratetype = MigrateType::ALL[me as usize % MigrateType::PCP_COUNT];
                    let urgency = if me == 1 { Urgency::Atomic } else { Urgency::Waits };
                    let request = Request { migratetype, urgency, ..Request::KERNEL }.of_order(order(3));
                    let held: Vec<Block> = std::iter::from_fn(|| alloc(&mm, me, request)).take(4).collect();
                    free_all(&mm, held);
                })
            })
            .collect();
        join(threads);
        check_whole(&mm);
    });
}

/// A block is split, and its pages are freed by two threads.
#[test]
fn split_blocks() {
    explore(|| {
        let mm = tiny(1024, Cpus::Pinned, "linux-6.18");
        let (pfn, size) = alloc(&mm, 1, Request::USER.of_order(order(2))).unwrap();
        mm.pages().split(pfn, size).unwrap();
        let threads: Vec<_> = [[0, 2], [1, 3]]
            .into_iter()
            .zip(0..)
            .map(|(pages, cpu)| {
                let mm = Arc::clone(&mm);
                on_cpu(cpu, move || {
                    free_all(&mm, pages.map(|page| (pfn.add(page), Order::ZERO)));
                    mm.pages().drain_cpu(Cpu(cpu));
                })
            })
            .collect();
        join(threads);
        check_whole(&mm);
    });
}
