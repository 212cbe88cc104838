//! Any text as a capture of a stock kernel, and what mm makes of its machine.
#![no_main]

use lab::conform::{Capture, params};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(capture) = Capture::parse(text) {
        let _ = params::compare(&capture);
    }
});
