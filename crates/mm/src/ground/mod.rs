//! What every room stands on: names of things (`ids`, `knob`), the seam to the machine (`machine`, and `bare`, the simplest one),
//! what there is of it (`topology`), mutual exclusion and atomics (`sync`), tables that are made once (`once`, `zeroed`), what is needed soon
//! (`prefetch`), kernel versions. Nothing here knows what memory management is.

pub mod bare;
pub mod ids;
pub(crate) mod knob;
pub mod machine;
pub(crate) mod once;
mod prefetch;
pub mod sync;
pub mod topology;
pub mod version;
pub(crate) mod zeroed;

pub use bare::Bare;
pub use ids::{Addr, Cpu, MigrateType, Nanos, Node, Order, Pfn, TaskId, ZoneId, ZoneKind};
pub(crate) use ids::{
    FileId, MAX_PAGE_ORDER, PAGE_ALLOC_COSTLY_ORDER, PAGE_SHIFT, PAGE_SIZE, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES,
    SpaceId, Vpn,
};
pub(crate) use knob::KnobId;
pub use machine::{
    Access, Batch, Chore, CompactStep, Daemon, Line, LineKind, LockClass, Machine, Span, SwapIo, Traced, Work,
};
pub(crate) use once::Once;
pub use prefetch::prefetch;
pub(crate) use sync::{
    AcqRel, Acquire, AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Guard,
    Locked, Relaxed, Release,
};
pub use topology::{CpuSpec, Firmware, NodeSize, NodeSpec, Topology, WordSize, ZoneSpec};
pub(crate) use version::{Since, Version, at};
pub(crate) use zeroed::{Zeroable, zeroed};
