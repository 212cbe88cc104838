//! Where programs' memory lands on a machine of two nodes: by CPUs, nodes and policies that are asked for, and by NUMA balancing.

use std::sync::Arc;

use mm::vm::mempolicy::MemPolicy;
use mm::vm::{Touch, Vpn};
use mm::{Cpu, Knob, Node, NodeMask, Policy};
use sim::Profile;

use crate::measurements::{KnobOutcome, Run};
use crate::program::{
    Begins, Call, Company, Doing, MapCall, PageRange, Program, SaidPolicy, Step, TaskProgram, WhatIsThere,
};
use crate::replay::{CpuChoice, Plan, Share, Source, Variant, replay};
use trace::PolicyMode;

const HEAP: u32 = 512 * 7;
const PAGES: u32 = 2048;

/// A task that maps 8 MiB, writes to it on CPU 1, and then computes for `ms` on CPU 0.
fn mover(name: &str, ms: u32) -> Program {
    let range = PageRange { start: Vpn(HEAP), pages: PAGES };
    let map = MapCall::own(range);
    let step = |doing| Step { own_ns: 1000, doing };
    let touch = |page| Doing::Touches { page, touch: Touch::Write, company: Company::Alone };
    let mut steps = vec![step(Doing::Calls(0)), step(Doing::Calls(1))];
    steps.extend((0..PAGES).map(|page| step(touch(Vpn(HEAP + page)))));
    let moved = steps.len() as u32;
    steps.push(Step { own_ns: ms * 1_000_000, doing: Doing::Computes });
    let ran_on = vec![(0, Cpu(1)), (moved, Cpu(0))];
    Program {
        name: name.to_owned(),
        tasks: vec![TaskProgram {
            name: name.to_owned(),
            begins: Begins::InSpace(0),
            steps,
            ran_on,
            walked: vec![],
            awaited: vec![],
        }],
        calls: vec![Call::Exec, Call::Map(map)],
        before: vec![vec![]],
        ..Program::default()
    }
}

fn plan(share: Share) -> Plan {
    let text = r#"
        name = "two-nodes"
        title = "two nodes"
        extends = "kvm-genoa-2c"
        [topology]
        source = "a test"
        sockets = 2
        cores_per_socket = 1
        threads_per_core = 1
        cores_per_llc = 1
        smt_numbering = "adjacent"
        distances = [[10, 20], [20, 10]]
        [[topology.nodes]]
        socket = 0
        memory_mib = 512
        [[topology.nodes]]
        socket = 1
        memory_mib = 512
    "#;
    let mut plan =
        Plan::new(Profile::parse("two-nodes", text).unwrap(), Policy::parse("linux-6.12").unwrap());
    plan.shares.everyone = share;
    plan
}

fn recorded() -> Share {
    Share { cpus: Some(CpuChoice::Recorded), ..Share::default() }
}

fn run(programs: Vec<Program>, plan: &Plan, knobs: &[(Knob, u64)]) -> Run {
    let sources = programs.into_iter().map(|program| Source::Program(Arc::new(program))).collect();
    // Small pages, if nothing else is said.
    let knobs = if knobs.iter().any(|(knob, _)| *knob == Knob::TransparentHugepage) {
        knobs.to_vec()
    } else {
        [knobs, &[(Knob::TransparentHugepage, 0)]].concat()
    };
    let variant = Variant::from(knobs);
    let run = replay(&Source::together(sources).unwrap(), plan, &variant).unwrap();
    Run { wall_ns: 0, ..run }
}

fn on_nodes(run: &Run) -> Vec<u64> {
    run.recordings[0].pages_by_node.clone()
}

const PAGES_U64: u64 = PAGES as u64;

#[test]
fn memory_stays_where_its_task_was_unless_balancing_brings_it_over() {
    let off = run(vec![mover("m", 3000)], &plan(recorded()), &[(Knob::NumaBalancing, 0)]);
    assert_eq!(on_nodes(&off), [0, PAGES_U64]);
    assert_eq!(off.knob_uses["kernel.numa_balancing"].outcome, KnobOutcome::Acted);
    let on = run(vec![mover("m", 3000)], &plan(recorded()), &[(Knob::NumaBalancing, 1)]);
    // What a CPU still keeps back from the LRU lists stays.
    let moved = on.recordings[0].counts.numa_pages_migrated;
    assert!((PAGES_U64 - 31..=PAGES_U64).contains(&moved), "{moved}");
    assert_eq!(on_nodes(&on), [moved, PAGES_U64 - moved]);
    assert!(on.counters["numa_hint_faults"] >= moved);
    assert_eq!(on.counters["numa_hint_faults_local"], 0, "what is at home is not marked");
    assert_eq!(on, run(vec![mover("m", 3000)], &plan(recorded()), &[(Knob::NumaBalancing, 1)]));
}

