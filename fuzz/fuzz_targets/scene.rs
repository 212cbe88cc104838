//! Any text as a scene of a stock kernel, played and compared. A scene that is long is cut; none hangs.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = lab::conform::conform_scene(text);
});
