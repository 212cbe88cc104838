//! What the machine is made of, as sysfs and /proc tell: packages, cores, threads, caches and who shares them, nodes.
//!
//! Only CPUs that are online count. What the files do not say is assumed, and each assumption is a line in
//! [`Hardware::notes`].

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::sysfs::{assumed_distances, bytes, distances, list, number, text};

/// The machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hardware {
    /// The CPU's name, as /proc/cpuinfo has it; empty where it has none.
    pub model: String,
    /// Whether the CPU says that there is a hypervisor.
    pub is_guest: bool,
    /// The CPUs that are online, ascending by number.
    pub cpus: Vec<CpuPlace>,
    /// The nodes that are online, in order of their numbers.
    pub nodes: Vec<NodeMemory>,
    /// `distances[from][to]` by index in [`Hardware::nodes`], as the firmware's SLIT says.
    pub distances: Vec<Vec<u32>>,
    /// Sizes of the caches of the first CPU.
    pub caches: Caches,
    /// What was assumed, for the files do not say it.
    pub notes: Vec<String>,
}

/// Where a CPU is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuPlace {
    /// The system's number of it.
    pub number: u32,
    /// Its package, numbered from 0 in order of first CPUs; so are the next two.
    pub package: u32,
    /// Its core.
    pub core: u32,
    /// Its last-level cache.
    pub llc: u32,
    /// Index of its node.
    pub node: u32,
}

/// A node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeMemory {
    /// The system's number of it.
    pub number: u32,
    /// Memory that is present in KiB; 0 for a node without memory.
    pub kib: u64,
}

/// Bytes of each level that there is; the last is that of the highest level above 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Caches {
    /// First level, data.
    pub l1: Option<u64>,
    /// Second level.
    pub l2: Option<u64>,
    /// Last level, each instance.
    pub l3: Option<u64>,
}

/// How near two CPUs are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HostCloseness {
    /// Threads of one core.
    Smt,
    /// Cores under one last-level cache.
    SameLlc,
    /// Elsewhere in the package.
    SameSocket,
    /// In another package.
    CrossSocket,
}

impl HostCloseness {
    /// All, from near to far.
    pub const ALL: [Self; 4] = [Self::Smt, Self::SameLlc, Self::SameSocket, Self::CrossSocket];
}

impl CpuPlace {
    /// How near another CPU is.
    pub fn closeness(&self, other: &Self) -> HostCloseness {
        if self.core == other.core {
            HostCloseness::Smt
        } else if self.llc == other.llc && self.package == other.package {
            HostCloseness::SameLlc
        } else if self.package == other.package {
            HostCloseness::SameSocket
        } else {
            HostCloseness::CrossSocket
        }
    }
}

impl Hardware {
    /// This machine.
    pub fn this() -> Self {
        Self::read(Path::new("/"))
    }

    /// A machine as the files under `root` tell, in which sys and proc are.
    pub fn read(root: &Path) -> Self {
        let system = root.join("sys/devices/system");
        let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
        let mut hardware = Self { model: model(&cpuinfo), is_guest: is_guest(&cpuinfo), ..Self::default() };
        hardware.read_nodes(root, &system);
        hardware.read_cpus(&system);
        hardware.caches = hardware
            .cpus
            .first()
            .map_or_else(Caches::default, |cpu| caches(&system.join(format!("cpu/cpu{}/cache", cpu.number))));
        hardware
    }

    /// The CPU of that number, if it is online.
    pub fn cpu(&self, number: u32) -> Option<&CpuPlace> {
        self.cpus.iter().find(|cpu| cpu.number == number)
    }

    fn read_nodes(&mut self, root: &Path, system: &Path) {
        let mut numbers = list(&system.join("node/online"));
        if numbers.is_empty() {
            self.notes.push("sysfs has no nodes: one with all memory is assumed".into());
            let told = text(&root.join("proc/meminfo")).and_then(|text| total_kib(&text));
            let kib = told.unwrap_or_else(physical_kib);
            self.nodes = vec![NodeMemory { number: 0, kib }];
            self.distances = assumed_distances(1);
            return;
        }
        numbers.sort_unstable();
        let present = present_kib(&root.join("proc/zoneinfo"));
        let own = |node: u32| text(&system.join(format!("node/node{node}/meminfo")));
        let kib = |node: u32| {
            let told = own(node).and_then(|text| total_kib(&text)).unwrap_or(0);
            // What zones have is all of it; what the kernel totals lacks what it took at boot.
            if told == 0 { 0 } else { present.get(&node).copied().unwrap_or(0).max(told) }
        };
        self.nodes = numbers.iter().map(|&number| NodeMemory { number, kib: kib(number) }).collect();
        self.distances = distances(&system.join("node"), &numbers).unwrap_or_else(|| {
            self.notes.push("sysfs gives no possible distances: 10 and 20 are assumed".into());
            assumed_distances(numbers.len())
        });
    }

