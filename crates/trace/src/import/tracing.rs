//! The tracepoints' formats in a `perf.data`: a copy of tracefs' files, one after the other.

use crate::error::ReadError;
use crate::stream::record::Bytes;
use crate::tracefs::format::Format;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The formats of all tracepoints, each with the name of its system. Those that make no sense are left out.
pub(super) fn formats(section: &[u8]) -> Result<Vec<(String, Format)>, ReadError> {
    parse(section).ok_or(ReadError::corrupt(0, "the descriptions of its tracepoints are cut short"))
}

fn parse(section: &[u8]) -> Option<Vec<(String, Format)>> {
    let mut bytes = Bytes(section.strip_prefix(MAGIC)?);
    text(&mut bytes)?;
    // Byte order, size of a long, size of a page.
    bytes.take(1 + 1 + 4)?;
    for name in [&b"header_page"[..], b"header_event"] {
        if text(&mut bytes)? != name {
            return None;
        }
        file(&mut bytes)?;
    }
    for _ in 0..bytes.u32()? {
        file(&mut bytes)?;
    }
    let mut formats = vec![];
    for _ in 0..bytes.u32()? {
        let system = String::from_utf8_lossy(text(&mut bytes)?).into_owned();
        for _ in 0..bytes.u32()? {
            let format = String::from_utf8_lossy(file(&mut bytes)?);
            if let Ok(format) = Format::parse(&format) {
                formats.push((system.clone(), format));
            }
        }
    }
    Some(formats)
}

/// A string that ends in a zero byte.
fn text<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let text = bytes.text();
    bytes.take(text.len() + 1)?;
    Some(text)
}

/// A length of eight bytes, then so many bytes.
fn file<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let len = usize::try_from(bytes.u64()?).ok()?;
    bytes.take(len)
}
