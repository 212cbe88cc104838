//! What a mark looks at. Behind a mark's label stand names of
//!
//! - vmstat's counters (`pswpin`), how much they grew since the program's mark before; levels (`nr_…`) as they are;
//! - `watermark_min`, `watermark_low`, `watermark_high`: the marks of all zones together, and `watermark_distance` from min to low, in
//!   pages;
//! - `self.rss`, `self.swap`, `self.huge`: the process's pages; `self.faults`, `self.major`: its faults, since the mark before;
//! - `NAME.rss`, `NAME.swap`, `NAME.huge`: pages of a region; `NAME.cached`: of a file; `NAME.reads`, `NAME.hits`: calls that read a file, and
//!   those that did not have to wait, of all processes since the mark before;
//! - `nodeN.free`: free pages of a node, `nodeN.oK`: free blocks of order K in its Normal zone;
//! - two of them with a `/` between, `A/B`: A in percent of B; `A/s`: A a second; `A/M`: pages A in MiB;
//! - `group.usage`, `group.swap` (pages), `group.high_delay_ns`, and `group.EVENT` of `memory.events`, since the mark before.

use std::collections::BTreeMap;

use mm::{GroupEvent, Machine, Node, ZoneKind};

use super::player::Player;
use crate::script::names::{Named, PAGE};

/// Whether a name says how much there is, and not how often something happened.
fn is_level(name: &str) -> bool {
    let is_size = |part: &str| ["rss", "swap", "huge", "cached", "usage"].contains(&part);
    name.starts_with("nr_")
        || name.starts_with("watermark_")
        || node_of(name).is_some()
        || name.split_once('.').is_some_and(|(_, part)| is_size(part))
}

/// The node that `nodeN.…` is about.
fn node_of(name: &str) -> Option<Node> {
    let (node, _) = name.split_once('.')?;
    node.strip_prefix("node")?.parse().ok().map(Node)
}

impl Player {
    /// `label`: how long it is since the mark before, and what `counters` came to.
    pub(super) fn mark(&mut self, label: &str, counters: &[String]) {
        let now = self.machine().now();
        let since = now.0 - std::mem::replace(&mut self.marked, now).0;
        self.world.stage.tally.sampled(label, since as f64);
        let names: Vec<&str> = counters.iter().flat_map(|name| name.split('/')).collect();
        let all = self.look(&names);
        let grown = |name: &str| {
            let value = all.get(name).copied().unwrap_or(0);
            let before = if is_level(name) { 0 } else { self.counted.get(name).copied().unwrap_or(0) };
            value.saturating_sub(before) as f64
        };
        for name in counters {
            let value = match name.split_once('/') {
                None => grown(name),
                Some((of, "s")) => grown(of) * 1e9 / since.max(1) as f64,
                Some((of, "M")) => grown(of) * PAGE as f64 / f64::from(1 << 20),
                Some((of, by)) => 100.0 * grown(of) / grown(by).max(1.0),
            };
            self.world.stage.tally.sampled(&format!("{label}.{name}"), value);
        }
        self.counted.extend(all);
        // Looking at counters takes a moment, which is nobody's.
        self.marked = self.machine().now();
    }

    /// What these counters stand at, and all of vmstat's.
    fn look(&self, names: &[&str]) -> BTreeMap<String, u64> {
        let mut all = if names.is_empty() { BTreeMap::new() } else { self.world.stage.counters() };
        let mut own = BTreeMap::new();
        for &name in names {
            let value = match (node_of(name), name.split_once('.')) {
                (Some(node), Some((_, part))) => self.of_node(node, part),
                (_, Some(("self", part))) => self.of_self(part),
                (_, Some(("group", part))) => self.of_group(part),
                (_, Some((region, part))) => self.of_name(region, part),
                (_, None) => self.of_marks(name),
            };
            own.extend(value.map(|value| (name.to_owned(), value)));
        }
        all.extend(own);
        all
    }

    fn of_self(&self, part: &str) -> Option<u64> {
        let space = &self.life.space;
        Some(match part {
            "rss" => space.resident_pages(),
            "swap" => space.swapped_pages(),
            "huge" => space.huge_pages(),
            "faults" => space.counters().minor,
            "major" => space.counters().major,
            _ => return None,
        })
    }

    fn of_group(&self, part: &str) -> Option<u64> {
        let (memcg, group) = (self.world.stage.mm.memcg(), self.life.group.get());
        let event = GroupEvent::ALL.into_iter().find(|event| event.name() == part);
        Some(match (part, event) {
            (_, Some(event)) => memcg.events(group, event),
            ("usage", _) => memcg.usage(group),
            ("swap", _) => memcg.swap_usage(group),
            ("high_delay_ns", _) => memcg.delayed(group).0,
            _ => return None,
        })
    }

    fn of_name(&self, name: &str, part: &str) -> Option<u64> {
        match (self.names.find(name)?, part) {
            (Named::Region(region), part) => {
                let at = ["rss", "swap", "huge"].into_iter().position(|known| known == part)?;
                Some(self.residence(region)[at])
            }
            (Named::File { file, bytes }, "cached") => {
                Some(file.cached_within(self.machine(), 0, bytes.div_ceil(PAGE) as u32))
            }
            (Named::File { file, .. }, "reads") => Some(self.world.reads_of(file.id()).all),
            (Named::File { file, .. }, "hits") => Some(self.world.reads_of(file.id()).hits),
            _ => None,
        }
    }

    fn of_node(&self, node: Node, part: &str) -> Option<u64> {
        let stage = &self.world.stage;
        if part == "free" {
            return stage.free_pages().get(usize::from(node.0)).copied();
        }
        let order: usize = part.strip_prefix('o')?.parse().ok()?;
        let mut zones = stage.mm.zones().iter();
        let zone = zones.find(|zone| zone.node() == node && zone.kind() == ZoneKind::Normal)?;
        stage.mm.views().free_blocks_in(zone).get(order).copied()
    }

    fn of_marks(&self, name: &str) -> Option<u64> {
        let zones = self.world.stage.mm.zones().iter();
        let marks = zones.map(|zone| {
            let marks = zone.watermarks();
            match name {
                "watermark_min" => Some(marks.min),
                "watermark_low" => Some(marks.low),
                "watermark_high" => Some(marks.high),
                "watermark_distance" => Some(marks.low - marks.min),
                _ => None,
            }
        });
        marks.map(|mark| mark.map(u64::from)).sum()
    }
}
