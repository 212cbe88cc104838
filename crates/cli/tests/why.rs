//! `freehold why`, as a user runs it.

mod common;

use std::fs;

use common::{MACHINE, freehold, recording, refusal, stdout};
use lab::measurements::{Document, Why};

/// Two variants of an experiment that take a second: 5.18's rule, and before it.
const REGRESSION: [&str; 8] = ["why", "pcp-free-high", "--from", "udp-full", "--to", "udp-0", "--seeds", "2"];

fn why(words: &[&str]) -> Why {
    let document = Document::from_json(&stdout(&[words, &["--json"]].concat())).expect("measurements");
    document.why.expect("an answer")
}

#[test]
fn a_regressions_commit_is_named_first() {
    insta::assert_snapshot!(stdout(&REGRESSION));
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    stdout(&[&REGRESSION[..], &["--quiet", "--report", page.to_str().unwrap()]].concat());
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("f26b3fa04611") && page.contains("free-high with check"), "{page}");
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let with = |jobs| why(&[&REGRESSION[..], &["--jobs", jobs]].concat());
    let one = with("1");
    assert_eq!(one, with("2"));
    assert_eq!((one.differences, one.goals[0].causes[0].name.as_str()), (2, "free-high"));
    // The policies say what the variants are.
    let spelled = ["--variant", "udp-full", "--from", "linux-5.17", "--to", "linux-5.18", "--seeds", "2"];
    assert_eq!(one, why(&[&["why", "pcp-free-high"], &spelled[..]].concat()));
}

#[test]
fn parts_and_settings_are_sides_too() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 20_000);
    let ask = |words: &[&str]| {
        why(&[
            &["why", rec.to_str().unwrap(), "--machine", "xeon-8260", "--copies", "4", "--seeds", "1"],
            words,
        ]
        .concat())
    };
    let part = ask(&["--from", "linux-6.12", "--to", "+small-descriptors", "--goal", "page_alloc.mean_ns"]);
    assert_eq!((part.from.as_str(), part.to.as_str()), ("linux-6.12", "linux-6.12+small-descriptors"));
    assert_eq!(part.goals[0].causes[0].name, "+small-descriptors");
    let both = ask(&[
        "--set",
        "vm.pcp_batch_scale_max=5,0",
        "--to",
        "+small-descriptors",
        "--goal",
        "refill.mean_ns",
    ]);
    let causes: Vec<&str> = both.goals[0].causes.iter().map(|cause| cause.name.as_str()).collect();
    assert_eq!(causes, ["vm.pcp_batch_scale_max", "+small-descriptors"]);
    assert_eq!((both.goals[0].causes[0].from.as_str(), both.goals[0].causes[0].to.as_str()), ("5", "0"));
    let sum: f64 = both.goals[0].causes.iter().map(|cause| cause.share.mean).sum();
    assert!((sum - both.goals[0].change.mean).abs() < 1e-6, "{sum} {:?}", both.goals[0].change);
    // A knob with one value is the same on both sides.
    let held =
        ask(&["--from", "linux-6.6", "--to", "linux-6.12", "--set", "vm.percpu_pagelist_high_fraction=8"]);
    assert!(
        held.from.ends_with("vm.percpu_pagelist_high_fraction=8") && held.to.ends_with("fraction=8"),
        "{held:?}"
    );
    // With its size set by hand no list is tuned.
    assert!(held.goals[0].causes.iter().all(|cause| !cause.name.starts_with("vm.")));
}

#[test]
fn a_pair_that_is_the_same_here_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 2000);
    let text = |from: &str, to: &str| {
        stdout(&["why", rec.to_str().unwrap(), MACHINE, "--from", from, "--to", to, "--seeds", "1"])
    };
    let same = text("linux-5.11", "linux-5.12");
    assert!(same.contains("linux-5.11 and linux-5.12 have the same rules here."), "{same}");
    let idle = text("linux-6.14", "linux-6.15");
    assert!(idle.contains("none of it changes anything here, to the bit: fallback"), "{idle}");
}

#[test]
fn what_cannot_be_asked_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 2000);
    let rec = rec.to_str().unwrap();
    let of_recording = |words: &[&str]| refusal(&[&["why", rec, MACHINE], words].concat());
    let of_experiment = |words: &[&str]| refusal(&[&["why", "pcp-free-high"], words].concat());
    let cases = [
        (of_recording(&[]), "both sides are linux-6.18; name another with --to"),
        (of_recording(&["--to", "linux-6.18+yeild"]), "no policy `linux-6.18+yeild`"),
        (of_recording(&["--to", "linux-9.1"]), "linux-9.1"),
        (of_recording(&["--to", "linux-6.12", "--variant", "x"]), "--variant is for experiments"),
        (of_recording(&["--set", "vm.pcp_batch_scale_max=0,1,2"]), "has 3 values; a question has two sides"),
        (of_recording(&["--set", "vm.pcp_bach_scale_max=0,1"]), "vm.pcp_batch_scale_max"),
        (of_recording(&["--set", "vm.swappiness=1,2"]), "--force asks all the same"),
        (
            of_recording(&["--to", "linux-6.12", "--goal", "falt.p99_ns"]),
            "there is no figure `falt.p99_ns` here",
        ),
        (
            of_experiment(&["--to", "linux-6.12", "--variant", "udp"]),
            "has no variant `udp`; did you mean `udp-full`? It has udp-full, ",
        ),
        (of_experiment(&["--from", "udp-full", "--to", "sctp-0"]), "differ in workload, too"),
        (
            of_experiment(&["--from", "udp-full", "--to", "udp-0", "--copies", "2"]),
            "--copies is for recordings",
        ),
        (refusal(&["why", "pcp-free-hihg", "--to", "linux-6.12"]), "pcp-free-high"),
        (refusal(&["why", "./none.rec", MACHINE, "--to", "linux-6.12"]), "none.rec"),
    ];
    for (said, part) in cases {
        assert!(said.starts_with("freehold: ") && said.contains(part), "{part} is not in {said}");
    }
    assert_eq!(freehold(&["why"]).status.code(), Some(2));
}
