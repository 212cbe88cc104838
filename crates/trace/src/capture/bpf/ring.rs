//! A CPU's ring of records as bpf/ring.h describes it, from the reader's side.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::shared::Shared;
use crate::capture::host::now_ns;
use crate::stream::compact::CompactKind;

/// Words of a page of the ring, which no record crosses.
const PAGE_WORDS: u64 = 512;
/// Words of a CPU's own state, and where in it lie what was written, what was lost, what a stand-in
/// recorded, what was sampled away and what was read.
pub(super) const CPU_WORDS: usize = 16;
const HEAD: usize = 0;
const LOST: usize = 1;
const STAND_INS: usize = 3;
const COUNTED: usize = 6;
const COUNTED_PAGES: usize = 7;
const TAIL: usize = 8;
const ONE_IN_SHIFT: usize = 9;

/// What is left in a ring after it was emptied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::capture) enum Left {
    /// Nothing older than the look at it.
    Nothing,
    /// A record that was being written, and what followed it.
    Unfinished,
}

/// A CPU's ring.
#[derive(Debug)]
pub(in crate::capture) struct CompactRing {
    cpus: Arc<Shared>,
    records: Arc<Shared>,
    cpu: usize,
    /// Words that it holds, a power of two.
    words: u64,
    /// Losses that were told already.
    told: u64,
}

impl CompactRing {
    /// The ring of CPU number `cpu`, of so many pages, in memory that has all of them.
    pub(super) fn new(cpus: Arc<Shared>, records: Arc<Shared>, cpu: u32, pages: usize) -> Self {
        Self { cpus, records, cpu: cpu as usize, words: pages as u64 * PAGE_WORDS, told: 0 }
    }

    /// Appends all whole records that are there to `out` and makes room for new ones.
    pub(in crate::capture) fn drain(&mut self, out: &mut Vec<u8>) -> Left {
        let own = self.cpu * CPU_WORDS;
        let tail = self.cpus.word(own + TAIL);
        // Relaxed: nobody but this writes it.
        let mut at = tail.load(Ordering::Relaxed);
        // Acquire, as for each record's first word: what was reserved before is seen at least as reserved.
        let end = self.cpus.word(own + HEAD).load(Ordering::Acquire);
        out.reserve(((end - at) as usize).min(self.words as usize) * size_of::<u64>());
        let mut left = Left::Nothing;
        while at < end {
            let page_end = end.min((at / PAGE_WORDS + 1) * PAGE_WORDS);
            let Some(next) = self.drain_page(at, page_end, out) else {
                left = Left::Unfinished;
                break;
            };
            at = next;
            // Release: the zeros that were left behind are there before the kernel writes in their place.
            tail.store(at, Ordering::Release);
        }
        self.tell_losses(out);
        left
    }

    /// Takes the records from word `at` up to the page's end, or as far as they are whole: `None` then.
    fn drain_page(&self, mut at: u64, end: u64, out: &mut Vec<u8>) -> Option<u64> {
        let first_word = self.cpu * self.words as usize;
        let word = |at: u64| self.records.word(first_word + (at & (self.words - 1)) as usize);
        while at < end {
            // Acquire pairs with the order in which a program stores: the first word is the last.
            let first = word(at).load(Ordering::Acquire);
            let Some(kind) = CompactKind::of(first) else {
                let own = self.cpu * CPU_WORDS;
                self.cpus.word(own + TAIL).store(at, Ordering::Release);
                return None;
            };
            if kind == CompactKind::Fill {
                word(at).store(0, Ordering::Relaxed);
                return Some((at / PAGE_WORDS + 1) * PAGE_WORDS);
            }
            for index in 0..kind.words() as u64 {
                let word = word(at + index);
                out.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
                word.store(0, Ordering::Relaxed);
            }
            at += kind.words() as u64;
        }
        Some(at)
    }

    /// Adds a record of what found no room since it was last told.
    fn tell_losses(&mut self, out: &mut Vec<u8>) {
        let lost = lost(&self.cpus, self.cpu);
        if lost > self.told {
            for word in [CompactKind::Lost.first(now_ns()), 0, lost - self.told] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            self.told = lost;
        }
    }
}

/// Records that found no room on a CPU so far.
pub(super) fn lost(cpus: &Shared, cpu: usize) -> u64 {
    // Relaxed: a count that publishes nothing.
    cpus.word(cpu * CPU_WORDS + LOST).load(Ordering::Relaxed)
}

/// Events on a CPU that a stand-in recorded so far, in the place of a program that the kernel skipped.
pub(super) fn stood_in(cpus: &Shared, cpu: usize) -> u64 {
    // Relaxed: a count that publishes nothing.
    cpus.word(cpu * CPU_WORDS + STAND_INS).load(Ordering::Relaxed)
}

