//! The records of a `perf.data`, one after the other, those that are packed (`perf record -z`) unpacked.

use std::io::{Read, Seek, SeekFrom};

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::file::{Layouts, PerfFile};
use crate::error::ReadError;
use crate::stream::record::{Bytes, Layout, RecordHead};

/// perf has read all rings once.
pub(super) const FINISHED_ROUND: u32 = 68;
/// Is followed by as many bytes as its first field says.
const AUXTRACE: u32 = 71;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;
const HEAD: usize = RecordHead::LEN;
/// Bytes unpacked at a time.
const STEP: usize = 1 << 20;

/// Takes a record: its layout, head and body.
pub(super) type Take<'a> = dyn FnMut(Layout, RecordHead, &[u8]) -> Result<(), ReadError> + 'a;

impl<R: Read + Seek> PerfFile<R> {
    /// Hands all records to `take`, in the order of the file. One that is cut off by the end of the records ends them.
    pub(super) fn walk(&mut self, take: &mut Take<'_>) -> Result<(), ReadError> {
        let layouts = self.layouts().clone();
        let (mut at, end) = (self.data.offset, self.data.offset + self.data.len);
        self.input.seek(SeekFrom::Start(at))?;
        let mut body = vec![];
        let mut unpacker = None;
        while end - at >= HEAD as u64 {
            let mut head = [0; HEAD];
            self.input.read_exact(&mut head)?;
            let head = RecordHead::read(head);
            let (head, len) = head.ok_or(ReadError::corrupt(at, "a record of no length"))?;
            if (len + HEAD) as u64 > end - at {
                break;
            }
            body.resize(len, 0);
            self.input.read_exact(&mut body)?;
            let offset = at;
            at += (len + HEAD) as u64;
            match head.kind {
                AUXTRACE => {
                    let skip = Bytes(&body).u64().filter(|&skip| skip <= end - at);
                    at += skip.ok_or(ReadError::corrupt(offset, "auxiliary data longer than the file"))?;
                    self.input.seek(SeekFrom::Start(at))?;
                }
                COMPRESSED | COMPRESSED2 => {
                    let packed = packed(head.kind, &body);
                    let packed = packed.ok_or(ReadError::corrupt(offset, "a packed record is cut short"))?;
                    if unpacker.is_none() {
                        unpacker = Some(Unpacker::new()?);
                    }
                    if let Some(unpacker) = &mut unpacker {
                        unpacker.unpack(packed, offset, &layouts, take)?;
                    }
                }
                _ => take(layouts.of(head, &body), head, &body)?,
            }
        }
        Ok(())
    }
}

/// The packed bytes in a record: all of it, or as many as its first field says.
fn packed(kind: u32, body: &[u8]) -> Option<&[u8]> {
    if kind == COMPRESSED {
        return Some(body);
    }
    let mut bytes = Bytes(body);
    let len = usize::try_from(bytes.u64()?).ok()?;
    bytes.take(len)
}

/// Unpacks one stream that runs through many records.
struct Unpacker {
    zstd: Decoder<'static>,
    /// Unpacked bytes that were not handed on: less than a record, and room for a step.
    bytes: Vec<u8>,
}

impl Unpacker {
    fn new() -> Result<Self, ReadError> {
        Ok(Self { zstd: Decoder::new()?, bytes: vec![] })
    }

    fn unpack(
        &mut self,
        packed: &[u8],
        offset: u64,
        layouts: &Layouts,
        take: &mut Take<'_>,
    ) -> Result<(), ReadError> {
        let damaged = |what| ReadError::corrupt(offset, what);
        let mut input = InBuffer::around(packed);
        loop {
            let kept = self.bytes.len();
            self.bytes.resize(kept + STEP, 0);
            let mut output = OutBuffer::around(&mut self.bytes[kept..]);
            let result = self.zstd.run(&mut input, &mut output);
            let produced = output.pos();
            self.bytes.truncate(kept + produced);
            result.map_err(|_| damaged("a packed record cannot be unpacked"))?;
            let used = hand_on(&self.bytes, layouts, take)?;
            let used = used.ok_or(damaged("a record of no length"))?;
            self.bytes.drain(..used);
            if input.pos() == packed.len() && produced < STEP {
                return Ok(());
            }
        }
    }
}

/// Hands on the whole records in `bytes`. Gives the bytes that they took, `None` for a record that cannot be.
fn hand_on(bytes: &[u8], layouts: &Layouts, take: &mut Take<'_>) -> Result<Option<usize>, ReadError> {
    let mut rest = bytes;
    while let Some((head, after)) = rest.split_first_chunk() {
        let Some((head, len)) = RecordHead::read(*head) else { return Ok(None) };
        let Some((body, after)) = after.split_at_checked(len) else { break };
        take(layouts.of(head, body), head, body)?;
        rest = after;
    }
    Ok(Some(bytes.len() - rest.len()))
}
