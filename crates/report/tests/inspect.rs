//! What `freehold inspect` shows, as snapshots.

use freehold_report::{Style, inspect};
use trace::inspect::{
    CacheActivity, KindCount, Losses, MixRow, ObjectBalance, PageBalance, RunRow, SlabPageEvents,
    TaskActivity,
};
use trace::{Damage, How, Inspection};

fn task(name: &str, tid: u32, pages: u64) -> TaskActivity {
    TaskActivity {
        name: name.into(),
        pid: tid,
        tid,
        in_workload: pages > 100,
        allocs: pages,
        alloc_pages: pages,
        frees: pages,
        free_pages: pages,
        faults: pages,
        runs: 3,
        run_ns: 1_200_000 * pages,
    }
}

fn inspection() -> Inspection {
    let row = |order, migratetype, count| MixRow { order, migratetype, count };
    Inspection {
        source: "freehold 0.1.0".into(),
        kernel: "6.18.44".into(),
        cpu_model: "AMD EPYC".into(),
        cpus: 2,
        command: vec!["python3".into(), "loop.py".into()],
        chunks: 3,
        bytes: 3_200_000,
        events: 800_000,
        bytes_per_event: 4.0,
        first_ns: 1_000,
        last_ns: 900_001_000,
        cost_ns_per_event: Some(131.4),
        kinds: vec![
            KindCount { kind: "page_alloc", count: 200_000 },
            KindCount { kind: "zone_locked", count: 600_000 },
        ],
        tasks: vec![task("python3", 812, 65_536), task("kswapd0", 55, 3), TaskActivity::default()],
        allocations: vec![row(0, "Movable", 199_000), row(1, "Unmovable", 1_000)],
        refills: vec![RunRow {
            order: Some(0),
            migratetype: Some("Movable"),
            count: 40,
            blocks: 70_000,
            sizes: vec![(63, 2), (126, 2), (252, 1), (2016, 35)],
        }],
        drains: vec![RunRow {
            order: None,
            migratetype: None,
            count: 9,
            blocks: 900,
            sizes: vec![(63, 4), (64, 5)],
        }],
        pages: PageBalance {
            allocated: 66_000,
            freed: 65_990,
            peak: 65_700,
            held: 10,
            ..PageBalance::default()
        },
        ..Inspection::default()
    }
}

#[test]
fn a_recording_without_faults() {
    insta::assert_snapshot!(inspect::text(Style::plain(), "loop.fh", &inspection()));
}

#[test]
fn whatever_is_missing_is_said() {
    let of = Inspection {
        damage: Some(Damage {
            how: How::Cut,
            offset: 81_920,
            chunks_before: 12,
            after_ns: Some(3_204_000_000),
            chunks: 0,
            events: None,
            end_is_missing: true,
        }),
        truncated: true,
        interrupted: true,
        masked: true,
        exit_status: Some(137),
        cost_ns_per_event: None,
        losses: Losses { lost: 12, occasions: 1, unreadable: 2, left_out: 30 },
        pages: PageBalance { unmatched_frees: 1, allocated_twice: 4, ..PageBalance::default() },
        ..Inspection::default()
    };
    insta::assert_snapshot!(inspect::text(Style::plain(), "cut.fh", &of));
}

#[test]
fn slab_caches_are_listed() {
    let cache = |cache: &str, object_bytes, allocs, frees| CacheActivity {
        cache: cache.into(),
        object_bytes,
        allocs,
        frees,
        peak: 7,
        held: allocs - frees,
        allocated_twice: 0,
    };
    let mut caches = vec![cache("vm_area_struct", 192, 900, 890), cache("kmalloc of pages", 0, 2, 0)];
    caches.extend((0..20).map(|number| cache(&format!("bio-{number}"), 208, 1, 1)));
    let of = Inspection {
        caches,
        objects: ObjectBalance {
            allocated: 922,
            freed: 910,
            peak: 40,
            held: 12,
            unmatched_frees: 1,
            allocated_twice: 3,
        },
        slab_pages: SlabPageEvents { allocations: 9, frees: 1 },
        ..inspection()
    };
    insta::assert_snapshot!(inspect::text(Style::plain(), "slab.fh", &of));
}

#[test]
fn many_tasks_are_counted_and_not_listed() {
    let tasks = (0..40).map(|tid| task("worker", tid, 1000)).collect();
    let text = inspect::text(Style::plain(), "a.fh", &Inspection { tasks, ..inspection() });
    assert!(text.contains("and 28 more tasks"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
}
