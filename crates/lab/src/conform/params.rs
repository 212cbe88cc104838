//! A capture's parameters against those that mm computes from the topology and the sysctls alone.

use mm::policy::{Mechanism, Rules};
use mm::watermark::{Watermarks, protection, watermarks};
use mm::{Knobs, NodeSpec, PageSizing, Policy, Topology, ZoneKind, zonelist};

use super::outcome::{FileKind, FileOutcome};
use crate::conform::read::capture::Capture;
use crate::conform::read::sections::FormatError;
use crate::conform::read::zoneinfo::ZoneInfo;
use crate::conform::slabs::sizing;

/// What mm computes with.
struct Basis<'a> {
    topology: &'a Topology,
    knobs: &'a Knobs,
    rules: &'a Rules,
    /// The zone kind of each column of a protection line.
    columns: &'a [Option<ZoneKind>],
}

/// Holds mm against a capture: each zone's marks, protection and pagesets, each node's fallback order, each slab
/// cache's sizes.
///
/// # Errors
/// If the capture cannot be a machine, or is of a kernel without rules.
pub fn compare(capture: &Capture) -> Result<FileOutcome, FormatError> {
    let policy = Policy::linux(capture.version()?);
    let (topology, knobs) = (capture.topology()?, capture.knobs()?);
    let columns = capture.kinds();
    let ground = Basis { topology: &topology, knobs: &knobs, rules: policy.rules(), columns: &columns };
    let mut outcome = FileOutcome::new(FileKind::Capture);
    outcome.policy = policy.name().to_string();
    for zone in &capture.zones {
        if let Some(kind) = ZoneKind::from_name(&zone.name) {
            compare_zone(&ground, zone, kind, &mut outcome);
        }
    }
    compare_fallback(&ground, capture, &mut outcome);
    outcome.mechanism = Some(Mechanism::Slabs);
    sizing::compare(capture, &policy, &mut outcome)?;
    Ok(outcome)
}

fn compare_zone(ground: &Basis<'_>, zone: &ZoneInfo, kind: ZoneKind, outcome: &mut FileOutcome) {
    let marks = watermarks(ground.topology, ground.knobs, ground.rules, kind, zone.managed);
    let at = |figure: &str| format!("node {} zone {} {figure}", zone.node, zone.name);
    outcome.mechanism = Some(Mechanism::Watermarks);
    let Watermarks { min, low, high, promo } = marks;
    // The kernel prints the marks with the boost of the moment.
    let mut mark = |name: &str, kernel: u64, freehold: u32| {
        outcome.compare(|| at(name), kernel.saturating_sub(zone.boost), u64::from(freehold));
    };
    mark("min", zone.min, min);
    mark("low", zone.low, low);
    mark("high", zone.high, high);
    if let Some(kernel) = zone.promo {
        mark("promo", kernel, promo);
    }
    compare_protection(ground, zone, kind, outcome);
    if zone.managed > 0 {
        compare_pagesets(ground, zone, low, outcome);
    }
}

fn compare_protection(ground: &Basis<'_>, zone: &ZoneInfo, kind: ZoneKind, outcome: &mut FileOutcome) {
    let empty = NodeSpec::default();
    let node = ground.topology.nodes.get(usize::from(zone.node)).unwrap_or(&empty);
    let computed = protection(node, ground.knobs, kind);
    for (column, (&kernel, above)) in zone.protection.iter().zip(ground.columns).enumerate() {
        // Device memory comes after all others.
        let index = above.map_or(ZoneKind::COUNT, ZoneKind::index);
        let what = || format!("node {} zone {} protection, column {column}", zone.node, zone.name);
        outcome.compare(what, kernel, u64::from(computed[index]));
    }
}

fn compare_pagesets(ground: &Basis<'_>, zone: &ZoneInfo, low: u32, outcome: &mut FileOutcome) {
    let cpus = ground.topology.cpus.len();
    let local = match ground.topology.cpus_of(mm::Node(zone.node)) {
        0 => cpus,
        local => local,
    };
    let sizing = PageSizing::compute(ground.rules, ground.knobs, zone.managed, low, local as u32);
    let threshold = mm::stat::stat_threshold(cpus, zone.managed);
    for pageset in &zone.pagesets {
        let at =
            |figure| move || format!("node {} zone {} cpu {} {figure}", zone.node, zone.name, pageset.cpu);
        outcome.mechanism = Some(Mechanism::PageLists);
        outcome.compare(at("batch"), pageset.batch, sizing.batch);
        if let Some(kernel) = pageset.high_min {
            outcome.compare(at("high_min"), kernel, sizing.high_min);
        }
        if let Some(kernel) = pageset.high_max {
            outcome.compare(at("high_max"), kernel, sizing.high_max);
        }
        outcome.mechanism = Some(Mechanism::Watermarks);
        if let Some(kernel) = pageset.stat_threshold {
            outcome.compare(at("vm stats threshold"), kernel, threshold as u32);
        }
    }
}

fn compare_fallback(ground: &Basis<'_>, capture: &Capture, outcome: &mut FileOutcome) {
    let orders = zonelist::fallback_orders(ground.topology, ground.rules.zone.node_load);
    for (node, kernel) in &capture.fallback {
        // A machine of one node has one order.
        outcome.mechanism = (kernel.len() > 1).then_some(Mechanism::Zonelists);
        let order = orders.get(usize::from(*node)).map_or(&[][..], Vec::as_slice);
        let words = |order: &mut dyn Iterator<Item = u16>| {
            order.map(|node| node.to_string()).collect::<Vec<_>>().join(" ")
        };
        let kernel = words(&mut kernel.iter().copied());
        let freehold = words(&mut order.iter().map(|node| node.0));
        outcome.compare(|| format!("node {node} fallback order"), kernel, freehold);
    }
    if capture.fallback.is_empty() {
        outcome.notes.push("its log names no fallback order: none was compared".to_string());
    }
}
