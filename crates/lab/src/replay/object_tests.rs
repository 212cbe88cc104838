//! Workloads with slab objects made by hand, replayed.

use std::sync::Arc;

use mm::{Cpu, MigrateType, Nanos, Order, Pfn, Policy, TaskId};
use proptest::prelude::*;
use sim::Profile;
use trace::{Event, EventKind, Gfp, NameId, SlabPages, SwitchState};

use super::{Plan, Source, Variant, replay, replay_all};
use crate::measurements::Run;
use crate::recorded::{Builder, HostCosts, NamedTask, Recorded};

const WORKER: u32 = 0;
const REAPER: u32 = 1;
const OTHER: u32 = 2;

/// How a workload frees what it took.
#[derive(Clone, Copy)]
enum Freer {
    /// The task that took it.
    Itself,
    /// Another task.
    Another,
    /// Somebody outside of the workload.
    Outsider,
}

/// A task that takes `count` objects of two caches and a page with every tenth, one per microsecond, and gives them back
/// in the same order.
fn workload(count: u32, freer: Freer) -> Source {
    Source::Events(Arc::new(recorded(count, freer)))
}

fn recorded(count: u32, freer: Freer) -> Recorded {
    let mut events = vec![];
    let mut push = |task: u32, kind| {
        let time = Nanos(1_000 * (events.len() as u64 + 1));
        events.push(Event { time, cpu: Cpu(task as u16), task: TaskId(task), kind });
    };
    for object in 0..count {
        push(WORKER, get(object, object % 2));
        if object % 10 == 0 {
            let (order, migratetype) = (Order::ZERO, MigrateType::Movable);
            let gfp = Gfp::HIGHUSER_MOVABLE;
            push(WORKER, EventKind::PageAlloc { pfn: Pfn(object), order, migratetype, gfp });
        }
    }
    for object in 0..count {
        let by = [WORKER, REAPER, OTHER][freer as usize];
        push(by, EventKind::SlabFree { object: address(object), cache: NameId::NONE });
        if object % 10 == 0 {
            push(WORKER, EventKind::PageFree { pfn: Pfn(object), order: Order::ZERO });
        }
    }
    built(&events)
}

fn built(events: &[Event]) -> Recorded {
    let tasks = vec![NamedTask::inside("worker"), NamedTask::inside("reaper"), NamedTask::outside("swapper")];
    let names = vec![String::new(), "filp".into()];
    let pages = SlabPages::of_events(events);
    let mut builder = Builder::new("hand-made", tasks, HostCosts::NONE).with_slabs(names, pages);
    for event in events {
        builder.event(event);
    }
    builder.finish()
}

fn address(object: u32) -> u64 {
    0xffff_8881_0000_0000 + u64::from(object) * 256
}

fn get(object: u32, cache: u32) -> EventKind {
    EventKind::SlabAlloc {
        object: address(object),
        cache: NameId(cache),
        requested: 256,
        allocated: 256,
        gfp: Gfp::KERNEL,
        node: -1,
    }
}

fn plan(machine: &str, policy: &str, copies: u32) -> Plan {
    let mut plan = Plan::new(Profile::load(machine).unwrap(), Policy::parse(policy).unwrap());
    plan.copies = copies;
    plan
}

fn on_threads(threads: usize, workload: &Source, plan: &Plan) -> Vec<Run> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut runs = pool.install(|| replay_all(workload, std::slice::from_ref(plan), &|_| {}).unwrap());
    for run in &mut runs {
        run.wall_ns = 0;
    }
    runs
}

#[test]
fn one_seed_one_result_with_objects() {
    for policy in ["linux-6.5", "linux-6.18", "linux-7.2", "freehold"] {
        let workload = workload(2_000, Freer::Another);
        let mut plan = plan("epyc-7w83", policy, 3);
        plan.settings = vec![super::parse_setting("vm.pcp_batch_scale_max=5,0").unwrap()];
        let first = on_threads(1, &workload, &plan);
        assert_eq!(first, on_threads(2, &workload, &plan), "{policy}");
    }
}

#[test]
fn every_object_is_taken_and_given_back() {
    for freer in [Freer::Itself, Freer::Another, Freer::Outsider] {
        let run =
            replay(&workload(1_000, freer), &plan("kvm-genoa-2c", "linux-6.12", 2), &Variant::default())
                .unwrap();
        assert_eq!(run.operations, 2 * 2 * 1_100);
        assert_eq!(run.latency["slab_alloc"].count, 2 * 1_000);
        assert_eq!(run.latency["slab_free"].count, 2 * 1_000);
        assert_eq!(run.omissions.len(), 0, "{:?}", run.omissions);
        let allocated: u64 = run.counters["slab_alloc_fastpath"] + run.counters["slab_alloc_slowpath"];
        assert_eq!(allocated, 2 * 1_000);
        assert_eq!(run.memory.held_pages, 0);
        assert!(run.memory.slab_pages > 0 && run.memory.slab_pages < 2 * 2 * 2 * 70, "{:?}", run.memory);
    }
}

