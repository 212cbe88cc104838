//! What a scene's program does with files: they are made, mapped, written back and dropped.

use std::sync::Arc;

use mm::vm::mempolicy::InterleaveBy;
use mm::vm::{File, FileKind, MapSpec, Placement, Protection, Vpn};
use mm::{Bare, Request};

use super::play::{At, Player, Stop};
use super::process::Process;
use crate::script::meanings::pattern;
use crate::script::names::{Named, PAGE, Region};

/// Pages that ext4 keeps of its own for the first file that is made, in the maker's group, and how many of them are used again: `file` and
/// `active_file` of the group at the first mark of 34 captures. For each block group that a file fills it keeps one more (15 to 17 in 26). With two
/// files on a disk of 1 GiB it keeps 28, which is more than is read here.
const METADATA: u32 = 14;
const USED_AGAIN: u32 = 10;
const BLOCK_GROUP: u64 = 128 << 20;

impl Player {
    /// A file of `bytes` was made: what the file system reads of its own for it is there at the next mark.
    pub(super) fn owe_metadata(&mut self, bytes: u64) {
        let of_first = if self.metadata.is_some() { 0 } else { METADATA };
        let owed = of_first + (bytes / BLOCK_GROUP) as u32;
        self.metadata = Some(self.metadata.unwrap_or(0) + owed);
    }

    /// Reads that for `process`. Not before a mark: when files are made within the time until the first one is not known, and so what the machine's
    /// lists had when the kernel last flushed its figures of them; with these few pages and no others active ones would seem to be the more.
    pub(super) fn read_metadata(&mut self, process: &Process) {
        let Some(pages) = self.metadata.replace(0).filter(|&pages| pages > 0) else { return };
        let (files, from) = (self.machine.mm.files(), self.file_placement(process));
        let file = files.new_file(FileKind::Disk);
        file.set_len(pages);
        for read in [0..pages, 0..pages.min(USED_AGAIN)] {
            // Where there is no memory for it, the program comes upon that next.
            let _ = files.read_pages(&file, read, from);
        }
    }

    /// A file: made, written, and dropped from memory.
    pub(super) fn file(
        &mut self,
        process: &mut Process,
        (name, bytes): (&str, u64),
        at: At,
    ) -> Result<(), Stop> {
        let pages = Self::size(bytes, at)?;
        let file = self.machine.mm.files().new_file(FileKind::Disk);
        file.set_len(pages);
        self.files.push((Arc::clone(&file), pages));
        if !process.names.add(name, Named::File { file: Arc::clone(&file), bytes }) {
            return Err(at.broken("too many names"));
        }
        Self::begin_making(process, (file, bytes), at);
        Ok(())
    }

    pub(super) fn map_file(
        &mut self,
        process: &mut Process,
        (name, file): (&str, &str),
        (executable, private): (bool, bool),
        at: At,
    ) -> Result<(), Stop> {
        let (file, bytes) = match Self::named(process, file, at)? {
            Named::File { file, bytes } => (Some(file), bytes),
            Named::Region(region) => (None, region.bytes),
        };
        let pages = Self::size(bytes, at)?;
        // Of a region there is no file to map.
        let Some(file) = file.filter(|_| pages > 0) else { return Err(at.broken("no memory area")) };
        let spec = match (private, executable) {
            (true, _) => MapSpec::private(&file, pages).unreserved(),
            (false, true) => MapSpec::shared(&file, pages).protected(Protection::Execute),
            (false, false) => MapSpec::shared(&file, pages).protected(Protection::Read),
        };
        let number = self.files.iter().position(|(other, _)| Arc::ptr_eq(other, &file));
        let region = Region { start: Vpn(0), bytes, stores: 8, file: number };
        self.map_at(process, name, (spec, region), at)
    }

    /// `fadvise`, of bytes.
    pub(super) fn advise_of_file(
        &mut self,
        process: &mut Process,
        (file, len): (&Arc<File<Bare>>, u64),
        word: &str,
        (first, bytes): (u64, u64),
        at: At,
    ) -> Result<(), Stop> {
        let end = if bytes == 0 { len } else { first.saturating_add(bytes).min(len) };
        if let Some(pattern) = pattern(word) {
            self.machine.mm.files().advise_file(file, pattern);
        } else if word == "dontneed" {
            self.step(at, end.saturating_sub(first) / PAGE + 1)?;
            self.write_back();
            // Parts of pages stay, but for the file's last.
            let last = if end == len { end.div_ceil(PAGE) } else { end / PAGE };
            let first = first.div_ceil(PAGE);
            self.forget(file, first as u32, last.saturating_sub(first) as u32);
        } else if word == "willneed" {
            self.step(at, end.saturating_sub(first) / PAGE + 1)?;
            let (first, last) = ((first / PAGE) as u32, end.div_ceil(PAGE) as u32);
            self.until_done(process, at, |player, process| {
                let (files, from) = (player.machine.mm.files(), player.file_placement(process));
                Ok(files.read_pages(file, first..last, from).map(drop)?)
            })?;
        }
        if pattern(word).is_none() && !["dontneed", "willneed"].contains(&word) {
            self.refused(at, "fadvise");
        }
        Ok(())
    }

    /// Pages of `file` leave memory that are clean and that nobody maps.
    pub(super) fn forget(&self, file: &File<Bare>, first: u32, pages: u32) {
        // What a CPU keeps back has a reference more.
        self.machine.mm.lru().lru_drain_all();
        self.machine.mm.files().forget_pages(file, first..first.saturating_add(pages));
    }

    /// All clean pages of files leave memory (`drop_caches`).
    pub(super) fn drop_caches(&self, at: At) -> Result<(), Stop> {
        for (file, pages) in &self.files {
            self.step(at, (*pages).into())?;
            self.forget(file, 0, *pages);
        }
        Ok(())
    }

    /// Where pages of files come from that `process` reads and writes by calls.
    pub(super) fn file_placement(&self, process: &Process) -> Placement {
        let spaces = self.machine.mm.spaces();
        let placed = spaces.place(process.policy, InterleaveBy::Task(&process.turn), Request::USER);
        placed.map_or(Placement::default(), |placed| Placement { node: placed.node, allowed: placed.allowed })
    }

    /// Everything that is dirty is written at once: the disk's queue has no length.
    pub(super) fn write_back(&self) {
        let files = self.machine.mm.files();
        loop {
            let taken = files.take_dirty(1024);
            if taken.is_empty() {
                return;
            }
            files.written(&taken);
        }
    }
}
