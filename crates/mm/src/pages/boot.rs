//! Setting up: descriptors, zones with all their managed pages free, pagesets, zonelists; and what follows anew when a
//! knob changes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::ground::{
    Cpu, Machine, MigrateType, Node, NodeSpec, Order, Pfn, Relaxed, Topology, ZoneId, ZoneKind, ZoneSpec,
};
use crate::pages::Pages;
use crate::pages::arena::{Arenas, Division};
use crate::pages::buddy::{Place, ZoneCx};
use crate::pages::fair::Turn;
use crate::pages::frame::{MemMap, Mobility};
use crate::pages::killed::Killed;
use crate::pages::pageblock::Pageblocks;
use crate::pages::pcp::{self, PageSizing, Pageset};
use crate::pages::stat::stat_threshold;
use crate::pages::watermark::{protection, watermarks};
use crate::pages::zone::{AllocFlags, Zone, ZoneParts};
use crate::pages::zone_price::LowZone;
use crate::pages::zonelist::Zonelists;
use crate::rules::knobs::{Knob, Knobs};
use crate::rules::policy::{FairRule, MixingRule, Policy, Rules};

impl<M: Machine> Pages<M> {
    /// The pages of `topology`, which is possible; all of its managed ones are free.
    pub(crate) fn new(machine: M, topology: Topology, policy: Policy, knobs: Knobs) -> Self {
        let zones = zones(&machine, &topology, policy.rules(), &knobs);
        let end = Pfn(zones.iter().map(|zone| zone.span().end).max().unwrap_or(0));
        let zonelists = Zonelists::new(&topology, policy.rules());
        let blocks = Pageblocks::new(end, &topology, policy.rules());
        let map = MemMap::new(end);
        let killed = Killed::new(&machine);
        let pages = Self { machine, topology, policy, knobs, map, blocks, zones, zonelists, killed };
        pages.apply_knobs();
        for zone in &pages.zones {
            pages.set_cache_slices(zone);
            pages.free_boot_memory(zone);
        }
        pages
    }

    /// Frees a zone's managed pages in the largest blocks, lowest first.
    fn free_boot_memory(&self, zone: &Zone<M>) {
        let cx = ZoneCx { cx: self.cx(), zone };
        let span = zone.managed_span();
        let mut pfn = span.start;
        while pfn < span.end {
            let aligned = if pfn == 0 { u32::from(Order::MAX.get()) } else { pfn.trailing_zeros() };
            let fits = (span.end - pfn).ilog2();
            let order = Order::new(aligned.min(fits).min(u32::from(Order::MAX.get())) as u8);
            let order = order.expect("no larger than the largest");
            let mut free = zone.arenas.lock_owner(&self.machine, Pfn(pfn));
            free.add(cx, Pfn(pfn), order, MigrateType::Movable, Place::Tail);
            self.blocks.joined(&self.machine, (Pfn(pfn), order), Mobility::Movable);
            pfn += order.pages();
        }
        zone.stat.reset_free(zone.managed);
    }

    fn set_cache_slices(&self, zone: &Zone<M>) {
        for (pageset, cpu) in zone.pagesets.iter().zip(&self.topology.cpus) {
            pageset.pcp.lock(&self.machine).set_cache_slice::<M>(cpu.cache_slice);
        }
    }

    /// Computes all that follows from knobs: marks, protection, pageset sizes, the zonelists' order.
    pub(crate) fn apply_knobs(&self) {
        let rules = self.policy.rules();
        let order = self.knobs.get(Knob::NumaZonelistOrder);
        self.zonelists.choose(&self.topology, rules, order);
        for zone in &self.zones {
            let marks = watermarks(&self.topology, &self.knobs, rules, zone.kind, zone.managed);
            zone.set_marks(marks);
            zone.rewatch(&self.topology, rules, &self.knobs);
            self.apply_protection(zone);
            zone.reset_turn(&self.machine, self.machine.cpu());
            let sizing = self.page_sizing(zone, &self.knobs, marks.low);
            let watched = self.page_sizings_by_default(zone);
            for pageset in &zone.pagesets {
                pageset.pcp.lock(&self.machine).resize(sizing, &watched);
            }
            self.assign_homes(zone);
        }
    }

    /// Computes what `zone` keeps from requests that could use a higher one.
    pub(crate) fn apply_protection(&self, zone: &Zone<M>) {
        let node = &self.topology.nodes[usize::from(zone.node.0)];
        zone.set_linux_protection(protection(node, &self.knobs, zone.kind));
    }

