//! From an answer to the machine: a plan of settings, what each of them comes to on a kernel, and the watch over the machine while
//! they are tried (docs/apply.md).
//!
//! ```text
//!   plan: knobs and values ─▶ check: a file to write, a reboot, nothing ─▶ written by `host::settings` ─▶ watch: bounds of counters
//! ```

mod check;
mod plan;
mod watch;

pub use check::{Kernel, Step, Way, check, writes};
pub use plan::{Plan, PlanError};
pub use watch::{Broken, DEFAULT_BOUNDS, WINDOW_NS, Watch, WatchError, Watched};
