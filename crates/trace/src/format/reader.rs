//! Reads a recording: takes in its tables and hands out the events of its chunks, those that `scan` found whole.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use super::chunk::{ChunkKind, read_up_to};
use super::damage::Damage;
use super::decode::{Decoder, Limits};
use super::scan::{self, Buffers, Chunk, read_head};
use super::varint::Cursor;
use super::{HEADER_LEN, MAGIC, VERSION_MAJOR};
use crate::error::ReadError;
use crate::event::{Event, NameId, Task};
use crate::meta::{Meta, RecordingEnd};
use mm::{Nanos, TaskId};

/// More tasks or names than this are taken for damage: they would need gigabytes.
const TABLE_MAX: usize = 1 << 22;

/// An open recording.
#[derive(Debug)]
pub struct Reader<R = File> {
    file: R,
    bytes: u64,
    meta: Meta,
    tasks: Vec<Task>,
    names: Vec<String>,
    outcome: Option<RecordingEnd>,
    /// Those of events.
    chunks: Vec<Chunk>,
    /// How many events are handed out, at most.
    first: u64,
    damage: Option<Damage>,
}

impl Reader<File> {
    /// Opens a recording.
    ///
    /// # Errors
    /// It cannot be opened, is none, is of a newer version, or its beginning is damaged or missing, without which nothing
    /// can be read. Other damage is no error, for what is whole can be read: [`Reader::damage`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::new(File::open(path)?)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads what `file` holds, from its start.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(mut file: R) -> Result<Self, ReadError> {
        let bytes = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        check_header(&mut file)?;
        let mut reader = Self {
            file,
            bytes,
            meta: Meta::default(),
            tasks: vec![],
            names: vec![],
            outcome: None,
            chunks: vec![],
            first: u64::MAX,
            damage: None,
        };
        let mut buffers = Buffers::new()?;
        let found = scan::chunks(&mut reader.file, bytes, &mut buffers)?;
        reader.damage = found.damage;
        reader.take_all(&found.chunks, &mut buffers)?;
        reader.date_damage()?;
        Ok(reader)
    }

    /// What the recording says of its origin.
    pub const fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How it ended; `None` if it was cut short before that was written.
    pub const fn outcome(&self) -> Option<&RecordingEnd> {
        self.outcome.as_ref()
    }

    /// What is wrong with the file. All that [`Reader::events`] gives was recorded, but more had been.
    pub const fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Whether the end is missing.
    pub fn truncated(&self) -> bool {
        self.damage.is_some_and(|damage| damage.end_is_missing)
    }

    /// The tasks; a [`TaskId`] of an event is an index into them.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// A task of an event.
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.0 as usize]
    }

    /// A name of an event.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id.0 as usize).map_or("", String::as_str)
    }

    /// All names; a [`NameId`] is an index into them, and the first is empty.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Size of the file in bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many events there are.
    pub fn event_count(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.count)).sum::<u64>().min(self.first)
    }

    /// From here on it is as if the recording had been stopped after its first `count` events.
    pub fn stop_after(&mut self, count: u64) {
        self.first = count;
    }

    /// How many chunks of events there are. Each can be read alone.
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// When the recording started, by the clock of event times.
    pub const fn start(&self) -> Nanos {
        Nanos(self.meta.start_ns)
    }

    /// All events, in the order of the file.
    ///
    /// # Errors
    /// Memory for unpacking cannot be had.
    pub fn events(&mut self) -> Result<Events<'_, R>, ReadError> {
        self.events_in(0..self.chunks.len())
    }

    /// The events of some chunks, for reading in parallel through several readers of one file.
    ///
    /// # Errors
    /// As [`Reader::events`].
    pub fn events_in(&mut self, chunks: Range<usize>) -> Result<Events<'_, R>, ReadError> {
        let limits =
            Limits { cpus: self.meta.cpus, tasks: self.tasks.len() as u32, names: self.names.len() as u32 };
        let end = chunks.end.min(self.chunks.len());
        let decoder = Decoder::new(limits);
        let before: u64 =
            self.chunks[..chunks.start.min(end)].iter().map(|chunk| u64::from(chunk.count)).sum();
        let left = self.first.saturating_sub(before);
        Ok(Events {
            reader: self,
            buffers: Buffers::new()?,
            decoder,
            next: chunks.start,
            end,
            left,
            offset: 0,
        })
    }

    /// Takes in the chunks that are whole.
    fn take_all(&mut self, chunks: &[Chunk], buffers: &mut Buffers) -> Result<(), ReadError> {
        let start = HEADER_LEN as u64;
        match chunks.first() {
            Some(first) if first.kind == ChunkKind::Meta && first.offset == start => {}
            Some(_) => return Err(ReadError::corrupt(start, "the first chunk is not the one it should be")),
            None if self.truncated() => return Err(ReadError::Empty),
            None => return Err(ReadError::corrupt(start, "it holds nothing that can be read")),
        }
        for &chunk in chunks {
            if chunk.kind == ChunkKind::Events {
                self.chunks.push(chunk);
            } else if buffers.load(&mut self.file, chunk.offset)?.is_some() {
                self.take(chunk, &buffers.raw)?;
            }
        }
        Ok(())
    }

    /// Finds out when the last event before the damage was.
    fn date_damage(&mut self) -> Result<(), ReadError> {
        let Some(before) = self.damage.map(|damage| damage.chunks_before as usize) else { return Ok(()) };
        let mut last = None;
        for event in self.events_in(before.saturating_sub(1)..before)? {
            last = last.max(Some(event?.time.0));
        }
        let start = self.meta.start_ns;
        if let Some(damage) = &mut self.damage {
            damage.after_ns = last.map(|last| last.saturating_sub(start));
        }
        Ok(())
    }

    /// Takes in a chunk that holds no events.
    fn take(&mut self, chunk: Chunk, raw: &[u8]) -> Result<(), ReadError> {
        let corrupt = |what| ReadError::corrupt(chunk.offset, what);
        match chunk.kind {
            ChunkKind::Meta => {
                self.meta =
                    serde_json::from_slice(raw).map_err(|_| corrupt("the description cannot be read"))?;
                if self.meta.cpus > 1 << 16 {
                    return Err(corrupt("more CPUs than there can be"));
                }
            }
            ChunkKind::Outcome => {
                let outcome =
                    serde_json::from_slice(raw).map_err(|_| corrupt("the outcome cannot be read"))?;
                self.outcome = Some(outcome);
            }
            ChunkKind::Tasks => parse_tasks(raw, &mut self.tasks).map_err(corrupt)?,
            ChunkKind::Names => parse_names(raw, &mut self.names).map_err(corrupt)?,
            ChunkKind::Events | ChunkKind::Index | ChunkKind::Other => {}
        }
        Ok(())
    }
}

