//! One path of the allocators, over and over, on the simplest machine: what `make instructions` counts instructions of.
//! `paths PATH COUNT POLICY`; each path ends where it began, so that twice the count is twice the work.

use std::hint::black_box;

use freehold_mm::slab::{CacheId, CacheSpec};
use freehold_mm::{Bare, Knobs, Mm, NodeSize, Order, Policy, Request, Topology};

/// Objects or pages that are held at once where lists are to run empty and over.
const BATCH: usize = 512;
/// An order that pagesets do not keep.
const LARGE: u8 = 5;
const OBJECT_BYTES: u32 = 256;

fn main() {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().expect("paths PATH COUNT POLICY");
    let (path, count, policy) = (next(), next().parse().expect("a count"), next());
    let mm = machine(Policy::parse(&policy).expect("a policy"));
    let cache = mm.slabs().create_cache(CacheSpec::new("paths", OBJECT_BYTES)).expect("a cache");
    for _ in 0..count {
        match path.as_str() {
            "pair" => pages::<1>(&mm, Order::ZERO),
            "buddy" => pages::<1>(&mm, Order::new(LARGE).expect("there is such an order")),
            "batch" => pages::<BATCH>(&mm, Order::ZERO),
            "object" => objects::<1>(&mm, cache),
            "objects" => objects::<BATCH>(&mm, cache),
            _ => panic!("no path {path}: pair, buddy, batch, object, objects"),
        }
    }
}

fn machine(policy: Policy) -> Mm<Bare> {
    let node = NodeSize { bytes: 1 << 30, cpus: 2 };
    let topology = Topology::x86(&[node], 2 << 20, vec![vec![10]]).expect("one node");
    Mm::new(Bare::default(), topology, policy, Knobs::default()).expect("a machine")
}

fn pages<const N: usize>(mm: &Mm<Bare>, order: Order) {
    let pages: [_; N] =
        std::array::from_fn(|_| mm.alloc(Request { order, ..Request::USER }).expect("a page"));
    for page in black_box(pages) {
        mm.free(page, order).expect("it was allocated above");
    }
}

fn objects<const N: usize>(mm: &Mm<Bare>, cache: CacheId) {
    let slabs = mm.slabs();
    let objects: [_; N] = std::array::from_fn(|_| slabs.kmem_cache_alloc(cache).expect("an object"));
    for object in black_box(objects) {
        slabs.kmem_cache_free(cache, object).expect("it was allocated above");
    }
}
