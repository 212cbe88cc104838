//! Any text as the names of gfp flags. What is read is printed and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::Gfp;

fuzz_target!(|text: &str| {
    let Ok(flags) = Gfp::from_names(text) else { return };
    assert_eq!(Gfp::from_names(&flags.to_string()), Ok(flags));
});