/// The events of a recording, in turn. After an error there are no more.
pub struct Events<'a, R> {
    reader: &'a mut Reader<R>,
    buffers: Buffers,
    decoder: Decoder,
    next: usize,
    end: usize,
    /// How many are still to be handed out, at most.
    left: u64,
    offset: u64,
}

impl<R: Read + Seek> Iterator for Events<'_, R> {
    type Item = Result<Event, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.left == 0 {
                return None;
            }
            match self.decoder.next() {
                Some(Ok(event)) => {
                    self.left -= 1;
                    return Some(Ok(event));
                }
                Some(Err(what)) => {
                    self.next = self.end;
                    return Some(Err(ReadError::corrupt(self.offset, what)));
                }
                None if self.next >= self.end => return None,
                None => {
                    if let Err(error) = self.next_chunk() {
                        self.next = self.end;
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}

impl<R: Read + Seek> Events<'_, R> {
    #[cold]
    fn next_chunk(&mut self) -> Result<(), ReadError> {
        let chunk = self.reader.chunks[self.next];
        self.next += 1;
        self.offset = chunk.offset;
        let corrupt = |what| ReadError::corrupt(chunk.offset, what);
        let file = &mut self.reader.file;
        let head = read_head(file, chunk.offset)?.ok_or(corrupt("a chunk is missing"))?;
        if !read_up_to(file, head.stored, &mut self.buffers.stored)? {
            return Err(corrupt("a chunk is cut short"));
        }
        let Buffers { stored, zstd, .. } = &mut self.buffers;
        head.unpack(stored, zstd, self.decoder.buffer()).map_err(corrupt)?;
        self.decoder.start().map_err(corrupt)
    }

    /// The recording, for its tables.
    pub const fn reader(&self) -> &Reader<R> {
        self.reader
    }
}

fn check_header(file: &mut impl Read) -> Result<(), ReadError> {
    let mut header = vec![];
    let is_whole = read_up_to(file, HEADER_LEN, &mut header)?;
    if header.is_empty() {
        return Err(ReadError::Empty);
    }
    if !MAGIC.starts_with(&header[..header.len().min(8)]) {
        return Err(ReadError::NotARecording);
    }
    if !is_whole {
        return Err(ReadError::Empty);
    }
    let major = u16::from_le_bytes([header[8], header[9]]);
    let crc = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    if crc32c::crc32c(&header[..12]) != crc && !cfg!(fuzzing) {
        return Err(ReadError::corrupt(0, "the header's checksum does not fit"));
    }
    if major > VERSION_MAJOR {
        return Err(ReadError::NewerVersion { found: major });
    }
    Ok(())
}

fn parse_tasks(raw: &[u8], tasks: &mut Vec<Task>) -> Result<(), &'static str> {
    let mut cursor = Cursor::new(0, raw.len());
    while !cursor.is_at_end() {
        let [id, pid, tid, flags] = std::array::from_fn(|_| cursor.next(raw));
        let name = cursor.next_str(raw).ok_or("a task's name is cut short")?;
        let task = Task {
            pid: u32::try_from(pid).map_err(|_| "a process number that cannot be")?,
            tid: u32::try_from(tid).map_err(|_| "a task number that cannot be")?,
            name: name.to_owned(),
            in_workload: flags & 1 != 0,
        };
        let count = tasks.len();
        match usize::try_from(id) {
            Ok(index) if index < count => tasks[index] = task,
            Ok(index) if index == count && count < TABLE_MAX => tasks.push(task),
            _ => return Err("tasks are not numbered in order"),
        }
    }
    Ok(())
}

fn parse_names(raw: &[u8], names: &mut Vec<String>) -> Result<(), &'static str> {
    let mut cursor = Cursor::new(0, raw.len());
    while !cursor.is_at_end() {
        let name = cursor.next_str(raw).ok_or("a name is cut short")?;
        if names.len() >= TABLE_MAX {
            return Err("more names than there can be");
        }
        names.push(name.to_owned());
    }
    Ok(())
}
