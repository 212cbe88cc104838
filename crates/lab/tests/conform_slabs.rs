//! mm against the slab trace of a stock kernel: every object is of the same slab, and every counter of what happened to
//! slabs came to the same.

use std::path::PathBuf;

use freehold_lab::conform::{FileKind, FileOutcome, conform_file, conform_trace, unpack};

const TRACE: &str = "linux-6.12-knob-c2-1G-slab";

fn file(kind: &str) -> PathBuf {
    file_of(TRACE, kind)
}

fn file_of(trace: &str, kind: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/traces");
    folder.join(format!("{trace}.{kind}"))
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

/// Two nodes: objects made on the one and freed on the other.
#[test]
fn slabs_of_two_nodes() {
    for (trace, figures, note) in [
        // Nobody but those traced used the cache, and two CPUs did nothing.
        ("linux-6.12-c4-2n-idle-slab", 5544, "alloc_slowpath: kernel 232, freehold 231 in the trace"),
        ("linux-6.12-c2-2n-dice-slab", 11_181, "asked for 3 times, passed over 1 times"),
        ("linux-6.12-c4-2n-readers-slab", 2277, "of CPU 1: kernel 0, freehold 10; the readers freed up to"),
    ] {
        let outcome = conform_file(&file_of(trace, "csv.xz")).unwrap();
        assert_eq!(differences(&outcome), [""; 0], "{trace}");
        assert_eq!((outcome.compared, outcome.equal), (figures, figures), "{trace}");
        assert!(outcome.notes.iter().any(|text| text.contains(note)), "{trace}: {:?}", outcome.notes);
    }
}

/// Each of what a two-node trace taught, taken away, shows.
#[test]
fn other_nodes_differ() {
    for (trace, rule, from, to) in [
        (
            "linux-6.12-c4-2n-idle-slab",
            "idle CPUs have slabs",
            "cpu_slabs=4 N0=2 N1=2",
            "cpu_slabs=2 N0=1 N1=1",
        ),
        (
            "linux-6.12-c4-2n-idle-slab",
            "who did nothing counts nothing",
            "free_frozen=248 C0=97",
            "free_frozen=247 C0=96",
        ),
        ("linux-6.12-c4-2n-readers-slab", "nodes of CPUs", "memdev=m1,cpus=2-3", "memdev=m1,cpus=0-3"),
        (
            "linux-6.12-c2-2n-dice-slab",
            "nodes of slabs",
            "cpu_slabs=14 N0=12 N1=2",
            "cpu_slabs=14 N0=1 N1=13",
        ),
    ] {
        let beside = std::fs::read_to_string(file_of(trace, "txt")).unwrap();
        let changed = beside.replacen(from, to, 1);
        assert_ne!(changed, beside, "{rule}");
        let events = unpack(std::fs::read(file_of(trace, "csv.xz")).unwrap()).unwrap();
        let outcome = conform_trace(&events, &changed).unwrap();
        assert!(!outcome.differences.is_empty(), "{rule}");
    }
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
