//! The state of lines that are few and often shared (free-area heads, counters, pagesets): as frame lines, with exact
//! ages and with the set of CPUs that have a copy.

use mm::LineKind;

use super::frames::CopyState;

/// Lines by which a table grows.
const GROWTH: usize = 1024;

/// A line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// The owner's count of lines when it touched this one.
    pub(super) stamp: u64,
    /// Who wrote it last, or read it first.
    pub(super) owner: u16,
    pub(super) state: CopyState,
}

const UNTOUCHED: Named = Named { stamp: 0, owner: 0, state: CopyState::Invalid };

/// All lines of one kind, and which CPUs have a copy of those that are shared.
#[derive(Debug)]
pub(super) struct LineTable {
    lines: Vec<Named>,
    sharers: Vec<u64>,
    words: usize,
}

impl LineTable {
    pub(super) fn new(cpus: usize) -> Self {
        Self { lines: vec![], sharers: vec![], words: cpus.div_ceil(64) }
    }

    /// Line `index`.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Named {
        self.lines.get(index as usize).copied().unwrap_or(UNTOUCHED)
    }

    #[inline]
    pub(super) fn set(&mut self, index: u32, line: Named) {
        let index = index as usize;
        if index >= self.lines.len() {
            let len = (index + 1).next_multiple_of(GROWTH);
            self.lines.resize(len, UNTOUCHED);
            self.sharers.resize(len * self.words, 0);
        }
        self.lines[index] = line;
    }

    fn word(&self, index: u32, cpu: u16) -> usize {
        index as usize * self.words + usize::from(cpu / 64)
    }

    /// Whether `cpu` has a copy of a shared line.
    pub(super) fn has_copy(&self, index: u32, cpu: u16) -> bool {
        let word = self.sharers.get(self.word(index, cpu)).copied().unwrap_or(0);
        word >> (cpu % 64) & 1 == 1
    }

    /// `cpu` gets a copy of line `index`, which was [`Self::set`] before.
    pub(super) fn add_copy(&mut self, index: u32, cpu: u16) {
        let word = self.word(index, cpu);
        self.sharers[word] |= 1 << (cpu % 64);
    }

    /// All copies but the owner's become void.
    pub(super) fn clear_copies(&mut self, index: u32) {
        let first = index as usize * self.words;
        if let Some(words) = self.sharers.get_mut(first..first + self.words) {
            words.fill(0);
        }
    }
}

/// Where a kind's table is.
pub(super) const fn table_of(kind: LineKind) -> usize {
    match kind {
        LineKind::Frame => 0,
        LineKind::FreeArea => 1,
        LineKind::Zone => 2,
        LineKind::ZoneStat => 3,
        LineKind::Pageset => 4,
        LineKind::PagesetList => 5,
        LineKind::Pageblock => 6,
        LineKind::Events => 7,
        LineKind::CpuSlab => 8,
        LineKind::SlabNode => 9,
        LineKind::Barn => 10,
        LineKind::PageblockSummary => 11,
    }
}

/// Number of tables; the frames' own stays empty.
pub(super) const TABLES: usize = 12;
