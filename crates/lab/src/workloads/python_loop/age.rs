//! Rounds before the clock starts: the processes take turns at the allocator, each on its own CPU, in the order in which
//! they would come if nobody waited for anybody. No time passes and no line is touched, so that a round costs less
//! than half of what it costs to simulate, and leaves the free lists as old.
//!
//! Left out: waiting for locks, and what ticks would do. A turn takes half as long to one and a half times as long as it
//! would alone, at random, in place of both: processes in step would never mix their pages.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mm::{Nanos, Order};
use sim::{Path, SimMachine, Traffic};

use super::{PythonLoop, Round};
use crate::stage::{Random, Stage};
use crate::workloads::mapping::{BATCH, Backing};

/// What a page costs in each part of a round, ns.
struct Prices {
    fill: u64,
    copy: u64,
    give_object: u64,
    give_shared: u64,
}

impl Prices {
    fn of(machine: &SimMachine) -> Self {
        let path = |path: Path| machine.price(path).0;
        let block = |traffic| machine.price_of_block(traffic, Order::ZERO).0;
        let page = block(Traffic::Clear) + path(Path::RewritePage);
        let fault = |of: Backing| of.fault().map(path).iter().sum::<u64>();
        Self {
            fill: page + fault(Backing::Anonymous),
            copy: page + fault(Backing::Shared) + block(Traffic::Read),
            give_object: path(Path::Unmap),
            give_shared: path(Path::Unmap) + path(Path::Truncate),
        }
    }

    /// A page's whole way.
    const fn round(&self) -> u64 {
        self.fill + self.copy + self.give_object + self.give_shared
    }
}

/// The round that each process is in when the clock starts; `None` for all if they have none behind them.
///
/// # Errors
/// If memory runs out.
pub(super) fn age(spec: PythonLoop, stage: &Stage) -> Result<Vec<Option<Round>>, String> {
    if spec.rounds_before == 0 {
        return Ok((0..spec.processes).map(|_| None).collect());
    }
    let machine = stage.machine();
    let prices = Prices::of(machine);
    let round = prices.round() * spec.pages() as u64;
    let end = round * u64::from(spec.rounds_before);
    let mut random = Random::new(machine);
    let mut rounds: Vec<Round> = (0..spec.processes).map(|_| Round::new(stage, spec.pages())).collect();
    let starts = (0..rounds.len()).map(|process| Reverse((random.time_below(Nanos(round)).0, process)));
    let mut turns: BinaryHeap<Reverse<(u64, usize)>> = starts.collect();
    while let Some(Reverse((now, process))) = turns.pop() {
        if now >= end {
            continue;
        }
        let cpu = stage.cpu(process as u32);
        let took = machine.on_behalf_of(cpu, || turn(&mut rounds[process], stage, &prices));
        let took = took.ok_or("workload: rounds_before: memory runs out before the clock starts")?;
        turns.push(Reverse((now + took / 2 + random.below(took + 1), process)));
    }
    Ok(rounds.into_iter().map(Some).collect())
}

/// A batch of pages goes on: what that costs, 0 where a round ends; `None` if memory ran out.
fn turn(round: &mut Round, stage: &Stage, prices: &Prices) -> Option<u64> {
    let left = |have: usize| round.pages.saturating_sub(have).min(BATCH);
    let (to_fill, to_copy) = (left(round.object.pages().len()), left(round.shared.pages().len()));
    if to_fill > 0 {
        let filled = (0..to_fill).all(|_| round.fill(stage));
        filled.then_some(to_fill as u64 * prices.fill)
    } else if to_copy > 0 {
        let copied = (0..to_copy).all(|_| round.copy(stage));
        copied.then_some(to_copy as u64 * prices.copy)
    } else if round.object.give_some(stage) {
        Some(BATCH as u64 * prices.give_object)
    } else if round.shared.give_some(stage) {
        Some(BATCH as u64 * prices.give_shared)
    } else {
        let next = Round::new(stage, round.pages);
        std::mem::replace(round, next).finish(stage);
        Some(0)
    }
}
