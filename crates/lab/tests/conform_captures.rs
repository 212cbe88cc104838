//! mm's parameters against captures of stock kernels.

use std::path::PathBuf;

use freehold_lab::conform::{Capture, FileKind, conform_file, params};

fn captures() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "txt")).collect();
    files.sort();
    files
}

#[test]
fn every_parameter_of_every_capture_is_the_kernels() {
    let files = captures();
    assert_eq!(files.len(), 23);
    for file in files {
        let outcome = conform_file(&file).unwrap();
        assert_eq!(outcome.kind, FileKind::Capture);
        let shown: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
        assert!(shown.is_empty(), "{}: {shown:#?}", file.display());
        assert_eq!(outcome.compared, outcome.equal);
        assert!(outcome.compared > 30, "{}: only {} figures", file.display(), outcome.compared);
        // Three of them have nothing but the shell's complaint where their caches should be.
        let notes = usize::from(outcome.caches.is_none());
        assert_eq!(outcome.notes.len(), notes, "{}: {:?}", file.display(), outcome.notes);
    }
}

#[test]
fn every_slab_cache_is_the_kernels() {
    let outcomes = captures().into_iter().map(|file| conform_file(&file).unwrap());
    let caches: Vec<_> = outcomes.filter_map(|outcome| outcome.caches).collect();
    assert_eq!(caches.len(), 20, "captures that name their caches");
    assert_eq!(caches.iter().map(|caches| caches.compared).sum::<u64>(), 4737);
    assert!(caches.iter().all(|caches| caches.equal == caches.compared), "{caches:?}");
}

/// Each figure of a cache counts: another value in the capture is a difference.
#[test]
fn a_cache_with_another_figure_is_a_difference() {
    let file = captures().into_iter().find(|file| file.ends_with("linux-6.18-c2-4G.txt")).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let line = "vm_area_struct object_size=192 slab_size=192 align=64 order=0 objs_per_slab=21 cpu_partial=120 \
                min_partial=5 sheaf_capacity=32 remote_node_defrag_ratio=100";
    assert!(text.contains(line));
    let figures = ["order=0", "objs_per_slab=21", "cpu_partial=120", "min_partial=5", "sheaf_capacity=32"];
    let longer = figures.into_iter().chain(["remote_node_defrag_ratio=100"]);
    let changed = longer.map(|figure| (figure, format!("{figure}1")));
    // There is no cache with a slab_size that is not a multiple of a word.
    for (figure, other) in changed.chain([("slab_size=192", "slab_size=200".to_owned())]) {
        let changed = text.replace(line, &line.replace(figure, &other));
        let outcome = params::compare(&Capture::parse(&changed).unwrap()).unwrap();
        assert!(!outcome.differences.is_empty(), "{figure}");
        assert_eq!(outcome.caches.map(|caches| caches.compared - caches.equal), Some(1), "{figure}");
    }
}