    fn read_cpus(&mut self, system: &Path) {
        let mut online = list(&system.join("cpu/online"));
        if online.is_empty() {
            let count = std::thread::available_parallelism().map_or(1, usize::from) as u32;
            self.notes.push(format!("sysfs lists no CPUs: {count} are assumed"));
            online = (0..count).collect();
        }
        online.sort_unstable();
        let (mut packages, mut cores, mut llcs) = (Dense::default(), Dense::default(), Dense::default());
        let (mut untold, mut cacheless) = (0, 0);
        for &number in &online {
            let path = system.join(format!("cpu/cpu{number}"));
            let core = core_key(&path);
            let cache = llc_key(&path.join("cache"));
            untold += usize::from(core.is_none());
            cacheless += usize::from(cache.is_none());
            let package = packages.of(package_key(&path));
            self.cpus.push(CpuPlace {
                number,
                package,
                core: cores.of(core.unwrap_or(number)),
                // Packages without a word about caches get one each; no CPU has such a number.
                llc: llcs.of(cache.unwrap_or(u32::MAX - package)),
                node: self.node_of(system, number),
            });
        }
        if untold > 0 {
            self.notes.push(format!("sysfs has no topology of {untold} CPUs: each counts as a core"));
        }
        if cacheless > 0 {
            self.notes.push(format!(
                "sysfs has no caches of {cacheless} CPUs: those of a package are taken to share one"
            ));
        }
    }

    fn node_of(&self, system: &Path, cpu: u32) -> u32 {
        let has = |node: &NodeMemory| {
            list(&system.join(format!("node/node{}/cpulist", node.number))).contains(&cpu)
        };
        self.nodes.iter().position(has).unwrap_or(0) as u32
    }
}

/// Numbers from 0 for keys, in order of appearance.
#[derive(Default)]
struct Dense(Vec<u32>);

impl Dense {
    fn of(&mut self, key: u32) -> u32 {
        let known = self.0.iter().position(|&other| other == key);
        known.unwrap_or_else(|| {
            self.0.push(key);
            self.0.len() - 1
        }) as u32
    }
}

/// A number that the CPUs of a package have in common. Machines that know of no packages say -1.
fn package_key(cpu: &Path) -> u32 {
    number(&cpu.join("topology/physical_package_id")).unwrap_or(0)
}

fn core_key(cpu: &Path) -> Option<u32> {
    let files = ["topology/core_cpus_list", "topology/thread_siblings_list"];
    files.iter().find_map(|file| list(&cpu.join(file)).into_iter().min())
}

fn llc_key(cache: &Path) -> Option<u32> {
    let last = levels(cache).into_iter().max_by_key(|level| level.0)?;
    list(&cache.join(last.1).join("shared_cpu_list")).into_iter().min()
}

/// Level and directory of each cache that holds data.
fn levels(cache: &Path) -> Vec<(u32, String)> {
    let level = |index: u32| {
        let name = format!("index{index}");
        let path = cache.join(&name);
        let holds_data = text(&path.join("type")).is_none_or(|kind| kind != "Instruction");
        holds_data.then(|| number(&path.join("level"))).flatten().map(|level| (level, name))
    };
    (0..10).filter_map(level).collect()
}

fn caches(cache: &Path) -> Caches {
    let levels = levels(cache);
    let size = |level: &(u32, String)| text(&cache.join(&level.1).join("size")).and_then(|size| bytes(&size));
    let at = |wanted: u32| levels.iter().find(|level| level.0 == wanted).and_then(size);
    let last = levels.iter().filter(|level| level.0 > 2).max_by_key(|level| level.0).and_then(size);
    Caches { l1: at(1), l2: at(2), l3: last }
}

/// The first model name of /proc/cpuinfo.
fn model(cpuinfo: &str) -> String {
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(String::new, |(_, name)| name.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Whether the first CPU's flags name a hypervisor, as x86 does.
fn is_guest(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':'));
    flags.is_some_and(|flags| flags.1.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// `MemTotal` of a meminfo, a node's too.
fn total_kib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.contains("MemTotal:"))?;
    line.split_once("MemTotal:")?.1.split_ascii_whitespace().next()?.parse().ok()
}

/// What the C library says of this machine's memory; 0 where it does not.
fn physical_kib() -> u64 {
    // SAFETY: asking for configuration values has no preconditions.
    let (pages, bytes) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    (pages.max(0) as u64).saturating_mul(bytes.max(0) as u64) >> 10
}

/// The pages present in each node's zones, in KiB; too little where pages are larger than 4 KiB.
fn present_kib(zoneinfo: &Path) -> BTreeMap<u32, u64> {
    let text = fs::read_to_string(zoneinfo).unwrap_or_default();
    let (mut sums, mut node) = (BTreeMap::new(), None);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Node ") {
            node = rest.split(',').next().and_then(|number| number.parse::<u32>().ok());
        }
        let pages =
            line.trim_start().strip_prefix("present").and_then(|rest| rest.trim().parse::<u64>().ok());
        if let (Some(node), Some(pages)) = (node, pages) {
            *sums.entry(node).or_insert(0) += pages * 4;
        }
    }
    sums
}
