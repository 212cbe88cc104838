//! mm on this machine: mapped memory, real threads, real locks. It is a library for programs that need pages, and the proof
//! that the simulated code is a working allocator.
//!
//! [`Host`] is the door: it reserves memory, runs the daemons and hands out [`Pages`], and [`Object`]s of
//! [`ObjectCache`]s. Below it, [`HostMachine`] is mm's machine, over an [`Arena`] of mapped memory, with CPU numbers from [`CpuNumbers`], nodes from [`System`] and
//! [`HostLock`]s. [`stress`] shakes it with many threads, [`mod@bench`] measures it; [`probe`] measures the machine itself,
//! [`fault_loop`] makes its kernel work, [`command`] runs a program, [`settings`] changes the kernel's settings,
//! [`watch`] looks at its counters meanwhile.
//!
//! ```
//! use freehold_host::Host;
//! use mm::{Knobs, Order, Policy, Request};
//!
//! let host = Host::new(64 << 20, Policy::default(), Knobs::default())?;
//! let mut pages = host.alloc(Request::USER.of_order(Order::PAGEBLOCK)).expect("2 MiB of 64");
//! pages[0] = 42;
//! assert_eq!(pages.len(), 2 << 20);
//!
//! let sessions = host.cache(mm::slab::CacheSpec::new("session", 168)).expect("room for a cache");
//! let mut session = sessions.alloc().expect("168 bytes");
//! session[0] = 7;
//! assert_eq!(session.len(), 168);
//! # Ok::<(), freehold_host::HostError>(())
//! ```

mod arena;
pub mod bench;
pub mod cgroup;
mod clock;
pub mod command;
mod cpu;
mod daemons;
pub mod fault_loop;
mod heap;
mod host;
mod knob_file;
mod lock;
mod machine;
mod objects;
pub mod probe;
mod queue_lock;
mod rng;
pub mod settings;
mod signal;
pub mod stress;
mod sysfs;
mod system;
pub mod watch;

pub use arena::Arena;
pub use cpu::CpuNumbers;
pub use daemons::Daemons;
pub use heap::HugeHeap;
pub use host::{Host, HostError, Pages};
pub use knob_file::KnobFile;
pub use lock::{HostLock, RawLock};
pub use machine::HostMachine;
pub use objects::{Object, ObjectCache, Prefilled};
pub use queue_lock::QueueLock;
pub use system::System;
