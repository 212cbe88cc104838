//! mm against the slab trace of a stock kernel: every object is of the same slab, and every counter of what happened to
//! slabs came to the same.

use std::path::PathBuf;

use freehold_lab::conform::{FileKind, FileOutcome, conform_file, conform_trace, unpack};

const TRACE: &str = "linux-6.12-knob-c2-1G-slab";

fn file(kind: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/traces");
    folder.join(format!("{TRACE}.{kind}"))
}

fn trace() -> String {
    unpack(std::fs::read(file("csv.xz")).unwrap()).unwrap()
}

fn beside() -> String {
    std::fs::read_to_string(file("txt")).unwrap()
}

fn differences(outcome: &FileOutcome) -> Vec<String> {
    outcome.differences.iter().map(ToString::to_string).collect()
}

/// 8110 objects, 25 counters and the frees that found no CPU's slab on each of two CPUs, 14 files.
#[test]
fn the_slabs_of_vm_area_struct() {
    let outcome = conform_file(&file("csv.xz")).unwrap();
    assert_eq!(outcome.kind, FileKind::SlabTrace);
    assert_eq!(differences(&outcome), [""; 0]);
    assert_eq!((outcome.compared, outcome.equal), (8176, 8176));
    assert_eq!(outcome.notes.len(), 6, "{:?}", outcome.notes);
    assert_eq!(
        outcome.notes[0],
        "alloc_fastpath: kernel 9040, freehold 7773 in the trace; 1267 are of those who read the counters"
    );
}

/// What a kernel of other rules would have counted is not what this one did.
#[test]
fn other_rules_differ() {
    let beside = beside();
    for (rule, from, to) in [
        ("no sheaves, other freezing", "6.12.117", "7.2.13"),
        ("larger slabs", "objs_per_slab=24\norder=0", "objs_per_slab=48\norder=1"),
        ("one slab less given back", "free_slab=304 C0=80 C1=224", "free_slab=303 C0=80 C1=223"),
        ("another list", "slabs_cpu_partial=156(13) C0=48(4)", "slabs_cpu_partial=144(12) C0=36(3)"),
    ] {
        let changed = beside.replace(from, to);
        assert_ne!(changed, beside, "{rule}");
        let outcome = conform_trace(&trace(), &changed);
        assert!(outcome.is_err() || outcome.is_ok_and(|outcome| !outcome.differences.is_empty()), "{rule}");
    }
}

/// Whatever stands in the text beside it, there is an outcome or an error of one line.
#[test]
fn numbers_of_any_kind_end_in_an_outcome_or_an_error() {
    let trace: String = trace().lines().take(200).fold(String::new(), |text, line| text + line + "\n");
    let beside = beside();
    let begin = beside.lines().take_while(|line| *line != "@@slab-after").filter(|line| line.contains('='));
    for line in begin {
        let (name, _) = line.split_once('=').unwrap();
        for value in ["0", "1", "4294967295", "-1", "x", "24 C0=1 C9=2"] {
            let changed = beside.replacen(line, &format!("{name}={value}"), 1);
            if let Err(error) = conform_trace(&trace, &changed) {
                assert!(!error.to_string().contains('\n'), "{name}={value}: {error}");
            }
        }
    }
}