#[test]
fn what_another_cpu_frees_takes_the_slow_path() {
    let slow_frees = |freer| {
        let plan = plan("kvm-genoa-2c", "linux-6.12", 1);
        let run = replay(&workload(1_000, freer), &plan, &Variant::default()).unwrap();
        run.counters.get("slab_free_slowpath").copied().unwrap_or(0)
    };
    let (own, others) = (slow_frees(Freer::Itself), slow_frees(Freer::Another));
    assert_eq!(others, 1_000, "none of the slabs is the other CPU's");
    assert!(own < others, "{own}: those of the slab that the CPU has at the time are fast");
}

#[test]
fn caches_have_sheaves_where_the_policy_says_so() {
    let of = |policy: &str, counter: &str| {
        let run =
            replay(&workload(1_000, Freer::Itself), &plan("kvm-genoa-2c", policy, 1), &Variant::default());
        run.unwrap().counters.get(counter).copied().unwrap_or(0)
    };
    assert_eq!(of("linux-6.18", "slab_alloc_cpu_sheaf"), 0, "filp does not ask for any");
    assert!(of("linux-7.2", "slab_alloc_cpu_sheaf") > 500);
}

#[test]
fn rounds_give_back_what_they_left() {
    let events: Vec<Event> = (0..500)
        .map(|object| Event {
            time: Nanos(u64::from(object)),
            cpu: Cpu(0),
            task: TaskId(WORKER),
            kind: get(object, 1),
        })
        .collect();
    let workload = Source::Events(Arc::new(built(&events)));
    let mut plan = plan("kvm-genoa-2c", "linux-6.12", 1);
    plan.repeat = 3;
    let run = replay(&workload, &plan, &Variant::default()).unwrap();
    assert_eq!((run.operations, run.latency["slab_alloc"].count), (3 * 500, 3 * 500));
    assert_eq!(run.latency["slab_free"].count, 2 * 500, "between the rounds");
}

#[test]
fn caches_that_cannot_be_made_fail_and_nothing_breaks() {
    let mut workload = recorded(100, Freer::Another);
    let crate::recorded::ObjectCache::Named(spec) = &mut workload.caches[1] else { panic!() };
    spec.object_size = 0;
    let run = replay(
        &Source::Events(Arc::new(workload)),
        &plan("kvm-genoa-2c", "linux-6.12", 1),
        &Variant::default(),
    )
    .unwrap();
    assert_eq!(run.omissions["failed_allocations"], 50);
    assert_eq!(run.omissions["frees_of_failed_allocations"], 50);
}

/// Any events, of few objects and pages, so that they meet.
fn any_event() -> impl Strategy<Value = Event> {
    let object = prop_oneof![4 => (0u32..40).prop_map(address), 1 => any::<u64>()];
    let size = prop_oneof![4 => Just(192u32), 1 => Just(64), 1 => 0u32..20_000, 1 => any::<u32>()];
    let get = (object.clone(), 0u32..4, size, any::<u32>()).prop_map(|(object, cache, allocated, gfp)| {
        let (cache, requested) = (NameId(cache), allocated.saturating_sub(gfp % 3));
        EventKind::SlabAlloc { object, cache, requested, allocated, gfp: Gfp(gfp), node: -1 }
    });
    let put =
        (object, 0u32..4).prop_map(|(object, cache)| EventKind::SlabFree { object, cache: NameId(cache) });
    let block = (0x10_0000u32..0x10_0008, 0u8..4);
    let page = (block.clone(), any::<u32>()).prop_map(|((pfn, order), gfp)| EventKind::PageAlloc {
        pfn: Pfn(pfn),
        order: Order::new(order).unwrap(),
        migratetype: MigrateType::Unmovable,
        gfp: Gfp(gfp),
    });
    let unpage = block
        .prop_map(|(pfn, order)| EventKind::PageFree { pfn: Pfn(pfn), order: Order::new(order).unwrap() });
    let away = (0u32..3, 0u64..6).prop_map(|(next, state)| EventKind::Switch {
        next: TaskId(next),
        state: SwitchState::from_index(state).unwrap(),
    });
    let kind = prop_oneof![4 => get, 4 => put, 1 => page, 1 => unpage, 1 => away];
    (0u64..100_000, 0u16..2, 0u32..3, kind).prop_map(|(time, cpu, task, kind)| Event {
        time: Nanos(time),
        cpu: Cpu(cpu),
        task: TaskId(task),
        kind,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever a recording says, it plays to its end, and what it could not do is counted.
    #[test]
    fn any_recording_plays_to_its_end(events in prop::collection::vec(any_event(), 1..200), sheaves: bool) {
        let workload = Arc::new(built(&events));
        let plan = plan("kvm-genoa-2c", if sheaves { "linux-7.2" } else { "linux-6.5" }, 1);
        if workload.operations > 0 {
            let run = replay(&Source::Events(Arc::clone(&workload)), &plan, &Variant::default()).unwrap();
            let undone = run.omissions.get("frees_of_failed_allocations").copied().unwrap_or(0);
            prop_assert!(run.operations + undone <= workload.operations + workload.tasks.len() as u64 * 200);
        }
    }
}
