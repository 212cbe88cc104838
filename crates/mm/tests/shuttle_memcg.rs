//! Schedules of what is charged to groups: CPUs charge from stocks that others drain, a limit sends pages to compressed swap, tasks
//! change groups. In the end nothing is charged to anybody and all memory is back.
#![cfg(shuttle)]

mod explored;

use std::sync::atomic::{AtomicU64, Ordering};

use explored::{Cpus, Tiny, assert_met, check_whole, explore, join, on_cpu, tiny};
use freehold_mm::vm::{MapSpec, SwapDevice, Touch};
use freehold_mm::{GroupId, Limit, TaskId};
use shuttle::sync::Arc;

const TASK: TaskId = TaskId(0);

/// All stocks are drained: what is left is what pages have.
fn charged(mm: &Tiny, groups: &[GroupId]) -> Vec<(u64, u64)> {
    mm.lru().lru_drain_all();
    // A limit drains stocks where it is below what is charged.
    for &group in groups {
        _ = mm.memcg().set_limit(group, Limit::Max, 0);
    }
    groups.iter().map(|&group| (mm.memcg().usage(group), mm.memcg().swap_usage(group))).collect()
}

#[test]
fn stocks_are_drained_while_others_charge() {
    static SWAPPED: AtomicU64 = AtomicU64::new(0);
    explore(|| {
        let mm = tiny(48, Cpus::Pinned, "linux-6.18");
        mm.spaces().set_swap_on(SwapDevice::Zram { ratio_percent: 200 }, 40);
        let one = mm.memcg().group(GroupId::ROOT, "one").unwrap();
        let other = mm.memcg().group(GroupId::ROOT, "other").unwrap();
        mm.memcg().join(TASK, one);
        mm.memcg().set_limit(one, Limit::Max, 10);
        let program = |cpu: u16, pages: u32| {
            let mm = Arc::clone(&mm);
            on_cpu(cpu, move || {
                let space = mm.spaces().new_space();
                let at = mm.spaces().mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
                for page in 0..pages {
                    let _ = mm.spaces().touch_page(&space, at.add(page), Touch::Write);
                }
                let _ = mm.spaces().touch_page(&space, at, Touch::Read);
                mm.spaces().exit(&space);
            })
        };
        let mover = Arc::clone(&mm);
        join(vec![
            program(0, 8),
            program(1, 6),
            on_cpu(1, move || {
                mover.memcg().join(TASK, other);
                mover.memcg().set_limit(one, Limit::High, 4);
                mover.memcg().join(TASK, one);
            }),
        ]);
        SWAPPED.fetch_add(mm.views().counters().get("pswpout"), Ordering::Relaxed);
        mm.spaces().check_vm().unwrap();
        assert_eq!(charged(&mm, &[one, other]), [(0, 0), (0, 0)]);
        assert_eq!((mm.spaces().swap_pages().0, mm.spaces().swap_frames()), (0, 0));
        check_whole(&mm);
    });
    assert_met(SWAPPED.load(Ordering::Relaxed));
}
