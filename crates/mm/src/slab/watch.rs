//! What a cache's limits and orders would be with a knob at its default, kept beside those in force on machines that
//! watch knobs ([`Machine::WATCHES_KNOBS`]) and compared wherever a limit decides.

use super::{CacheSizing, CacheSpec, SlabCx, SlabGround, SlabSystem};
use alloc::boxed::Box;

use super::cache::Cache;
use crate::ground::{AtomicU32, Machine, Relaxed};
use crate::rules::knobs::{Knob, KnobUse, Knobs};
use crate::rules::policy::{CpuSlabRule, Rules};

/// The knobs that sizes of caches follow from.
const SLAB_KNOBS: [Knob; 4] =
    [Knob::SlabMaxOrder, Knob::SlabMinObjects, Knob::CpuPartialScale, Knob::NodePartialScale];

/// The limits of a cache that decide what becomes of a partial slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Partial slabs that a CPU keeps at most.
    pub(super) cpu_partial_slabs: u32,
    /// Partial slabs that a node keeps before it gives back empty ones.
    pub(super) min_partial: u32,
}

impl Limits {
    pub(super) fn of(sizing: &CacheSizing) -> Self {
        Self { cpu_partial_slabs: sizing.cpu_partial_slabs, min_partial: sizing.min_partial }
    }
}

/// Sizes with one knob at its default; on while the knob is watched.
#[derive(Debug, Default)]
struct ByDefault {
    is_on: AtomicU32,
    cpu_partial_slabs: AtomicU32,
    min_partial: AtomicU32,
    /// The order and the objects of a slab, as the knobs were when the cache was made: it keeps them for life.
    order: u32,
    objects: u32,
}

/// What one cache keeps.
#[derive(Debug, Default)]
pub(super) struct CacheWatch([ByDefault; SLAB_KNOBS.len()]);

/// Whether sizes of caches follow from `knob` under `rules`.
fn sizes(knob: Knob, rules: &Rules) -> bool {
    knob != Knob::CpuPartialScale || rules.slab.cpu_slabs != CpuSlabRule::None
}

impl CacheWatch {
    /// That of a new cache, where the machine watches.
    pub(super) fn new<M: Machine>(
        rules: &Rules,
        knobs: &Knobs,
        system: SlabSystem,
        spec: &CacheSpec,
    ) -> Option<Box<Self>> {
        let one = |knob: Knob| {
            let sizing = CacheSizing::compute(rules, &knobs.with_default(knob), system, spec);
            let slot = ByDefault {
                order: sizing.order.get().into(),
                objects: sizing.objects,
                ..ByDefault::default()
            };
            slot.set(knobs.is_set(knob) && sizes(knob, rules), &sizing);
            slot
        };
        M::WATCHES_KNOBS.then(|| Box::new(Self(SLAB_KNOBS.map(one))))
    }

    /// Knobs have changed.
    pub(super) fn update(&self, rules: &Rules, knobs: &Knobs, system: SlabSystem, spec: &CacheSpec) {
        for (slot, knob) in self.0.iter().zip(SLAB_KNOBS) {
            let is_on = knobs.is_set(knob) && sizes(knob, rules);
            slot.set(is_on, &CacheSizing::compute(rules, &knobs.with_default(knob), system, spec));
        }
    }

    fn watched(&self) -> impl Iterator<Item = (Knob, &ByDefault)> {
        SLAB_KNOBS.into_iter().zip(&self.0).filter(|(_, slot)| slot.is_on.load(Relaxed) == 1)
    }
}

impl ByDefault {
    fn set(&self, is_on: bool, sizing: &CacheSizing) {
        self.is_on.store(u32::from(is_on), Relaxed);
        self.cpu_partial_slabs.store(sizing.cpu_partial_slabs, Relaxed);
        self.min_partial.store(sizing.min_partial, Relaxed);
    }

    fn limits(&self) -> Limits {
        Limits {
            cpu_partial_slabs: self.cpu_partial_slabs.load(Relaxed),
            min_partial: self.min_partial.load(Relaxed),
        }
    }
}

impl<M: Machine> Cache<M> {
    /// Decides by how many partial slabs a CPU keeps; `decision` must have no effect.
    #[inline]
    pub(super) fn decide_cpu<D: PartialEq>(&self, machine: &M, decision: impl Fn(u32) -> D) -> D {
        self.decide(machine, Knob::NodePartialScale, |limits| decision(limits.cpu_partial_slabs))
    }

    /// Decides by how many partial slabs a node keeps, likewise.
    #[inline]
    pub(super) fn decide_node<D: PartialEq>(&self, machine: &M, decision: impl Fn(u32) -> D) -> D {
        self.decide(machine, Knob::CpuPartialScale, |limits| decision(limits.min_partial))
    }

    /// Decides by limits that do not follow from `apart`.
    #[inline]
    fn decide<D: PartialEq>(&self, machine: &M, apart: Knob, decision: impl Fn(Limits) -> D) -> D {
        let made = decision(self.limits());
        if M::WATCHES_KNOBS {
            for (knob, slot) in self.watch.iter().flat_map(|watch| watch.watched()) {
                // Orders move the first limit with the objects of a slab; where they do not, they were not consulted.
                let of_order = matches!(knob, Knob::SlabMaxOrder | Knob::SlabMinObjects);
                if knob != apart && (!of_order || slot.limits() != self.limits()) {
                    machine.knob_used(knob, KnobUse::of(&made, &decision(slot.limits())));
                }
            }
        }
        made
    }
}

impl<M: Machine, G: SlabGround<M>> SlabCx<'_, M, G> {
    /// A slab is asked for.
    pub(super) fn watch_order(self) {
        if M::WATCHES_KNOBS {
            let sizing = &self.cache.sizing;
            for (knob, slot) in self.cache.watch.iter().flat_map(|watch| watch.watched()) {
                if matches!(knob, Knob::SlabMaxOrder | Knob::SlabMinObjects) {
                    let made = (u32::from(sizing.order.get()), sizing.objects);
                    self.machine().knob_used(knob, KnobUse::of(&made, &(slot.order, slot.objects)));
                }
            }
        }
    }
}
