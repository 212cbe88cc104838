//! A file of any bytes as a `perf.data`. What is imported must be a recording that can be read.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use trace::{Reader, import::import_from};

fuzz_target!(|bytes: &[u8]| {
    let Ok((recording, imported)) = import_from(Cursor::new(bytes), vec![]) else { return };
    let mut reader = Reader::new(Cursor::new(recording)).expect("what was imported can be opened");
    assert!(!reader.truncated());
    let events = reader.events().expect("what was imported has events");
    let count = events.map(|event| event.expect("what was imported can be read")).count();
    assert_eq!(count as u64, imported.events);
});
