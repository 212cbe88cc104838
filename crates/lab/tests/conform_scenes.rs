//! Scenes that ran on stock kernels: how many of their counters mm has exactly. One that had some must not lose any.

use std::path::PathBuf;

use freehold_lab::conform::{FileKind, FileOutcome, conform_file};

fn play(scene: &str) -> FileOutcome {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/scenes");
    let outcome = conform_file(&folder.join(format!("{scene}.txt.xz"))).unwrap();
    assert_eq!(outcome.kind, FileKind::Scene);
    outcome
}

/// The scene has this many figures, and only these differ.
fn assert_played(scene: &str, compared: u64, different: &[&str]) {
    let outcome = play(scene);
    let differences: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert_eq!(differences, different, "{scene}");
    assert_eq!((outcome.compared, outcome.equal), (compared, compared - different.len() as u64), "{scene}");
}

#[test]
fn writes_strides_and_zeros_with_and_without_huge_pages() {
    assert_played("thp-stride-always", 27, &[]);
    assert_played("thp-stride-never", 18, &[]);
}

/// The child writes to three pages of its own more.
#[test]
fn copies_on_write_by_children_and_by_the_parent() {
    let own = ["mark child-wrote: minor faults: kernel 5230, freehold 5227"];
    assert_played("fork-cow-always", 25, &own);
    assert_played("fork-cow-never", 15, &own);
}

/// It is not counted why khugepaged left a table.
#[test]
fn khugepaged_finds_sparse_regions() {
    let differs = ["mark scanned: thp_scan_exceed_none_pte: kernel 112, freehold 0"];
    assert_played("khugepaged", 29, &differs);
}

/// Where node 0 ends is off by 205 of 57,344 pages.
#[test]
fn memory_lands_on_the_nodes_that_policies_say() {
    let node0 = |tail: &str| {
        format!("kernel 7168,7168,7168,7168,5419,{tail}, freehold 7168,7168,7168,7168,5214,{tail}")
    };
    let node1 = |tail: &str| format!("kernel 0,0,0,0,1749,{tail}, freehold 0,0,0,0,1954,{tail}");
    let at = |mark: &str, tails: [&str; 2]| {
        [
            format!("mark {mark}: d node0: {}", node0(tails[0])),
            format!("mark {mark}: d node1: {}", node1(tails[1])),
        ]
    };
    let again = ["0,1024,7168", "7168,6144,0"];
    let differs: Vec<String> =
        [at("spilled", ["0,0,0", "7168,7168,7168"]), at("again", again), at("from-cpu-1", again)].concat();
    let differs: Vec<&str> = differs.iter().map(String::as_str).collect();
    assert_played("numa-place", 53, &differs);
}
