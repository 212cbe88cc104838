//! What a cache's slabs held when a slab trace began, from what follows: the trace itself says nothing of it.
//!
//! The cache was shrunk before, so that there is one slab for each CPU and no other. A CPU's slab is the one that its
//! first object is of. Objects in it that are freed before they are ever allocated were in use; and so were, if the CPU
//! went on to another slab for want of free objects, those that no event names at all.

use std::collections::{BTreeMap, BTreeSet};

use mm::Node;

use crate::conform::read::sections::FormatError;
use crate::conform::read::slab_nodes::SlabNodes;
use crate::conform::read::slab_trace::{SlabBeside, SlabTraceEvent, SlabTraceKind};

/// The slab of a CPU when the trace began.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct StartSlab {
    /// Which one, as [`SlabNumbers`] numbers them.
    pub(super) slab: u64,
    /// Objects in use that the trace frees.
    pub(super) freed_later: Vec<u64>,
    /// Objects in use that it never names.
    pub(super) kept: u32,
}

/// Slabs by address: they are as large as they are aligned.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlabNumbers {
    /// log2 of a slab's bytes.
    pub(super) shift: u32,
    /// Objects of a slab.
    pub(super) objects: u32,
}

impl SlabNumbers {
    pub(super) fn of(self, address: u64) -> u64 {
        address >> self.shift
    }
}

/// The slabs of all CPUs when the trace began.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct StartSlabs {
    /// Of each CPU that allocates at all.
    pub(super) of_cpu: BTreeMap<u16, StartSlab>,
}

impl StartSlabs {
    pub(super) fn infer(events: &[SlabTraceEvent], numbers: SlabNumbers) -> Result<Self, FormatError> {
        Ok(Self { of_cpu: of_cpus(events, numbers)? })
    }

    /// CPUs that allocate nothing in the trace and had a slab all the same: the first of those of each node, as many as
    /// `cpu_slabs` says that there are beside the others'.
    pub(super) fn idle(&self, nodes: &SlabNodes, beside: &SlabBeside) -> Result<Vec<u16>, FormatError> {
        let slabs = beside.before.counts_by("cpu_slabs", 'N', nodes.nodes())?.unwrap_or_default();
        let mut idle = vec![];
        for (node, slabs) in (0..).zip(slabs) {
            let cpus = (0..nodes.cpus() as u16).filter(|&cpu| nodes.node_of(cpu) == Node(node));
            let (known, others): (Vec<u16>, Vec<u16>) = cpus.partition(|cpu| self.of_cpu.contains_key(cpu));
            let more = slabs.saturating_sub(known.len() as u64);
            idle.extend(others.into_iter().take(usize::try_from(more).unwrap_or(usize::MAX)));
        }
        Ok(idle)
    }
}

fn of_cpus(events: &[SlabTraceEvent], numbers: SlabNumbers) -> Result<BTreeMap<u16, StartSlab>, FormatError> {
    let mut slabs = BTreeMap::<u16, StartSlab>::new();
    let mut left = BTreeSet::new();
    for event in events.iter().filter(|event| event.kind == SlabTraceKind::Alloc) {
        let slab = numbers.of(event.object);
        let first = slabs.entry(event.cpu).or_insert_with(|| StartSlab { slab, ..StartSlab::default() });
        if first.slab != slab {
            left.insert(first.slab);
        }
    }
    if slabs.values().map(|start| start.slab).collect::<BTreeSet<_>>().len() != slabs.len() {
        return Err(FormatError::new(
            0,
            "two CPUs begin with the same slab: where each began cannot be told",
        ));
    }
    let unnamed = unnamed(events, numbers);
    for start in slabs.values_mut().filter(|start| left.contains(&start.slab)) {
        start.kept = unnamed.get(&start.slab).copied().unwrap_or(0);
    }
    let mut allocated = BTreeSet::new();
    for event in events {
        match event.kind {
            SlabTraceKind::Alloc => {
                allocated.insert(event.object);
            }
            SlabTraceKind::Free => {
                if !allocated.remove(&event.object) {
                    let slab = numbers.of(event.object);
                    let start = slabs.values_mut().find(|start| start.slab == slab);
                    let elsewhere = || {
                        FormatError::new(
                            event.line as usize,
                            "it frees an object that was in use at the start, in a slab that was no CPU's: shrink the \
                             cache before the trace",
                        )
                    };
                    start.ok_or_else(elsewhere)?.freed_later.push(event.object);
                }
            }
        }
    }
    Ok(slabs)
}

/// For each slab, how many of its objects no event names.
fn unnamed(events: &[SlabTraceEvent], numbers: SlabNumbers) -> BTreeMap<u64, u32> {
    let mut named = BTreeMap::<u64, BTreeSet<u64>>::new();
    for event in events {
        named.entry(numbers.of(event.object)).or_default().insert(event.object);
    }
    named
        .into_iter()
        .map(|(slab, named)| (slab, numbers.objects.saturating_sub(named.len() as u32)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(cpu: u16, kind: SlabTraceKind, object: u64) -> SlabTraceEvent {
        SlabTraceEvent { line: 1, cpu, kind, object }
    }

    #[test]
    fn what_was_in_use_follows_from_what_comes() {
        use SlabTraceKind::{Alloc, Free};
        let numbers = SlabNumbers { shift: 4, objects: 4 };
        let events = [
            event(0, Alloc, 0x10),
            event(0, Free, 0x11),
            event(1, Alloc, 0x20),
            event(0, Alloc, 0x30),
            event(0, Free, 0x10),
        ];
        let start = StartSlabs::infer(&events, numbers).unwrap().of_cpu;
        assert_eq!(
            start[&0],
            StartSlab { slab: 1, freed_later: vec![0x11], kept: 2 },
            "it was left for 0x30"
        );
        assert_eq!(start[&1], StartSlab { slab: 2, freed_later: vec![], kept: 0 });
        let elsewhere = [events[0], event(0, Free, 0x99)];
        assert!(StartSlabs::infer(&elsewhere, numbers).is_err());
    }

    #[test]
    fn idle_cpus_have_slabs_where_the_files_say() {
        let cpus = "@@cpus\nnode0 cpulist=0-1\nnode1 cpulist=2-3\n@@slab-after\n@@slab-before\ncpu_slabs=";
        let start = StartSlabs { of_cpu: BTreeMap::from([(0, StartSlab::default())]) };
        for (files, idle) in
            [("4 N0=2 N1=2", &[1, 2, 3][..]), ("2 N0=1 N1=1", &[2]), ("1 N0=1", &[]), ("0", &[])]
        {
            let beside = SlabBeside::parse(&format!("{cpus}{files}\n")).unwrap();
            assert_eq!(start.idle(&beside.nodes, &beside).unwrap(), idle, "{files}");
        }
    }
}
