//! From a probe to a profile: every figure is there, measured or inherited; what is written loads and simulates.

use std::rc::Rc;
use std::time::Duration;

use freehold_lab::this_machine::probe::{NOT_MEASURED, describe, profile};
use host::probe::{
    Absent, Caches, CpuPlace, Grade, Hardware, Measured, NodeMemory, PageWalks, Probe, SampleSpread,
};
use mm::{Knobs, Mm, Order, Policy, Request, Span};
use sim::profile::{FIGURES, SmtNumbering};
use sim::{FigureKind, Profile, Sim, SimOptions, TaskSpec};

/// CPUs numbered from 0 by (package, core, llc, node).
fn hardware(cpus: &[(u32, u32, u32, u32)], kib: &[u64], distances: &[&[u32]]) -> Hardware {
    let cpu = |(number, &(package, core, llc, node)): (u32, &(u32, u32, u32, u32))| CpuPlace {
        number,
        package,
        core,
        llc,
        node,
    };
    Hardware {
        model: "Some CPU".into(),
        is_guest: true,
        cpus: (0..).zip(cpus).map(cpu).collect(),
        nodes: (0..).zip(kib).map(|(number, &kib)| NodeMemory { number, kib }).collect(),
        distances: distances.iter().map(|row| row.to_vec()).collect(),
        caches: Caches { l1: Some(48 << 10), l2: Some(1 << 20), l3: Some(32 << 20) },
        notes: vec![],
    }
}

fn measured(key: &'static str, median: f64) -> Measured {
    let (min, p25, p75, max) = (median * 0.9, median * 0.99, median * 1.01, median * 3.0);
    let spread = SampleSpread { min, p25, median, p75, max, samples: 25 };
    Measured { key, spread, grade: Grade::Seen, how: "a test".into() }
}

fn probe(hardware: Hardware, figures: Vec<Measured>) -> Probe {
    let cpus = hardware.cpus.iter().map(|cpu| cpu.number).collect();
    let absent = vec![Absent { key: "cpu.irq_ns", why: "no way".into() }];
    let took = Duration::from_secs(1);
    Probe {
        hardware,
        cpus,
        figures,
        absent,
        loops: None,
        walks: None,
        fork: None,
        extra_ns: vec![],
        notes: vec!["loud here".into()],
        took,
    }
}

fn two_cpus() -> Hardware {
    hardware(&[(0, 0, 0, 0), (0, 1, 0, 0)], &[24 << 20], &[&[10]])
}

#[test]
fn all_figures_are_there_and_say_where_they_are_from() {
    let figures = vec![measured("cache.l1_ns", 1.234_567), measured("dram.local_ns", 140.0)];
    let probed = profile(&probe(two_cpus(), figures), "mine").unwrap();
    let written = Profile::parse("x", &probed.profile.to_toml()).unwrap();
    assert_eq!(written, probed.profile);
    assert_eq!((written.name(), written.title()), ("mine", "Some CPU, 2 CPUs, 24 GiB; probed"));
    assert_eq!(written.figures().count(), FIGURES.len());
    let base = Profile::load("kvm-genoa-2c").unwrap();
    for ((spec, figure), (_, inherited)) in written.figures().zip(base.figures()) {
        if ["cache.l1_ns", "dram.local_ns"].contains(&spec.key) {
            assert_eq!(figure.kind, FigureKind::Measured);
            assert_eq!(figure.spread.unwrap().samples, 25);
        } else {
            assert!(figure.source.starts_with(NOT_MEASURED) && figure.source.contains(&inherited.source));
            assert_eq!(figure.value.to_bits(), inherited.value.to_bits());
            assert!(figure.kind != FigureKind::Measured, "{} was measured elsewhere", spec.key);
        }
    }
    assert_eq!(written.value("cache.l1_ns").to_string(), "1.235");
    assert_eq!(probed.notes, ["loud here"]);
}

