//! Limits of the lists of partial slabs (docs/rules/slab.md#partial-slabs-of-a-node), at which no trace arrives exactly.

use freehold_mm as mm;

use mm::slab::{CacheFlags, CacheId, CacheSpec, SlabEvent};
use mm::{Addr, Bare, Cpu, Knob, Knobs, Mm, NodeSize, Policy, Topology};

const OBJECTS: usize = 24;

/// A cache of slabs of 24 objects on a node of three CPUs.
fn cache(policy: &str, cpu_partial_scale: u64) -> (Mm<Bare>, CacheId) {
    let nodes = [NodeSize { bytes: 1 << 28, cpus: 3 }];
    let topology = Topology::x86(&nodes, 1 << 20, vec![vec![10]]).unwrap();
    let knobs = Knobs::default();
    knobs.set(Knob::CpuPartialScale, cpu_partial_scale).unwrap();
    let mm = Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap();
    let id = mm.slabs().create_cache(CacheSpec::new("vma", 168).with(CacheFlags::NO_MERGE)).unwrap();
    assert_eq!(mm.slabs().cache(id).unwrap().sizing().objects, OBJECTS as u32);
    (mm, id)
}

/// `count` slabs of CPU 0, all of their objects in use, and another one that is the CPU's.
fn full_slabs(mm: &Mm<Bare>, id: CacheId, count: usize) -> Vec<Vec<Addr>> {
    mm.machine().set_cpu(Cpu(0));
    let slab = || (0..OBJECTS).map(|_| mm.slabs().kmem_cache_alloc(id).unwrap()).collect();
    let slabs = (0..count).map(|_| slab()).collect();
    mm.slabs().kmem_cache_alloc(id).unwrap();
    slabs
}

fn sum(mm: &Mm<Bare>, id: CacheId, event: SlabEvent) -> u64 {
    mm.slabs().slab_events(id, event).iter().sum()
}

/// A CPU whose partial slabs may be ten takes one slab for itself and six more.
#[test]
fn a_cpu_takes_one_slab_and_more_than_half_of_its_list() {
    for policy in ["linux-6.1", "linux-6.5", "linux-6.12"] {
        let (mm, id) = cache(policy, 1);
        assert_eq!(mm.slabs().cache(id).unwrap().sizing().cpu_partial_slabs, 10);
        let slabs = full_slabs(&mm, id, 11);
        mm.machine().set_cpu(Cpu(1));
        for slab in &slabs {
            mm.slabs().kmem_cache_free(id, slab[0]).unwrap();
        }
        assert_eq!(sum(&mm, id, SlabEvent::CpuPartialDrain), 1, "the eleventh drained ten");
        assert_eq!(sum(&mm, id, SlabEvent::FreeAddPartial), 10);
        mm.machine().set_cpu(Cpu(2));
        mm.slabs().kmem_cache_alloc(id).unwrap();
        assert_eq!(sum(&mm, id, SlabEvent::AllocFromPartial), 1);
        assert_eq!(sum(&mm, id, SlabEvent::CpuPartialNode), 6, "{policy}");
        mm.slabs().check_cache(id).unwrap();
    }
}

/// A slab that becomes empty goes back to the page allocator if its node has five partial slabs, itself among them.
#[test]
fn a_node_keeps_an_empty_slab_while_it_has_fewer_than_five() {
    for (partial, given_back) in [(4, 0), (5, 1), (6, 1)] {
        let (mm, id) = cache("linux-6.12", 0);
        let slabs = full_slabs(&mm, id, partial);
        mm.machine().set_cpu(Cpu(1));
        for slab in &slabs {
            mm.slabs().kmem_cache_free(id, slab[0]).unwrap();
        }
        assert_eq!(sum(&mm, id, SlabEvent::FreeAddPartial), partial as u64);
        for object in &slabs[0][1..] {
            mm.slabs().kmem_cache_free(id, *object).unwrap();
        }
        let counts = [SlabEvent::FreeRemovePartial, SlabEvent::FreeSlab].map(|event| sum(&mm, id, event));
        assert_eq!(counts, [given_back; 2], "{partial} partial slabs");
        mm.slabs().check_cache(id).unwrap();
    }
}
