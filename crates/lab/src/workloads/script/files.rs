//! What a process does with files: they are on the disk from the start, are mapped, read and written by calls, and dropped.

use std::sync::Arc;

use mm::Request;
use mm::mempolicy::InterleaveBy;
use mm::vm::{File, FileKind, MapSpec, Placement, Protection, Touch, Vpn};
use sim::{AccessMix, Path, Pattern, SimMachine};

use super::Disk;
use super::player::{End, Failure, Player};
use crate::script::meanings::pattern;
use crate::script::names::{Named, PAGE, Region};
use crate::stage::Place;

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Pages that are written to the disk together.
const ROUND: u64 = 1024;

impl Player {
    /// A file of so many bytes on the disk, nothing of it in memory.
    pub(super) fn file(&mut self, name: &str, bytes: u64) {
        let file = self.world.stage.mm.files().new_file(FileKind::Disk);
        file.set_len(bytes.div_ceil(PAGE) as u32);
        let Disk { read_ahead, together, .. } = self.world.disk;
        file.set_read_ahead(read_ahead);
        file.set_read_together(together);
        self.files.push(Arc::clone(&file));
        let named = self.names.add(name, Named::File { file, bytes });
        self.accept(named);
    }

    pub(super) fn map_file(&mut self, name: &str, file: &str, (executable, private): (bool, bool)) {
        let Some(Named::File { file, bytes }) = self.named(file) else { return };
        let pages = bytes.div_ceil(PAGE) as u32;
        let spec = match (private, executable) {
            (true, _) => MapSpec::private(&file, pages).unreserved(),
            (false, true) => MapSpec::shared(&file, pages).protected(Protection::Execute),
            (false, false) => MapSpec::shared(&file, pages).protected(Protection::Read),
        };
        let number = self.files.iter().position(|other| Arc::ptr_eq(other, &file));
        self.map_at(name, spec, Region { start: Vpn(0), bytes, stores: 8, file: number });
    }

    /// Reads or writes `bytes` of `file` from `offset` on by a call.
    pub(super) fn call_file(
        &mut self,
        file: &Arc<File<SimMachine>>,
        (offset, bytes): (u64, u64),
        touch: Touch,
    ) -> Result<(), End> {
        self.machine().charge(Path::Syscall);
        let pages = (offset / PAGE) as u32..(offset + bytes).div_ceil(PAGE) as u32;
        if touch == Touch::Read {
            self.read(file, pages)?;
        } else {
            self.until_done(|player| {
                let from = || player.file_placement();
                Ok(player.world.stage.mm.files().write_pages(file, pages.clone(), from).map(drop)?)
            })?;
        }
        let (reads, writes) = if touch == Touch::Read { (bytes / LINE, 0) } else { (0, bytes / LINE) };
        let mix = AccessMix { reads, writes, pattern: Pattern::Sequential, working_set: bytes, nodes: &[] };
        self.machine().access(mix);
        Ok(())
    }

    /// Has pages of `file` in memory, with what is read ahead of them, and waits for the disk if any of them was missing.
    fn read(&mut self, file: &File<SimMachine>, pages: std::ops::Range<u32>) -> Result<(), End> {
        let done = self.until_done(|player| {
            let from = player.file_placement();
            player.world.stage.mm.files().read_pages(file, pages.clone(), from).map_err(Failure::from)
        })?;
        let place = match self.went.insert(file.id(), pages.end) {
            Some(page) if page == pages.start => Place::Next,
            _ => Place::Elsewhere,
        };
        self.world.count_read(file.id(), done.waits == 0);
        if done.reads > 0 {
            // A window that is read ahead was asked for in one before it, which is there when somebody comes to its marked page.
            let before = self.ahead.remove(&file.id()).unwrap_or_default();
            self.machine().sleep_until(before);
            let there = self.world.stage.disk.begin(self.machine(), done.reads.into(), place);
            if done.waits > 0 {
                self.machine().sleep_until(there);
            } else {
                self.ahead.insert(file.id(), there);
            }
        }
        Ok(())
    }

    /// `fadvise`, of bytes.
    pub(super) fn advise_of_file(
        &mut self,
        (file, len): (&Arc<File<SimMachine>>, u64),
        word: &str,
        (first, bytes): (u64, u64),
    ) -> Result<(), End> {
        let end = if bytes == 0 { len } else { first.saturating_add(bytes).min(len) };
        match (pattern(word), word) {
            (Some(pattern), _) => self.world.stage.mm.files().advise_file(file, pattern),
            (None, "dontneed") => {
                self.write_back();
                // Parts of pages stay, but for the file's last.
                let last = if end == len { end.div_ceil(PAGE) } else { end / PAGE };
                let first = first.div_ceil(PAGE);
                self.forget(file, first as u32, last.saturating_sub(first) as u32);
            }
            (None, "willneed") => self.read(file, (first / PAGE) as u32..end.div_ceil(PAGE) as u32)?,
            _ => self.refused(),
        }
        Ok(())
    }

    /// Pages of `file` leave memory that are clean and that nobody maps.
    pub(super) fn forget(&self, file: &File<SimMachine>, first: u32, pages: u32) {
        let mm = &self.world.stage.mm;
        // What a CPU keeps back has a reference more.
        mm.lru().lru_drain_all();
        mm.files().forget_pages(file, first..first.saturating_add(pages));
    }

    /// Everything that is dirty is written, and the process waits for that.
    pub(super) fn write_back(&self) {
        let files = self.world.stage.mm.files();
        loop {
            let taken = files.take_dirty(ROUND);
            if taken.is_empty() {
                return;
            }
            let pages = taken.iter().map(|folio| u64::from(folio.pages)).sum();
            self.world.stage.disk.transfer(self.machine(), pages);
            files.written(&taken);
        }
    }

    /// Where pages of files come from that it reads and writes by calls.
    fn file_placement(&self) -> Placement {
        let stage = &self.world.stage;
        let request = Request { allowed: stage.allowed, ..Request::USER };
        let placed = stage.mm.spaces().place(self.policy, InterleaveBy::Task(&self.turn), request);
        placed.map_or(Placement::default(), |placed| Placement { node: placed.node, allowed: placed.allowed })
    }
}
