//! Rounds on the clock.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use mm::Order;

use super::source::PageSource;
use super::{BenchFigure, Case, RoundSpread};
use crate::rng::Rng;

/// How long the pairs of a round should take, about.
const PAIRS_TIME: Duration = Duration::from_millis(5);
/// Pairs at least; the first so many of each thread are not measured.
const PAIRS_MIN: u32 = 256;

/// Rounds of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedRounds {
    pub(super) threads: u32,
    pub(super) order: Order,
    /// Pages that a thread holds at most.
    pub(super) pages: u32,
    pub(super) rounds: u32,
}

/// What a thread measured in a round: nanoseconds a block, by case.
type Times = [f64; Case::ALL.len()];

pub(super) fn rows(source: &dyn PageSource, round: TimedRounds) -> Vec<BenchFigure> {
    let blocks = (round.pages >> round.order.get()).max(1);
    let pairs = pairs(source, round.order);
    let rounds = all_rounds(source, round, blocks, pairs);
    let row = |case: Case| {
        let times: Vec<f64> = rounds.iter().map(|times| times[case as usize]).collect();
        let blocks = if case == Case::HotPair { pairs } else { blocks };
        let (order, threads) = (round.order, round.threads.max(1));
        BenchFigure { source: source.name(), case, order, threads, blocks, ns: RoundSpread::of(&times) }
    };
    Case::ALL.into_iter().map(row).collect()
}

/// How many pairs take [`PAIRS_TIME`].
fn pairs(source: &dyn PageSource, order: Order) -> u32 {
    let mut pairs = PAIRS_MIN;
    loop {
        let start = Instant::now();
        source.hot_pairs(order, pairs);
        if start.elapsed() >= PAIRS_TIME || pairs >= 1 << 24 {
            return pairs;
        }
        pairs *= 2;
    }
}

/// The means over the threads, round by round; an unmeasured round goes ahead.
fn all_rounds(source: &dyn PageSource, round: TimedRounds, blocks: u32, pairs: u32) -> Vec<Times> {
    let threads = round.threads.max(1);
    let barrier = Barrier::new(threads as usize);
    let rounds = round.rounds.max(1) + 1;
    let of_thread = |number: u32| {
        let mut rng = Rng::new(1, u64::from(number));
        let mut held = Vec::with_capacity(blocks as usize);
        let once = |_| one_round(source, round.order, pairs, &mut held, &mut rng, &barrier);
        (0..rounds).map(once).skip(1).collect::<Vec<Times>>()
    };
    let by_thread: Vec<Vec<Times>> = thread::scope(|scope| {
        let of_thread = &of_thread;
        let running: Vec<_> = (0..threads).map(|number| scope.spawn(move || of_thread(number))).collect();
        let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|times| times.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    (0..rounds as usize - 1)
        .map(|round| std::array::from_fn(|case| mean(by_thread.iter().map(|times| times[round][case]))))
        .collect()
}

fn one_round(
    source: &dyn PageSource,
    order: Order,
    pairs: u32,
    held: &mut Vec<usize>,
    rng: &mut Rng,
    barrier: &Barrier,
) -> Times {
    let mut times = Times::default();
    source.hot_pairs(order, PAIRS_MIN);
    barrier.wait();
    times[Case::HotPair as usize] = ns_each(pairs as usize, || source.hot_pairs(order, pairs));
    barrier.wait();
    times[Case::Get as usize] = ns(held, |held| source.get(order, held));
    barrier.wait();
    times[Case::Put as usize] = ns(held, |held| source.put(order, held));
    barrier.wait();
    source.get(order, held);
    rng.shuffle(held);
    barrier.wait();
    times[Case::ShuffledPut as usize] = ns(held, |held| source.put(order, held));
    times
}

/// Nanoseconds for each block that `work` added or took away.
fn ns(held: &mut Vec<usize>, work: impl FnOnce(&mut Vec<usize>)) -> f64 {
    let (before, start) = (held.len(), Instant::now());
    work(held);
    let elapsed = start.elapsed();
    elapsed.as_nanos() as f64 / held.len().abs_diff(before).max(1) as f64
}

fn ns_each(times: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / times as f64
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}
