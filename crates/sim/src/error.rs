//! How a simulation can fail.

use core::fmt;
use core::time::Duration;

use mm::Nanos;

/// Which limit a standstill of simulated time reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standstill {
    /// Events in a row at one moment.
    Events(u64),
    /// Wall time spent at one moment.
    Wall(Duration),
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(events) => write!(f, "{events} events"),
            Self::Wall(time) => write!(f, "{} s of wall time", time.as_secs_f64()),
        }
    }
}

/// Why a simulation could not go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimError {
    /// Tasks are left, and none of them can ever run again.
    Deadlock {
        /// When the last of them stopped.
        at: Nanos,
        /// What each of the first few waits for.
        tasks: Vec<String>,
    },
    /// Tasks go on and simulated time does not.
    Standstill {
        /// When.
        at: Nanos,
        /// The task that ran when the limit was reached.
        task: String,
        /// The limit.
        limit: Standstill,
        /// What every task does that has not ended.
        tasks: Vec<String>,
    },
    /// A task panicked.
    TaskPanicked {
        /// Its name.
        task: String,
        /// When.
        at: Nanos,
        /// What it said.
        message: String,
    },
    /// A task used a lock against the rules: took one that it holds, gave back one that it does not hold, or went to
    /// sleep with one.
    LockMisused {
        /// The task's name.
        task: String,
        /// What it did to which lock.
        what: String,
    },
    /// A task's stack could not be made.
    NoStack {
        /// The task's name.
        task: String,
        /// What the system said.
        reason: String,
    },
    /// Somebody outside wanted no more of it.
    Stopped,
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock { at, tasks } => {
                write!(f, "the simulation is stuck since {} ns: {}", at.0, tasks.join("; "))
            }
            Self::Standstill { at, task, limit, tasks } => {
                let at = at.0;
                write!(
                    f,
                    "simulated time stands still at {at} ns: {limit} without progress, last in task {task}"
                )?;
                write!(f, "; a fault of the workload, whose tasks are:")?;
                tasks.iter().try_for_each(|task| write!(f, "\n  - {task}"))
            }
            Self::TaskPanicked { task, at, message } => {
                write!(f, "task {task} failed at {} ns: {message}", at.0)
            }
            Self::LockMisused { task, what } => write!(f, "task {task} {what}"),
            Self::NoStack { task, reason } => write!(f, "no stack for task {task}: {reason}"),
            Self::Stopped => f.write_str("stopped from outside"),
        }
    }
}

impl std::error::Error for SimError {}
