//! Running the command as a user would, and a small recording to run it on.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mm::{Cpu, MigrateType, Nanos, Order, Pfn, TaskId};
use trace::{Event, EventKind, Gfp, Meta, RecordingEnd, Task, Writer};

/// What tests replay on: without it, this machine would be measured.
#[allow(dead_code, reason = "not every test file asks for it")]
pub(crate) const MACHINE: &str = "--machine=kvm-genoa-2c";

/// `freehold` with these words; what it printed and how it ended.
pub(crate) fn freehold(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_freehold")).args(words).output().expect("the command was just built")
}

#[allow(dead_code, reason = "not every test file asks for it")]
/// What it printed on stdout; it must have ended with 0.
pub(crate) fn stdout(words: &[&str]) -> String {
    let output = freehold(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

/// The one line on stderr of a command that cannot run.
#[allow(dead_code, reason = "not every test file asks for it")]
pub(crate) fn refusal(words: &[&str]) -> String {
    refusal_with(2, words)
}

/// The one line on stderr of a command that ends with `status` because it cannot run.
#[allow(dead_code, reason = "not every test file asks for it")]
pub(crate) fn refusal_with(status: i32, words: &[&str]) -> String {
    let output = freehold(words);
    let stderr = String::from_utf8(output.stderr).expect("messages are UTF-8");
    assert_eq!(output.status.code(), Some(status), "{words:?}: {stderr}");
    assert_eq!(output.stdout, b"", "{words:?}");
    assert_eq!(stderr.lines().count(), 1, "{words:?}: {stderr}");
    stderr
}

#[allow(dead_code, reason = "not every test file asks for it")]
/// A recording of one task that takes `pages` pages and gives them back.
pub(crate) fn recording(folder: &Path, pages: u32) -> PathBuf {
    let path = folder.join("worker.rec");
    let file = std::fs::File::create(&path).expect("the folder is ours");
    let meta = Meta { source: "a test".into(), cpus: 1, ..Meta::default() };
    let mut writer = Writer::new(file, &meta).expect("a fresh file");
    let task = Task { pid: 1, tid: 1, name: "worker".into(), in_workload: true };
    writer.task(TaskId(0), &task).expect("a fresh file");
    let order = Order::ZERO;
    let alloc = |page| EventKind::PageAlloc {
        pfn: Pfn(page),
        order,
        migratetype: MigrateType::Movable,
        gfp: Gfp::HIGHUSER_MOVABLE,
    };
    let free = |page| EventKind::PageFree { pfn: Pfn(page), order };
    let kinds = (0..pages).map(alloc).chain((0..pages).map(free));
    for (step, kind) in kinds.enumerate() {
        let event = Event { time: Nanos(step as u64 * 700), cpu: Cpu(0), task: TaskId(0), kind };
        writer.push(&event).expect("a fresh file");
    }
    writer.finish(RecordingEnd::default()).expect("a fresh file");
    path
}
