//! Workloads made by hand, replayed.

use std::sync::Arc;

use mm::{Cpu, MigrateType, Nanos, Order, Pfn, Policy, TaskId};
use sim::Profile;
use trace::{Event, EventKind, Gfp, SwitchState};

use super::{
    Plan, ReplayError, Source, Variant, parse_change, parse_changes, parse_cpu_list, parse_setting,
    parse_settings, replay, replay_all,
};
use crate::measurements::Run;
use crate::recorded::{Builder, HostCosts, NamedTask};

/// One task that takes `pages`, one per microsecond, and gives them back; a second task frees every tenth of them.
fn workload(pages: u32) -> Source {
    let tasks = vec![NamedTask::inside("worker"), NamedTask::inside("reaper")];
    let mut builder = Builder::new("hand-made", tasks, HostCosts::NONE);
    let mut time = 0;
    let mut push = |builder: &mut Builder, task: u32, kind| {
        time += 1_000;
        builder.event(&Event { time: Nanos(time), cpu: Cpu(0), task: TaskId(task), kind });
    };
    for page in 0..pages {
        let (order, migratetype) = (Order::ZERO, MigrateType::Movable);
        let gfp = Gfp::HIGHUSER_MOVABLE;
        push(&mut builder, 0, EventKind::PageAlloc { pfn: Pfn(page), order, migratetype, gfp });
    }
    for page in 0..pages {
        let task = u32::from(page % 10 == 0);
        push(&mut builder, task, EventKind::PageFree { pfn: Pfn(page), order: Order::ZERO });
    }
    Source::Events(Arc::new(builder.finish()))
}

fn plan(machine: &str, copies: u32) -> Plan {
    let mut plan = Plan::new(Profile::load(machine).unwrap(), Policy::default());
    plan.copies = copies;
    plan
}

fn scales(plan: &mut Plan) {
    plan.settings = vec![parse_setting("vm.pcp_batch_scale_max=5,0").unwrap()];
}

fn without_wall(mut runs: Vec<Run>) -> Vec<Run> {
    for run in &mut runs {
        run.wall_ns = 0;
    }
    runs
}

fn on_threads(threads: usize, workload: &Source, plan: &Plan) -> Vec<Run> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    without_wall(pool.install(|| replay_all(workload, std::slice::from_ref(plan), &|_| {}).unwrap()))
}

#[test]
fn one_seed_one_result_on_one_thread_and_on_two() {
    let workload = workload(5_000);
    let mut plan = plan("epyc-7w83", 6);
    scales(&mut plan);
    let first = on_threads(1, &workload, &plan);
    assert_eq!(first, on_threads(1, &workload, &plan));
    assert_eq!(first, on_threads(2, &workload, &plan));
    plan.seed = 2;
    assert_ne!(first, on_threads(2, &workload, &plan), "another seed starts the copies at other times");
}

#[test]
fn every_operation_is_carried_out() {
    let workload = workload(3_000);
    let run = replay(&workload, &plan("kvm-genoa-2c", 3), &Variant::default()).unwrap();
    assert_eq!(run.operations, 3 * 2 * 3_000);
    assert_eq!(run.latency["page_alloc"].count, 3 * 3_000);
    assert_eq!(run.memory.held_pages, 0);
    assert!(run.memory.peak_pages >= 3_000 && run.memory.peak_pages <= 9_000, "{}", run.memory.peak_pages);
    assert_eq!(run.omissions.len(), 0, "{:?}", run.omissions);
}

/// The first task is off its CPU, and ready, while the second computes: that wait is the recorded machine's, so that the
/// first one comes to its free long before the second has cut the block up.
#[test]
fn a_page_of_a_block_is_awaited_until_somebody_cuts_it_up() {
    let alloc = |pfn, order| EventKind::PageAlloc {
        pfn: Pfn(pfn),
        order,
        migratetype: MigrateType::Movable,
        gfp: Gfp::HIGHUSER_MOVABLE,
    };
    let free = |pfn| EventKind::PageFree { pfn: Pfn(pfn), order: Order::ZERO };
    let switch = |next| EventKind::Switch { next: TaskId(next), state: SwitchState::Runnable };
    let events = [
        (0, 0, alloc(512, Order::PAGEBLOCK)),
        (10, 1, alloc(7, Order::ZERO)),
        (1_000, 0, switch(1)),
        (100_000, 1, free(513)),
        (100_001, 1, switch(0)),
        (100_002, 0, free(514)),
    ];
    let tasks = vec![NamedTask::inside("worker"), NamedTask::inside("reaper")];
    let mut builder = Builder::new("hand-made", tasks, HostCosts::NONE);
    for (time, task, kind) in events {
        builder.event(&Event { time: Nanos(time), cpu: Cpu(0), task: TaskId(task), kind });
    }
    let run =
        replay(&Source::Events(Arc::new(builder.finish())), &plan("kvm-genoa-2c", 1), &Variant::default())
            .unwrap();
    assert_eq!((run.operations, run.memory.held_pages), (4, 511));
}

