//! mm's parameters against captures of stock kernels.

use std::path::PathBuf;

use freehold_lab::conform::{FileKind, conform_file};

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
        assert_eq!(outcome.notes, [""; 0], "{}", file.display());
    }
}
