//! Chunks: a head of 20 bytes, then the payload, compressed. The checksum covers both.

use std::io::{self, Read};

use super::CHUNK_BYTES_MAX;

/// Bytes of a chunk's head.
pub(super) const HEAD_LEN: usize = 20;
/// zstd's level: 3 leaves 5 to 9 % less of real programs' events than 1 does. By itself it takes 4 to 10 ns more an event, which a
/// recorder's CPU time does not show.
const LEVEL: i32 = 3;

/// What a chunk holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChunkKind {
    /// [`crate::Meta`] as JSON. The first chunk.
    Meta,
    /// Tasks, new or changed.
    Tasks,
    /// Names, new.
    Names,
    /// Events.
    Events,
    /// [`crate::Outcome`] as JSON.
    Outcome,
    /// Where the other chunks are. The last chunk.
    Index,
    /// One that a newer minor version added.
    Other,
}

impl ChunkKind {
    const TAGS: [(Self, [u8; 4]); 6] = [
        (Self::Meta, *b"META"),
        (Self::Tasks, *b"TASK"),
        (Self::Names, *b"NAME"),
        (Self::Events, *b"EVNT"),
        (Self::Outcome, *b"DONE"),
        (Self::Index, *b"INDX"),
    ];

    /// The four letters that the head begins with. [`ChunkKind::Other`] is never written.
    pub(super) fn tag(self) -> [u8; 4] {
        Self::TAGS.iter().find(|(kind, _)| *kind == self).map_or(*b"????", |(_, tag)| *tag)
    }

    /// The kind with these four letters.
    pub(super) fn from_tag(tag: [u8; 4]) -> Self {
        Self::TAGS.iter().find(|(_, letters)| *letters == tag).map_or(Self::Other, |(kind, _)| *kind)
    }
}

/// A chunk's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// What it holds.
    pub(super) kind: ChunkKind,
    /// Bytes of the payload in the file.
    pub(super) stored: usize,
    /// Bytes of the payload unpacked.
    raw: usize,
    /// Entries: events, tasks, names; otherwise 1.
    pub(super) count: u32,
    crc: u32,
    /// The checksum of the head's own first 16 bytes.
    own_crc: u32,
}

impl Head {
    /// Reads a head.
    pub(super) fn parse(bytes: &[u8; HEAD_LEN]) -> Result<Self, &'static str> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (stored, raw) = (word(4) as usize, word(8) as usize);
        if stored > CHUNK_BYTES_MAX || raw > CHUNK_BYTES_MAX {
            return Err("a chunk claims to be larger than chunks may be");
        }
        Ok(Self {
            kind: ChunkKind::from_tag([bytes[0], bytes[1], bytes[2], bytes[3]]),
            stored,
            raw,
            count: word(12),
            crc: word(16),
            own_crc: crc32c::crc32c(&bytes[..16]),
        })
    }

    /// Where the chunk ends that begins at `offset`.
    pub(super) fn end(&self, offset: u64) -> u64 {
        offset.saturating_add((HEAD_LEN + self.stored) as u64)
    }

    /// Whether the chunk at `offset` goes on after the end of a file of `bytes` bytes.
    pub(super) fn is_cut(&self, offset: u64, bytes: u64) -> bool {
        self.kind != ChunkKind::Other && self.end(offset) > bytes
    }

    /// Whether `payload` is what was written. Fuzzing goes past the checksum, which would stop it at once.
    pub(super) fn is_sound(&self, payload: &[u8]) -> bool {
        cfg!(fuzzing)
            || payload.len() == self.stored && crc32c::crc32c_append(self.own_crc, payload) == self.crc
    }

    /// Unpacks `payload` into `out`.
    pub(super) fn unpack(
        &self,
        payload: &[u8],
        zstd: &mut zstd::bulk::Decompressor<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        if !self.is_sound(payload) {
            return Err("a chunk's checksum does not fit");
        }
        out.clear();
        out.reserve(self.raw);
        match zstd.decompress_to_buffer(payload, out) {
            Ok(len) if len == self.raw => Ok(()),
            _ => Err("a chunk cannot be unpacked"),
        }
    }
}

/// Makes chunks.
pub(super) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    out: Vec<u8>,
}

impl Packer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { zstd: zstd::bulk::Compressor::new(LEVEL)?, out: vec![] })
    }

    /// The bytes of a whole chunk.
    pub(super) fn pack(&mut self, kind: ChunkKind, count: u32, payload: &[u8]) -> io::Result<&[u8]> {
        if payload.len() > CHUNK_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a chunk would be larger than 16 MiB"));
        }
        let bound = HEAD_LEN + zstd::zstd_safe::compress_bound(payload.len());
        self.out.resize(bound, 0);
        let stored = self.zstd.compress_to_buffer(payload, &mut self.out[HEAD_LEN..])?;
        self.out.truncate(HEAD_LEN + stored);
        self.out[..4].copy_from_slice(&kind.tag());
        self.out[4..8].copy_from_slice(&(stored as u32).to_le_bytes());
        self.out[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        self.out[12..16].copy_from_slice(&count.to_le_bytes());
        let crc = crc32c::crc32c(&self.out[..16]);
        let crc = crc32c::crc32c_append(crc, &self.out[HEAD_LEN..]);
        self.out[16..20].copy_from_slice(&crc.to_le_bytes());
        Ok(&self.out)
    }
}

/// Reads `len` bytes into `out`; false if there are fewer. Memory is taken as bytes arrive, not as `len` claims.
pub(super) fn read_up_to(file: &mut impl Read, len: usize, out: &mut Vec<u8>) -> io::Result<bool> {
    out.clear();
    file.take(len as u64).read_to_end(out)?;
    Ok(out.len() == len)
}
