//! The simulated machine: CPUs, run queues, caches, locks, time.
//!
//! [`Sim`] runs tasks on the CPUs of a [`Profile`]; [`SimMachine`] is what tasks and the memory manager see of it, and
//! implements [`mm::Machine`]. One seed gives the same result to the bit on every machine: the engine runs on one OS
//! thread, counts time in integers, and looks at no address, clock or hash order. What the model has and what it leaves
//! out is in `docs/model.md`.
//!
//! ```
//! use mm::{Machine, Nanos};
//! use sim::{Profile, Sim, SimOptions, TaskSpec};
//!
//! let profile = Profile::load("xeon-8260")?;
//! let mut sim = Sim::new(&profile, SimOptions::default());
//! let machine = sim.machine();
//! sim.spawn(TaskSpec::new("worker"), move || machine.compute(Nanos(1500)));
//! assert_eq!(sim.run(None)?.now.0, 4000, "the wake-up takes 2500 ns");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accesses;
mod aside;
mod costs;
mod engine;
mod error;
pub mod histogram;
mod lines;
mod locks;
mod machine;
pub mod measure;
mod nodes;
pub mod profile;
mod stop;
mod swap;
mod task;
mod time;
mod tlb;

pub use accesses::{AccessMix, Pattern};
pub use aside::{Aside, put_aside};
pub use costs::{Path, Traffic};
pub use engine::run::{Ended, RunSummary, Sim};
pub use engine::{NameSeen, Passing, SimOptions, SpanRecord};
pub use error::{SimError, Standstill};
pub use histogram::Histogram;
pub use locks::SimLock;
pub use machine::{SimMachine, WaitQueue};
pub use measure::{
    CpuTime, KnobTally, Level, LockReport, LockStats, Measurements, OrderStats, SpanCost, SpanStats,
    TaskTime, TimedCount,
};
pub use profile::{Figure, FigureKind, FigureSpec, Profile, ProfileError};
pub use stop::{is_stopped, stop_when};
pub use swap::{SwapTimes, ZswapTimes};
pub use task::{Affinity, TaskSpec};
pub use tlb::{Tlb, Translations};
