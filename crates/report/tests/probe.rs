//! What is printed of a probe, for a fixed set of measurements.

use std::time::Duration;

use freehold_report::{Style, machines};
use host::probe::{Absent, Caches, CpuPlace, Grade, Hardware, Measured, NodeMemory, Probe, SampleSpread};

fn probe() -> Probe {
    let cpu = |number| CpuPlace { number, package: 0, core: number, llc: 0, node: 0 };
    let hardware = Hardware {
        model: "Some CPU".into(),
        is_guest: true,
        cpus: vec![cpu(0), cpu(1)],
        nodes: vec![NodeMemory { number: 0, kib: 24 << 20 }],
        distances: vec![vec![10]],
        caches: Caches::default(),
        notes: vec![],
    };
    let figure = |key, median: f64, samples| {
        let (min, p25, p75, max) = (median * 0.9, median * 0.99, median * 1.01, median * 3.0);
        let spread = SampleSpread { min, p25, median, p75, max, samples };
        Measured { key, spread, grade: Grade::Seen, how: "a test".into() }
    };
    Probe {
        hardware,
        cpus: vec![0, 1],
        figures: vec![
            figure("cache.l1_bytes", 49152.0, 1),
            figure("cache.l1_ns", 1.175, 61),
            figure("dram.local_ns", 168.1, 61),
            figure("transfer.same_llc_ns", 210.9, 28),
            figure("memory.clear_gbps", 23.84, 25),
        ],
        absent: vec![Absent { key: "cpu.irq_ns", why: "no way".into() }],
        loops: None,
        walks: None,
        fork: None,
        extra_ns: vec![],
        notes: vec!["others used 66 % of the CPUs' time meanwhile".into()],
        took: Duration::from_secs(3),
    }
}

#[test]
fn a_probe_in_full() {
    let probed = lab::this_machine::probe::profile(&probe(), "mine").unwrap();
    let text = machines::probed(Style::plain(), &probed);
    let (measured, inherited) = text.split_once("not measured here").unwrap();
    insta::assert_snapshot!(measured);
    // What is inherited changes with the profile that it is inherited from.
    for part in ["cpu.irq_ns ", "path.fault_ns ", "note: others used 66 % of the CPUs' time meanwhile\n"] {
        assert!(inherited.contains(part), "{part} is missing from\n{inherited}");
    }
    assert!(!inherited.contains("dram.local_ns"), "{inherited}");
    let shown = machines::show(Style::plain(), &probed.profile);
    assert!(shown.contains("not measured here: no way"), "{shown}");
}
