//! Setting up: descriptors, zones with all their managed pages free, pagesets, zonelists; and what follows anew when a
//! knob changes.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::compact::Compaction;
use crate::ground::ids::{Cpu, MigrateType, Node, Order, Pfn, ZoneId, ZoneKind};
use crate::ground::machine::{LockClass, Machine};
use crate::ground::once::Once;
use crate::ground::sync::{Locked, Relaxed};
use crate::ground::topology::{NodeSpec, Topology, ZoneSpec};
use crate::lru::Lru;
use crate::lru::page::{Page, Pages};
use crate::pages::arena::{Arenas, Division};
use crate::pages::buddy::{Place, ZoneCx};
use crate::pages::fair::Turn;
use crate::pages::frame::{MemMap, Mobility};
use crate::pages::pageblock::Pageblocks;
use crate::pages::pcp::{self, PageSizing, Pageset};
use crate::pages::stat::stat_threshold;
use crate::pages::watermark::{protection, watermarks};
use crate::pages::zone::{AllocFlags, Cx, Zone, ZoneParts};
use crate::pages::zone_price::LowZone;
use crate::pages::zonelist::{OrderChoice, Zonelists};
use crate::reclaim::Reclaim;
use crate::rules::knobs::{KNOBS, Knob, KnobError, Knobs};
use crate::rules::policy::{FairRule, MixingRule, Policy, Rules};
use crate::slab::SlabAllocator;
use crate::views::oom::OomReports;
use crate::vm::Vm;
use crate::vm::mempolicy::InterleaveWeights;

/// A memory manager on a machine.
pub struct Mm<M: Machine> {
    pub(crate) machine: M,
    pub(crate) topology: Topology,
    pub(crate) policy: Policy,
    pub(crate) knobs: Knobs,
    /// Held while knobs change: what follows from them is computed from one set of values.
    knobs_change: Locked<M, ()>,
    pub(crate) map: MemMap,
    pub(crate) blocks: Pageblocks,
    /// Made when the first address space or file is.
    pages: Once<Pages>,
    pub(crate) vm: Vm<M>,
    pub(crate) zones: Box<[Zone<M>]>,
    pub(crate) slabs: SlabAllocator<M>,
    pub(crate) lru: Lru<M>,
    pub(crate) reclaim: Reclaim<M>,
    pub(crate) compaction: Compaction,
    pub(crate) oom_reports: OomReports<M>,
    pub(crate) zonelists: Zonelists,
    pub(crate) weights: InterleaveWeights,
}

impl<M: Machine> Mm<M> {
    /// A memory manager for `topology`, all of its managed pages free.
    ///
    /// # Errors
    /// If the topology is impossible, or the policy's kernel lacks a knob that is not at its default, or the value: what is wrong, in one line.
    pub fn new(machine: M, topology: Topology, policy: Policy, knobs: Knobs) -> Result<Self, String> {
        topology.validate()?;
        // A kernel that lacks a knob does what the knob's default stands for.
        for spec in KNOBS.iter().filter(|spec| knobs.get(spec.knob) != spec.default) {
            let check = policy.check_knob(spec.knob, knobs.get(spec.knob));
            check.map_err(|error| error.to_string())?;
        }
        let zones = zones(&machine, &topology, policy.rules(), &knobs);
        let end = Pfn(zones.iter().map(|zone| zone.span().end).max().unwrap_or(0));
        let knobs_change = Locked::new(&machine, LockClass::Other, 0, ());
        let zonelists = Zonelists::new(&topology, policy.rules());
        let weights = InterleaveWeights::new(topology.nodes.len());
        let slabs = SlabAllocator::new(&machine, topology.cpus.len());
        let sizes = (topology.nodes.len(), zones.len(), topology.cpus.len());
        let lru = Lru::new(&machine, policy.rules().reclaim.lru, sizes);
        let vm = Vm::new(&machine, zones.len());
        let reclaim = Reclaim::new(&machine, &topology);
        let compaction = Compaction::new(topology.nodes.len(), zones.iter().map(Zone::managed_span));
        let oom_reports = OomReports::new(&machine);
        let blocks = Pageblocks::new(end, &topology, policy.rules());
        let mm = Self {
            machine,
            slabs,
            lru,
            reclaim,
            compaction,
            oom_reports,
            topology,
            policy,
            knobs,
            knobs_change,
            map: MemMap::new(end),
            blocks,
            pages: Once::default(),
            vm,
            zones,
            zonelists,
            weights,
        };
        mm.apply_knobs();
        for zone in &mm.zones {
            mm.set_cache_slices(zone);
            mm.free_boot_memory(zone);
        }
        Ok(mm)
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
            if let Some(summary) = self.blocks.summary() {
                summary.join_any(&self.machine, (Pfn(pfn), order), Mobility::Movable);
            }
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
    fn apply_knobs(&self) {
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
        self.resize_caches();
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

    /// Gives `value` to `knob`, as writing to the sysctl does; all that follows from it is computed anew.
    ///
    /// # Errors
    /// If the value is out of the knob's range, or the policy's kernel does not take it.
    pub fn set_knob(&self, knob: Knob, value: u64) -> Result<(), KnobError> {
        self.policy.check_knob(knob, value)?;
        let _change = self.knobs_change.lock(&self.machine);
        self.knobs.set(knob, value)?;
        self.apply_knobs();
        Ok(())
    }

    #[inline]
    pub(crate) fn cx(&self) -> Cx<'_, M> {
        Cx {
            machine: &self.machine,
            map: &self.map,
            blocks: &self.blocks,
            knobs: &self.knobs,
            rules: self.policy.rules(),
        }
    }

    #[inline]
    pub(crate) fn zone_cx(&self, zone: ZoneId) -> ZoneCx<'_, M> {
        ZoneCx { cx: self.cx(), zone: &self.zones[usize::from(zone.0)] }
    }

