//! The records of perf_event_open(2): samples of tracepoints, new, renamed and ended tasks, mappings, losses.

use super::compact::{Compact, CompactKind};
use crate::event::FileKey;

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Record<'a> {
    /// A tracepoint was hit; its bytes.
    Sample(&'a [u8]),
    /// A tracepoint was hit, and our program in the kernel wrote this.
    Compact(Compact),
    /// The task has a new name; it runs another program from here on if this comes of exec.
    Comm { pid: u32, tid: u32, name: &'a [u8], is_exec: bool },
    /// A process has a range mapped, as it is after the kernel joined it with its neighbours.
    Mapped { pid: u32, tid: u32, mapping: Mapping<'a> },
    /// A task made another.
    Fork { pid: u32, tid: u32, parent_pid: u32, parent_tid: u32 },
    /// A task ended.
    Exit { pid: u32, tid: u32 },
    /// There was no room for so many records.
    Lost(u64),
}

/// A range that is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapping<'a> {
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// The byte of the file at its start.
    pub(crate) offset: u64,
    /// The file; none for memory of the program's own.
    pub(crate) file: FileKey,
    /// What may be done with it, as mmap(2) numbers it.
    pub(crate) protection: u32,
    /// `MAP_SHARED` and the like, as far as the kernel says.
    pub(crate) flags: u32,
    /// The file's path, or a name in brackets.
    pub(crate) path: &'a [u8],
}

/// What a record begins with, besides its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordHead {
    /// The type of record.
    pub(crate) kind: u32,
    /// Flags.
    pub(crate) misc: u16,
}

impl RecordHead {
    /// Bytes of a head.
    pub(crate) const LEN: usize = 8;
    /// Stands before a record of our programs, which have none. No record of perf's is of this type.
    pub(crate) const COMPACT: Self = Self { kind: 1 << 31, misc: 0 };

    /// Reads a head, and the bytes of the body that follows. `None` for a record shorter than its head.
    #[inline]
    pub(crate) fn read(bytes: [u8; Self::LEN]) -> Option<(Self, usize)> {
        let value = u64::from_le_bytes(bytes);
        let head = Self { kind: value as u32, misc: (value >> 32) as u16 };
        Some((head, ((value >> 48) as usize).checked_sub(Self::LEN)?))
    }
}

/// A record with what is known of its origin; 0 where the file does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub(crate) time: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
}

const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_MMAP2: u32 = 10;
const RECORD_LOST_SAMPLES: u32 = 13;
/// Of a new name: it comes of exec.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// Of a mapping: the file's build identifier stands in the place of its device and number.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;

/// `PERF_SAMPLE_…`: fields of a sample, in the order in which they come.
const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// How the records of a set of events are laid out: `sample_type` and `sample_id_all` of their attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) sample_type: u64,
    pub(crate) sample_id_all: bool,
}

impl Layout {
    /// The layout that we record with.
    pub(crate) const OURS: Self = Self { sample_type: TID | TIME | RAW, sample_id_all: true };

    /// Whether samples say all that an import needs.
    pub(crate) const fn is_enough(self) -> bool {
        let needed = TID | TIME | CPU | RAW;
        self.sample_type & needed == needed && self.sample_type & READ == 0
    }

    /// Whether all records carry their event's number where it can be found without knowing the event.
    pub(crate) const fn has_identifier(self) -> bool {
        self.sample_type & IDENTIFIER != 0 && self.sample_id_all
    }

    /// That number.
    pub(crate) fn identifier(head: RecordHead, body: &[u8]) -> Option<u64> {
        let at = if head.kind == RECORD_SAMPLE { 0 } else { body.len().checked_sub(8)? };
        Bytes(&body[at..]).u64()
    }

