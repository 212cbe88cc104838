//! Any text as a page trace with the text beside it, which stands before a line of `====`.
#![no_main]

use lab::conform::conform_trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (beside, trace) = text.split_once("====\n").unwrap_or(("", text));
    let _ = conform_trace(trace, beside);
});
