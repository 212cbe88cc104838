//! Which chunks of a file are whole. All are checked before the first event is handed out, so that losses are known first.
//!
//! The index says where chunks are. A damaged chunk is left out; the others can still be read. Without an index the file is
//! walked from its start. A damaged chunk is then skipped if its head leads to a whole one; otherwise the beginning of the
//! next chunk is unknown, and the walk ends.

use std::io::{self, Read, Seek, SeekFrom};

use super::chunk::{ChunkKind, HEAD_LEN, Head, read_up_to};
use super::damage::{Damage, How};
use super::varint::Cursor;
use super::{END_MAGIC, HEADER_LEN, TRAILER_LEN};

/// What is in a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The chunks that are whole and can be understood, in the order of the file.
    pub(super) chunks: Vec<Chunk>,
    /// What is wrong, but for its time.
    pub(super) damage: Option<Damage>,
    /// Whether a table was lost, which later events may refer to.
    lacks_table: bool,
}

/// A chunk, by its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) kind: ChunkKind,
    pub(super) offset: u64,
    pub(super) count: u32,
}

impl Found {
    fn has(&self, kind: ChunkKind) -> bool {
        self.chunks.iter().any(|chunk| chunk.kind == kind)
    }

    fn whole(&mut self, chunk: Chunk) {
        if chunk.kind == ChunkKind::Events && self.lacks_table {
            self.lost(chunk, Some(chunk.count));
        } else {
            self.chunks.push(chunk);
        }
    }

    /// A chunk that cannot be had; `events` is how many events were in one of events, if that is known.
    fn lost(&mut self, chunk: Chunk, events: Option<u32>) {
        let damage = self.damage_at(How::Changed, chunk.offset);
        if chunk.kind == ChunkKind::Events {
            damage.chunks += 1;
            damage.events = damage.events.zip(events).map(|(sum, more)| sum + u64::from(more));
        }
        // A kind that cannot be read may have been a table.
        self.lacks_table |= matches!(chunk.kind, ChunkKind::Tasks | ChunkKind::Names | ChunkKind::Other);
    }

    /// The damage, which begins at `offset` if there was none.
    fn damage_at(&mut self, how: How, offset: u64) -> &mut Damage {
        let before = self.chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Events).count();
        self.damage.get_or_insert(Damage {
            how,
            offset,
            chunks_before: before as u64,
            after_ns: None,
            chunks: 0,
            events: Some(0),
            end_is_missing: false,
        })
    }
}

/// Looks at all chunks of `file`, which has `bytes` bytes.
pub(super) fn chunks(file: &mut (impl Read + Seek), bytes: u64, buffers: &mut Buffers) -> io::Result<Found> {
    match index(file, bytes, buffers)? {
        Some(entries) => check(file, &entries, buffers),
        None => walk(file, bytes, buffers),
    }
}

/// What the index says, if it is whole and can be true.
fn index(file: &mut (impl Read + Seek), bytes: u64, buffers: &mut Buffers) -> io::Result<Option<Vec<Chunk>>> {
    let Some(trailer_at) = bytes.checked_sub(TRAILER_LEN as u64).filter(|&at| at >= HEADER_LEN as u64) else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER_LEN];
    file.seek(SeekFrom::Start(trailer_at))?;
    file.read_exact(&mut trailer)?;
    let (offset, magic) = trailer.split_at(8);
    let offset = u64::from_le_bytes(offset.try_into().unwrap_or_default());
    if magic != END_MAGIC || offset >= trailer_at {
        return Ok(None);
    }
    match buffers.load(file, offset)? {
        Some(head) if head.kind == ChunkKind::Index => Ok(entries(&buffers.raw).filter(|entries| {
            // Chunks that overlap would be read over and over.
            let rises = entries.windows(2).all(|pair| pair[0].offset + HEAD_LEN as u64 <= pair[1].offset);
            rises && entries.last().is_none_or(|last| last.offset < offset)
        })),
        _ => Ok(None),
    }
}

fn entries(raw: &[u8]) -> Option<Vec<Chunk>> {
    let mut cursor = Cursor::new(0, raw.len());
    let count = cursor.next(raw);
    let mut entries = vec![];
    for _ in 0..count {
        let tag = raw.get(cursor.position()..cursor.position() + 4)?;
        let kind = ChunkKind::from_tag([tag[0], tag[1], tag[2], tag[3]]);
        cursor = Cursor::new(cursor.position() + 4, raw.len());
        let (offset, count) = (cursor.next(raw), cursor.next(raw));
        let (_first, _last) = (cursor.next(raw), cursor.next(raw));
        if cursor.is_overrun() {
            return None;
        }
        if kind != ChunkKind::Other {
            entries.push(Chunk { kind, offset, count: u32::try_from(count).ok()? });
        }
    }
    Some(entries)
}

