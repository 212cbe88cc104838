//! Any text as a plan of `freehold apply`, as a bound, and as the notes of what was applied.
#![no_main]

use lab::apply::Plan;
use lab::measurements::Bound;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(plan) = Plan::parse(text) {
        assert_eq!(Plan::parse(&plan.to_string()), Ok(plan));
    }
    if let Ok(bounds) = Bound::parse_list(text) {
        for bound in bounds {
            let _ = bound.limit_in("ns", 1.0);
            assert_eq!(bound.to_string().parse(), Ok(bound));
        }
    }
    // Only read: what a journal says is never written here.
    host::settings::fuzz_notes(text);
});
