//! What a machine is made of: sockets, cores, threads, last-level caches and memory nodes, and how near two CPUs are.

use mm::{Cpu, CpuSpec, Firmware, Node, NodeSize, Topology, WordSize};

/// How a machine numbers the threads of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmtNumbering {
    /// All first threads, then all second threads: cpu 0 and cpu 64 share a core. Most firmware.
    Split,
    /// A core's threads one after the other: cpu 0 and cpu 1. Most virtual machines.
    Adjacent,
}

/// The make-up of a machine. Cores are numbered socket by socket.
#[derive(Clone, PartialEq, Debug)]
pub struct Shape {
    /// Sockets, all alike.
    pub sockets: u32,
    /// Cores of a socket.
    pub cores_per_socket: u32,
    /// Threads of a core.
    pub threads_per_core: u32,
    /// Cores that share a last-level cache.
    pub cores_per_llc: u32,
    /// How threads are numbered.
    pub smt_numbering: SmtNumbering,
    /// Memory nodes. A socket's cores are dealt evenly to those of its nodes that have CPUs, in order.
    pub nodes: Vec<NodeShape>,
    /// `distances[from][to]` as the firmware's SLIT says.
    pub distances: Vec<Vec<u32>>,
    /// The nodes whose CPUs tasks use where nothing else is said; `None` for all.
    pub cpuset_nodes: Option<Vec<u32>>,
    /// Where memory below 4 GiB ends and the hole for devices begins, MiB: from 16 to 4096. It bounds the DMA32 zone; 32-bit
    /// kernels have none.
    pub low_end_mib: u32,
    /// What its kernel counts in.
    pub word: WordSize,
    /// Where all this comes from.
    pub source: String,
}

/// A memory node.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeShape {
    /// Its socket.
    pub socket: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// What its memory's latency has above that of ordinary DRAM as far away, in ns: a CXL expander's.
    pub extra_ns: f64,
    /// Its memory's peak bandwidth in GB/s; `None` for `dram.node_gbps`.
    pub gbps: Option<f64>,
    /// Whether CPUs belong to it.
    pub has_cpus: bool,
}

/// Where a CPU is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuPosition {
    /// Its core, numbered over the machine.
    pub core: u16,
    /// Its last-level cache, numbered over the machine.
    pub llc: u16,
    /// Its socket.
    pub socket: u16,
    /// Its memory node.
    pub node: u16,
}

/// How near two CPUs are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Closeness {
    /// The same CPU.
    Same,
    /// Threads of one core.
    Smt,
    /// Cores under one last-level cache.
    SameLlc,
    /// Elsewhere on the socket.
    SameSocket,
    /// On another socket.
    CrossSocket,
}

impl CpuPosition {
    /// How near `other` is, which is another CPU's place unless both are the same.
    #[inline]
    pub fn closeness(&self, other: &Self) -> Closeness {
        if self.core == other.core {
            Closeness::Smt
        } else if self.llc == other.llc {
            Closeness::SameLlc
        } else if self.socket == other.socket {
            Closeness::SameSocket
        } else {
            Closeness::CrossSocket
        }
    }
}

const CPUS_MAX: u32 = 1024;
const LOW_END_MIB_MIN: u32 = 16;
const LOW_END_MIB_MAX: u32 = 4096;
/// [`Shape::low_end_mib`] where nothing is said: as on many boards and in QEMU's q35.
pub const LOW_END_MIB: u32 = 2048;

impl Shape {
    /// CPUs in all.
    pub fn cpu_count(&self) -> u32 {
        self.sockets * self.cores_per_socket * self.threads_per_core
    }

    /// Where every CPU is, by number.
    pub fn places(&self) -> Vec<CpuPosition> {
        (0..self.cpu_count()).map(|cpu| self.place(cpu)).collect()
    }

    fn place(&self, cpu: u32) -> CpuPosition {
        let core = match self.smt_numbering {
            SmtNumbering::Split => cpu % (self.sockets * self.cores_per_socket),
            SmtNumbering::Adjacent => cpu / self.threads_per_core,
        };
        let (socket, within) = (core / self.cores_per_socket, core % self.cores_per_socket);
        let llcs = self.cores_per_socket.div_ceil(self.cores_per_llc);
        let nodes: Vec<usize> = self.nodes_with_cpus(socket).collect();
        let nth = within as usize * nodes.len() / self.cores_per_socket as usize;
        CpuPosition {
            core: core as u16,
            llc: (socket * llcs + within / self.cores_per_llc) as u16,
            socket: socket as u16,
            node: nodes[nth] as u16,
        }
    }

