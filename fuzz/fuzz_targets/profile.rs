//! A machine profile. What is read must survive being written, and must describe a machine that the memory manager
//! accepts; what is refused must be refused in one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::Profile;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Profile::parse("fuzz", text) {
        Ok(profile) => {
            assert!(profile.topology().validate().is_ok());
            assert!(!profile.default_cpus().is_empty());
            assert_eq!(Profile::parse("fuzz", &profile.to_toml()).as_ref(), Ok(&profile));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
});