    /// Spreads the CPUs over the arenas of `zone` that are to be homes: those of its node one by one, for they use it
    /// most.
    fn assign_homes(&self, zone: &Zone<M>) {
        let before = zone.arenas.homes();
        let homes = zone.arenas.set_homes(self.knobs.get(Knob::Arenas) as u32);
        if homes == before {
            // Where CPUs have moved on their own, they stay.
            return;
        }
        let mut local = 0;
        for ((pageset, cpu), number) in zone.pagesets.iter().zip(&self.topology.cpus).zip(0..) {
            let rank = if cpu.node == zone.node { local } else { number };
            local += u32::from(cpu.node == zone.node);
            pageset.home.store(rank % homes, Relaxed);
        }
    }

    fn page_sizing(&self, zone: &Zone<M>, knobs: &Knobs, low: u32) -> PageSizing {
        let local = self.topology.cpus_that_share(zone.node);
        PageSizing::compute(self.policy.rules(), knobs, zone.managed, low, local as u32)
    }

    /// The sizes of pagesets with each knob at its default that they follow from and somebody set, where that is watched.
    fn page_sizings_by_default(&self, zone: &Zone<M>) -> Vec<(Knob, PageSizing)> {
        if !M::WATCHES_KNOBS {
            return Vec::new();
        }
        let rules = self.policy.rules();
        pcp::watched(rules, &self.knobs, |knobs| {
            let marks = watermarks(&self.topology, knobs, rules, zone.kind, zone.managed);
            self.page_sizing(zone, knobs, marks.low)
        })
    }
}

fn zones<M: Machine>(machine: &M, topology: &Topology, rules: &Rules, knobs: &Knobs) -> Box<[Zone<M>]> {
    let specs = topology.nodes.iter().enumerate().flat_map(|(node, spec): (usize, &NodeSpec)| {
        spec.zones.iter().map(move |zone: &ZoneSpec| (Node(node as u16), *zone))
    });
    specs
        .enumerate()
        .map(|(id, (node, spec))| {
            let local = topology.cpus_that_share(node) as u32;
            let pages = spec.managed_span().end - spec.start.0;
            let divided = |knobs: &Knobs| Division::new(rules, knobs, spec.start, pages, local);
            let division = (divided(knobs), divided(&knobs.with_default(Knob::Arenas)));
            zone(machine, (topology, rules), ZoneId(id as u16), node, (spec, division))
        })
        .collect()
}

fn zone<M: Machine>(
    machine: &M,
    (topology, rules): (&Topology, &Rules),
    id: ZoneId,
    node: Node,
    (spec, division): (ZoneSpec, (Division, Division)),
) -> Zone<M> {
    let threshold = stat_threshold(topology.cpus.len(), spec.managed);
    let cpus = (0..topology.cpus.len()).map(|cpu| Cpu(cpu as u16));
    let pagesets = cpus.map(|cpu| Pageset::new(machine, id, cpu, threshold)).collect();
    let arenas = Arenas::new(machine, (id, spec.start), division);
    let mut first_try = AllocFlags::NONE;
    if rules.zone.mixing == MixingRule::Avoided && avoids_mixing(topology, node, spec.kind) {
        first_try = first_try.with(AllocFlags::NOFRAGMENT);
    }
    let turn = match rules.zone.fair {
        FairRule::ZoneBatches => {
            first_try = first_try.with(AllocFlags::FAIR);
            Some(Turn::new(topology.cpus.len(), threshold))
        }
        FairRule::Unfair => None,
    };
    let low = LowZone::new(topology, rules.zone.zone_price, spec.kind);
    if low.is_some() {
        first_try = first_try.with(AllocFlags::LOW);
    }
    let withheld = rules.zone.withheld;
    Zone::new(ZoneParts { id, node, spec, first_try, turn, low, withheld, arenas, pagesets })
}

/// Whether a request that prefers the zone of `kind` on `node` should first leave it rather than mix types there: if that
/// is Normal, and there is a DMA32 on the same node to go to (or only one node).
fn avoids_mixing(topology: &Topology, node: Node, kind: ZoneKind) -> bool {
    let zones = &topology.nodes[usize::from(node.0)].zones;
    let elsewhere = topology.nodes.len() == 1 || zones.iter().any(|zone| zone.kind == ZoneKind::Dma32);
    kind == ZoneKind::Normal && elsewhere
}