    fn nodes_with_cpus(&self, socket: u32) -> impl Iterator<Item = usize> {
        let wanted = move |node: &NodeShape| node.socket == socket && node.has_cpus;
        self.nodes.iter().enumerate().filter(move |(_, node)| wanted(node)).map(|(index, _)| index)
    }

    /// The CPUs that tasks use where nothing else is said.
    pub fn default_cpus(&self) -> Vec<Cpu> {
        let allowed = |place: &CpuPosition| {
            self.cpuset_nodes.as_ref().is_none_or(|nodes| nodes.contains(&u32::from(place.node)))
        };
        let places = self.places();
        (0..).zip(&places).filter(|(_, place)| allowed(place)).map(|(cpu, _)| Cpu(cpu)).collect()
    }

    /// The machine as the memory manager sees it.
    ///
    /// # Errors
    /// One line that says what cannot be.
    pub fn topology(&self, l3_bytes: f64) -> Result<Topology, String> {
        self.validate()?;
        let places = self.places();
        let cache_slice = |place: &CpuPosition| {
            let sharing = places.iter().filter(|other| other.llc == place.llc).count() as u64;
            l3_bytes as u64 / sharing.max(1)
        };
        let cpus: Vec<CpuSpec> = places
            .iter()
            .map(|place| CpuSpec { node: Node(place.node), cache_slice: cache_slice(place) })
            .collect();
        let sizes: Vec<NodeSize> = (0..)
            .zip(&self.nodes)
            .map(|(number, node)| NodeSize {
                bytes: node.memory_mib << 20,
                cpus: places.iter().filter(|place| place.node == number).count() as u32,
            })
            .collect();
        let mut topology = match self.word {
            WordSize::Bits32 => Topology::x86_32(&sizes, 0, self.distances.clone())?,
            WordSize::Bits64 => {
                let firmware = Firmware { low_end: u64::from(self.low_end_mib) << 20 };
                firmware.lay_out(&sizes, 0, self.distances.clone())?
            }
        };
        topology.cpus = cpus;
        topology.validate()?;
        Ok(topology)
    }

    fn validate(&self) -> Result<(), String> {
        let counts = [
            ("sockets", self.sockets),
            ("cores_per_socket", self.cores_per_socket),
            ("threads_per_core", self.threads_per_core),
            ("cores_per_llc", self.cores_per_llc),
        ];
        if let Some((name, value)) = counts.iter().find(|(_, value)| !(1..=CPUS_MAX).contains(value)) {
            return Err(format!("topology.{name} is {value}; 1 to {CPUS_MAX} are possible"));
        }
        let cpus =
            u64::from(self.sockets) * u64::from(self.cores_per_socket) * u64::from(self.threads_per_core);
        if cpus > u64::from(CPUS_MAX) {
            return Err(format!("topology has {cpus} CPUs; {CPUS_MAX} are possible"));
        }
        if self.cores_per_llc > self.cores_per_socket {
            return Err(format!(
                "topology.cores_per_llc is {}, more than the {} cores of a socket",
                self.cores_per_llc, self.cores_per_socket
            ));
        }
        if !(LOW_END_MIB_MIN..=LOW_END_MIB_MAX).contains(&self.low_end_mib) {
            return Err(format!(
                "topology.low_end_mib is {}; {LOW_END_MIB_MIN} to {LOW_END_MIB_MAX} are possible",
                self.low_end_mib
            ));
        }
        self.validate_nodes()
    }

