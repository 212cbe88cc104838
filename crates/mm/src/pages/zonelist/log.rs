//! What the kernel's log says of zonelists at boot, in its own words.

use alloc::string::String;
use core::fmt::Write;

use super::{OrderChoice, Zonelists};
use crate::ground::{Node, Relaxed, Topology};
use crate::rules::policy::{Rules, ZonelistOrderRule};

impl Zonelists {
    /// The lines "Fallback order for Node …", "Built … zonelists" and "Policy zone". Kernels that have two orders name the
    /// one in force and count managed pages; later ones name none and count present pages, as the captures of 6.12 to 7.2
    /// do (which version began is not known).
    pub fn boot_log(&self, topology: &Topology, rules: &Rules) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.put_log(&mut text, topology, rules);
        text
    }

    fn put_log(&self, text: &mut String, topology: &Topology, rules: &Rules) -> core::fmt::Result {
        for node in (0..topology.nodes.len()).map(|node| Node(node as u16)) {
            write!(text, "Fallback order for Node {}:", node.0)?;
            self.fallback(node).iter().try_for_each(|next| write!(text, " {}", next.0))?;
            text.push('\n');
        }
        let zones = || topology.nodes.iter().flat_map(|node| &node.zones);
        write!(text, "Built {} zonelists", topology.nodes.len())?;
        let pages: u64 = if rules.zone.zonelist_order == ZonelistOrderRule::Node {
            zones().map(|zone| u64::from(zone.present)).sum()
        } else {
            write!(text, " in {} order", self.order().name())?;
            zones().map(|zone| u64::from(zone.managed)).sum()
        };
        writeln!(text, ", mobility grouping on.  Total pages: {pages}")?;
        writeln!(text, "Policy zone: {}", self.policy_zone().name())
    }

    /// Chooses the order by `setting` (the value of `vm.numa_zonelist_order`) and puts it in force.
    pub fn choose(&self, topology: &Topology, rules: &Rules, setting: u64) -> OrderChoice {
        let choice = OrderChoice::by_setting(topology, rules.zone.zonelist_order, setting);
        self.put_in_force(choice.order);
        let by_default = OrderChoice::by_rule(topology, rules.zone.zonelist_order).order;
        self.first_by_default.store(self.start(by_default), Relaxed);
        choice
    }
}
