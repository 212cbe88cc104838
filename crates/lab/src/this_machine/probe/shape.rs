//! From a machine as its files tell it to the shape that a profile can give it: sockets alike, cores alike, CPUs
//! numbered in one of two ways. Where the machine is otherwise, the nearest shape is taken and a note says so.

use std::collections::{BTreeMap, BTreeSet};

use host::probe::{CpuPlace, Hardware, HostCloseness};
use sim::profile::{Closeness, CpuPosition, NodeShape, Shape, SmtNumbering};

/// A shape, and where it departs from the machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Described {
    /// The shape.
    pub shape: Shape,
    /// A line for each departure.
    pub notes: Vec<String>,
}

/// The shape of `hardware`, of whose CPUs a process may use `allowed`.
pub fn describe(hardware: &Hardware, allowed: &[u32]) -> Described {
    let mut notes = vec![];
    let sockets = sockets(hardware, &mut notes);
    let socket_of = |cpu: &CpuPlace| sockets[&cpu.package];
    let cores: BTreeSet<(u32, u32)> = hardware.cpus.iter().map(|cpu| (socket_of(cpu), cpu.core)).collect();
    let llcs: BTreeSet<(u32, u32, u32)> =
        hardware.cpus.iter().map(|cpu| (socket_of(cpu), cpu.llc, cpu.core)).collect();
    let socket_count = sockets.values().collect::<BTreeSet<_>>().len().max(1) as u32;
    let cores_per_socket = usual(cores.iter().map(|core| core.0));
    let threads_per_core = usual(hardware.cpus.iter().map(|cpu| cpu.core));
    let shape = Shape {
        sockets: socket_count,
        cores_per_socket,
        threads_per_core,
        cores_per_llc: usual(llcs.iter().map(|llc| (llc.0, llc.1))).min(cores_per_socket),
        smt_numbering: numbering(hardware),
        nodes: nodes(hardware, &sockets),
        distances: hardware.distances.clone(),
        cpuset_nodes: cpuset(hardware, allowed, &mut notes),
        low_end_mib: sim::profile::LOW_END_MIB,
        word: mm::WordSize::Bits64,
        source: source(hardware, &cores, &llcs),
    };
    let online = hardware.cpus.len();
    if shape.cpu_count() as usize != online {
        notes.push(format!(
            "{online} CPUs are online, unevenly over cores or sockets: the profile has {} CPUs, {} sockets of \
             {cores_per_socket} cores with {threads_per_core} threads",
            shape.cpu_count(),
            shape.sockets
        ));
    } else if !numbered_alike(hardware, &shape.places()) {
        notes.push("CPUs are numbered in another way here: CPU n of the profile is not CPU n".into());
    }
    Described { shape, notes }
}

/// The socket of each package. Packages that share a node are one: virtual machines tend to give each CPU its own.
fn sockets(hardware: &Hardware, notes: &mut Vec<String>) -> BTreeMap<u32, u32> {
    let mut leader: BTreeMap<u32, u32> = hardware.cpus.iter().map(|cpu| (cpu.package, cpu.package)).collect();
    for node in 0..hardware.nodes.len() as u32 {
        let here: Vec<u32> =
            hardware.cpus.iter().filter(|cpu| cpu.node == node).map(|cpu| leader[&cpu.package]).collect();
        let Some(&least) = here.iter().min() else { continue };
        for other in leader.values_mut().filter(|other| here.contains(other)) {
            *other = least;
        }
    }
    let leaders: Vec<u32> = leader.values().copied().collect::<BTreeSet<_>>().into_iter().collect();
    if leaders.len() < leader.len() {
        notes.push(format!(
            "{} packages share nodes: the profile has {} in their place",
            leader.len(),
            if leaders.len() == 1 { "1 socket".into() } else { format!("{} sockets", leaders.len()) }
        ));
    }
    let number = |leader: u32| leaders.iter().position(|&other| other == leader).unwrap_or(0) as u32;
    leader.into_iter().map(|(package, leader)| (package, number(leader))).collect()
}

/// How often the keys occur, most of them; at least 1. Of two numbers as frequent, the smaller.
fn usual<K: Ord>(keys: impl Iterator<Item = K>) -> u32 {
    let mut counts: BTreeMap<K, u32> = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    let mut sizes: BTreeMap<u32, u32> = BTreeMap::new();
    for count in counts.into_values() {
        *sizes.entry(count).or_default() += 1;
    }
    let most = sizes.into_iter().max_by_key(|&(size, times)| (times, std::cmp::Reverse(size)));
    most.map_or(1, |(size, _)| size)
}

