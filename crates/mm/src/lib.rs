//! Linux's page allocator, outside of the kernel. Work in progress: the seam first.
#![no_std]

extern crate alloc;

pub mod ids;
pub mod machine;
pub mod topology;

pub use ids::{Cpu, MigrateType, Nanos, Node, Order, Pfn, TaskId, ZoneId, ZoneKind};
pub use machine::{Access, Daemon, Line, LineKind, LockClass, Machine, Span, Work};
pub use topology::{CpuSpec, NodeSize, NodeSpec, Topology, ZoneSpec};