#[test]
fn a_machine_without_a_hypervisor_walks_its_own_tables_alone() {
    let bare = Hardware { is_guest: false, ..two_cpus() };
    let around = |ns| SampleSpread { min: ns, p25: ns, median: ns, p75: ns, max: ns, samples: 15 };
    let walks = PageWalks { pages: 65_536, in_turn: around(40.0), at_once: around(8.0) };
    let of = |hardware, walks| {
        let figures = vec![measured("tlb.entries", 2048.0)];
        profile(&Probe { walks, ..probe(hardware, figures) }, "mine").unwrap().profile
    };
    let [unseen, seen, guest] = [of(bare.clone(), None), of(bare, Some(walks)), of(two_cpus(), Some(walks))];
    assert!(unseen.value("tlb.nested_ratio") <= 1.0 && seen.value("tlb.nested_ratio") <= 1.0);
    assert!(seen.value("tlb.walk_ns") > unseen.value("tlb.walk_ns"));
    assert!(guest.value("tlb.nested_ratio") > 1.0);
    assert!(guest.value("tlb.walk_ns") <= unseen.value("tlb.walk_ns"), "a guest's steps are what they were");
    // Pages of 2 MiB have no more room than there is.
    assert_eq!(guest.value("tlb.huge_entries").to_string(), "2048");
}

#[test]
fn an_inherited_figure_gives_way_to_a_measured_one() {
    // kvm-genoa-2c has 23, 100.5 and 197.5 ns for the three.
    let near = profile(&probe(two_cpus(), vec![measured("transfer.same_llc_ns", 150.0)]), "mine").unwrap();
    let value = |profile: &Profile, key: &str| profile.value(key).to_string();
    let socket = near.profile.figures().find(|(spec, _)| spec.key == "transfer.same_socket_ns").unwrap().1;
    assert_eq!((socket.value.to_string(), socket.kind), ("150".into(), FigureKind::Estimated));
    assert!(socket.source.starts_with("set to transfer.same_llc_ns"), "{}", socket.source);
    assert_eq!(value(&near.profile, "transfer.cross_socket_ns"), "197.5");
    let far = profile(&probe(two_cpus(), vec![measured("transfer.cross_socket_ns", 50.0)]), "mine").unwrap();
    assert_eq!(value(&far.profile, "transfer.cross_socket_ns"), "50");
    assert_eq!(value(&far.profile, "transfer.same_socket_ns"), "50");
    assert_eq!(value(&far.profile, "transfer.same_llc_ns"), "23");
}

#[test]
fn measured_figures_out_of_order_make_a_profile_all_the_same() {
    let figures = vec![measured("cache.l3_ns", 300.0), measured("dram.local_ns", 140.0)];
    let probed = profile(&probe(two_cpus(), figures), "mine").unwrap();
    assert_eq!(probed.profile.value("dram.local_ns").to_string(), "300");
    let absurd = vec![measured("path.wakeup_ns", 1e12)];
    let probed = profile(&probe(two_cpus(), absurd), "mine").unwrap();
    let wakeup = probed.profile.figures().find(|(spec, _)| spec.key == "path.wakeup_ns").unwrap().1;
    assert!(wakeup.source.contains("no machine has"), "{}", wakeup.source);
}

#[test]
fn threads_sockets_and_caches_are_described() {
    // Two sockets, two cores each under caches of their own, threads numbered last.
    let half = [(0, 0, 0, 0), (0, 1, 1, 0), (1, 2, 2, 1), (1, 3, 3, 1)];
    let cpus = [half, half].concat();
    let split = hardware(&cpus, &[1 << 20, 1 << 20], &[&[10, 21], &[21, 10]]);
    let all: Vec<u32> = (0..8).collect();
    let described = describe(&split, &all);
    let shape = &described.shape;
    assert_eq!((shape.sockets, shape.cores_per_socket, shape.threads_per_core), (2, 2, 2));
    assert_eq!((shape.cores_per_llc, shape.smt_numbering), (1, SmtNumbering::Split));
    assert_eq!((described.notes.len(), &shape.cpuset_nodes), (0, &None));
    let one_node = describe(&split, &[0, 1, 4, 5]).shape;
    assert_eq!(one_node.cpuset_nodes, Some(vec![0]));
    let part = describe(&split, &[0, 2]);
    assert!(part.notes[0].contains("part of a node"), "{:?}", part.notes);
}

