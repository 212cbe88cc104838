//! Any text as the command line's knobs, changes and lists of CPUs, and as the name of a policy.
#![no_main]

use lab::replay::{parse_change, parse_cpu_list, parse_setting};
use libfuzzer_sys::fuzz_target;
use mm::Policy;

fuzz_target!(|text: &str| {
    let _ = parse_setting(text);
    let _ = parse_change(text);
    let _ = Policy::parse(text);
    for cpu in parse_cpu_list(text, 1024).unwrap_or_default() {
        assert!(cpu.0 < 1024);
    }
});
