//! Any text as `/proc/zoneinfo`, and what it says as a machine and for a mask.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::capture::zoneinfo;
use trace::{Mask, Meta, NodeInfo};

fuzz_target!(|text: &str| {
    let zones = zoneinfo::parse(text);
    let _ = Mask::with_key(&zones, [1, 2]);
    let node = NodeInfo { node: 0, cpus: vec![0], distance: vec![10] };
    let _ = Meta { zones, nodes: vec![node], cpus: 1, ..Meta::default() }.topology();
});
