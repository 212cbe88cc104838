//! Linux's page allocator, outside of the kernel: zones and their buddy free lists, per-CPU page lists, zonelists,
//! watermarks. No operating system, no clock, no threads of its own: all of that comes through [`Machine`], and the
//! same code runs on a simulated machine and on this one.
//!
//! ```text
//!   request ─▶ alloc ──▶ zonelist ──▶ zone ──▶ pcp  (this CPU's lists, under pcp->lock)
//!              free                    │        │ refill, drain
//!                                      │        ▼
//!                                      └──▶ buddy   (under zone->lock; fallback when a type runs out)
//! ```
//!
//! [`Mm`] is the door. A [`Topology`] says what the machine has, a [`Policy`] which kernel's rules hold, [`Knobs`] what a
//! sysctl would say. `frame`, `list`, `buddy` and `fallback` are the free lists; `arena` divides them; `pcp` the
//! per-CPU lists; `watermark`, `zonelist` and `policy` the parameters; `check` walks every invariant.
#![cfg_attr(not(any(shuttle, test)), no_std)]

extern crate alloc;

mod alloc_path;
mod arena;
pub mod bare;
mod boot;
mod buddy;
mod check;
mod compact;
mod counters;
mod daemons;
mod direct;
mod fair;
mod fallback;
mod frame;
mod free;
mod highatomic;
pub mod ids;
pub mod knobs;
mod list;
mod lru;
pub mod machine;
pub mod mempolicy;
mod migrate;
mod offline;
mod once;
pub mod oom;
mod page;
mod pageblock;
mod pcp;
pub mod policy;
pub mod procfs;
mod reclaim;
pub mod request;
mod rmap;
pub mod slab;
mod slow_path;
pub mod stat;
pub mod sync;
pub mod tier;
pub mod topology;
pub mod version;
pub mod vm;
pub mod watermark;
mod zeroed;
mod zone;
mod zone_price;
mod zone_watch;
pub mod zonelist;

pub use bare::Bare;
pub use boot::Mm;
pub use check::ZonePages;
pub use compact::BlockContents;
pub use counters::MemoryUse;
pub use daemons::ReclaimState;
pub use frame::{Frame, FrameKind, FrameState, MemMap};
pub use ids::{Addr, Cpu, MigrateType, Nanos, Node, Order, Pfn, TaskId, ZoneId, ZoneKind};
pub use knobs::{KNOBS, Knob, KnobError, KnobUse, Knobs, Margin, Verdict};
pub use machine::{Access, Chore, Daemon, Line, LineKind, LockClass, Machine, Span, Work};
pub use mempolicy::{InterleaveBy, InterleaveCursor, MemPolicy, MemPolicyError};
pub use migrate::MigrateError;
pub use offline::OfflineError;
pub use pcp::{PageSizing, Pressure, Setting, Tuning};
pub use policy::{Policy, PolicyError};
pub use request::{AllocError, FreeError, Request, Urgency};
pub use stat::Counters;
pub use topology::{CpuSpec, Firmware, NodeSize, NodeSpec, Topology, WordSize, ZoneSpec};
pub use zone::Zone;
pub use zonelist::{NodeMask, OrderChoice, OrderReason, ZonelistOrder, Zonelists};
