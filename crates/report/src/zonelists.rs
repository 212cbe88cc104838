//! Which zones a request asks, in which order: `freehold machines show --zonelists`.

use std::fmt::Write as _;

use mm::{Node, OrderChoice, Policy, Zonelists};
use sim::Profile;

use crate::style::Style;
use crate::table::wrap;

/// What the kernel's log says of a machine's zonelists, each node's zones in order, and what decided that order.
pub fn show(
    style: Style,
    profile: &Profile,
    policy: &Policy,
    lists: &Zonelists,
    choice: OrderChoice,
) -> String {
    let topology = profile.topology();
    let mut out = format!("{}, {}\n\n", style.heading(profile.name()), policy.name());
    out.push_str(&lists.boot_log(&topology, policy.rules()));
    let _ = writeln!(out, "\nZones that a task on each node asks, in order:");
    for node in (0..topology.nodes.len()).map(|node| Node(node as u16)) {
        let zones: Vec<String> =
            lists.zones(node).map(|(node, kind)| format!("{}:{}", node.0, kind.name())).collect();
        let _ = writeln!(out, "  Node {}: {}", node.0, zones.join(" "));
    }
    let why = format!("{} order: {}", choice.order.name(), choice.reason);
    let _ = writeln!(out, "\n{}", wrap(&why, style.columns()).join("\n"));
    out
}
