//! Linux's memory management, outside of the kernel: zones and their buddy free lists, per-CPU page lists, slabs, address
//! spaces, files, compaction, reclaim. No operating system, no clock, no threads of its own: all of that comes through [`Machine`], and the
//! same code runs on a simulated machine and on this one.
//!
//! ```text
//!   request ─▶ alloc ──▶ zonelist ──▶ zone ──▶ pcp  (this CPU's lists, under pcp->lock)
//!              free                    │        │ refill, drain
//!                                      │        ▼
//!                                      └──▶ buddy   (under zone->lock; fallback when a type runs out)
//! ```
//!
//! [`Mm`] puts the rooms together. A [`Topology`] says what the machine has, a [`Policy`] which kernel's rules hold,
//! [`Knobs`] what a sysctl would say. Each room above the page allocator ([`Pages`], drawn here) has a door: `mm.slabs()`,
//! `mm.lru()`, `mm.files()`, `mm.spaces()`, `mm.compaction()`, `mm.reclaim()`, and `mm.views()` for /proc's files, counters and
//! the walk over every invariant.
#![cfg_attr(not(any(shuttle, test)), no_std)]

extern crate alloc;

mod cache;
mod compact;
mod ground;
mod lru;
mod memcg;
mod mm;
mod pages;
mod reclaim;
mod rules;
pub mod slab;
pub mod tier;
mod views;
pub mod vm;

pub use ground::{bare, ids, machine, sync, topology, version};
pub use pages::{request, stat, watermark, zonelist};
pub use rules::{knobs, policy};
pub use views::{oom, procfs};
pub use vm::mempolicy;

pub use cache::{
    AllowedDoor, File, FileSlots, FilesDoor, FilesGround, InSlot, PageCache, SharedDoor, SlotOf, SwappedDoor,
};
pub use compact::{
    BlockContents, CompactDoor, CompactGround, Compaction, EmptyDoor, MarksDoor, OfflineDoor, OfflineError,
};
pub use ground::{
    Access, Addr, Bare, Batch, Chore, CompactStep, Cpu, CpuSpec, Daemon, Firmware, Line, LineKind, LockClass,
    Machine, MigrateType, Nanos, Node, NodeSize, NodeSpec, Order, Pfn, Span, SwapIo, TaskId, Topology,
    Traced, WordSize, Work, ZoneId, ZoneKind, ZoneSpec, prefetch,
};
pub use lru::{GenDoor, Lru, LruDoor, LruGround, MigrateError, Owners, Shadow, UnevictableDoor};
pub use memcg::{GroupAsk, GroupEvent, GroupId, Limit, MemcgDoor, MemcgGround, Memcgs};
pub use mm::Mm;
pub use pages::pcp::{PageSizing, Pressure, Setting, Tuning};
pub use pages::zone_watch::decide_by_sum_of_marks;
pub use pages::zonelist::{OrderReason, ZonelistOrder};
pub use pages::{
    Above, AllocError, Counters, Frame, FrameKind, FrameState, FreeError, MemMap, NodeMask, OrderChoice,
    Pages, PagesGround, ReclaimState, Request, Search, Steps, Urgency, Zone, ZoneBlock, Zonelists,
};
pub use reclaim::{
    GenReclaimDoor, NodeReclaimDoor, PageOutDoor, Reclaim, ReclaimDoor, ReclaimGround, SwapOutDoor,
};
pub use rules::knobs::{KNOBS, Knob, KnobError, KnobId, KnobUse, Knobs, Margin, Verdict};
pub use rules::policy::{Policy, PolicyError};
pub use views::check::ZonePages;
pub use views::counters::MemoryUse;
pub use views::{ViewsDoor, ViewsGround};
pub use vm::mempolicy::{InterleaveBy, InterleaveCursor, MemPolicy, MemPolicyError};
pub use vm::{CollapseDoor, RmapDoor, SpacesDoor, SpacesGround, Vm};
