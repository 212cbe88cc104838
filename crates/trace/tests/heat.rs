//! Watching real programs, where the kernel permits that; elsewhere these tests say that they skipped.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use freehold_trace::heat::{Heat, HeatError, HeatOptions, HeatTarget, watch};

fn of(words: &[&str]) -> HeatOptions {
    HeatOptions {
        target: HeatTarget::Command(words.iter().map(OsString::from).collect()),
        title: None,
        interval: Duration::from_secs(5),
        after: Duration::ZERO,
        length: None,
        rounds: Some(1),
        stop: Arc::default(),
    }
}

/// Watches, or says why not where that is not for us to do.
fn try_watch(options: &HeatOptions) -> Option<Result<Heat, HeatError>> {
    if OpenOptions::new().write(true).open("/proc/self/clear_refs").is_err() {
        eprintln!("skipped: no /proc/self/clear_refs to write to");
        return None;
    }
    Some(watch(options, &mut |_| {}))
}

#[test]
fn of_a_shell_and_its_child_the_larger_is_watched_until_there_are_rounds_enough() {
    // dd holds its buffer of 32 MiB and uses it all the time; nothing would end it but we.
    let command = ["sh", "-c", "dd if=/dev/zero of=/dev/null bs=32M status=none; true"];
    let options = HeatOptions { after: Duration::from_millis(500), ..of(&command) };
    let Some(heat) = try_watch(&options) else { return };
    let heat = heat.unwrap();
    assert_eq!((heat.process.as_str(), heat.rounds, heat.exit_status), ("dd", 1, None));
    let buffer = &heat.regions[0];
    assert_eq!(buffer.name, "[anon]");
    assert!(buffer.mib() >= 32.0 && buffer.within[1] > 0.99, "{buffer:?}");
    assert!(heat.all.resident_kib >= buffer.resident_kib);
}

#[test]
fn a_program_that_ends_at_once_is_said_to_have() {
    let Some(heat) = try_watch(&of(&["sh", "-c", "exit 3"])) else { return };
    let error = heat.unwrap_err();
    assert!(matches!(error, HeatError::Nothing { exit_status: Some(3), .. }), "{error}");
    let stopped = HeatOptions { stop: Arc::new(AtomicBool::new(true)), ..of(&["sleep", "60"]) };
    let error = watch(&stopped, &mut |_| {}).unwrap_err();
    assert!(matches!(error, HeatError::Nothing { exit_status: None, .. }), "{error}");
}

#[test]
fn what_is_not_there_cannot_be_watched() {
    let error = watch(&of(&["/no/such/command"]), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("/no/such/command cannot be started"), "{error}");
    let nobody = HeatOptions { target: HeatTarget::Process(u32::MAX >> 2), ..of(&[]) };
    assert!(matches!(watch(&nobody, &mut |_| {}), Err(HeatError::NoProcess(_))));
    assert!(matches!(watch(&of(&[]), &mut |_| {}), Err(HeatError::Command { .. })));
}
