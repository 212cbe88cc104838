//! Writes a recording, chunk by chunk. Each chunk goes out whole, so that a crash costs at most the chunk in the making.

use std::io::{self, Write};

use super::chunk::{ChunkKind, Packer};
use super::encode::{ChunkTimes, Encoder};
use super::varint::{put, put_str};
use super::{CHUNK_BYTES_MAX, CHUNK_EVENTS, END_MAGIC, HEADER_LEN, MAGIC, VERSION_MAJOR, VERSION_MINOR};
use crate::event::{Event, Task};
use crate::meta::{Meta, RecordingEnd};
use mm::TaskId;

/// A recording in the making.
pub struct Writer<W> {
    out: W,
    packer: Packer,
    encoder: Encoder,
    payload: Vec<u8>,
    tasks: Pending,
    names: Pending,
    index: Vec<ChunkEntry>,
    written: Written,
}

/// How much of a recording is in the file, whole chunks only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Bytes, the file's header included.
    pub bytes: u64,
    /// Events.
    pub events: u64,
}

/// Entries of a table that wait for the next chunk.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    count: u32,
}

/// Where a chunk is.
struct ChunkEntry {
    kind: ChunkKind,
    offset: u64,
    count: u32,
    first_time: u64,
    last_time: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the file's header and `meta`.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(out: W, meta: &Meta) -> io::Result<Self> {
        let mut writer = Self {
            out,
            packer: Packer::new()?,
            encoder: Encoder::default(),
            payload: vec![],
            tasks: Pending::default(),
            names: Pending::default(),
            index: vec![],
            written: Written::default(),
        };
        writer.out.write_all(&file_header())?;
        writer.written.bytes = HEADER_LEN as u64;
        writer.write_json(ChunkKind::Meta, meta)?;
        writer.name("")?;
        Ok(writer)
    }

    /// Adds an event. Its task must have been given to [`Writer::task`], its names to [`Writer::name`].
    ///
    /// # Errors
    /// What the file says, if this fills a chunk. No event of that chunk is in the file then.
    #[inline]
    pub fn push(&mut self, event: &Event) -> io::Result<()> {
        self.encoder.push(event);
        if self.encoder.count() == CHUNK_EVENTS || self.encoder.bytes() > CHUNK_BYTES_MAX / 2 {
            self.flush()?;
        }
        Ok(())
    }

    /// Says who task `id` is: the next number for a new task, a known one where something changed.
    ///
    /// # Errors
    /// What the file says.
    pub fn task(&mut self, id: TaskId, task: &Task) -> io::Result<()> {
        let bytes = &mut self.tasks.bytes;
        put(bytes, u64::from(id.0));
        put(bytes, u64::from(task.pid));
        put(bytes, u64::from(task.tid));
        put(bytes, u64::from(task.in_workload));
        put_str(bytes, cut(&task.name, 4096));
        self.tasks.count += 1;
        if self.tasks.bytes.len() > CHUNK_BYTES_MAX / 4 { self.flush_tables() } else { Ok(()) }
    }

    /// Adds the next name. The caller counts: the first is 1, for 0 is the empty name.
    ///
    /// # Errors
    /// What the file says.
    pub fn name(&mut self, name: &str) -> io::Result<()> {
        put_str(&mut self.names.bytes, cut(name, 4096));
        self.names.count += 1;
        if self.names.bytes.len() > CHUNK_BYTES_MAX / 4 { self.flush_tables() } else { Ok(()) }
    }

    /// Writes what waits, full or not.
    ///
    /// # Errors
    /// What the file says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_tables()?;
        if self.encoder.count() > 0 {
            let (count, times) = (self.encoder.count() as u32, self.encoder.times());
            let mut payload = std::mem::take(&mut self.payload);
            self.encoder.finish(&mut payload);
            let result = self.write_chunk(ChunkKind::Events, count, times, &payload);
            self.payload = payload;
            result?;
            self.written.events += u64::from(count);
        }
        Ok(())
    }

    /// Tasks and names go before the events that refer to them.
    fn flush_tables(&mut self) -> io::Result<()> {
        for (kind, pending) in [
            (ChunkKind::Tasks, std::mem::take(&mut self.tasks)),
            (ChunkKind::Names, std::mem::take(&mut self.names)),
        ] {
            if pending.count > 0 {
                self.write_chunk(kind, pending.count, ChunkTimes::default(), &pending.bytes)?;
            }
        }
        Ok(())
    }

    /// Writes what waits, then the outcome, the index and the trailer. `events` of the outcome is filled in here.
    ///
    /// # Errors
    /// What the file says.
    pub fn finish(mut self, mut outcome: RecordingEnd) -> io::Result<(W, Written)> {
        self.flush()?;
        outcome.events = self.written.events;
        self.write_json(ChunkKind::Outcome, &outcome)?;
        let offset = self.written.bytes;
        let mut payload = vec![];
        put(&mut payload, self.index.len() as u64);
        for entry in &self.index {
            payload.extend_from_slice(&entry.kind.tag());
            for value in [entry.offset, u64::from(entry.count), entry.first_time, entry.last_time] {
                put(&mut payload, value);
            }
        }
        self.write_chunk(ChunkKind::Index, 1, ChunkTimes::default(), &payload)?;
        self.out.write_all(&offset.to_le_bytes())?;
        self.out.write_all(&END_MAGIC)?;
        self.out.flush()?;
        self.written.bytes += 16;
        Ok((self.out, self.written))
    }

    /// What is in the file by now.
    pub const fn written(&self) -> Written {
        self.written
    }

    fn write_json(&mut self, kind: ChunkKind, value: &impl serde::Serialize) -> io::Result<()> {
        let payload = serde_json::to_vec(value).map_err(io::Error::other)?;
        self.write_chunk(kind, 1, ChunkTimes::default(), &payload)
    }

    fn write_chunk(
        &mut self,
        kind: ChunkKind,
        count: u32,
        times: ChunkTimes,
        payload: &[u8],
    ) -> io::Result<()> {
        let bytes = self.packer.pack(kind, count, payload)?;
        self.out.write_all(bytes)?;
        let offset = self.written.bytes;
        self.index.push(ChunkEntry { kind, offset, count, first_time: times.first, last_time: times.last });
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Magic, version, checksum.
fn file_header() -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&VERSION_MAJOR.to_le_bytes());
    header[10..12].copy_from_slice(&VERSION_MINOR.to_le_bytes());
    let crc = crc32c::crc32c(&header[..12]);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// At most `len` bytes of `text`, whole characters.
fn cut(text: &str, len: usize) -> &str {
    let mut end = text.len().min(len);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
