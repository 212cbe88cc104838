//! A file of any bytes as a recording. Built for fuzzing, the reader takes wrong checksums, so that damage gets through
//! to what lies behind them.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use trace::{Reader, inspect};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::new(Cursor::new(bytes)) else { return };
    let _ = reader.meta().topology();
    let _ = inspect(&mut reader);
});
