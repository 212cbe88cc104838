//! The probe's reading of sysfs, against the files of machines of several makes, and the probe itself on this one.

use std::fs;
use std::path::Path;

use freehold_host::probe::{self, Hardware, HostCloseness};

/// A machine's files.
struct Files(tempfile::TempDir);

/// A CPU: its number, package, the list of its core's threads, and the list of those under its last-level cache.
type CpuFiles<'a> = (u32, i32, &'a str, &'a str);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn system(&self, name: &str, text: &str) {
        self.write(&format!("sys/devices/system/{name}"), text);
    }

    fn cpus(&self, online: &str, cpus: &[CpuFiles<'_>]) {
        self.system("cpu/online", online);
        for (number, package, core, llc) in cpus {
            let cpu = format!("cpu/cpu{number}");
            self.system(&format!("{cpu}/topology/physical_package_id"), &package.to_string());
            self.system(&format!("{cpu}/topology/core_cpus_list"), core);
            let caches =
                [(1, "Data", "32K", *core), (1, "Instruction", "64K", core), (2, "Unified", "1024K", core)];
            for (index, (level, kind, size, shared)) in
                caches.into_iter().chain([(3, "Unified", "16M", *llc)]).enumerate()
            {
                let cache = format!("{cpu}/cache/index{index}");
                self.system(&format!("{cache}/level"), &level.to_string());
                self.system(&format!("{cache}/type"), kind);
                self.system(&format!("{cache}/size"), size);
                self.system(&format!("{cache}/shared_cpu_list"), shared);
            }
        }
    }

    fn node(&self, number: u32, cpus: &str, distances: &str, kib: u64) {
        self.system(&format!("node/node{number}/cpulist"), cpus);
        self.system(&format!("node/node{number}/distance"), distances);
        let total = format!("Node {number} MemTotal:       {kib} kB\nNode {number} MemFree:  1 kB");
        self.system(&format!("node/node{number}/meminfo"), &total);
    }

    fn read(&self) -> Hardware {
        Hardware::read(self.0.path())
    }
}

/// (package, core, llc, node) of each CPU.
fn places(hardware: &Hardware) -> Vec<(u32, u32, u32, u32)> {
    hardware.cpus.iter().map(|cpu| (cpu.package, cpu.core, cpu.llc, cpu.node)).collect()
}

#[test]
fn two_sockets_with_threads_numbered_last() {
    let files = Files::new();
    files.cpus(
        "0-7",
        &[
            (0, 0, "0,4", "0-1,4-5"),
            (1, 0, "1,5", "0-1,4-5"),
            (2, 1, "2,6", "2-3,6-7"),
            (3, 1, "3,7", "2-3,6-7"),
            (4, 0, "0,4", "0-1,4-5"),
            (5, 0, "1,5", "0-1,4-5"),
            (6, 1, "2,6", "2-3,6-7"),
            (7, 1, "3,7", "2-3,6-7"),
        ],
    );
    files.system("node/online", "0-1");
    files.node(0, "0-1,4-5", "10 21", 8 << 20);
    files.node(1, "2-3,6-7", "21 10", 8 << 20);
    files.write("proc/cpuinfo", "processor : 0\nmodel name\t: Some   CPU @ 2.40GHz\nflags\t\t: fpu vme\n");
    let hardware = files.read();
    assert_eq!((hardware.model.as_str(), hardware.is_guest), ("Some CPU @ 2.40GHz", false));
    files.write("proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor vme\n");
    assert!(files.read().is_guest);
    assert_eq!(places(&hardware)[..4], [(0, 0, 0, 0), (0, 1, 0, 0), (1, 2, 1, 1), (1, 3, 1, 1)]);
    assert_eq!(places(&hardware)[4..], places(&hardware)[..4]);
    let near = |one: usize, other: usize| hardware.cpus[one].closeness(&hardware.cpus[other]);
    assert_eq!(
        [near(0, 4), near(0, 5), near(0, 6)],
        [HostCloseness::Smt, HostCloseness::SameLlc, HostCloseness::CrossSocket]
    );
    let caches = hardware.caches;
    assert_eq!((caches.l1, caches.l2, caches.l3), (Some(32 << 10), Some(1 << 20), Some(16 << 20)));
    assert_eq!(hardware.distances, [[10, 21], [21, 10]]);
    assert!(hardware.notes.is_empty(), "{:?}", hardware.notes);
}

