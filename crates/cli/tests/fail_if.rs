//! `--fail-if`: what it reads, what it is held against, and how the command ends.

mod common;

use std::process::Output;

use common::{MACHINE, freehold, recording, refusal};
use lab::measurements::{Document, Held};

/// A replay of two settings with these bounds, and more words.
fn replay(bounds: &[&str], more: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 20_000);
    let mut words = vec![
        "replay",
        rec.to_str().unwrap(),
        "--quiet",
        "--machine",
        "epyc-7w83",
        "--copies",
        "4",
        "--set",
        "vm.pcp_batch_scale_max=5,0",
    ];
    words.extend(bounds.iter().flat_map(|bound| ["--fail-if", bound]));
    words.extend(more);
    freehold(&words)
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_bound_that_is_broken_ends_with_1_and_says_by_how_much() {
    let output = replay(&["refill.p99_ns:max=10us", "pages_per_second:min=50%"], &[]);
    let (text, line) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(
        line.starts_with(
            "freehold: --fail-if refill.p99_ns:max=10us by vm.pcp_batch_scale_max=5 on epyc-7w83: "
        ),
        "{line}"
    );
    assert!(
        line.contains("its lower end") && line.contains("limit 10.00 µs") && line.contains("over)"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(text.contains("\nbroken: refill.p99_ns:max=10us by") && text.contains("\nkept: "), "{text}");
}

#[test]
fn bounds_that_are_kept_end_with_0_and_are_in_the_document() {
    let bounds = ["refill.p99_ns:max=1s,failed_allocations:max=0", "refill.mean_ns:max=100%"];
    let output = replay(&bounds, &["--json"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let document = Document::from_json(std::str::from_utf8(&output.stdout).unwrap()).unwrap();
    let told: Vec<(&str, &str, Held)> = document
        .fail_if
        .iter()
        .map(|check| (check.bound.as_str(), check.variant.as_str(), check.held))
        .collect();
    let [five, zero] = ["vm.pcp_batch_scale_max=5", "vm.pcp_batch_scale_max=0"];
    assert_eq!(
        told,
        [
            ("refill.p99_ns:max=1s", five, Held::Kept),
            ("refill.p99_ns:max=1s", zero, Held::Kept),
            ("failed_allocations:max=0", five, Held::Kept),
            ("failed_allocations:max=0", zero, Held::Kept),
            ("refill.mean_ns:max=100%", zero, Held::Kept),
        ]
    );
}

#[test]
fn what_is_no_bound_is_refused_before_anything_runs() {
    for (bound, part) in [
        ("refil.p99_ns:max=1us", "no figure `refil.p99_ns`; did you mean `refill.p99_ns`?"),
        ("zzz:max=1", "no figure `zzz`;"),
        ("refill.p99_ns:max=1MiB", "that figure is counted in ns"),
        ("refill.p99_ns<1us", "is no bound: write FIGURE:max=VALUE"),
    ] {
        let line = refusal(&["replay", "no-such.rec", MACHINE, "--fail-if", bound]);
        assert!(line.contains(part), "{bound}: {line}");
        let line = refusal(&["lab", "run", "pcp-hold", "--fail-if", bound]);
        assert!(line.contains(part), "{bound}: {line}");
    }
}

#[test]
fn a_percentage_wants_two_variants() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 1000);
    let line =
        refusal(&["replay", rec.to_str().unwrap(), "--quiet", MACHINE, "--fail-if", "simulated_ns:max=98%"]);
    assert!(line.contains("no second variant"), "{line}");
}