#[test]
fn what_a_profile_cannot_say_is_noted() {
    // Virtual CPUs in packages of their own, over one node.
    let guest = hardware(&[(0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 2, 0)], &[1 << 20], &[&[10]]);
    let described = describe(&guest, &[0, 1, 2]);
    assert_eq!((described.shape.sockets, described.shape.cores_per_socket), (1, 3));
    assert_eq!(described.notes, ["3 packages share nodes: the profile has 1 socket in their place"]);
    // One core has lost a thread.
    let uneven = hardware(&[(0, 0, 0, 0), (0, 0, 0, 0), (0, 1, 0, 0)], &[1 << 20], &[&[10]]);
    let described = describe(&uneven, &[0, 1, 2]);
    assert_eq!(described.shape.cpu_count(), 2);
    assert!(described.notes[0].starts_with("3 CPUs are online, unevenly"), "{:?}", described.notes);
    // Even numbers on one socket, odd ones on the other.
    let woven = hardware(
        &[(0, 0, 0, 0), (1, 1, 1, 1), (0, 2, 0, 0), (1, 3, 1, 1)],
        &[1 << 20, 1 << 20],
        &[&[10, 21], &[21, 10]],
    );
    assert!(describe(&woven, &[0, 1, 2, 3]).notes[0].contains("numbered in another way"));
}

#[test]
fn nodes_without_memory_or_cpus_simulate() {
    let mixed = hardware(
        &[(0, 0, 0, 0), (0, 1, 0, 1)],
        &[0, 2 << 20, 4 << 20],
        &[&[10, 12, 20], &[12, 10, 17], &[20, 17, 10]],
    );
    let mut probe = probe(mixed, vec![measured("cache.l2_ns", 4.0)]);
    probe.extra_ns = vec![(2, 123.44)];
    let profile = Profile::parse("x", &profile(&probe, "mine").unwrap().profile.to_toml()).unwrap();
    let nodes = &profile.shape().nodes;
    assert_eq!(
        (nodes[0].memory_mib, nodes[2].has_cpus, nodes[2].extra_ns.to_string().as_str()),
        (0, false, "123.4")
    );
    let mut sim = Sim::new(&profile, SimOptions::default());
    let mm = Mm::new(sim.machine(), profile.topology(), Policy::default(), Knobs::default()).unwrap();
    let mm = Rc::new(mm);
    let task = Rc::clone(&mm);
    sim.spawn(TaskSpec::new("task".to_owned()), move || {
        let taken: Vec<_> = (0..1000).map(|_| (task.alloc(Request::USER).unwrap(), Order::ZERO)).collect();
        task.free_batch(&taken).unwrap();
    });
    sim.run(None).unwrap();
    mm.views().check().unwrap();
    assert!(sim.measurements().span(Span::Refill).latency.count() > 0);
}

#[test]
fn this_machine_probed_simulates() {
    let probed = profile(&host::probe::run(|_| ()).unwrap(), "this").unwrap();
    let profile = Profile::parse("x", &probed.profile.to_toml()).unwrap();
    assert_eq!(profile, probed.profile);
    for key in ["path.fault_ns", "path.unmap_ns", "path.shared_fault_ns"] {
        let (_, figure) = profile.figures().find(|(spec, _)| spec.key == key).unwrap();
        assert!(
            figure.source.contains("the simulation of the same"),
            "{key} is not settled: {}",
            figure.source
        );
    }
    let sim = Sim::new(&profile, SimOptions::default());
    let mm = Mm::new(sim.machine(), profile.topology(), Policy::default(), Knobs::default()).unwrap();
    mm.views().check().unwrap();
}
