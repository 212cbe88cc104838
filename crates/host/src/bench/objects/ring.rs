//! A small ring between a thread that allocates and one that frees. Each end tells its position a few objects at a time,
//! and looks at the other's only when it has to, so that what is measured is mostly not the ring.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

/// Objects on their way at most.
pub(super) const PLACES: u32 = 256;
/// Objects between two tellings of a position: two cache lines of places.
const STEP: u32 = 16;
/// Looks at the other end before this one lets others run.
const SPINS: u32 = 256;

/// A number on a cache line of its own, and on the neighbour that is fetched with it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone(AtomicU32);

/// For one producer and one consumer.
#[derive(Debug)]
pub(super) struct Ring {
    places: Box<[AtomicU64]>,
    put: Alone,
    taken: Alone,
}

impl Ring {
    pub(super) fn new() -> Self {
        let places = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Self { places, put: Alone::default(), taken: Alone::default() }
    }

    /// Puts in what `make` makes, `count` times.
    pub(super) fn produce(&self, count: u32, mut make: impl FnMut() -> u64) {
        let mut taken = 0;
        for position in 0..count {
            let object = make();
            let mut spins = 0;
            while position - taken == PLACES {
                // Acquire pairs with the consumer's release: the place was read before it is written again.
                taken = self.taken.0.load(Ordering::Acquire);
                wait(&mut spins);
            }
            // Relaxed: `put` is what publishes a place.
            self.places[(position % PLACES) as usize].store(object, Ordering::Relaxed);
            if told(position + 1, count) {
                // Release pairs with the consumer's acquire: the objects are seen there.
                self.put.0.store(position + 1, Ordering::Release);
            }
        }
    }

    /// Takes `count` objects out, each to `take`.
    pub(super) fn consume(&self, count: u32, mut take: impl FnMut(u64)) {
        let mut put = 0;
        for position in 0..count {
            let mut spins = 0;
            while position == put {
                // Acquire pairs with the producer's release.
                put = self.put.0.load(Ordering::Acquire);
                wait(&mut spins);
            }
            let object = self.places[(position % PLACES) as usize].load(Ordering::Relaxed);
            if told(position + 1, count) {
                // Release pairs with the producer's acquire: the place was read.
                self.taken.0.store(position + 1, Ordering::Release);
            }
            take(object);
        }
    }
}

fn told(position: u32, last: u32) -> bool {
    position % STEP == 0 || position == last
}

fn wait(spins: &mut u32) {
    *spins += 1;
    if *spins % SPINS == 0 {
        thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_through_in_order() {
        let (ring, count) = (Ring::new(), 5 * PLACES + 3);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut next = 0;
                ring.produce(count, || {
                    next += 1;
                    next
                });
            });
            let mut expected = 0;
            ring.consume(count, |object| {
                expected += 1;
                assert_eq!(object, expected);
            });
            assert_eq!(expected, u64::from(count));
        });
    }
}
