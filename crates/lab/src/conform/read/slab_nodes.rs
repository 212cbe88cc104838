//! The machine of a slab trace: how many CPUs and nodes, and which CPU is of which node. A new slab comes from the node of
//! the CPU that asks, and goes back to the list of the node that it lies on, so that this decides who finds it there.
//!
//! The trace itself does not say it. The text beside it does, in one of these, the first that is there: a section
//! `@@cpus` as captures have it, or QEMU's arguments. Where neither stands, the counts by node (`N1=4`) and by CPU
//! (`C1=9`) of the cache's files say how many there are, and CPUs are divided among nodes in equal parts, in order.

use mm::{CpuSpec, Node, NodeSize, Topology};

use super::attributes::Attributes;
use super::beside::Emulated;
use super::sections::{FormatError, Sections, number, number_set};

/// Memory of a node; a cache of some hundred slabs fits in everywhere.
const NODE_BYTES: u64 = 1 << 28;

/// More nodes no x86 has, and more CPUs no trace.
const MOST_NODES: usize = 64;
const MOST_CPUS: usize = 1024;

/// A CPU's share of the last-level cache: it says nothing of slabs.
const CACHE_SLICE: u64 = 1 << 20;

/// Nodes, and the node of each CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::conform) struct SlabNodes {
    nodes: usize,
    of_cpu: Vec<Node>,
}

impl SlabNodes {
    /// Of the text beside a trace and the cache's files in it.
    pub(in crate::conform) fn of(text: &str, files: [&Attributes; 2]) -> Result<Self, FormatError> {
        let told = match said(&Sections::of(text))? {
            // Three of our own guests read `cpulist` in a way that gave nothing.
            said if said.iter().all(Vec::is_empty) => Emulated::find(text)?.cpus,
            said => said,
        };
        let highest = |letter| files.iter().filter_map(|files| files.highest(letter)).max();
        let in_files = |letter| highest(letter).map_or(1, |index| usize::from(index) + 1);
        let of_told = told.iter().flatten().map(|&cpu| usize::from(cpu) + 1).max();
        let nodes = told.len().max(in_files('N'));
        let cpus = of_told.unwrap_or(1).max(in_files('C'));
        if nodes > MOST_NODES || cpus > MOST_CPUS {
            let what = format!("{nodes} nodes and {cpus} CPUs are more than {MOST_NODES} and {MOST_CPUS}");
            return Err(FormatError::new(0, what));
        }
        let mut of_cpu: Vec<Node> = (0..cpus).map(|cpu| Node((cpu * nodes / cpus) as u16)).collect();
        for (node, told) in (0..).zip(&told) {
            for &cpu in told {
                of_cpu[usize::from(cpu)] = Node(node);
            }
        }
        Ok(Self { nodes, of_cpu })
    }

    /// At least so many CPUs: those that nobody named are of node 0.
    pub(in crate::conform) fn with_cpus(mut self, cpus: usize) -> Self {
        let cpus = cpus.max(self.of_cpu.len());
        self.of_cpu.resize(cpus, Node(0));
        self
    }

    /// How many CPUs there are.
    pub(in crate::conform) fn cpus(&self) -> usize {
        self.of_cpu.len()
    }

    /// How many nodes there are.
    pub(in crate::conform) fn nodes(&self) -> usize {
        self.nodes
    }

    pub(in crate::conform) fn node_of(&self, cpu: u16) -> Node {
        self.of_cpu.get(usize::from(cpu)).copied().unwrap_or(Node(0))
    }

    /// Such a machine.
    pub(in crate::conform) fn topology(&self) -> Result<Topology, FormatError> {
        let size = NodeSize { bytes: NODE_BYTES, cpus: self.cpus() as u32 };
        let near = |from, to| if from == to { 10 } else { 20 };
        let distance = (0..self.nodes).map(|from| (0..self.nodes).map(|to| near(from, to)).collect());
        let laid_out = Topology::x86(&vec![size; self.nodes], CACHE_SLICE, distance.collect());
        let mut topology = laid_out.map_err(|what| FormatError::new(0, what))?;
        let cpu = |&node| CpuSpec { node, cache_slice: CACHE_SLICE };
        topology.cpus = self.of_cpu.iter().map(cpu).collect();
        topology.validate().map_err(|what| FormatError::new(0, what))?;
        Ok(topology)
    }
}

