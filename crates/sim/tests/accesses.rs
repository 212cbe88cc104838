//! What a task's accesses cost, through the public door: by place, by cache, by what others draw.

use std::cell::RefCell;
use std::rc::Rc;

use mm::{Cpu, Machine, Nanos, Node};
use sim::{AccessMix, Level, Measurements, Pattern, Profile, Sim, SimOptions, TaskSpec};

/// The Xeon of two sockets (CPUs 0 to 23 and 24 to 47 are the cores' first threads), with an expander on socket 0.
fn profile() -> Profile {
    let text = "extends = 'xeon-8260'
        [topology]
        distances = [[10, 21, 50], [21, 10, 60], [50, 60, 10]]
        nodes = [{ socket = 0, memory_mib = 4096 }, { socket = 1, memory_mib = 4096 },
                 { socket = 0, memory_mib = 4096, has_cpus = false, extra_ns = 170, gbps = 25 }]";
    Profile::parse("with-expander", text).unwrap()
}

const NODE0: &[(Node, u64)] = &[(Node(0), 1)];
const NODE1: &[(Node, u64)] = &[(Node(1), 1)];
const EXPANDER: &[(Node, u64)] = &[(Node(2), 1)];
const MIB: u64 = 1 << 20;

fn mix(pattern: Pattern, nodes: &'static [(Node, u64)]) -> AccessMix<'static> {
    AccessMix { reads: 100_000, writes: 0, pattern, working_set: 512 * MIB, nodes }
}

/// How long each of `tasks` takes on its CPU if all begin together, ns, and what was measured.
fn together(tasks: &[(u16, AccessMix<'static>)]) -> (Vec<u64>, Measurements) {
    let mut sim = Sim::new(&profile(), SimOptions::default());
    let times = Rc::new(RefCell::new(vec![0; tasks.len()]));
    for (number, &(cpu, mix)) in tasks.iter().enumerate() {
        let (machine, times) = (sim.machine(), Rc::clone(&times));
        sim.spawn(TaskSpec::new(format!("t{number}")).on(Cpu(cpu)), move || {
            let since = machine.now();
            machine.access(mix);
            times.borrow_mut()[number] = machine.now().0 - since.0;
        });
    }
    sim.run(None).unwrap();
    (times.take(), sim.measurements())
}

fn alone(cpu: u16, mix: AccessMix<'static>) -> u64 {
    together(&[(cpu, mix)]).0[0]
}

/// Within a hundredth.
fn assert_near(is: u64, should: u64) {
    assert!(is.abs_diff(should) * 100 <= should, "{is} should be about {should}");
}

#[test]
fn far_memory_takes_longer() {
    for pattern in [Pattern::Dependent, Pattern::Random, Pattern::Sequential, Pattern::Streaming] {
        let on = |nodes| alone(0, mix(pattern, nodes));
        let (local, remote, expander) = (on(NODE0), on(NODE1), on(EXPANDER));
        assert!(local < remote && remote < expander, "{pattern:?}: {local} {remote} {expander}");
        let from_the_other_socket = alone(24, mix(pattern, EXPANDER));
        assert!(expander < from_the_other_socket, "{pattern:?}: {from_the_other_socket}");
        let half = on(&[(Node(0), 7), (Node(1), 7)]);
        assert_near(2 * half, local + remote);
    }
}

#[test]
fn dependent_accesses_cost_the_latency_and_independent_ones_overlap() {
    // 512 MiB, of which the last-level cache has 35.75 and the core 1.03, at 22.5 and 4.7 ns; the rest takes 80.8.
    let dependent = alone(0, mix(Pattern::Dependent, NODE0));
    assert_near(dependent, 7_655_000);
    // Five under way at a time draw 4 GB/s, which raises the latency a little.
    let random = 5 * alone(0, mix(Pattern::Random, NODE0));
    assert!(dependent < random && random * 100 < dependent * 103, "{random} beside {dependent}");
}

#[test]
fn what_fits_in_a_cache_is_found_there_wherever_it_lies() {
    for pattern in [Pattern::Dependent, Pattern::Random, Pattern::Sequential, Pattern::Streaming] {
        for (kib, level) in [(16, Level::L1), (512, Level::L2), (8192, Level::L3)] {
            let on = |nodes| {
                let mix = AccessMix { working_set: kib << 10, ..mix(pattern, nodes) };
                together(&[(0, mix)])
            };
            let ((local, measured), (expander, _)) = (on(NODE0), on(EXPANDER));
            assert_eq!(local, expander, "{pattern:?}, {kib} KiB");
            let found = measured.accesses;
            assert!(found.iter().sum::<u64>().abs_diff(100_000) < 3, "{found:?}");
            // Of 8 MiB, the core's own caches have an eighth.
            assert!(found[level as usize] > 85_000, "{pattern:?}, {kib} KiB: {found:?}");
            assert_eq!(found[Level::LocalDram as usize], 0);
        }
    }
}

#[test]
fn memory_gives_what_it_has_and_no_more() {
    // One stream of 12 GB/s by the profile; the expander gives 25, its socket's own memory 113.
    let bytes = 20_000_000 * 64;
    let stream = |nodes| AccessMix { reads: 20_000_000, ..mix(Pattern::Sequential, nodes) };
    let rate = |cpus: u16, nodes| {
        let tasks: Vec<_> = (0..cpus).map(|cpu| (cpu, stream(nodes))).collect();
        let longest = together(&tasks).0.into_iter().max().unwrap();
        u64::from(cpus) * bytes / (longest / 1000) / 1000
    };
    assert_near(rate(1, NODE0), 12);
    assert_near(10 * rate(2, NODE0), 10 * 24);
    let crowd = rate(20, NODE0);
    assert!((111..=113).contains(&crowd), "{crowd} of 113 GB/s");
    let crowd = rate(20, EXPANDER);
    assert!((24..=25).contains(&crowd), "{crowd} of 25 GB/s");
    let crowd = rate(20, NODE1);
    assert!((33..=34).contains(&crowd), "{crowd} of 34 GB/s between the sockets");
}

#[test]
fn two_that_fill_a_node_get_half_each() {
    let tasks = |count: u16, reads| -> Vec<_> {
        let mix = AccessMix { reads, ..mix(Pattern::Sequential, EXPANDER) };
        (0..count).map(|cpu| (cpu, mix)).collect()
    };
    // Ten tasks ask for more than 25 GB/s.
    let (ten, twenty) = (together(&tasks(10, 4_000_000)).0, together(&tasks(20, 4_000_000)).0);
    assert_near(twenty[0], 2 * ten[0]);
    assert_near(twenty[19], 2 * ten[0]);
}

#[test]
fn who_comes_later_slows_those_that_are_there() {
    let run = |others: u16| {
        let mut sim = Sim::new(&profile(), SimOptions::default());
        let (machine, ended) = (sim.machine(), Rc::new(RefCell::new(0)));
        let mine = Rc::clone(&ended);
        sim.spawn(TaskSpec::new("first").on(Cpu(0)), move || {
            machine.access(AccessMix { reads: 2_000_000, ..mix(Pattern::Sequential, EXPANDER) });
            *mine.borrow_mut() = machine.now().0;
        });
        for cpu in 1..=others {
            let machine = sim.machine();
            sim.spawn(TaskSpec::new("later").on(Cpu(cpu)).at(Nanos(10_000_000)), move || {
                machine.access(AccessMix { reads: 2_000_000, ..mix(Pattern::Sequential, EXPANDER) });
            });
        }
        sim.run(None).unwrap();
        ended.take()
    };
    let (quiet, busy) = (run(0), run(19));
    assert!(quiet > 15_000_000 && busy > 2 * quiet, "{quiet} {busy}");
}

#[test]
fn modelled_accesses_and_pages_share_a_nodes_bandwidth() {
    let run = |others: u16| {
        let mut sim = Sim::new(&profile(), SimOptions::default());
        let (machine, took) = (sim.machine(), Rc::new(RefCell::new(0)));
        let mine = Rc::clone(&took);
        sim.spawn(TaskSpec::new("clears").on(Cpu(0)).at(Nanos(1_000_000)), move || {
            let since = machine.now();
            (0..1000).for_each(|page| machine.clear(mm::Pfn(8192 + page), mm::Order::ZERO));
            *mine.borrow_mut() = machine.now().0 - since.0;
        });
        for cpu in 1..=others {
            let machine = sim.machine();
            sim.spawn(TaskSpec::new("draws").on(Cpu(cpu)), move || {
                machine.access(AccessMix { reads: 2_000_000, ..mix(Pattern::Sequential, NODE0) });
            });
        }
        sim.run(None).unwrap();
        took.take()
    };
    let (quiet, busy) = (run(0), run(23));
    assert!(busy > 2 * quiet, "23 streams ask for more than twice the peak: {quiet} {busy}");
}

#[test]
fn one_seed_one_result() {
    let tasks: Vec<_> = (0..40)
        .map(|cpu| {
            let (nodes, pattern) =
                if cpu % 3 == 0 { (EXPANDER, Pattern::Random) } else { (NODE1, Pattern::Streaming) };
            (cpu, AccessMix { writes: 30_000, ..mix(pattern, nodes) })
        })
        .collect();
    assert_eq!(together(&tasks), together(&tasks));
}

#[test]
fn a_preempted_task_leaves_the_bandwidth_to_others() {
    // Two on one CPU take turns of 3 ms; a third one has the node's memory to itself while the second only computes.
    let mut sim = Sim::new(&profile(), SimOptions::default());
    let (first, second) = (sim.machine(), sim.machine());
    sim.spawn(TaskSpec::new("draws").on(Cpu(0)), move || {
        first.access(AccessMix { reads: 40_000_000, ..mix(Pattern::Sequential, EXPANDER) });
    });
    sim.spawn(TaskSpec::new("computes").on(Cpu(0)), move || second.compute(Nanos(100_000_000)));
    let (machine, took) = (sim.machine(), Rc::new(RefCell::new(0)));
    let mine = Rc::clone(&took);
    let also = AccessMix { reads: 1_000_000, ..mix(Pattern::Sequential, EXPANDER) };
    sim.spawn(TaskSpec::new("also draws").on(Cpu(1)).at(Nanos(1_000_000)), move || {
        let since = machine.now();
        machine.access(also);
        *mine.borrow_mut() = machine.now().0 - since.0;
    });
    sim.run(None).unwrap();
    // Neither of them nor both ask for 25 GB/s, so nobody waits for the other.
    assert_near(took.take(), alone(1, also));
}

#[test]
fn nodes_that_do_not_exist_count_for_nothing() {
    let local = alone(0, mix(Pattern::Random, NODE0));
    assert_eq!(alone(0, mix(Pattern::Random, &[(Node(9), 5), (Node(0), 1), (Node(1), 0)])), local);
    assert_eq!(alone(0, mix(Pattern::Random, &[(Node(9), 5)])), local);
    assert_eq!(alone(0, mix(Pattern::Random, &[])), local);
    assert_eq!(alone(0, AccessMix { reads: 0, ..mix(Pattern::Random, NODE0) }), 0);
    let huge = AccessMix {
        working_set: u64::MAX,
        ..mix(Pattern::Random, &[(Node(0), u64::MAX), (Node(1), u64::MAX)])
    };
    assert!(alone(0, huge) > local);
}
