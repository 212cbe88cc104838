//! What was there when a recording began: the address spaces of processes that run already, and what is cached of their files.

use std::io::{self, Write};

use super::assemble::Assembler;
use super::record::Origin;
use crate::event::{EventKind, FileKey, MapFlags, NameId, PresentKind};

/// The processes and their files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Attached {
    pub(crate) spaces: Vec<AttachedSpace>,
    pub(crate) cached: Vec<CachedRange>,
}

/// A process's address space.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct AttachedSpace {
    pub(crate) pid: u32,
    /// Where its heap of `brk` ends, if it has one.
    pub(crate) heap_end: Option<u64>,
    pub(crate) maps: Vec<AttachedMap>,
    /// What is there of all maps, in order of addresses, huge pages before those of their small ones that hold zeros.
    pub(crate) present: Vec<PresentRun>,
}

/// A range that is mapped.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct AttachedMap {
    pub(crate) address: u64,
    pub(crate) pages: u32,
    pub(crate) flags: MapFlags,
    pub(crate) file: FileKey,
    pub(crate) path: Vec<u8>,
    /// The file's page at its start.
    pub(crate) first: u32,
    /// What was advised, as madvise(2) numbers it, as far as the kernel remembers.
    pub(crate) advice: Option<u32>,
}

/// Pages of one kind, side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PresentRun {
    pub(crate) address: u64,
    pub(crate) pages: u32,
    pub(crate) kind: PresentKind,
}

/// A range of a file, and how many of its pages are in the page cache.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CachedRange {
    pub(crate) file: FileKey,
    pub(crate) path: Vec<u8>,
    pub(crate) first: u32,
    pub(crate) pages: u32,
    pub(crate) cached: u32,
}

impl<W: Write> Assembler<W> {
    /// Writes what was there at `time`, each process's on the time of its first thread.
    ///
    /// # Errors
    /// What the output says.
    pub(crate) fn attach(&mut self, time: u64, attached: &Attached) -> io::Result<()> {
        if !self.tells_spaces {
            return Ok(());
        }
        for space in &attached.spaces {
            let origin = Origin { time, pid: space.pid, tid: space.pid, cpu: 0 };
            self.attach_space(origin, space)?;
        }
        let Some(first) = attached.spaces.first() else { return Ok(()) };
        let Some(task) = self.look_up(first.pid) else { return Ok(()) };
        let origin = Origin { time, pid: first.pid, tid: first.pid, cpu: 0 };
        for CachedRange { file, path, first, pages, cached } in &attached.cached {
            let file = self.file(*file, Some(path))?;
            let kind = EventKind::Cached { file, first: *first, pages: *pages, cached: *cached };
            self.write(origin, task, kind)?;
        }
        Ok(())
    }

    fn attach_space(&mut self, origin: Origin, space: &AttachedSpace) -> io::Result<()> {
        let Some(task) = self.look_up(space.pid) else { return Ok(()) };
        self.spaces.attach(space);
        for map in &space.maps {
            let AttachedMap { address, pages, first, .. } = *map;
            let file = match &map.path {
                path if map.file != FileKey::NONE => self.file(map.file, Some(path))?,
                path if map.flags.contains(MapFlags::HEAP) || path.is_empty() => NameId::NONE,
                path if path.starts_with(b"[anon") || path.starts_with(b"[stack") => NameId::NONE,
                path => self.name(path)?,
            };
            let flags = map.flags | MapFlags::BEFORE;
            let kind = EventKind::Map { address, file, flags, pages, first, took_ns: 0 };
            self.write(origin, task, kind)?;
            if let Some(advice) = map.advice {
                self.write(origin, task, EventKind::Advise { address, advice, pages, nodes: 0, took_ns: 0 })?;
            }
        }
        for PresentRun { address, pages, kind } in space.present.iter().copied() {
            self.write(origin, task, EventKind::Present { address, kind, pages, zeros: 0 })?;
        }
        Ok(())
    }
}
