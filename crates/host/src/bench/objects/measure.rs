//! Rounds on the clock, and on the CPU's counter of instructions. Threads that work by themselves are given the CPU time
//! that they had, so that others on the machine do not count.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::instructions::Instructions;
use super::ring::Ring;
use super::source::ObjectSource;
use super::{OBJECT_SIZE, ObjectCase, ObjectPlan, ObjectRow};
use crate::bench::RoundSpread;
use crate::clock::thread_time;
use crate::probe::{allowed, pin};

/// How long the pairs of a round should take, about.
const PAIRS_TIME: Duration = Duration::from_millis(5);
/// Pairs at least; the first so many of each thread are not measured.
const PAIRS_MIN: u32 = 256;
/// Cases that threads do each by itself.
const IN_STEP: [ObjectCase; 3] = [ObjectCase::HotPair, ObjectCase::BulkGet, ObjectCase::BulkPut];

/// What an object took.
#[derive(Clone, Copy, Debug, Default)]
struct ObjectCost {
    ns: f64,
    instructions: Option<f64>,
}

/// How much each thread does in a round.
#[derive(Clone, Copy, Debug)]
struct Share {
    pairs: u32,
    objects: u32,
}

/// Hot pairs, gets and puts by `threads` threads that go through them together.
pub(super) fn in_step(
    plan: &ObjectPlan,
    threads: u32,
    sources: &[&dyn ObjectSource],
    progress: &mut impl FnMut(&str),
) -> Vec<ObjectRow> {
    let shares: Vec<Share> =
        sources.iter().map(|source| Share { pairs: pairs(*source), objects: plan.objects.max(1) }).collect();
    let mut rounds: Vec<Vec<[ObjectCost; 3]>> = vec![vec![]; sources.len()];
    for _ in 0..plan.rounds.max(1) {
        for ((source, share), rounds) in sources.iter().zip(&shares).zip(&mut rounds) {
            progress(source.name());
            rounds.push(round(*source, threads.max(1), *share));
        }
    }
    let mut rows = vec![];
    for (index, case) in IN_STEP.into_iter().enumerate() {
        for ((source, share), rounds) in sources.iter().zip(&shares).zip(&rounds) {
            let taken: Vec<ObjectCost> = rounds.iter().map(|round| round[index]).collect();
            let objects = if case == ObjectCase::HotPair { share.pairs } else { share.objects };
            rows.push(row(*source, case, threads.max(1), objects, &taken));
        }
    }
    rows
}

fn row(
    source: &dyn ObjectSource,
    case: ObjectCase,
    threads: u32,
    objects: u32,
    rounds: &[ObjectCost],
) -> ObjectRow {
    let ns: Vec<f64> = rounds.iter().map(|taken| taken.ns).collect();
    let counted: Option<Vec<f64>> = rounds.iter().map(|taken| taken.instructions).collect();
    ObjectRow {
        source: source.name().to_owned(),
        case,
        object_size: OBJECT_SIZE,
        threads,
        objects,
        ns: RoundSpread::of(&ns),
        instructions: counted.map(|counted| RoundSpread::of(&counted).median),
    }
}

/// How many pairs take [`PAIRS_TIME`].
fn pairs(source: &dyn ObjectSource) -> u32 {
    let mut pairs = PAIRS_MIN;
    loop {
        let start = Instant::now();
        source.hot_pairs(pairs);
        if start.elapsed() >= PAIRS_TIME || pairs >= 1 << 24 {
            return pairs;
        }
        pairs *= 2;
    }
}

/// The means over the threads.
fn round(source: &dyn ObjectSource, threads: u32, share: Share) -> [ObjectCost; 3] {
    let barrier = Barrier::new(threads as usize);
    let by_thread: Vec<[ObjectCost; 3]> = thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| of_thread(source, share, &barrier))).collect();
        let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|taken| taken.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    std::array::from_fn(|case| mean(by_thread.iter().map(|taken| taken[case])))
}

fn of_thread(source: &dyn ObjectSource, share: Share, barrier: &Barrier) -> [ObjectCost; 3] {
    let counter = Instructions::of_this_thread();
    let mut held = Vec::with_capacity(share.objects as usize);
    // Once unmeasured: the thread's first objects, and memory's first use.
    source.get(&mut held);
    source.put(&mut held);
    source.hot_pairs(PAIRS_MIN);
    barrier.wait();
    let pairs = taken(counter.as_ref(), share.pairs, || source.hot_pairs(share.pairs));
    barrier.wait();
    let get = taken(counter.as_ref(), share.objects, || source.get(&mut held));
    barrier.wait();
    let put = taken(counter.as_ref(), share.objects, || source.put(&mut held));
    [pairs, get, put]
}

fn taken(counter: Option<&Instructions>, objects: u32, work: impl FnOnce()) -> ObjectCost {
    let before = counter.and_then(Instructions::so_far);
    let start = thread_time();
    work();
    let elapsed = thread_time().saturating_sub(start);
    let after = counter.and_then(Instructions::so_far);
    let each = |total: u64| total as f64 / f64::from(objects.max(1));
    ObjectCost {
        ns: each(elapsed.as_nanos() as u64),
        instructions: before.zip(after).map(|(before, after)| each(after - before)),
    }
}

fn mean(taken: impl Iterator<Item = ObjectCost> + Clone) -> ObjectCost {
    let count = taken.clone().count().max(1) as f64;
    let counted: Option<Vec<f64>> = taken.clone().map(|taken| taken.instructions).collect();
    ObjectCost {
        ns: taken.map(|taken| taken.ns).sum::<f64>() / count,
        instructions: counted.map(|counted| counted.iter().sum::<f64>() / count),
    }
}

/// A thread allocates and another frees, each on a CPU of its own where there are two.
pub(super) fn hand_overs(
    plan: &ObjectPlan,
    sources: &[&dyn ObjectSource],
    progress: &mut impl FnMut(&str),
) -> Vec<ObjectRow> {
    // Enough of them that the threads' start does not count.
    let objects = plan.objects.max(1).saturating_mul(16);
    let mut rounds: Vec<Vec<ObjectCost>> = vec![vec![]; sources.len()];
    for _ in 0..plan.rounds.max(1) {
        for (source, rounds) in sources.iter().zip(&mut rounds) {
            progress(source.name());
            rounds.push(ObjectCost { ns: hand_over(*source, objects), instructions: None });
        }
    }
    let rows = sources.iter().zip(&rounds);
    rows.map(|(source, rounds)| row(*source, ObjectCase::HandOver, 2, objects, rounds)).collect()
}

fn hand_over(source: &dyn ObjectSource, objects: u32) -> f64 {
    let cpus = allowed().unwrap_or_default();
    let place = |index: usize| {
        if let (Some(&cpu), true) = (cpus.get(index), cpus.len() > 1) {
            // Where pinning is refused the system places the threads.
            let _ = pin(cpu);
        }
    };
    let (ring, barrier) = (Ring::new(), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            place(0);
            barrier.wait();
            source.produce(&ring, objects);
        });
        let consumer = scope.spawn(|| {
            place(1);
            barrier.wait();
            let start = Instant::now();
            source.consume(&ring, objects);
            start.elapsed().as_nanos() as f64 / f64::from(objects)
        });
        consumer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
