//! A thread of thpscale, from its first mapping to its last huge page.

use std::rc::Rc;
use std::sync::Arc;

use mm::ids::{PAGE_SIZE, PAGEBLOCK_PAGES};
use mm::vm::{Backing, FaultKind, MapSpec, Touch, Vpn};
use mm::{Machine, Nanos, Node};
use sim::{AccessMix, Pattern};

use super::{Holes, Part, Process};

/// Pages that the page cache reads together, 128 KiB (`read_ahead_kb`).
const PIECE: u32 = 32;
const LINES_PER_PAGE: u64 = PAGE_SIZE / 64;

pub(super) struct Thread {
    process: Rc<Process>,
    number: u32,
}

/// There is no memory for it, or the run is over.
struct Ended;

impl<E: std::error::Error> From<E> for Ended {
    fn from(_: E) -> Self {
        Self
    }
}

impl Thread {
    pub(super) fn new(process: &Rc<Process>, number: u32) -> Self {
        Self { process: Rc::clone(process), number }
    }

    pub(super) fn run(self) {
        let process = &self.process;
        let second = self.fill();
        process.pass(&process.filled);
        match second {
            Ok(second) => self.ask(second),
            Err(Ended) => process.stage.tally.could_not_get(),
        }
        process.pass(&process.ended);
    }

    /// Leaves half of each 2 MiB, and reads a part of the file; gives the second mapping.
    fn fill(&self) -> Result<Vpn, Ended> {
        let Process { stage, space, pages, .. } = &*self.process;
        let mm = &stage.mm;
        let first = mm.spaces().mmap(space, MapSpec::anonymous(*pages))?;
        for block in 0..pages / PAGEBLOCK_PAGES {
            self.go_on()?;
            mm.spaces().populate(space, first.add(block * PAGEBLOCK_PAGES), PAGEBLOCK_PAGES, Touch::Write)?;
        }
        if self.process.holes == Holes::AtOnce {
            self.punch(first);
        }
        let second = mm.spaces().mmap(space, MapSpec::anonymous(pages / 2).advised())?;
        self.read_file(pages / 4)?;
        if self.process.holes == Holes::WhenShort {
            self.punch(first);
        }
        Ok(second)
    }

    /// Gives the first half of each 2 MiB back.
    fn punch(&self, first: Vpn) {
        let Process { stage, space, pages, .. } = &*self.process;
        for block in 0..pages / PAGEBLOCK_PAGES {
            stage.mm.spaces().munmap(space, first.add(block * PAGEBLOCK_PAGES), PAGEBLOCK_PAGES / 2);
        }
    }

    /// Reads its `pages` of the file through a mapping.
    fn read_file(&self, pages: u32) -> Result<(), Ended> {
        let Process { stage, space, file, .. } = &*self.process;
        let backing = Backing::Shared { file: Arc::clone(file), first: self.number * pages };
        let start = stage.mm.spaces().mmap(space, MapSpec { backing, ..MapSpec::shared(file, pages) })?;
        for piece in (0..pages).step_by(PIECE as usize) {
            self.go_on()?;
            let mut missing = 0;
            for page in piece..pages.min(piece + PIECE) {
                let done = stage.mm.spaces().touch_page(space, start.add(page), Touch::Read)?;
                missing += u64::from(done.1 == Some(FaultKind::Major));
            }
            if missing > 0 {
                stage.disk.transfer(stage.machine(), missing);
            }
        }
        Ok(())
    }

    fn go_on(&self) -> Result<(), Ended> {
        if self.process.stage.is_over() { Err(Ended) } else { Ok(()) }
    }

    /// Touches and writes the 2 MiB parts of the mapping at `second`, one after the other.
    fn ask(&self, second: Vpn) {
        let stage = &self.process.stage;
        for number in 0..self.process.pages / 2 / PAGEBLOCK_PAGES {
            if stage.is_over() {
                return;
            }
            let start = stage.machine().now();
            let Ok(part) = self.write(second.add(number * PAGEBLOCK_PAGES)) else {
                stage.tally.could_not_get();
                return;
            };
            self.note(part, Nanos(stage.machine().now().0 - start.0));
        }
    }

    /// Writes 2 MiB; says what they got.
    fn write(&self, start: Vpn) -> Result<Part, Ended> {
        let Process { stage, space, .. } = &*self.process;
        let touched = stage.mm.spaces().touch_page(space, start, Touch::Write)?;
        let part = if touched.1 == Some(FaultKind::Huge) { Part::Huge } else { Part::Base };
        if part == Part::Base {
            stage.mm.spaces().populate(space, start.add(1), PAGEBLOCK_PAGES - 1, Touch::Write)?;
        }
        let node = stage.places[usize::from(stage.machine().cpu().0)].node;
        stage.machine().access(AccessMix {
            reads: 0,
            writes: u64::from(PAGEBLOCK_PAGES) * LINES_PER_PAGE,
            pattern: Pattern::Sequential,
            working_set: u64::from(PAGEBLOCK_PAGES) * PAGE_SIZE,
            nodes: &[(Node(node), 1)],
        });
        Ok(part)
    }

    fn note(&self, part: Part, took: Nanos) {
        let Process { stage, threads, parts, .. } = &*self.process;
        parts.set(parts.get().and(part));
        let ns = took.0 as f64;
        let kind = match part {
            Part::Huge => "huge",
            Part::Base => "base",
        };
        stage.tally.sampled(&format!("fault-both-{threads}"), ns);
        stage.tally.sampled(&format!("fault-{kind}-{threads}"), ns);
        stage.tally.did(1);
    }
}
