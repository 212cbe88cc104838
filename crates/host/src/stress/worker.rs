//! One thread of a stress run.

use std::sync::mpsc::{Receiver, Sender};

use mm::ids::PAGE_SIZE;
use mm::{Knob, KnobError, MigrateType, Order, Request, Urgency};

use super::{StressEnd, StressTally};
use crate::host::{Host, Pages};
use crate::rng::Rng;

/// Blocks that a thread holds at most; from there on it frees.
const HELD_MAX: usize = 400;
/// Operations between two looks at whether to end.
const STRIDE: u64 = 64;

/// A block with the mark that all its pages carry.
#[derive(Debug)]
pub(super) struct MarkedBlock<'h> {
    pages: Pages<'h>,
    mark: u64,
}

pub(super) struct PageWorker<'h> {
    host: &'h Host,
    number: u64,
    rng: Rng,
    held: Vec<MarkedBlock<'h>>,
    others: Vec<Sender<MarkedBlock<'h>>>,
    inbox: Receiver<MarkedBlock<'h>>,
    marks: u64,
    tally: StressTally,
}

impl<'h> PageWorker<'h> {
    pub(super) fn new(
        host: &'h Host,
        number: u64,
        seed: u64,
        others: Vec<Sender<MarkedBlock<'h>>>,
        inbox: Receiver<MarkedBlock<'h>>,
    ) -> Self {
        let rng = Rng::new(seed, number);
        Self { host, number, rng, held: vec![], others, inbox, marks: 0, tally: StressTally::default() }
    }

    /// Does `operations`, or as many as there are before `end`; then frees all that it holds and is still sent.
    pub(super) fn run(mut self, operations: u64, end: &StressEnd) -> Result<StressTally, String> {
        for operation in 0..operations {
            if operation % STRIDE == 0 && end.reached() {
                break;
            }
            self.step()?;
        }
        self.others.clear();
        while let Some(held) = self.held.pop() {
            self.free(held)?;
        }
        while let Ok(held) = self.inbox.recv() {
            self.free(held)?;
        }
        Ok(self.tally)
    }

    fn step(&mut self) -> Result<(), String> {
        if let Ok(held) = self.inbox.try_recv() {
            if self.rng.one_in(2) { self.free(held)? } else { self.held.push(held) }
        }
        match self.rng.below(1000) {
            0 => self.disturb(),
            1..=500 if self.held.len() < HELD_MAX => return self.allocate(),
            501..=600 => self.send(),
            601..=610 => return self.split(),
            _ => {
                if let Some(held) = self.pick() {
                    return self.free(held);
                }
            }
        }
        Ok(())
    }

    fn pick(&mut self) -> Option<MarkedBlock<'h>> {
        if self.held.is_empty() {
            return None;
        }
        let index = self.rng.below(self.held.len() as u64) as usize;
        Some(self.held.swap_remove(index))
    }

    fn request(&mut self) -> Request {
        let order = match self.rng.below(100) {
            0..=59 => 0,
            60..=84 => 1 + self.rng.below(3),
            85..=94 => 4 + self.rng.below(5),
            95..=98 => 9,
            _ => 10,
        };
        let base = if self.rng.one_in(3) { Request::KERNEL } else { Request::USER };
        let migratetype = match self.rng.below(8) {
            0 => MigrateType::Reclaimable,
            _ => base.migratetype,
        };
        let urgency = match self.rng.below(16) {
            0 => Urgency::NoWait,
            1 => Urgency::Atomic,
            2 => Urgency::Never,
            _ => Urgency::Waits,
        };
        let order = Order::new(order as u8).unwrap_or_default();
        Request { order, migratetype, urgency, zero: self.rng.one_in(8), ..base }
    }

    fn allocate(&mut self) -> Result<(), String> {
        let request = self.request();
        let Ok(pages) = self.host.alloc(request) else {
            return self.free_half();
        };
        self.tally.allocated += 1;
        if request.zero && words(&pages).any(|word| word != 0) {
            return Err(format!("{pages:?} was to be zero and is not"));
        }
        let held = self.mark(pages);
        self.held.push(held);
        Ok(())
    }

    fn free_half(&mut self) -> Result<(), String> {
        self.tally.failed += 1;
        for held in self.held.split_off(self.held.len() / 2) {
            self.free(held)?;
        }
        Ok(())
    }

    /// Writes a mark that no other block has or had to every page.
    fn mark(&mut self, mut pages: Pages<'h>) -> MarkedBlock<'h> {
        self.marks += 1;
        let mark = (self.number << 48) + (self.marks << 10);
        for (page, number) in pages.chunks_exact_mut(PAGE_SIZE as usize).zip(0u64..) {
            let word = (mark + number).to_ne_bytes();
            page[..8].copy_from_slice(&word);
            page[PAGE_SIZE as usize - 8..].copy_from_slice(&word);
        }
        MarkedBlock { pages, mark }
    }

    /// Looks whether every page still has its mark, and frees the block.
    fn free(&mut self, held: MarkedBlock<'h>) -> Result<(), String> {
        let MarkedBlock { pages, mark } = held;
        self.tally.pages_checked += u64::from(pages.order().pages());
        for (word, index) in words(&pages).zip(0u64..) {
            let wanted = mark + index / 2;
            if word != wanted {
                let page = index / 2;
                return Err(format!("page {page} of {pages:?} reads {word:#x}, its owner wrote {wanted:#x}"));
            }
        }
        Ok(())
    }

    fn send(&mut self) {
        if self.others.is_empty() {
            return;
        }
        if let Some(held) = self.pick() {
            let to = self.rng.below(self.others.len() as u64) as usize;
            self.tally.sent += 1;
            // Nobody listens any more: then the block comes back in the error and is freed by its drop.
            let _ = self.others[to].send(held);
        }
    }

    fn split(&mut self) -> Result<(), String> {
        let Some(held) = self.pick() else { return Ok(()) };
        if held.pages.order().pages() > 8 {
            return self.free(held);
        }
        self.tally.split += 1;
        for pages in held.pages.split() {
            let held = self.mark(pages);
            self.held.push(held);
        }
        Ok(())
    }

    fn disturb(&mut self) {
        let (knob, value) = match self.rng.below(7) {
            0 => (Knob::PcpBatchScaleMax, self.rng.below(7)),
            1 => (Knob::PercpuPagelistHighFraction, [0, 8, 100][self.rng.below(3) as usize]),
            2 => (Knob::MinFreeKbytes, [0, 128, 4096][self.rng.below(3) as usize]),
            3 => (Knob::WatermarkBoostFactor, [0, 15_000][self.rng.below(2) as usize]),
            4 => (Knob::NumaZonelistOrder, self.rng.below(3)),
            5 => {
                self.tally.drains += 1;
                return self.host.drain_all();
            }
            _ => {
                self.tally.drains += 1;
                return self.host.tick();
            }
        };
        self.tally.knobs += 1;
        let set = self.host.set_knob(knob, value);
        let taken = matches!(set, Ok(()) | Err(KnobError::Refused { .. } | KnobError::Lacking { .. }));
        debug_assert!(taken, "all of these values are in range: {set:?}");
    }
}

/// The first and the last word of every page.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    bytes.chunks_exact(PAGE_SIZE as usize).flat_map(move |page| {
        let (first, rest) = page.split_at(8);
        [word(first), word(&rest[rest.len() - 8..])]
    })
}