#[test]
fn rounds_repeat_the_workload() {
    let mut plan = plan("kvm-genoa-2c", 2);
    plan.repeat = 3;
    let run = replay(&workload(1_000), &plan, &Variant::default()).unwrap();
    assert_eq!(run.operations, 2 * 3 * 2 * 1_000);
    assert_eq!(run.memory.held_pages, 0);
}

#[test]
fn the_scale_bounds_refills() {
    let workload = workload(20_000);
    let mut plan = plan("kvm-genoa-2c", 1);
    scales(&mut plan);
    let runs = replay_all(&workload, std::slice::from_ref(&plan), &|_| {}).unwrap();
    let refills: Vec<u64> = runs.iter().map(|run| run.latency["refill"].count).collect();
    assert!(refills[1] > 10 * refills[0], "{refills:?}");
    assert!(runs[1].latency["refill"].mean_ns < runs[0].latency["refill"].mean_ns);
}

#[test]
fn a_knob_changes_in_mid_run() {
    let workload = workload(20_000);
    let mut plan = plan("kvm-genoa-2c", 1);
    let fixed = replay(&workload, &plan, &Variant::default()).unwrap();
    plan.changes = vec![parse_change("1us:vm.pcp_batch_scale_max=0").unwrap()];
    let changed = replay(&workload, &plan, &Variant::default()).unwrap();
    assert!(changed.latency["refill"].count > 10 * fixed.latency["refill"].count);
}

#[test]
fn a_machine_that_is_too_small_is_reported() {
    let text = r#"
        name = "tiny"
        title = "a machine with 64 MiB"
        extends = "kvm-genoa-2c"
        [topology]
        source = "a test"
        sockets = 1
        cores_per_socket = 2
        threads_per_core = 1
        cores_per_llc = 2
        smt_numbering = "adjacent"
        distances = [[10]]
        [[topology.nodes]]
        socket = 0
        memory_mib = 64
    "#;
    let plan = Plan::new(Profile::parse("tiny", text).unwrap(), Policy::default());
    let run = replay(&workload(20_000), &plan, &Variant::default()).unwrap();
    let failed = run.omissions["failed_allocations"];
    assert!(failed > 1_000, "{failed}");
    assert_eq!(run.omissions["frees_of_failed_allocations"], failed);
}

#[test]
fn nothing_to_replay_is_an_error() {
    let empty = Source::Events(Arc::default());
    let result = replay(&empty, &plan("kvm-genoa-2c", 1), &Variant::default());
    assert!(matches!(result, Err(ReplayError::Empty)));
}

#[test]
fn settings_are_read_or_refused_in_one_line() {
    let refused = |text: &str| parse_setting(text).unwrap_err().to_string();
    insta::assert_snapshot!(refused("vm.pcp_batch_scale_max"), @"'vm.pcp_batch_scale_max' is not of the form knob=value[,value…]");
    insta::assert_snapshot!(refused("vm.pcp_batch=3"), @"no knob is called 'vm.pcp_batch'");
    insta::assert_snapshot!(refused("vm.pcp_batch_scale_max=3,9"), @"vm.pcp_batch_scale_max = 9 is out of range: 0 to 6");
    let refused = |text: &str| parse_change(text).unwrap_err().to_string();
    insta::assert_snapshot!(refused("5:vm.pcp_batch_scale_max=3"), @"'5:vm.pcp_batch_scale_max=3' is not of the form time:knob=value, with the time as 2s, 150ms, 20us or 7ns");
    assert_eq!(parse_change("150ms:vm.pcp_batch_scale_max=3").unwrap().at, Nanos(150_000_000));
}