#[test]
fn core_complexes_under_caches_of_their_own() {
    let files = Files::new();
    let cpus: Vec<(u32, String, &str)> =
        (0..8).map(|cpu| (cpu, cpu.to_string(), if cpu < 4 { "0-3" } else { "4-7" })).collect();
    let cpus: Vec<CpuFiles<'_>> =
        cpus.iter().map(|(cpu, core, llc)| (*cpu, 0, core.as_str(), *llc)).collect();
    files.cpus("0-7", &cpus);
    files.system("node/online", "0");
    files.node(0, "0-7", "10", 1 << 20);
    let hardware = files.read();
    let llcs: Vec<u32> = hardware.cpus.iter().map(|cpu| cpu.llc).collect();
    assert_eq!(llcs, [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(hardware.cpus[0].closeness(&hardware.cpus[5]), HostCloseness::SameSocket);
}

#[test]
fn cpus_that_are_offline_do_not_count() {
    let files = Files::new();
    // The second threads are offline; the kernel takes their files and their numbers in lists away.
    files.cpus("0,2,5", &[(0, 0, "0", "0,2,5"), (2, 0, "2", "0,2,5"), (5, 0, "5", "0,2,5")]);
    files.system("node/online", "0");
    files.node(0, "0,2,5", "10", 1 << 20);
    let hardware = files.read();
    let numbers: Vec<u32> = hardware.cpus.iter().map(|cpu| cpu.number).collect();
    assert_eq!(numbers, [0, 2, 5]);
    assert_eq!(places(&hardware), [(0, 0, 0, 0), (0, 1, 0, 0), (0, 2, 0, 0)]);
    assert!(hardware.cpu(1).is_none() && hardware.cpu(5).is_some());
}

#[test]
fn nodes_without_memory_and_without_cpus() {
    let files = Files::new();
    files.cpus("0-1", &[(0, 0, "0", "0-1"), (1, 0, "1", "0-1")]);
    files.system("node/online", "0,2-3");
    files.node(0, "0", "10 12 20", 0);
    files.node(2, "1", "12 10 20", 4 << 20);
    files.node(3, "", "20 20 10", 16 << 20);
    let zones = "Node 2, zone   Normal\n  pages free     5\n        present  1048600\n        managed  1000000\n\
                 Node 3, zone  Movable\n        present  4194304";
    files.write("proc/zoneinfo", zones);
    let hardware = files.read();
    let nodes: Vec<(u32, u64)> = hardware.nodes.iter().map(|node| (node.number, node.kib)).collect();
    assert_eq!(nodes, [(0, 0), (2, 4_194_400), (3, 16 << 20)]);
    assert_eq!(hardware.cpus[1].node, 1);
    assert_eq!(hardware.distances[2], [20, 20, 10]);
}

#[test]
fn nothing_told_is_assumed_and_noted() {
    let files = Files::new();
    files.write("proc/meminfo", "MemTotal:        1000 kB\nMemFree: 5 kB");
    let hardware = files.read();
    assert_eq!((hardware.nodes.len(), hardware.nodes[0].kib), (1, 1000));
    assert!(!hardware.cpus.is_empty());
    assert_eq!(hardware.notes.len(), 4, "{:?}", hardware.notes);
    assert_eq!(hardware.caches.l1, None);
}

#[test]
fn nonsense_does_not_get_through() {
    let files = Files::new();
    files.cpus("0", &[(0, -1, "x-y", "")]);
    files.system("cpu/cpu0/cache/index3/size", "lots");
    files.system("node/online", "0-1");
    files.node(0, "0", "10", 5);
    files.node(1, "nobody", "10 x", 5);
    let hardware = files.read();
    assert_eq!(places(&hardware), [(0, 0, 0, 0)]);
    assert_eq!(hardware.distances, [[10, 20], [20, 10]]);
    assert_eq!(hardware.caches.l3, None);
    assert_eq!(hardware.notes.len(), 3, "{:?}", hardware.notes);
}

#[test]
fn this_machine_is_measured_or_says_why_not() {
    let mut steps = vec![];
    let probe = probe::run(|what| steps.push(what.to_owned())).unwrap();
    assert!(steps.len() > 5);
    assert!(!probe.cpus.is_empty() && Path::new("/proc").exists());
    for figure in &probe.figures {
        let spread = figure.spread;
        let rising = [spread.min, spread.p25, spread.median, spread.p75, spread.max];
        assert!(rising.windows(2).all(|pair| pair[0] <= pair[1]), "{}: {spread:?}", figure.key);
        assert!(spread.samples > 0 && !figure.how.is_empty());
        let twice = probe.figures.iter().filter(|other| other.key == figure.key).count();
        let absent = probe.absent.iter().any(|absent| absent.key == figure.key);
        assert!(twice == 1 && !absent, "{}", figure.key);
    }
    for key in ["cache.l1_ns", "dram.local_ns", "memory.clear_gbps", "cpu.lock_ns", "path.syscall_ns"] {
        assert!(probe.figures.iter().any(|figure| figure.key == key), "{key}: {:?}", probe.absent);
    }
    let median = |key: &str| probe.figures.iter().find(|figure| figure.key == key).unwrap().spread.median;
    assert!(median("cache.l1_ns") < median("dram.local_ns"));
}
