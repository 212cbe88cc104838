//! The cost of a page on this machine: nanoseconds for each allocation and free, with one thread and with many, beside
//! malloc and mmap. Nothing writes to the pages, for the allocator is what is measured.
//!
//! A *hot pair* is an allocation and the free of the same block, over and over; *get* allocates many blocks in a row and
//! *put* frees them in the order of their allocation; *shuffled put* frees them in random order. Times are per block, of
//! a thread: with several threads, the mean over them. Threads are not pinned.
//!
//! [`objects`] measures objects of 64 bytes in the same way. [`contention`] compares policies while threads contend for one
//! zone lock.

pub mod contention;
mod measure;
pub mod objects;
mod source;

use std::fmt;

use mm::{Knobs, Order, Policy};

pub use source::{FreeholdPages, MallocPages, Mmap, PageSource};

use crate::host::HostError;
use measure::TimedRounds;

/// What is done to blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Case {
    /// Allocate one, free it.
    HotPair,
    /// Allocate many.
    Get,
    /// Free them, first come, first gone.
    Put,
    /// Free them in random order.
    ShuffledPut,
}

impl Case {
    /// All cases.
    pub const ALL: [Self; 4] = [Self::HotPair, Self::Get, Self::Put, Self::ShuffledPut];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HotPair => "hot pair",
            Self::Get => "get",
            Self::Put => "put",
            Self::ShuffledPut => "shuffled put",
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What to measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BenchPlan {
    /// Numbers of threads, each at least 1.
    pub threads: Vec<u32>,
    /// Orders of the blocks.
    pub orders: Vec<Order>,
    /// Rounds of each measurement; at least 1.
    pub rounds: u32,
    /// Pages that a thread holds at most, which bounds the blocks of a get; at least 1024.
    pub pages: u32,
    /// Whether malloc and mmap are measured too.
    pub others: OtherAllocators,
    /// The policy.
    pub policy: Policy,
}

/// Whether to measure what we compare with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherAllocators {
    /// malloc and mmap too.
    Measured,
    /// Only ours.
    Skipped,
}

impl BenchPlan {
    /// Orders 0, 3 and 9, with 1, 2, 4 … and `threads` threads, 9 rounds, 64 MiB held by each.
    pub fn up_to(threads: u32) -> Self {
        Self {
            threads: doublings(threads),
            orders: [0, 3, 9].into_iter().filter_map(Order::new).collect(),
            rounds: 9,
            pages: 16_384,
            others: OtherAllocators::Measured,
            policy: Policy::default(),
        }
    }

    /// The same in a second or two.
    #[must_use]
    pub fn quick(self) -> Self {
        Self { rounds: 3, pages: 4096, ..self }
    }
}

/// 1, 2, 4 … and `most`.
fn doublings(most: u32) -> Vec<u32> {
    let doublings = std::iter::successors(Some(1), |threads: &u32| threads.checked_mul(2));
    let mut counts: Vec<u32> = doublings.take_while(|&count| count < most).collect();
    counts.push(most.max(1));
    counts
}

/// Nanoseconds over the rounds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RoundSpread {
    /// The best round.
    pub min: f64,
    /// The middle one.
    pub median: f64,
    /// The worst.
    pub max: f64,
}

impl RoundSpread {
    /// Of `rounds`, which need not be sorted; zeros if there are none.
    pub fn of(rounds: &[f64]) -> Self {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
        Self { min: at(0), median: at(sorted.len() / 2), max: at(sorted.len().wrapping_sub(1)) }
    }
}

/// One figure.
#[derive(Clone, PartialEq, Debug)]
pub struct BenchFigure {
    /// Whose pages: `freehold`, `malloc`, `mmap`.
    pub source: &'static str,
    /// What was done.
    pub case: Case,
    /// Order of the blocks.
    pub order: Order,
    /// Threads at work.
    pub threads: u32,
    /// Blocks of each thread in a round.
    pub blocks: u32,
    /// Nanoseconds for a block; of a hot pair, for allocation and free together.
    pub ns: RoundSpread,
}

impl fmt::Display for BenchFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, case, order, threads, ns, .. } = self;
        let RoundSpread { min, median, max } = ns;
        let order = order.get();
        write!(
            f,
            "{source:<10} {case:<12} order {order:>2}  {threads:>3} threads  {median:>9.1} ns ({min:.1} to {max:.1})"
        )
    }
}

/// Measures what `plan` says, and shows each row to `progress` when it is there.
///
/// # Errors
/// If the memory cannot be reserved.
pub fn run(plan: &BenchPlan, mut progress: impl FnMut(&BenchFigure)) -> Result<Vec<BenchFigure>, HostError> {
    let mut rows = vec![];
    for &threads in &plan.threads {
        let pages = u64::from(plan.pages.max(1024)) * u64::from(threads.max(1));
        let freehold = FreeholdPages::new(pages, plan.policy.clone(), Knobs::default())?;
        for &order in &plan.orders {
            let round = TimedRounds { threads, order, pages: plan.pages, rounds: plan.rounds };
            let mut sources: Vec<&dyn PageSource> = vec![&freehold];
            if plan.others == OtherAllocators::Measured {
                sources.extend([&MallocPages as &dyn PageSource, &Mmap]);
            }
            for source in sources {
                for row in measure::rows(source, round) {
                    progress(&row);
                    rows.push(row);
                }
            }
        }
    }
    Ok(rows)
}