/// Page events on a CPU that were sampled away so far, and the pages for user space that they handed out.
pub(super) fn counted(cpus: &Shared, cpu: usize) -> [u64; 2] {
    // Relaxed: counts that publish nothing.
    [COUNTED, COUNTED_PAGES].map(|at| cpus.word(cpu * CPU_WORDS + at).load(Ordering::Relaxed))
}

/// From here on page events of one unit of frames in `1 << shift` are recorded on a CPU.
pub(super) fn sample(cpus: &Shared, cpu: usize, shift: u32) {
    // Relaxed: a program looks at this alone.
    cpus.word(cpu * CPU_WORDS + ONE_IN_SHIFT).store(u64::from(shift), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: usize = 2;

    /// What programs on CPU 1 would see.
    struct Kernel {
        cpus: Arc<Shared>,
        records: Arc<Shared>,
        head: u64,
    }

    impl Kernel {
        fn new() -> (Self, CompactRing) {
            let cpus = Arc::new(Shared::anonymous(2 * CPU_WORDS));
            let records = Arc::new(Shared::anonymous(2 * PAGES * PAGE_WORDS as usize));
            let ring = CompactRing::new(Arc::clone(&cpus), Arc::clone(&records), 1, PAGES);
            (Self { cpus, records, head: 0 }, ring)
        }

        fn word(&self, at: u64) -> &std::sync::atomic::AtomicU64 {
            let words = PAGES as u64 * PAGE_WORDS;
            self.records.word((words + at % words) as usize)
        }

        /// Takes room for a record and writes its words behind the first.
        fn reserve(&mut self, kind: CompactKind) -> u64 {
            let left = PAGE_WORDS - self.head % PAGE_WORDS;
            if left < kind.words() as u64 {
                self.word(self.head).store(CompactKind::Fill.first(0), Ordering::Relaxed);
                self.head += left;
            }
            let at = self.head;
            self.head += kind.words() as u64;
            (1..kind.words() as u64).for_each(|index| self.word(at + index).store(index, Ordering::Relaxed));
            self.cpus.word(CPU_WORDS + HEAD).store(self.head, Ordering::Relaxed);
            at
        }

        fn commit(&self, at: u64, kind: CompactKind, time: u64) {
            assert_eq!(self.word(at).load(Ordering::Relaxed), 0, "the reader left something behind");
            self.word(at).store(kind.first(time), Ordering::Relaxed);
        }
    }

    fn times(bytes: &[u8]) -> Vec<u64> {
        crate::stream::compact::compact_records(bytes).map(|(record, _)| record.time()).collect()
    }

    #[test]
    fn rings_are_read_around_their_end_and_over_pages() {
        let (mut kernel, mut ring) = Kernel::new();
        let mut expected = vec![];
        let mut out = vec![];
        for time in 1..=2000 {
            let kind = [CompactKind::PageFree, CompactKind::Enter, CompactKind::FileRead][time as usize % 3];
            let at = kernel.reserve(kind);
            kernel.commit(at, kind, time);
            expected.push(time);
            if time % 50 == 0 {
                assert_eq!(ring.drain(&mut out), Left::Nothing);
            }
        }
        assert_eq!(times(&out), expected);
        assert_eq!(kernel.cpus.word(CPU_WORDS + TAIL).load(Ordering::Relaxed), kernel.head);
    }

    #[test]
    fn a_record_that_is_being_written_holds_up_those_behind_it() {
        let (mut kernel, mut ring) = Kernel::new();
        let mut out = vec![];
        let whole = kernel.reserve(CompactKind::Fault);
        kernel.commit(whole, CompactKind::Fault, 5);
        let slow = kernel.reserve(CompactKind::PageAlloc);
        let nested = kernel.reserve(CompactKind::PageFree);
        kernel.commit(nested, CompactKind::PageFree, 7);
        assert_eq!(ring.drain(&mut out), Left::Unfinished);
        assert_eq!(times(&out), [5]);
        kernel.commit(slow, CompactKind::PageAlloc, 6);
        assert_eq!(ring.drain(&mut out), Left::Nothing);
        assert_eq!(times(&out), [5, 6, 7]);
    }

    #[test]
    fn losses_are_told_once() {
        let (kernel, mut ring) = Kernel::new();
        let mut out = vec![];
        kernel.cpus.word(CPU_WORDS + LOST).store(3, Ordering::Relaxed);
        ring.drain(&mut out);
        ring.drain(&mut out);
        let found: Vec<_> = crate::stream::compact::compact_records(&out)
            .map(|(record, _)| (record.kind, record.third()))
            .collect();
        assert_eq!(found, [(CompactKind::Lost, 3)]);
        assert_eq!(lost(&kernel.cpus, 1), 3);
    }
}