#[test]
fn a_program_that_ends_before_its_first_window_is_not_balanced() {
    let short = run(vec![mover("m", 900)], &plan(recorded()), &[]);
    assert_eq!(on_nodes(&short), [0, PAGES_U64]);
    let sooner = run(vec![mover("m", 900)], &plan(recorded()), &[(Knob::BalancingScanDelay, 100)]);
    // Pages are used once in the shortest period, which is a second, and 800 ms are left.
    assert!((PAGES_U64 * 7 / 10..PAGES_U64 * 9 / 10).contains(&on_nodes(&sooner)[0]), "{sooner:?}");
    assert_eq!(sooner.knob_uses["numa_balancing.scan_delay_ms"].outcome, KnobOutcome::Acted);
}

#[test]
fn huge_pages_come_over_whole() {
    let huge = [(Knob::TransparentHugepage, 1), (Knob::NumaBalancing, 1)];
    let all = run(vec![mover("m", 3000)], &plan(recorded()), &huge);
    assert_eq!(on_nodes(&all), [PAGES_U64, 0]);
    assert_eq!(all.counters["numa_pages_migrated"], PAGES_U64);
    // A huge page is marked at home too.
    assert!(all.counters["numa_hint_faults"] >= PAGES_U64 / 512);
    assert!(all.counters["numa_hint_faults"] < PAGES_U64 / 512 * 5, "{:?}", all.counters);
}

#[test]
fn policies_and_nodes_say_where_memory_is_and_balancing_leaves_it() {
    let interleave = Share { policy: Some(MemPolicy::Interleave(NodeMask::ALL)), ..recorded() };
    assert_eq!(on_nodes(&run(vec![mover("m", 3000)], &plan(interleave), &[])), [PAGES_U64 / 2; 2]);
    let bound = Share { mems: Some(NodeMask::only(Node(0))), ..recorded() };
    assert_eq!(on_nodes(&run(vec![mover("m", 10)], &plan(bound), &[])), [PAGES_U64, 0]);
}

/// `mover`, which makes `call` before it maps, before it touches, or when it has touched.
fn saying(call: Call, step: usize) -> Program {
    let mut program = mover("m", 10);
    program.calls.push(call);
    insert(&mut program, step, Doing::Calls(2));
    program
}

/// The first task does something more; it still moves where it moved.
fn insert(program: &mut Program, step: usize, doing: Doing) {
    let task = &mut program.tasks[0];
    task.steps.insert(step, Step { own_ns: 1000, doing });
    task.ran_on.iter_mut().skip(1).for_each(|(from, _)| *from += 1);
}

const BEFORE_MAP: usize = 1;
const BEFORE_TOUCH: usize = 2;
const AFTER_TOUCH: usize = 2 + PAGES as usize;

fn bind(nodes: u64, there: WhatIsThere) -> Call {
    let range = PageRange { start: Vpn(HEAP), pages: PAGES / 2 };
    Call::Bind { range, policy: SaidPolicy { mode: PolicyMode::Bind, nodes }, there }
}

#[test]
fn programs_say_themselves_where_their_memory_is() {
    let nodes = |program: Program| on_nodes(&run(vec![program], &plan(recorded()), &[]));
    let half = PAGES_U64 / 2;
    assert_eq!(nodes(saying(bind(1, WhatIsThere::Stays), BEFORE_TOUCH)), [half, half]);
    assert_eq!(
        nodes(saying(bind(1, WhatIsThere::Stays), AFTER_TOUCH)),
        [0, PAGES_U64],
        "what is there stays"
    );
    assert_eq!(nodes(saying(bind(1, WhatIsThere::Moves), AFTER_TOUCH)), [half, half]);
    let interleave = Call::SetPolicy(SaidPolicy { mode: PolicyMode::Interleave, nodes: 3 });
    for step in [BEFORE_MAP, BEFORE_TOUCH] {
        assert_eq!(
            nodes(saying(interleave, step)),
            [half, half],
            "a policy is of what comes and of what is mapped"
        );
    }
    assert_eq!(nodes(saying(Call::MoveNodes { from: 2, to: 1 }, AFTER_TOUCH)), [PAGES_U64, 0]);
    assert_eq!(nodes(saying(Call::MoveNodes { from: 1, to: 2 }, AFTER_TOUCH)), [0, PAGES_U64]);
}

