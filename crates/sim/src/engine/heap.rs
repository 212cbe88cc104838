//! The runnable CPUs, by clock, then by number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Ticks;

/// A CPU and the time at which it goes on. The version tells an entry that counts from those that were replaced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    key: Ticks,
    cpu: u16,
    version: u32,
}

/// A priority queue in which a CPU has at most one entry that counts.
#[derive(Debug)]
pub(super) struct CpuHeap {
    heap: BinaryHeap<Reverse<Entry>>,
    versions: Vec<u32>,
}

impl CpuHeap {
    pub(super) fn new(cpus: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(cpus + 1), versions: vec![0; cpus] }
    }

    /// `cpu` goes on at `key`, whatever was said of it before.
    pub(super) fn set(&mut self, cpu: u16, key: Ticks) {
        let version = &mut self.versions[usize::from(cpu)];
        *version = version.wrapping_add(1);
        self.heap.push(Reverse(Entry { key, cpu, version: *version }));
    }

    /// The earliest.
    #[inline]
    pub(super) fn first(&mut self) -> Option<(Ticks, u16)> {
        loop {
            let Reverse(entry) = *self.heap.peek()?;
            if self.versions[usize::from(entry.cpu)] == entry.version {
                return Some((entry.key, entry.cpu));
            }
            self.heap.pop();
        }
    }

    /// Takes the earliest out.
    pub(super) fn pop(&mut self) -> Option<(Ticks, u16)> {
        let first = self.first()?;
        self.heap.pop();
        Some(first)
    }
}

#[cfg(test)]
mod tests {
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
}
