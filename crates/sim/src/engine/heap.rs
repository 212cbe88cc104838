//! The runnable CPUs, by clock, then by number: a binary heap in which each CPU knows its place.
//!
//! The CPU being executed leaves a hole at the top instead of the heap being mended at once; when it comes back, which
//! is nearly always the next change, its entry goes into the hole and sinks: one repair instead of two.

use crate::time::Ticks;

/// Not in the heap.
const OUT: u32 = u32::MAX;

/// A key that orders by time, then by CPU.
type Key = u128;

fn key(time: Ticks, cpu: u16) -> Key {
    Key::from(time) << 16 | Key::from(cpu)
}

fn parts(key: Key) -> (Ticks, u16) {
    ((key >> 16) as Ticks, key as u16)
}

/// A priority queue with at most one entry for each CPU.
#[derive(Debug)]
pub(super) struct CpuHeap {
    keys: Vec<Key>,
    /// Index in [`Self::keys`], by CPU.
    places: Vec<u32>,
    /// The entry at the top has been taken.
    hole: bool,
}

impl CpuHeap {
    pub(super) fn new(cpus: usize) -> Self {
        Self { keys: Vec::with_capacity(cpus), places: vec![OUT; cpus], hole: false }
    }

    /// `cpu` goes on at `time`, whatever was said of it before.
    pub(super) fn set(&mut self, cpu: u16, time: Ticks) {
        let key = key(time, cpu);
        let place = self.places[usize::from(cpu)];
        if place == OUT && self.hole {
            self.hole = false;
            self.sink(0, key);
        } else if place == OUT {
            self.keys.push(key);
            self.rise(self.keys.len() - 1, key);
        } else {
            let place = self.rise(place as usize, key);
            self.sink(place, key);
        }
    }

    /// The earliest.
    #[inline]
    pub(super) fn first(&self) -> Option<(Ticks, u16)> {
        let first = if self.hole { self.keys.get(1..)?.iter().take(2).min() } else { self.keys.first() };
        first.map(|key| parts(*key))
    }

    /// Takes the earliest out.
    pub(super) fn pop(&mut self) -> Option<(Ticks, u16)> {
        if self.hole {
            self.hole = false;
            let last = self.keys.pop()?;
            if !self.keys.is_empty() {
                self.sink(0, last);
            }
        }
        let (time, cpu) = parts(*self.keys.first()?);
        self.places[usize::from(cpu)] = OUT;
        self.hole = true;
        Some((time, cpu))
    }

    fn put(&mut self, at: usize, key: Key) {
        self.keys[at] = key;
        self.places[usize::from(parts(key).1)] = at as u32;
    }

    /// Puts `key` at `at` or as far below as it belongs.
    fn sink(&mut self, mut at: usize, key: Key) {
        loop {
            let left = 2 * at + 1;
            let Some(&left_key) = self.keys.get(left) else { break };
            let right_key = self.keys.get(left + 1).copied().unwrap_or(Key::MAX);
            let (child, child_key) =
                if right_key < left_key { (left + 1, right_key) } else { (left, left_key) };
            if key < child_key {
                break;
            }
            self.put(at, child_key);
            at = child;
        }
        self.put(at, key);
    }

    /// Puts `key` at `at` or as far above as it belongs, but not into a hole. Says where.
    fn rise(&mut self, mut at: usize, key: Key) -> usize {
        while at > 0 {
            let parent = (at - 1) / 2;
            let above = self.keys[parent];
            if above < key || parent == 0 && self.hole {
                break;
            }
            self.put(at, above);
            at = parent;
        }
        self.put(at, key);
        at
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_word_on_a_cpu_counts() {
        let mut heap = CpuHeap::new(4);
        heap.set(2, 50);
        heap.set(1, 50);
        heap.set(3, 10);
        heap.set(3, 70);
        heap.set(2, 40);
        let order: Vec<_> = std::iter::from_fn(|| heap.pop()).collect();
        assert_eq!(order, [(40, 2), (50, 1), (70, 3)]);
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map(steps in prop::collection::vec((0u16..20, prop::option::of(0u64..50)), 1..200)) {
            let (mut heap, mut map) = (CpuHeap::new(20), BTreeMap::new());
            for (cpu, time) in steps {
                if let Some(time) = time {
                    heap.set(cpu, time);
                    map.insert(cpu, time);
                } else {
                    let first = map.iter().map(|(cpu, time)| (*time, *cpu)).min();
                    prop_assert_eq!(heap.pop(), first);
                    first.map(|(_, cpu)| map.remove(&cpu));
                }
                prop_assert_eq!(heap.first(), map.iter().map(|(cpu, time)| (*time, *cpu)).min());
            }
        }
    }
}
