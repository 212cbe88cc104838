//! What this machine is made of, as sysfs tells: nodes, CPUs, distances, each CPU's share of the last-level cache.
//!
//! Nodes are numbered anew without gaps. What sysfs does not say falls back to one node with all CPUs.

use std::path::Path;

use mm::{CpuSpec, Node, NodeSpec, Pfn, Topology, WordSize, ZoneKind, ZoneSpec};

use crate::sysfs::{assumed_distances, bytes, distances, list, text};

/// Nodes begin at a multiple of this many frames, so that no block spans two.
const NODE_ALIGN: u32 = 1 << mm::ids::MAX_PAGE_ORDER;
/// What [`Topology`] can describe.
const CPUS_MAX: usize = 1024;

/// The nodes and CPUs of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct System {
    /// The system's own numbers of the nodes, ascending, and whether each has memory.
    nodes: Vec<(u32, bool)>,
    cpus: Vec<CpuSpec>,
    distance: Vec<Vec<u32>>,
}

/// A part of the arena and the system's node that it should come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Placement {
    pub(crate) frames: std::ops::Range<u32>,
    pub(crate) node: u32,
}

impl System {
    /// This machine.
    pub fn this() -> Self {
        Self::read(Path::new("/sys/devices/system"))
    }

    /// A machine as the files under `root` tell, which is laid out as /sys/devices/system.
    pub fn read(root: &Path) -> Self {
        let with_memory = list(&root.join("node/has_memory"));
        let mut nodes: Vec<(u32, bool)> = list(&root.join("node/online"))
            .into_iter()
            .map(|node| (node, with_memory.is_empty() || with_memory.contains(&node)))
            .collect();
        if !nodes.iter().any(|node| node.1) {
            nodes = vec![(0, true)];
        }
        let cpus = cpus(root, &nodes);
        let numbers: Vec<u32> = nodes.iter().map(|node| node.0).collect();
        let distance =
            distances(&root.join("node"), &numbers).unwrap_or_else(|| assumed_distances(numbers.len()));
        Self { nodes, cpus, distance }
    }

    /// CPUs: one more than the highest number that is online.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Nodes with memory.
    pub fn memory_nodes(&self) -> usize {
        self.nodes.iter().filter(|node| node.1).count()
    }

    /// A topology with `frames` page frames from 0 on, shared out evenly among the nodes with memory, in one Normal
    /// zone each. Fewer than 1024 frames a node all go to the first.
    pub fn topology(&self, frames: u32) -> Topology {
        let mut topology = Topology {
            word: WordSize::Bits64,
            nodes: vec![NodeSpec::default(); self.nodes.len()],
            cpus: self.cpus.clone(),
            distance: self.distance.clone(),
        };
        for placement in self.placements(frames) {
            let index = self.nodes.iter().position(|node| node.0 == placement.node).unwrap_or(0);
            let pages = placement.frames.len() as u32;
            topology.nodes[index].zones.push(ZoneSpec {
                kind: ZoneKind::Normal,
                start: Pfn(placement.frames.start),
                spanned: pages,
                present: pages,
                managed: pages,
            });
        }
        topology
    }

    /// Which frames should come from which node.
    pub(crate) fn placements(&self, frames: u32) -> Vec<Placement> {
        let holders: Vec<u32> = self.nodes.iter().filter(|node| node.1).map(|node| node.0).collect();
        let share = frames / holders.len() as u32 / NODE_ALIGN * NODE_ALIGN;
        if share == 0 {
            return vec![Placement { frames: 0..frames, node: holders[0] }];
        }
        let last = holders.len() as u32 - 1;
        let span = |index: u32| share * index..if index == last { frames } else { share * (index + 1) };
        holders.iter().zip(0..).map(|(&node, index)| Placement { frames: span(index), node }).collect()
    }
}