/// Adjacent if the threads of every core have numbers in a row.
fn numbering(hardware: &Hardware) -> SmtNumbering {
    let mut threads: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (rank, cpu) in hardware.cpus.iter().enumerate() {
        threads.entry(cpu.core).or_default().push(rank);
    }
    let in_a_row = |ranks: &Vec<usize>| ranks.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if threads.values().all(in_a_row) { SmtNumbering::Adjacent } else { SmtNumbering::Split }
}

fn nodes(hardware: &Hardware, sockets: &BTreeMap<u32, u32>) -> Vec<NodeShape> {
    let socket_at = |node: usize| hardware.cpus.iter().find(|cpu| cpu.node as usize == node);
    // Memory without CPUs is counted to the socket that is nearest by the firmware's distances.
    let nearest = |node: usize| {
        let with_cpus = (0..hardware.nodes.len()).filter(|&other| socket_at(other).is_some());
        with_cpus.min_by_key(|&other| hardware.distances[node].get(other).copied())
    };
    let shape = |(index, node): (usize, &host::probe::NodeMemory)| {
        let own = socket_at(index);
        let cpu = own.or_else(|| nearest(index).and_then(socket_at));
        NodeShape {
            socket: cpu.map_or(0, |cpu| sockets[&cpu.package]),
            memory_mib: (node.kib + 512) >> 10,
            extra_ns: 0.0,
            gbps: None,
            has_cpus: own.is_some(),
        }
    };
    hardware.nodes.iter().enumerate().map(shape).collect()
}

/// The nodes whose CPUs are allowed, if those are not all CPUs.
fn cpuset(hardware: &Hardware, allowed: &[u32], notes: &mut Vec<String>) -> Option<Vec<u32>> {
    let usable = |cpu: &CpuPlace| allowed.contains(&cpu.number);
    if hardware.cpus.iter().all(usable) {
        return None;
    }
    let nodes: BTreeSet<u32> = hardware.cpus.iter().filter(|cpu| usable(cpu)).map(|cpu| cpu.node).collect();
    let whole = hardware.cpus.iter().all(|cpu| usable(cpu) == nodes.contains(&cpu.node));
    if !whole {
        notes.push("this process may use part of a node's CPUs: a profile can only name whole nodes".into());
    }
    let some = nodes.len() < hardware.nodes.len() && !nodes.is_empty();
    some.then(|| nodes.into_iter().collect())
}

fn source(hardware: &Hardware, cores: &BTreeSet<(u32, u32)>, llcs: &BTreeSet<(u32, u32, u32)>) -> String {
    let packages: BTreeSet<u32> = hardware.cpus.iter().map(|cpu| cpu.package).collect();
    let caches: BTreeSet<(u32, u32)> = llcs.iter().map(|llc| (llc.0, llc.1)).collect();
    format!(
        "sysfs: CPUs online {}, cores {}, packages {}, last-level caches {}, nodes {}; memory: pages present in \
         /proc/zoneinfo, or MemTotal",
        hardware.cpus.len(),
        cores.len(),
        packages.len(),
        caches.len(),
        hardware.nodes.len()
    )
}

/// Whether every two CPUs are as near in the profile as they are here.
fn numbered_alike(hardware: &Hardware, places: &[CpuPosition]) -> bool {
    let same = |one: usize, other: usize| {
        let seen = hardware.cpus[one].closeness(&hardware.cpus[other]);
        let drawn = places[one].closeness(&places[other]);
        let node = hardware.cpus[one].node == u32::from(places[one].node);
        // A package that was merged into a socket is on that socket.
        let merged = seen == HostCloseness::CrossSocket && drawn <= Closeness::SameSocket;
        node && (as_drawn(seen) == drawn || merged)
    };
    let count = hardware.cpus.len();
    (0..count).all(|one| (one + 1..count).all(|other| same(one, other)))
}

fn as_drawn(seen: HostCloseness) -> Closeness {
    match seen {
        HostCloseness::Smt => Closeness::Smt,
        HostCloseness::SameLlc => Closeness::SameLlc,
        HostCloseness::SameSocket => Closeness::SameSocket,
        HostCloseness::CrossSocket => Closeness::CrossSocket,
    }
}
