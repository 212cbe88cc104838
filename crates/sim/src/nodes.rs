//! The cost of each node's memory for the CPUs of each node: latency by distance, bandwidth, and the links between sockets.

use crate::costs::LINE_BYTES;
use crate::profile::{NodeShape, Profile, Shape};
use crate::time::{Ticks, from_f64};

/// Ticks by node.
#[derive(Clone, Debug)]
pub(crate) struct NodeCosts {
    /// `latency[from][to]`, idle.
    pub(crate) latency: Vec<Vec<Ticks>>,
    /// Time that a line takes of a node's memory at peak bandwidth; at least 1.
    pub(crate) line: Vec<Ticks>,
    /// Time that a line takes of a node's way to other sockets, one direction; at least 1.
    pub(crate) link_line: Ticks,
    sockets: Vec<u32>,
}

impl NodeCosts {
    pub(crate) fn new(profile: &Profile) -> Self {
        let shape = profile.shape();
        let per_line = |gbps: f64| from_f64(LINE_BYTES as f64 / gbps).max(1);
        let whole = profile.value("dram.node_gbps");
        let count = shape.nodes.len();
        let range = LatencyRange {
            local: from_f64(profile.value("dram.local_ns")),
            remote: from_f64(profile.value("dram.remote_ns")),
        };
        let row = |from| (0..count).map(|to| range.latency(shape, from, to)).collect();
        Self {
            latency: (0..count).map(row).collect(),
            line: shape.nodes.iter().map(|node| per_line(node.gbps.unwrap_or(whole))).collect(),
            link_line: per_line(profile.value("dram.link_gbps")),
            sockets: shape.nodes.iter().map(|node| node.socket).collect(),
        }
    }

    /// Whether memory of `to` is on another socket than CPUs of `from`.
    pub(crate) fn crosses(&self, from: usize, to: usize) -> bool {
        self.sockets[from] != self.sockets[to]
    }
}

/// The profile's two latencies.
#[derive(Clone, Copy)]
struct LatencyRange {
    local: Ticks,
    remote: Ticks,
}

impl LatencyRange {
    /// From a CPU of one node to memory of another, by the profile's two latencies. Between them it follows the firmware's
    /// distances: remote memory is that of the nearest node of another socket. Memory with a latency of its own (an
    /// expander's) has that on top of what ordinary memory of its socket has.
    fn latency(self, shape: &Shape, from: usize, to: usize) -> Ticks {
        let Self { local, remote } = self;
        let node = &shape.nodes[to];
        let same_socket = shape.nodes[from].socket == node.socket;
        if node.extra_ns > 0.0 {
            return from_f64(node.extra_ns) + if same_socket { local } else { remote };
        }
        let row = &shape.distances[from];
        let own = row[from];
        let is_far = |other: &NodeShape| other.socket != shape.nodes[from].socket && other.extra_ns == 0.0;
        let others =
            shape.nodes.iter().zip(row).filter(|(other, _)| is_far(other)).map(|(_, &distance)| distance);
        // On one socket, the farthest node is the remote one.
        let far = others.min().or_else(|| row.iter().copied().max()).unwrap_or(own);
        if far <= own {
            return if same_socket { local } else { remote };
        }
        local + (remote - local) * u64::from(row[to].saturating_sub(own)) / u64::from(far - own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str) -> Vec<Vec<u64>> {
        let text = format!("extends = 'xeon-8260'\n[topology]\n{text}");
        let costs = NodeCosts::new(&Profile::parse("mine", &text).unwrap());
        let ns = |row: &Vec<Ticks>| row.iter().map(|ticks| ticks.div_ceil(1024)).collect();
        costs.latency.iter().map(ns).collect()
    }

    #[test]
    fn latency_follows_distance() {
        // 80.8 and 140.4 ns.
        assert_eq!(nodes("distances = [[10, 21], [21, 10]]"), [[81, 141], [141, 81]]);
        let four = "distances = [[10, 12, 32, 32], [12, 10, 32, 32], [32, 32, 10, 12], [32, 32, 12, 10]]
            nodes = [{ socket = 0, memory_mib = 4096 }, { socket = 0, memory_mib = 4096 },
                     { socket = 1, memory_mib = 4096 }, { socket = 1, memory_mib = 4096 }]";
        assert_eq!(nodes(four)[0], [81, 87, 141, 141]);
    }

    #[test]
    fn an_expander_adds_to_its_sockets_latency() {
        let expander = "distances = [[10, 21, 50], [21, 10, 60], [50, 60, 10]]
            nodes = [{ socket = 0, memory_mib = 4096 }, { socket = 1, memory_mib = 4096 },
                     { socket = 0, memory_mib = 4096, has_cpus = false, extra_ns = 100 }]";
        assert_eq!(nodes(expander)[..2], [[81, 141, 181], [141, 81, 241]], "it has no CPUs itself");
    }
}