#[test]
fn seeds_are_runs_of_their_own() {
    let mut plan = plan("xeon-8260", 4);
    scales(&mut plan);
    (plan.seed, plan.seeds) = (5, 2);
    let runs = on_threads(2, &workload(2_000), &plan);
    let told: Vec<(&str, u64)> = runs.iter().map(|run| (run.variant.as_str(), run.seed)).collect();
    let (five, zero) = ("vm.pcp_batch_scale_max=5", "vm.pcp_batch_scale_max=0");
    assert_eq!(told, [(five, 5), (five, 6), (zero, 5), (zero, 6)]);
    assert_ne!(runs[0].simulated_ns, runs[1].simulated_ns, "copies begin at other times");
    (plan.seed, plan.seeds) = (6, 1);
    assert_eq!(runs[1], on_threads(1, &workload(2_000), &plan)[0]);
}

#[test]
fn a_knob_is_set_once() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let refused = |set: &[&str]| parse_settings(&texts(set)).unwrap_err().to_string();
    insta::assert_snapshot!(refused(&["vm.swappiness=0", "vm.stat_interval=2", "vm.swappiness=60"]), @"vm.swappiness is set twice; give it all its values at once: --set vm.swappiness=V,V");
    insta::assert_snapshot!(refused(&["transparent_hugepage.enabled=always,never,1"]), @"transparent_hugepage.enabled is given the value always twice");
    let refused = |at: &[&str]| parse_changes(&texts(at)).unwrap_err().to_string();
    insta::assert_snapshot!(refused(&["2s:vm.swappiness=0", "2000ms:vm.swappiness=60"]), @"vm.swappiness changes twice at 2000000000 ns; keep one of the two");
    let changes =
        parse_changes(&texts(&["2s:vm.swappiness=0", "3s:vm.swappiness=60", "2s:vm.stat_interval=2"]));
    assert_eq!(changes.unwrap().len(), 3);
}

#[test]
fn variants_print_words() {
    let mut plan = plan("kvm-genoa-2c", 1);
    plan.forced = true;
    plan.settings = vec![parse_setting("transparent_hugepage.enabled=always,2").unwrap()];
    let names: Vec<String> = plan.variants().iter().map(Variant::name).collect();
    assert_eq!(names, ["transparent_hugepage.enabled=always", "transparent_hugepage.enabled=madvise"]);
    let run = replay(&workload(100), &plan, &plan.variants()[1]).unwrap();
    assert_eq!(run.knobs["transparent_hugepage.enabled"], "madvise".into());
}

#[test]
fn what_no_mainline_kernel_has_is_noted() {
    let mut plan = plan("kvm-genoa-2c", 1);
    scales(&mut plan);
    let [five, zero] =
        [0, 1].map(|index| replay(&workload(100), &plan, &plan.variants()[index]).unwrap().notes);
    assert_eq!(five, [""; 0], "5 is what mainline kernels have built in");
    assert_eq!(
        zero,
        ["vm.pcp_batch_scale_max=0: no mainline kernel has this (CONFIG_PCP_BATCH_SCALE_MAX at build time)"]
    );
}

#[test]
fn a_change_after_the_end_is_counted() {
    let mut plan = plan("kvm-genoa-2c", 1);
    plan.forced = true;
    plan.changes =
        vec![parse_change("10us:vm.swappiness=0").unwrap(), parse_change("1000s:vm.swappiness=1").unwrap()];
    let run = replay(&workload(1_000), &plan, &Variant::default()).unwrap();
    assert_eq!(run.omissions["changes_not_reached"], 1);
    assert_eq!(run.notes, ["vm.swappiness=0 from 0.01 ms on", "vm.swappiness=1 from 1000000 ms on"]);
    plan.changes.pop();
    let run = replay(&workload(1_000), &plan, &Variant::default()).unwrap();
    assert!(!run.omissions.contains_key("changes_not_reached"));
}

#[test]
fn lists_of_cpus_are_read_or_refused() {
    let cpus: Vec<u16> = parse_cpu_list("0-2,9", 16).unwrap().into_iter().map(|cpu| cpu.0).collect();
    assert_eq!(cpus, [0, 1, 2, 9]);
    insta::assert_snapshot!(parse_cpu_list("3-1", 16).unwrap_err(), @"'3-1' is not a list of CPUs such as 0-3,8");
    insta::assert_snapshot!(parse_cpu_list("16", 16).unwrap_err(), @"there is no CPU 16: the machine has 0 to 15");
}
