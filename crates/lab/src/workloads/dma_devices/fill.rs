//! The program that fills memory: anonymous memory and a file of the page cache, side by side, then rounds of work on both.

use std::sync::Arc;

use mm::Node;
use mm::ids::PAGEBLOCK_PAGES;
use mm::vm::{AddressSpace, Cached, File, FileKind, MapSpec, Placement, Touch, Vpn};
use sim::{AccessMix, Pattern, SimMachine};

use crate::stage::{Random, Stage};

/// Pages that are read ahead together, 128 KiB (`read_ahead_kb`).
const PIECE: u32 = 32;
/// In every so many rounds of work the program's anonymous memory shrinks or grows by 2 MiB, as a heap does around its
/// collections: some hundred MiB a second, an estimate.
const SWING_ROUNDS: u64 = 16;
/// It shrinks by so many parts of 2 MiB before it grows again: 256 MiB.
const SWING: u32 = 128;
/// Lines of memory that a round of work reads and writes: of an operation of a server, an estimate.
const READS: u64 = 8000;
const WRITES: u64 = 2000;

/// The program; sizes are pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    pub(super) anon: u32,
    pub(super) file: u32,
    /// Of a hundred pieces of the file, how many are written.
    pub(super) writes: u32,
}

/// It, at work.
struct Running<'a> {
    stage: &'a Stage,
    fill: Fill,
    file: &'a File<SimMachine>,
    /// The page of the file that comes next.
    at: u32,
    /// Where the anonymous memory begins.
    start: Vpn,
    /// The part of it that goes next.
    part: u32,
    /// Parts that are gone.
    gone: u32,
    shrinks: bool,
    rounds: u64,
    random: Random,
}

impl Fill {
    pub(super) fn run(self, stage: &Stage, random: Random) {
        let mm = &stage.mm;
        let space = mm.spaces().new_space();
        let file = mm.files().new_file(FileKind::Disk);
        let mapped = mm.spaces().mmap(&space, MapSpec::anonymous(self.anon));
        if let Ok(start) = mapped {
            let mut running = Running {
                stage,
                fill: self,
                file: &file,
                at: 0,
                start,
                part: 0,
                gone: 0,
                shrinks: true,
                rounds: 0,
                random,
            };
            running.take_all(&space);
            while !stage.is_over() {
                running.round(&space);
            }
        } else {
            // Nobody promises so much memory: there is no program.
            stage.tally.could_not_get();
        }
        mm.spaces().exit(&space);
        mm.files().drop_file(&file);
    }
}

impl Running<'_> {
    /// Touches all anonymous memory, as far as there is any, and reads as large a part of the file meanwhile.
    fn take_all(&mut self, space: &AddressSpace<SimMachine>) {
        let Fill { anon, file, .. } = self.fill;
        let mut touched = 0;
        let mut read = 0_u64;
        while touched < anon && !self.stage.is_over() {
            let pages = PAGEBLOCK_PAGES.min(anon - touched);
            if self.stage.mm.spaces().populate(space, self.start.add(touched), pages, Touch::Write).is_err() {
                self.stage.tally.could_not_get();
                return;
            }
            touched += pages;
            while read * u64::from(anon) < u64::from(file) * u64::from(touched) {
                self.read_piece();
                read += u64::from(PIECE);
            }
        }
    }

    /// Works on memory, then on a piece of the file.
    fn round(&mut self, space: &Arc<AddressSpace<SimMachine>>) {
        self.rounds += 1;
        if self.rounds % SWING_ROUNDS == 0 {
            self.swing(space);
        }
        let nodes = self.stage.mm.topology().nodes.len() as u16;
        let places: Vec<(Node, u64)> =
            (0..nodes).map(|node| (Node(node), space.pages_on(Node(node)))).collect();
        self.stage.machine().access(AccessMix {
            reads: READS,
            writes: WRITES,
            pattern: Pattern::Random,
            working_set: u64::from(self.fill.anon) * mm::ids::PAGE_SIZE,
            nodes: &places,
        });
        if self.random.below(100) < u64::from(self.fill.writes) {
            self.write_piece();
        } else {
            self.read_piece();
        }
        self.stage.tally.did(1);
    }

    /// Gives a part of anonymous memory back, or takes one anew.
    fn swing(&mut self, space: &Arc<AddressSpace<SimMachine>>) {
        let parts = self.fill.anon / PAGEBLOCK_PAGES;
        self.shrinks = if self.shrinks { self.gone < SWING.min(parts) } else { self.gone == 0 };
        if parts == 0 {
            return;
        }
        let mm = &self.stage.mm;
        if self.shrinks {
            mm.spaces().munmap(space, self.start.add(self.part * PAGEBLOCK_PAGES), PAGEBLOCK_PAGES);
            self.part = (self.part + 1) % parts;
            self.gone += 1;
            return;
        }
        self.gone -= 1;
        // Gaps of this size are the parts that are gone.
        let mapped = mm.spaces().mmap(space, MapSpec::anonymous(PAGEBLOCK_PAGES));
        let taken =
            mapped.is_ok_and(|at| mm.spaces().populate(space, at, PAGEBLOCK_PAGES, Touch::Write).is_ok());
        if !taken {
            self.stage.tally.could_not_get();
        }
    }

    /// The pages of the next piece; behind the last one comes the first.
    fn next_piece(&mut self) -> std::ops::Range<u32> {
        let start = self.at;
        let end = (start + PIECE).min(self.fill.file);
        self.at = end % self.fill.file;
        start..end
    }

    /// Reads the next piece; what is not in memory comes from the disk, together.
    fn read_piece(&mut self) {
        let Stage { mm, disk, .. } = self.stage;
        let mut missing = 0;
        for page in self.next_piece() {
            match mm.files().read_file(self.file, page, Placement::default()) {
                Ok(Cached::Hit) => {}
                Ok(Cached::Miss) => missing += 1,
                Err(_) => self.stage.tally.could_not_get(),
            }
        }
        if missing > 0 {
            disk.transfer(self.stage.machine(), missing);
        }
    }

    /// Writes all of the next piece.
    fn write_piece(&mut self) {
        for page in self.next_piece() {
            if self.stage.mm.files().write_file(self.file, page, Placement::default()).is_err() {
                self.stage.tally.could_not_get();
            }
        }
    }
}
