//! What an object of 64 bytes costs on this machine, under several kernels' rules, beside the C library's malloc in the
//! same run. Rounds alternate between the sources, so that what disturbs the machine meets all of them.
//!
//! A *hot pair* is an allocation and the free of the same object, over and over; *bulk get* allocates many objects, a
//! batch at a time, and *bulk put* frees them so; a *hand-over* is an allocation by a thread on one CPU and the free by
//! a thread on another, with a ring between them: the one writes a word to the object, the other reads it. What the same
//! costs without an allocator stands beside it. Elsewhere nothing writes to the objects.

mod instructions;
mod measure;
mod ring;
mod source;

use std::fmt;

use mm::Policy;

use super::{OtherAllocators, RoundSpread};
use crate::host::HostError;
use source::{FreeholdObjects, MallocObjects, ObjectSource, RingAlone};

/// Bytes of an object.
pub const OBJECT_SIZE: u32 = 64;

/// What is done to objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ObjectCase {
    /// Allocate one, free it.
    HotPair,
    /// Allocate many.
    BulkGet,
    /// Free them.
    BulkPut,
    /// Allocate on one CPU, free on another.
    HandOver,
}

impl ObjectCase {
    /// All cases.
    pub const ALL: [Self; 4] = [Self::HotPair, Self::BulkGet, Self::BulkPut, Self::HandOver];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HotPair => "hot pair",
            Self::BulkGet => "bulk get",
            Self::BulkPut => "bulk put",
            Self::HandOver => "hand-over",
        }
    }
}

/// What to measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectPlan {
    /// Numbers of threads, each at least 1; hand-overs have two.
    pub threads: Vec<u32>,
    /// Rounds of each measurement; at least 1.
    pub rounds: u32,
    /// Objects of a bulk get and of a hand-over; at least 1.
    pub objects: u32,
    /// The policies.
    pub policies: Vec<Policy>,
    /// Whether malloc is measured too.
    pub others: OtherAllocators,
}

/// The policies that are measured if nothing is said: before sheaves, with them for who asks, for all, and ours.
pub const POLICIES: [&str; 4] = ["linux-6.12", "linux-6.18", "linux-7.2", "freehold"];

impl ObjectPlan {
    /// [`POLICIES`] with 1, 2, 4 … and `threads` threads, 9 rounds, 16384 objects.
    pub fn up_to(threads: u32) -> Self {
        Self {
            threads: super::doublings(threads),
            rounds: 9,
            objects: 16_384,
            policies: POLICIES.iter().filter_map(|name| Policy::parse(name).ok()).collect(),
            others: OtherAllocators::Measured,
        }
    }
}

/// One figure.
#[derive(Clone, PartialEq, Debug)]
pub struct ObjectRow {
    /// Whose objects: a policy's name, maybe with what the cache asked for; `malloc`; `ring alone`.
    pub source: String,
    /// What was done.
    pub case: ObjectCase,
    /// Bytes of an object.
    pub object_size: u32,
    /// Threads at work.
    pub threads: u32,
    /// Objects of each thread in a round.
    pub objects: u32,
    /// Nanoseconds of CPU time for an object; of a hot pair, for allocation and free together; of a hand-over, the time
    /// from one object to the next.
    pub ns: RoundSpread,
    /// Instructions of the program for an object, likewise, in the middle round; `None` where the CPU does not count
    /// them for us, and for hand-overs, where threads wait for each other.
    pub instructions: Option<f64>,
}

impl fmt::Display for ObjectRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, case, object_size, threads, ns, .. } = self;
        let RoundSpread { min, median, max } = ns;
        let case = case.name();
        write!(
            f,
            "{source:<18} {case:<12} {object_size} bytes  {threads:>3} threads  {median:>9.1} ns ({min:.1} to {max:.1})"
        )?;
        match self.instructions {
            Some(instructions) => write!(f, "  {instructions:.1} instructions"),
            None => Ok(()),
        }
    }
}

/// Measures what `plan` says, and names the source that it goes on with to `progress`.
///
/// # Errors
/// If the memory cannot be reserved, or a policy refuses the cache.
pub fn run(plan: &ObjectPlan, mut progress: impl FnMut(&str)) -> Result<Vec<ObjectRow>, HostError> {
    let threads_max = plan.threads.iter().copied().max().unwrap_or(1).max(2);
    let objects = u64::from(plan.objects.max(1)) * u64::from(threads_max);
    let mut freeholds = vec![];
    for policy in &plan.policies {
        freeholds.extend(FreeholdObjects::all_of(policy, objects)?);
    }
    let mut sources: Vec<&dyn ObjectSource> =
        freeholds.iter().map(|freehold| freehold as &dyn ObjectSource).collect();
    if plan.others == OtherAllocators::Measured {
        sources.push(&MallocObjects);
    }
    let mut rows = vec![];
    for &threads in &plan.threads {
        rows.extend(measure::in_step(plan, threads, &sources, &mut progress));
    }
    let ring_alone = RingAlone::new();
    sources.push(&ring_alone);
    rows.extend(measure::hand_overs(plan, &sources, &mut progress));
    Ok(rows)
}
