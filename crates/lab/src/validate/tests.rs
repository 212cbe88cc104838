//! Fixed events and figures to rows.

#![expect(clippy::float_cmp, reason = "figures that are exact in binary")]

use mm::{Cpu, MigrateType, Nanos, Order, Pfn, TaskId};
use trace::{Event, EventKind};

use super::holds::{Both, ProbeCost, find};
use super::rows::{Mark, marks, target_of};
use super::*;
use crate::measurements::Row;

const COST: ProbeCost = ProbeCost { refill_ns: 100.0, drain_ns: 80.0 };

fn event(time: u64, cpu: u16, task: u32, kind: EventKind) -> Event {
    Event { time: Nanos(time), cpu: Cpu(cpu), task: TaskId(task), kind }
}

fn taken(pfn: u32, order: u8) -> EventKind {
    let (order, migratetype) = (Order::new(order).unwrap(), MigrateType::Movable);
    EventKind::ZoneLocked { pfn: Pfn(pfn), order, migratetype, percpu_refill: true }
}

fn drained(pfn: u32, migratetype: MigrateType) -> EventKind {
    EventKind::PcpuDrain { pfn: Pfn(pfn), order: Order::ZERO, migratetype }
}

/// CPU 0 refills 21 pages at 130 ns each while CPU 1 drains 17 of two types at 90 ns each, event by event in turn.
fn two_cpus() -> Vec<Event> {
    let mut events: Vec<Event> =
        (0..21).map(|page| event(1000 + 130 * page, 0, 7, taken(page as u32, 0))).collect();
    events.extend((0..17).map(|page| {
        let of = if page < 9 { MigrateType::Movable } else { MigrateType::Unmovable };
        event(1010 + 90 * page, 1, 7, drained(100 + page as u32, of))
    }));
    events.sort_by_key(|event| event.time);
    events
}

#[test]
fn a_hold_is_a_run_on_one_cpu_less_what_events_cost() {
    let Both { refills, drains } = find(&two_cpus(), COST, |_| true);
    assert_eq!((refills.count, refills.pages, refills.median_ns_per_page()), (1, 21, Some(30.0)));
    assert_eq!((drains.count, drains.pages, drains.median_ns_per_page()), (1, 17, Some(10.0)));
    assert_eq!(refills.mean_pages(), 21.0);
}

#[test]
fn other_events_and_other_lists_end_a_refill() {
    let freed = EventKind::PageFree { pfn: Pfn(9), order: Order::ZERO };
    let events = [taken(1, 0), taken(2, 0), freed, taken(3, 0), taken(4, 1), taken(6, 1)];
    let events: Vec<Event> = (0..).zip(events).map(|(at, kind)| event(at * 100, 0, 7, kind)).collect();
    let both = find(&events, COST, |_| true);
    assert_eq!((both.refills.count, both.refills.pages), (3, 7));
    assert_eq!(both.refills.median_ns_per_page(), None, "short runs are not timed");
}

#[test]
fn others_holds_are_not_ours() {
    assert_eq!(find(&two_cpus(), COST, |task| task != TaskId(7)), Both::default());
}

fn row(metric: &str, error: f64) -> Row {
    Row { metric: metric.into(), error, ..Row::default() }
}

#[test]
fn a_figure_that_is_missing_is_outside_of_its_target() {
    let rows = [
        row("trace.refills", 0.02),
        row("trace.drained_pages", -0.021),
        row("faults_per_second", f64::NAN),
        row("refill.hold_ns_per_page", -0.1),
        row("drain.pages_per_hold", 9.0),
    ];
    let [counts, times] = marks(&rows)[..] else { panic!("two targets") };
    assert_eq!((counts.rows, counts.within, counts.worst), (2, 1, 0.021));
    assert_eq!((times.rows, times.within, times.worst), (2, 1, f64::INFINITY));
    assert!(target_of("drain.pages_per_hold").is_none());
    assert!(marks(&rows[4..]).is_empty());
    assert_eq!(Mark::score(&counts).predicted_rows, 2);
}

#[test]
fn faults_a_second_are_by_cpu_time_and_of_all_tasks() {
    let task = |cpu_ns: &[u64]| FaultRounds { pages: 1000, cpu_ns: cpu_ns.to_vec(), elapsed_ns: 9_000_000 };
    let tasks = [task(&[1_000_000, 900_000, 50_000_000]), task(&[2_000_000])];
    assert_eq!(faults_per_second(&tasks), 1_500_000.0 / 1e-3 / 1000.0);
    assert_eq!(share(&tasks[1..]).unwrap(), "tasks had their CPUs for 22 % of the time.");
    assert_eq!(share(&tasks[..1]), None);
}

#[test]
fn a_case_is_simulated_and_set_beside_what_was_seen() {
    let profile = sim::Profile::load("kvm-genoa-2c").unwrap();
    let vm = [("min_free_kbytes".to_owned(), "67584".to_owned())].into();
    let plan = Plan::new(profile, "6.18.44-fc", &vm, 8).unwrap();
    assert_eq!(
        (plan.policy.name(), &plan.knobs[..]),
        ("linux-6.18", &[(mm::Knob::MinFreeKbytes, 67584)][..])
    );
    let case = Case { memory: Memory::Shared, tasks: 1 };
    let observed = Observed {
        faults: 1000,
        holds: find(&two_cpus(), COST, |_| true),
        moved: crate::conform::PagesMoved::default(),
        notes: vec![],
    };
    let unrecorded = vec![FaultRounds { pages: 2048, cpu_ns: vec![2_000_000], elapsed_ns: 2_000_000 }];
    let simulated = vec![simulate(&plan, case, 1).unwrap()];
    let setting =
        Setting { release: "6.18.44-fc".into(), machine: "a profile".into(), cost: COST, notes: vec![] };
    let compared = Compared { case, observed, unrecorded, simulated };
    let cheap = Setting { cost: ProbeCost { refill_ns: 1.0, drain_ns: 1.0 }, ..setting.clone() };
    assert!(super::document("validate".into(), &cheap, std::slice::from_ref(&compared)).notes.is_empty());
    let document = document("validate".into(), &setting, &[compared]);
    let said = document.notes.join("\n");
    assert!(
        said.contains("cannot show how long locks are held (100 ns an event for 30 ns a page of a refill"),
        "{said}"
    );
    let figure = |metric: &str| document.rows.iter().find(|row| row.metric == metric).unwrap();
    assert_eq!((figure("trace.refills").published, figure("trace.refills").error), (0.0, 0.0));
    assert_eq!(figure("refills_per_1000_faults").published, 1.0);
    assert_eq!(figure("refill.hold_ns_per_page").published, 30.0);
    assert!(figure("refill.hold_ns_per_page").simulated > 0.0);
    assert_eq!(figure("faults_per_second").published, 1_024_000.0);
    assert!(figure("faults_per_second").simulated > 10_000.0);
    assert!(document.rows.iter().all(|row| row.variant == "shared memory, 1 task"));
    assert_eq!((document.runs.len(), document.score.len()), (2, 2));
    assert!(Plan::new(sim::Profile::load("kvm-genoa-2c").unwrap(), "no release", &vm_none(), 8).is_err());
}

fn vm_none() -> std::collections::BTreeMap<String, String> {
    std::collections::BTreeMap::new()
}
