//! A recording whose packing is sound and whose chunks hold any bytes: what a hostile writer could make. It is also a
//! second writer of the file format.
//!
//! The input is a list of chunks: a byte for the kind, two for the length, then the payload.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use trace::{Mask, Reader, inspect};

const KINDS: [&[u8; 4]; 6] = [b"EVNT", b"TASK", b"NAME", b"META", b"DONE", b"INDX"];

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], payload: &[u8]) {
    let Ok(packed) = zstd::bulk::compress(payload, 1) else { return };
    let mut head = kind.to_vec();
    for number in [packed.len(), payload.len(), 1] {
        head.extend_from_slice(&(number as u32).to_le_bytes());
    }
    let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &packed);
    head.extend_from_slice(&crc.to_le_bytes());
    out.extend(head);
    out.extend(packed);
}

fuzz_target!(|bytes: &[u8]| {
    let mut file = b"\x89FHR\r\n\x1a\n\x01\0\0\0".to_vec();
    let crc = crc32c::crc32c(&file);
    file.extend_from_slice(&crc.to_le_bytes());
    chunk(&mut file, b"META", br#"{"cpus":4}"#);
    // One task, one name.
    chunk(&mut file, b"TASK", &[0, 1, 1, 1, 1, b'a']);
    chunk(&mut file, b"NAME", &[0]);
    let mut rest = bytes;
    while let [kind, low, high, after @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (payload, after) = after.split_at(len);
        chunk(&mut file, KINDS[usize::from(*kind) % KINDS.len()], payload);
        rest = after;
    }
    let Ok(mut reader) = Reader::new(Cursor::new(file)) else { return };
    let _ = inspect(&mut reader);
    let mut mask = Mask::with_key(&reader.meta().zones, [1, 2]);
    if let Ok(events) = reader.events() {
        for event in events.map_while(Result::ok) {
            let _ = mask.event(event);
        }
    }
});
