//! What a command is said to have used. It has a process of its own: what other tests have resident would be the command's least peak.

use std::ffi::OsString;
use std::sync::atomic::AtomicBool;

use freehold_host::command::{CommandUse, Outcome, run};

fn used(words: &[&str]) -> CommandUse {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    match run(&words, &[], &AtomicBool::new(false)).unwrap() {
        Outcome::Ended(0, used) => used,
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn a_command_is_accounted() {
    let dd = used(&["dd", "if=/dev/zero", "of=/dev/null", "bs=32M", "count=1", "status=none"]);
    // Huge pages may serve it with few faults.
    assert!(dd.minor_faults > 16 && dd.peak_rss_pages >= Some(8192), "{dd:?}");
    assert!(dd.wall_ns > 0 && dd.counters["pgfault"] > 0, "{dd:?}");
    let ours = vec![1u8; 64 << 20];
    let true_ = used(&["true"]);
    assert_eq!((true_.peak_rss_pages, ours[4096]), (None, 1), "it had no more than we have");
}
