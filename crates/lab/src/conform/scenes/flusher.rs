//! The flusher of a scene's machine: a task that takes turns with the program where there is one CPU (docs/reclaim.md#the-flushers-turns). So reclaim may
//! meet dirty pages before it has them. A disk's time is none of it, as in the captures: a page is written when its turn comes.

use std::cell::Cell;

use mm::{Bare, Mm};

use super::costs;

/// Pages that it writes before it looks whether it is to give way.
const AT_ONCE: u64 = 16;

/// Pages that it writes before it looks whether that is enough (`MIN_WRITEBACK_PAGES`).
const ROUND: u64 = 1024;

/// What it has to do.
#[derive(Debug, Default)]
pub(super) struct Flusher {
    /// Pages that reclaim asked for.
    due: Cell<u64>,
    /// What is left of a round.
    left: Cell<u64>,
    writes: Cell<bool>,
}

impl Flusher {
    /// It is woken; says whether it has anything to do.
    pub(super) fn wake(&self, mm: &Mm<Bare>) -> bool {
        self.due.set(self.due.get().max(mm.files().take_flush_request()));
        self.due.get() > 0 || mm.files().wants_writeback()
    }

    /// Whether it is at work.
    pub(super) fn writes(&self) -> bool {
        self.writes.get()
    }

    /// It works for a while; says how long that took, ns, or nothing where it has come to its end.
    pub(super) fn work(&self, mm: &Mm<Bare>) -> Option<u64> {
        if self.left.get() == 0 {
            if !self.wake(mm) {
                return None;
            }
            self.left.set(ROUND);
        }
        let files = mm.files();
        self.writes.set(true);
        let taken = files.take_dirty(AT_ONCE);
        files.written(&taken);
        self.writes.set(false);
        if taken.is_empty() {
            self.left.set(0);
            self.due.set(0);
            return None;
        }
        let pages: u64 = taken.iter().map(|folio| u64::from(folio.pages)).sum();
        self.left.set(self.left.get().saturating_sub(pages));
        self.due.set(self.due.get().saturating_sub(pages));
        Some(taken.len() as u64 * costs::A_WRITTEN_FOLIO + pages * costs::A_WRITTEN_PAGE)
    }
}

#[cfg(test)]
mod tests {
    use mm::vm::{FileKind, Placement};

    use super::*;
    use crate::conform::scenes::tests::machine;

    /// A machine of 64 MiB, of which a tenth may be dirty before the flusher has to work, with so many dirty pages.
    fn with_dirty(pages: u32) -> Mm<Bare> {
        let mm = machine();
        let file = mm.files().new_file(FileKind::Disk);
        for page in 0..pages {
            mm.files().write_file(&file, page, Placement::default()).unwrap();
        }
        mm
    }

    #[test]
    fn it_writes_whole_rounds_while_too_much_is_dirty() {
        let (mm, flusher) = (with_dirty(2_000), Flusher::default());
        assert!(flusher.wake(&mm));
        let mut took = 0;
        while let Some(ns) = flusher.work(&mm) {
            took += ns;
        }
        assert_eq!(mm.files().dirty_pages().dirty, 2_000 - ROUND, "which is little enough");
        assert_eq!(took, ROUND * (costs::A_WRITTEN_FOLIO + costs::A_WRITTEN_PAGE));
        assert!(!flusher.wake(&mm) && flusher.work(&mm).is_none() && !flusher.writes());
    }

    #[test]
    fn it_gives_way_within_a_round() {
        let (mm, flusher) = (with_dirty(2_000), Flusher::default());
        assert!(flusher.work(&mm).is_some());
        assert_eq!(mm.files().dirty_pages().dirty, 2_000 - AT_ONCE);
    }
}