#[test]
fn a_ranges_policy_outlives_its_tasks_and_the_next_program_has_the_tasks() {
    let mut program = saying(bind(1, WhatIsThere::Stays), BEFORE_TOUCH);
    let all = Call::SetPolicy(SaidPolicy { mode: PolicyMode::Preferred, nodes: 2 });
    program.calls.push(all);
    insert(&mut program, BEFORE_TOUCH + 1, Doing::Calls(3));
    program.tasks[0].ran_on = vec![(0, Cpu(0))];
    let half = PAGES_U64 / 2;
    assert_eq!(on_nodes(&run(vec![program], &plan(recorded()), &[])), [half, half]);
    // numactl: set_mempolicy, then exec.
    let mut numactl = saying(all, 0);
    numactl.tasks[0].ran_on = vec![(0, Cpu(0))];
    assert_eq!(on_nodes(&run(vec![numactl], &plan(recorded()), &[])), [0, PAGES_U64]);
}

#[test]
fn policies_that_cannot_be_carried_out_are_counted_by_name() {
    let lacking = run(vec![saying(bind(1 << 7, WhatIsThere::Stays), BEFORE_TOUCH)], &plan(recorded()), &[]);
    assert_eq!(on_nodes(&lacking), [0, PAGES_U64]);
    assert_eq!(lacking.omissions["policies_of_nodes_that_the_machine_lacks"], 1);
    let mut threads =
        saying(Call::SetPolicy(SaidPolicy { mode: PolicyMode::Bind, nodes: 1 }), BEFORE_TOUCH + 1);
    let waits = Step { own_ns: 1000, doing: Doing::Sleeps(50_000_000) };
    let thread = TaskProgram {
        name: "t".into(),
        begins: Begins::AsThread,
        steps: vec![waits],
        ran_on: vec![],
        walked: vec![],
        awaited: vec![],
    };
    threads.tasks.push(thread);
    insert(&mut threads, BEFORE_TOUCH, Doing::Starts(crate::recorded::TaskRef(1)));
    let threads = run(vec![threads], &plan(recorded()), &[]);
    assert_eq!(on_nodes(&threads), [0, PAGES_U64]);
    assert_eq!(threads.omissions["policies_of_threads"], 1);
}

#[test]
fn two_recordings_share_a_machine_and_are_told_apart() {
    let mut both = plan(Share::default());
    let on = |cpu: u16| Share { cpus: Some(CpuChoice::Any(vec![Cpu(cpu)])), ..Share::default() };
    both.shares.named =
        [("db".to_owned(), on(0)), ("batch".to_owned(), Share { copies: Some(2), ..on(1) })].into();
    let run = run(vec![mover("db", 50), mover("batch", 10)], &both, &[]);
    assert_eq!(run.workload, "db + batch, 2 copies");
    let [db, batch] = &run.recordings[..] else { panic!("two recordings") };
    assert_eq!(
        (&db.pages_by_node[..], &batch.pages_by_node[..]),
        (&[PAGES_U64, 0][..], &[0, 2 * PAGES_U64][..])
    );
    assert_eq!((db.counts.page_faults, batch.counts.page_faults), (PAGES_U64, 2 * PAGES_U64));
    assert!(db.elapsed_ns > 50_000_000 && batch.elapsed_ns > 20_000_000, "{:?}", run.recordings);
}

#[test]
fn two_of_a_name_and_page_events_are_no_company() {
    let source = |name: &str| Source::Program(Arc::new(mover(name, 1)));
    let same = Source::together(vec![source("a"), source("a")]).unwrap_err();
    assert_eq!(same, "two recordings are called a; give one of them another name");
    assert!(Source::together(vec![source("a"), Source::Events(Arc::default())]).is_err());
}

#[test]
fn cpus_that_the_machine_lacks_are_no_place() {
    let mut program = mover("m", 1);
    program.tasks[0].ran_on.push((5000, Cpu(7)));
    let source = Source::Program(Arc::new(program));
    let refused = replay(&source, &plan(recorded()), &Variant::default()).unwrap_err();
    assert_eq!(refused.to_string(), "m ran on CPUs up to 7, and two-nodes has 2; name CPUs (--cpus)");
}