/// Looks at the chunks that the index names.
fn check(file: &mut (impl Read + Seek), entries: &[Chunk], buffers: &mut Buffers) -> io::Result<Found> {
    let mut found = Found::default();
    for &entry in entries {
        match buffers.load(file, entry.offset)? {
            Some(head) if head.kind == entry.kind => found.whole(Chunk { count: head.count, ..entry }),
            _ => found.lost(entry, Some(entry.count)),
        }
    }
    if !found.has(ChunkKind::Outcome) && found.damage.is_none() {
        // The writer never leaves it out.
        let end = entries.last().map_or(HEADER_LEN as u64, |last| last.offset);
        found.damage_at(How::Changed, end);
    }
    Ok(found)
}

/// Looks at chunk after chunk.
fn walk(file: &mut (impl Read + Seek), bytes: u64, buffers: &mut Buffers) -> io::Result<Found> {
    let mut found = Found::default();
    let mut offset = HEADER_LEN as u64;
    loop {
        if let Some(head) = buffers.load(file, offset)? {
            found.whole(Chunk { kind: head.kind, offset, count: head.count });
            offset = head.end(offset);
            if head.kind == ChunkKind::Index {
                break;
            }
            continue;
        }
        let passed = pass_over(file, bytes, offset, buffers)?;
        let Some(next) = passed.next else { break };
        for chunk in passed.lost {
            found.lost(chunk, None);
        }
        offset = next;
    }
    let is_ended = found.has(ChunkKind::Outcome);
    let left = bytes.saturating_sub(offset);
    let is_cut = if found.has(ChunkKind::Index) {
        left < TRAILER_LEN as u64
    } else {
        left < HEAD_LEN as u64 || read_head(file, offset)?.is_some_and(|head| head.is_cut(offset, bytes))
    };
    let how = if is_cut { How::Cut } else { How::Changed };
    // Without a trailer that fits, something is wrong even if nothing else was found.
    let damage = found.damage_at(how, offset);
    if !is_ended {
        (damage.end_is_missing, damage.events) = (true, None);
    }
    Ok(found)
}

/// Chunks that are not whole, and where the next whole one is, if their heads lead to one.
struct Passed {
    lost: Vec<Chunk>,
    next: Option<u64>,
}

fn pass_over(
    file: &mut (impl Read + Seek),
    bytes: u64,
    mut offset: u64,
    buffers: &mut Buffers,
) -> io::Result<Passed> {
    let mut lost = vec![];
    loop {
        let head = read_head(file, offset)?.filter(|head| head.end(offset) < bytes);
        let Some(head) = head else { return Ok(Passed { lost, next: None }) };
        lost.push(Chunk { kind: head.kind, offset, count: head.count });
        offset = head.end(offset);
        if buffers.load(file, offset)?.is_some() {
            return Ok(Passed { lost, next: Some(offset) });
        }
    }
}

/// Where chunks are read into and unpacked.
pub(super) struct Buffers {
    pub(super) stored: Vec<u8>,
    pub(super) raw: Vec<u8>,
    pub(super) zstd: zstd::bulk::Decompressor<'static>,
}

impl Buffers {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { stored: vec![], raw: vec![], zstd: zstd::bulk::Decompressor::new()? })
    }

    /// Reads the chunk at `offset` and, but for events, unpacks it; `None` if it is not whole.
    pub(super) fn load(&mut self, file: &mut (impl Read + Seek), offset: u64) -> io::Result<Option<Head>> {
        let Some(head) = read_head(file, offset)? else { return Ok(None) };
        if !read_up_to(file, head.stored, &mut self.stored)? || !head.is_sound(&self.stored) {
            return Ok(None);
        }
        let unpacks = head.kind == ChunkKind::Events
            || head.unpack(&self.stored, &mut self.zstd, &mut self.raw).is_ok();
        Ok(unpacks.then_some(head))
    }
}

/// The head at `offset`; `None` if the file ends before it does, or it cannot be one.
pub(super) fn read_head(file: &mut (impl Read + Seek), offset: u64) -> io::Result<Option<Head>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = [0; HEAD_LEN];
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Head::parse(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
