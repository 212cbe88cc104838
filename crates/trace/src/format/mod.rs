//! The recording file: a header, then chunks of which each is compressed and has a checksum of its own, an index at the
//! end. `docs/recording-format.md` describes every byte.
//!
//! [`Writer`] appends, [`Reader`] finds out what is there and hands out events. If a file was
//! cut short or damaged, it says first what is missing ([`Damage`]) and then hands out what is whole.

mod chunk;
mod codec;
mod context;
mod damage;
mod decode;
mod encode;
mod reader;
mod scan;
mod varint;
mod writer;

pub use damage::{Damage, How};
pub use reader::{Events, Reader};
pub use writer::{Writer, Written};

/// The first bytes of a recording: not text, and damaged by a transfer that takes it for text.
pub(crate) const MAGIC: [u8; 8] = *b"\x89FHR\r\n\x1a\n";
/// The last bytes of a recording that was finished.
pub(crate) const END_MAGIC: [u8; 8] = *b"FHR-END\n";
/// A reader refuses files of a newer major version.
pub(crate) const VERSION_MAJOR: u16 = 1;
/// A newer minor version adds what an older reader may ignore.
pub(crate) const VERSION_MINOR: u16 = 1;
/// Bytes of the file header.
pub(crate) const HEADER_LEN: usize = 16;
/// Bytes of the trailer.
pub(crate) const TRAILER_LEN: usize = 16;
/// Events in a full chunk.
pub(crate) const CHUNK_EVENTS: usize = 1 << 16;
/// No chunk is larger than this, compressed or not: what a reader must be ready to hold.
pub(crate) const CHUNK_BYTES_MAX: usize = 16 << 20;