    fn validate_nodes(&self) -> Result<(), String> {
        for (number, node) in self.nodes.iter().enumerate() {
            if node.socket >= self.sockets {
                return Err(format!("node {number} is on socket {}, of {}", node.socket, self.sockets));
            }
            if node.memory_mib > 16 << 20 {
                return Err(format!(
                    "node {number} has {} MiB; up to 16 TiB can be described",
                    node.memory_mib
                ));
            }
            let gbps = node.gbps.unwrap_or(1.0);
            if !(0.1..=10_000.0).contains(&gbps) {
                return Err(format!("node {number}: gbps is {gbps}; 0.1 to 10000 are possible"));
            }
            if !(0.0..=100_000.0).contains(&node.extra_ns) {
                return Err(format!(
                    "node {number}: extra_ns is {}; 0 to 100000 are possible",
                    node.extra_ns
                ));
            }
        }
        for socket in 0..self.sockets {
            let nodes = self.nodes_with_cpus(socket).count();
            if nodes == 0 {
                return Err(format!("socket {socket} has no node that its CPUs belong to"));
            }
            if nodes > self.cores_per_socket as usize {
                return Err(format!("socket {socket} has more nodes with CPUs than cores"));
            }
        }
        let unknown = |node: &&u32| **node as usize >= self.nodes.len();
        match &self.cpuset_nodes {
            Some(nodes) if nodes.iter().any(|node| unknown(&node)) => Err(format!(
                "topology.cpuset_nodes names a node above {}",
                self.nodes.len().saturating_sub(1)
            )),
            Some(nodes) if !self.nodes_have_cpus(nodes) => Err("topology.cpuset_nodes has no CPU".into()),
            _ => Ok(()),
        }
    }

    fn nodes_have_cpus(&self, nodes: &[u32]) -> bool {
        nodes.iter().any(|node| self.nodes[*node as usize].has_cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        let node = |socket| NodeShape { socket, memory_mib: 4096, extra_ns: 0.0, gbps: None, has_cpus: true };
        Shape {
            sockets: 2,
            cores_per_socket: 4,
            threads_per_core: 2,
            cores_per_llc: 2,
            smt_numbering: SmtNumbering::Split,
            nodes: vec![node(0), node(1)],
            distances: vec![vec![10, 21], vec![21, 10]],
            cpuset_nodes: Some(vec![1]),
            low_end_mib: LOW_END_MIB,
            word: WordSize::Bits64,
            source: String::new(),
        }
    }

    #[test]
    fn threads_are_numbered_as_told() {
        let split = shape().places();
        assert_eq!((split[0].core, split[8].core, split[5].llc, split[13].node), (0, 0, 2, 1));
        let adjacent = Shape { smt_numbering: SmtNumbering::Adjacent, ..shape() }.places();
        assert_eq!((adjacent[0].core, adjacent[1].core, adjacent[8].socket), (0, 0, 1));
    }

    #[test]
    fn closeness_follows_the_hardware() {
        let places = shape().places();
        let near = |a: usize, b: usize| places[a].closeness(&places[b]);
        assert_eq!(near(0, 8), Closeness::Smt);
        assert_eq!(near(0, 1), Closeness::SameLlc);
        assert_eq!(near(0, 2), Closeness::SameSocket);
        assert_eq!(near(0, 4), Closeness::CrossSocket);
    }

    #[test]
    fn a_cpuset_keeps_tasks_to_its_nodes() {
        let cpus: Vec<u16> = shape().default_cpus().iter().map(|cpu| cpu.0).collect();
        assert_eq!(cpus, [4, 5, 6, 7, 12, 13, 14, 15]);
    }

    #[test]
    fn the_memory_manager_sees_nodes_and_slices() {
        let topology = shape().topology(f64::from(1 << 20)).unwrap();
        assert_eq!((topology.cpus.len(), topology.nodes.len()), (16, 2));
        assert_eq!(topology.cpus[12].node, Node(1));
        assert_eq!(topology.cpus[0].cache_slice, 1 << 18);
        let old = Shape { word: WordSize::Bits32, ..shape() }.topology(0.0).unwrap();
        assert_eq!((old.word, old.nodes[1].zones[0].kind), (WordSize::Bits32, mm::ZoneKind::HighMem));
    }

    #[test]
    fn a_board_says_where_low_memory_ends() {
        let dma32 = |low_end_mib| {
            let topology = Shape { low_end_mib, ..shape() }.topology(1e6).unwrap();
            topology.nodes[0].zones[1].present
        };
        assert_eq!((dma32(2048), dma32(3072)), ((2 << 18) - 4096, (3 << 18) - 4096));
    }
}