    /// The machine that this runs on.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// What this was told of the machine.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The knobs' values; [`Mm::set_knob`] changes them.
    pub fn knobs(&self) -> &Knobs {
        &self.knobs
    }

    /// The frame descriptors.
    pub fn map(&self) -> &MemMap {
        &self.map
    }

    /// What is known of the page at `pfn` besides its descriptor.
    #[inline]
    pub(crate) fn page(&self, pfn: Pfn) -> &Page {
        let end = || Pfn(self.zones.iter().map(|zone| zone.span().end).max().unwrap_or(0));
        self.pages.get_or(|| Pages::new(end())).page(pfn)
    }

    /// Whether the pages' table exists: some address space or file has been made.
    pub(crate) fn has_pages(&self) -> bool {
        self.pages.get().is_some()
    }

    /// The type of the pageblock that `pfn` is in.
    pub fn pageblock(&self, pfn: Pfn) -> MigrateType {
        self.blocks.get(pfn)
    }

    /// The populated zones, by [`ZoneId`].
    pub fn zones(&self) -> &[Zone<M>] {
        &self.zones
    }

    /// The zone of `kind` on `node`, if it is populated.
    pub fn zone(&self, node: Node, kind: ZoneKind) -> Option<&Zone<M>> {
        self.zones.iter().find(|zone| zone.node == node && zone.kind == kind)
    }

    /// The zone whose span `pfn` is in.
    pub fn zone_of(&self, pfn: Pfn) -> Option<&Zone<M>> {
        self.zones.iter().find(|zone| zone.span().contains(&pfn.0))
    }

    /// The nodes that a task on `node` asks, in order ("Fallback order" in the kernel's log).
    pub fn fallback_order(&self, node: Node) -> &[Node] {
        self.zonelists.fallback(node)
    }

    /// The zones that a task on `node` asks, in order.
    pub fn zonelist(&self, node: Node) -> impl Iterator<Item = (Node, ZoneKind)> {
        self.zonelists.zones(node)
    }

    /// The order that zonelists have, and what decided it.
    pub fn zonelist_order(&self) -> OrderChoice {
        let setting = self.knobs.get(Knob::NumaZonelistOrder);
        OrderChoice::by_setting(&self.topology, self.policy.rules().zonelist_order, setting)
    }
}

impl<M: Machine> core::fmt::Debug for Mm<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Mm")
            .field("policy", &self.policy.name())
            .field("zones", &self.zones)
            .finish_non_exhaustive()
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
            let divided = |knobs: &Knobs| Division::new(rules, knobs, spec.start, spec.managed, local);
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
    if rules.mixing == MixingRule::Avoided && avoids_mixing(topology, node, spec.kind) {
        first_try = first_try.with(AllocFlags::NOFRAGMENT);
    }
    let turn = match rules.fair {
        FairRule::ZoneBatches => {
            first_try = first_try.with(AllocFlags::FAIR);
            Some(Turn::new(topology.cpus.len(), threshold))
        }
        FairRule::Unfair => None,
    };
    let low = LowZone::new(topology, rules.zone_price, spec.kind);
    if low.is_some() {
        first_try = first_try.with(AllocFlags::LOW);
    }
    let withheld = rules.withheld;
    Zone::new(ZoneParts { id, node, spec, first_try, turn, low, withheld, arenas, pagesets })
}

/// Whether a request that prefers the zone of `kind` on `node` should first leave it rather than mix types there: if that
/// is Normal, and there is a DMA32 on the same node to go to (or only one node).
fn avoids_mixing(topology: &Topology, node: Node, kind: ZoneKind) -> bool {
    let zones = &topology.nodes[usize::from(node.0)].zones;
    let elsewhere = topology.nodes.len() == 1 || zones.iter().any(|zone| zone.kind == ZoneKind::Dma32);
    kind == ZoneKind::Normal && elsewhere
}