    /// Takes apart the record with this head and body. `None` if it is of no interest or
    /// makes no sense.
    pub(crate) fn parse(self, head: RecordHead, body: &[u8]) -> Option<(Origin, Record<'_>)> {
        if head == RecordHead::COMPACT {
            let record = Compact::read(body)?;
            let is_loss = record.kind == CompactKind::Lost;
            let what = if is_loss { Record::Lost(record.third()) } else { Record::Compact(record) };
            return Some((record.origin(0), what));
        }
        let mut body = Bytes(body);
        if head.kind == RECORD_SAMPLE {
            return self.sample(body);
        }
        let origin = self.trailer(body.0)?;
        let record = match head.kind {
            RECORD_LOST => {
                body.u64()?;
                Record::Lost(body.u64()?)
            }
            RECORD_LOST_SAMPLES => Record::Lost(body.u64()?),
            RECORD_COMM => {
                let is_exec = head.misc & MISC_COMM_EXEC != 0;
                Record::Comm { pid: body.u32()?, tid: body.u32()?, name: body.text(), is_exec }
            }
            RECORD_MMAP2 if head.misc & MISC_MMAP_BUILD_ID == 0 => {
                let (pid, tid) = (body.u32()?, body.u32()?);
                Record::Mapped { pid, tid, mapping: Mapping::read(&mut body)? }
            }
            RECORD_EXIT | RECORD_FORK => {
                let [pid, parent_pid, tid, parent_tid] = [body.u32()?, body.u32()?, body.u32()?, body.u32()?];
                if head.kind == RECORD_EXIT {
                    Record::Exit { pid, tid }
                } else {
                    Record::Fork { pid, tid, parent_pid, parent_tid }
                }
            }
            _ => return None,
        };
        Some((origin, record))
    }

    fn sample(self, mut body: Bytes<'_>) -> Option<(Origin, Record<'_>)> {
        let mut origin = Origin { time: 0, pid: 0, tid: 0, cpu: 0 };
        for field in [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD] {
            if self.sample_type & field == 0 {
                continue;
            }
            match field {
                TID => (origin.pid, origin.tid) = (body.u32()?, body.u32()?),
                TIME => origin.time = body.u64()?,
                CPU => origin.cpu = body.u64()? as u32,
                _ => {
                    body.u64()?;
                }
            }
        }
        if self.sample_type & CALLCHAIN != 0 {
            let frames = usize::try_from(body.u64()?).ok()?;
            body.take(frames.checked_mul(8)?)?;
        }
        let len = body.u32()? as usize;
        Some((origin, Record::Sample(body.take(len)?)))
    }

    /// What follows other records: time, task and CPU, laid out from the end backwards.
    fn trailer(self, body: &[u8]) -> Option<Origin> {
        let mut origin = Origin { time: 0, pid: 0, tid: 0, cpu: 0 };
        if !self.sample_id_all {
            return Some(origin);
        }
        let fields = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
        let len = 8 * fields.iter().filter(|&field| self.sample_type & field != 0).count();
        let mut tail = Bytes(body.get(body.len().checked_sub(len)?..)?);
        for field in fields.into_iter().filter(|field| self.sample_type & field != 0) {
            match field {
                TID => (origin.pid, origin.tid) = (tail.u32()?, tail.u32()?),
                TIME => origin.time = tail.u64()?,
                CPU => origin.cpu = tail.u64()? as u32,
                _ => {
                    tail.u64()?;
                }
            }
        }
        Some(origin)
    }
}

impl<'a> Mapping<'a> {
    fn read(body: &mut Bytes<'a>) -> Option<Self> {
        let (address, len, offset) = (body.u64()?, body.u64()?, body.u64()?);
        let (major, minor, inode) = (body.u32()?, body.u32()?, body.u64()?);
        let _generation = body.u64()?;
        let (protection, flags) = (body.u32()?, body.u32()?);
        let file = FileKey { device: major << 20 | minor & 0xf_ffff, inode };
        Some(Self { address, len, offset, file, protection, flags, path: body.text() })
    }
}

/// Takes numbers off the front of some bytes.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// What comes before the first zero byte.
    pub(crate) fn text(&self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        &self.0[..end]
    }
}