/// The CPUs of each node as `@@cpus` says, `node1 cpulist=2-3 distance=21 10`; nothing if there is no such section.
fn said(sections: &Sections<'_>) -> Result<Vec<Vec<u16>>, FormatError> {
    let mut nodes: Vec<Vec<u16>> = vec![];
    for &(line, text) in sections.get("cpus").map_or(&[][..], |section| &section.lines) {
        let mut words = text.split_whitespace();
        let Some(node) = words.next().and_then(|word| word.strip_prefix("node")) else { continue };
        let node: u8 = number(line, "the node", node)?;
        let list = words.find_map(|word| word.strip_prefix("cpulist=")).unwrap_or_default();
        nodes.resize(nodes.len().max(usize::from(node) + 1), vec![]);
        nodes[usize::from(node)] = number_set(line, "cpulist", list)?;
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::read::slab_trace::SlabBeside;
    use crate::conform::slabs::replay;

    const FILES: &str = "@@slab-before\nslabs=4 N0=3 N1=1\n@@slab-after\nalloc_slab=4 C0=2 C3=2\n";

    fn nodes(more: &str) -> Vec<u16> {
        let text = format!("{FILES}{more}");
        let beside = SlabBeside::parse(&text).unwrap();
        beside.nodes.of_cpu.iter().map(|node| node.0).collect()
    }

    #[test]
    fn cpus_are_where_the_text_says() {
        assert_eq!(nodes("@@cpus\n0-3\nnode0 cpulist=0,2 distance=10 21\nnode1 cpulist=1,3\n"), [0, 1, 0, 1]);
        assert_eq!(
            nodes("# qemu: -smp 4 -numa node,nodeid=0,cpus=3 -numa node,nodeid=1,cpus=0-2\n"),
            [1, 1, 1, 0]
        );
        assert_eq!(nodes(""), [0, 0, 1, 1], "in equal parts");
    }

    #[test]
    fn a_machine_that_cannot_be_is_an_error() {
        let text = format!("{FILES}@@cpus\nnode70 cpulist=0\n");
        assert!(SlabBeside::parse(&text).is_err());
        assert!(SlabBeside::parse(&format!("{FILES}@@cpus\nnode0 cpulist=0-4000\n")).is_err());
    }

    /// CPU 1 takes an object of a slab of its own, which CPU 0 frees; then the files by node.
    #[test]
    fn a_slab_lies_on_the_node_of_the_cpu_that_took_it() {
        let trace = "seconds,cpu,task,event,object\n1,0,a-1,slab_alloc,10000\n1,1,b-2,slab_alloc,20000\n\
            2,0,a-1,slab_free,20000\n";
        let sizes = "align=8\nobject_size=168\nslab_size=168\norder=0\nobjs_per_slab=24\n";
        let frees = |count: &str| format!("free_frozen={count}\nfree_slowpath={count}\n");
        let beside = format!(
            "@@uname\n6.12.117\n@@cpus\n0-1\nnode0 cpulist=0 distance=10 21\nnode1 cpulist=1\n\
             @@slab-before\n{sizes}{}@@slab-after\n{sizes}{}slabs=2 N0=1 N1=1\ncpu_slabs=2 N0=1 N1=1\n\
             total_objects=48 N0=24 N1=24\npartial=0\nslabs_cpu_partial=0(0)\n",
            frees("0"),
            frees("1 C0=1"),
        );
        let outcome = replay::conform(trace, &beside).unwrap();
        let differences: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
        assert_eq!(differences, [""; 0]);
        let one_node = "# qemu: -numa node,nodeid=0,cpus=0-1\n";
        let text = beside.replace("@@cpus", "@@other") + one_node;
        let outcome = replay::conform(trace, &text).unwrap();
        let wrong = outcome.differences.iter().filter(|difference| difference.to_string().contains("N1="));
        assert_eq!(wrong.count(), 3, "slabs, CPU slabs and objects are by node");
    }

    #[test]
    fn a_node_may_have_no_cpu() {
        let text = format!("{FILES}# qemu: -numa node,nodeid=0,cpus=0-3 -numa node,nodeid=1\n");
        let topology = SlabBeside::parse(&text).unwrap().nodes.topology().unwrap();
        assert_eq!((topology.nodes.len(), topology.cpus_of(Node(1))), (2, 0));
    }
}