fn cpus(root: &Path, nodes: &[(u32, bool)]) -> Vec<CpuSpec> {
    let online = list(&root.join("cpu/online"));
    let fallback = || std::thread::available_parallelism().map_or(1, usize::from);
    let count = online.last().map_or_else(fallback, |&last| last as usize + 1).min(CPUS_MAX);
    let slice_of = |cpu: usize| cache_slice(&root.join(format!("cpu/cpu{cpu}/cache")));
    let mut cpus: Vec<CpuSpec> =
        (0..count).map(|cpu| CpuSpec { node: Node(0), cache_slice: slice_of(cpu) }).collect();
    for (index, (node, _)) in nodes.iter().enumerate() {
        for cpu in list(&root.join(format!("node/node{node}/cpulist"))) {
            if let Some(spec) = cpus.get_mut(cpu as usize) {
                spec.node = Node(index as u16);
            }
        }
    }
    cpus
}

/// Bytes of the largest cache, divided by the CPUs that share it; 0 where that is not told.
fn cache_slice(cache: &Path) -> u64 {
    let indices = (0..8).map(|index| cache.join(format!("index{index}")));
    let levels = indices.filter_map(|index| Some((text(&index.join("level"))?.parse::<u32>().ok()?, index)));
    let Some((_, last)) = levels.max_by_key(|(level, _)| *level) else { return 0 };
    let bytes = text(&last.join("size")).and_then(|size| bytes(&size)).unwrap_or(0);
    bytes / list(&last.join("shared_cpu_list")).len().max(1) as u64
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        root
    }

    #[test]
    fn this_machine_makes_a_possible_topology() {
        let system = System::this();
        for frames in [1, 1000, 1 << 18] {
            assert_eq!(system.topology(frames).validate(), Ok(()));
        }
    }

    #[test]
    fn two_sockets_and_memory_without_cpus() {
        let root = files(&[
            ("node/online", "0-1,4"),
            ("node/has_memory", "0-1,4"),
            ("node/node0/cpulist", "0,2"),
            ("node/node1/cpulist", "1,3"),
            ("node/node4/cpulist", ""),
            ("node/node0/distance", "10 21 24"),
            ("node/node1/distance", "21 10 14"),
            ("node/node4/distance", "24 14 10"),
            ("cpu/online", "0-3"),
            ("cpu/cpu1/cache/index2/level", "2"),
            ("cpu/cpu1/cache/index2/size", "1024K"),
            ("cpu/cpu1/cache/index3/level", "3"),
            ("cpu/cpu1/cache/index3/size", "32M"),
            ("cpu/cpu1/cache/index3/shared_cpu_list", "1,3"),
        ]);
        let system = System::read(root.path());
        let topology = system.topology(4 * 1024 + 7);
        assert_eq!(topology.validate(), Ok(()));
        assert_eq!(topology.distance[1], [21, 10, 14]);
        let nodes: Vec<u16> = topology.cpus.iter().map(|cpu| cpu.node.0).collect();
        assert_eq!(nodes, [0, 1, 0, 1]);
        assert_eq!(topology.cpus[1].cache_slice, 16 << 20);
        assert_eq!(topology.cpus[0].cache_slice, 0);
        let pages: Vec<u32> = topology.nodes.iter().map(|node| node.zones[0].managed).collect();
        assert_eq!(pages, [1024, 1024, 2048 + 7]);
        assert_eq!(system.placements(4096)[2].node, 4);
    }

    #[test]
    fn nothing_told_is_one_node() {
        let root = files(&[]);
        let topology = System::read(root.path()).topology(5000);
        assert_eq!((topology.nodes.len(), topology.distance), (1, vec![vec![10]]));
        assert!(!topology.cpus.is_empty());
    }

    #[test]
    fn nonsense_falls_back() {
        let root = files(&[
            ("node/online", "0-1"),
            ("node/has_memory", "0-1"),
            ("node/node0/distance", "10 10"),
            ("node/node1/distance", "0 x"),
            ("cpu/online", "3-1"),
        ]);
        let topology = System::read(root.path()).topology(5000);
        assert_eq!(topology.distance, [[10, 20], [20, 10]]);
        assert_eq!(topology.validate(), Ok(()));
    }
}
