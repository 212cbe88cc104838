//! Bad input ends in one line on stderr and status 2; nothing is lost.

mod common;

use std::fs;
use std::path::Path;

use common::{MACHINE, freehold, recording, refusal};

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}

#[test]
fn names_that_do_not_exist_get_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 100);
    let rec = text(&rec);
    insta::assert_snapshot!(refusal(&["replay", rec, "--machine", "epic-7w83"]));
    insta::assert_snapshot!(refusal(&["replay", rec, "--set", "vm.pcp_batch_scale=5"]));
    insta::assert_snapshot!(refusal(&["replay", rec, "--policy", "linx-6.18"]));
    insta::assert_snapshot!(refusal(&["knobs", "show", "vm.min_free_kbyte"]));
    insta::assert_snapshot!(refusal(&["machines", "show", "xeon-8620"]));
}

#[test]
fn values_out_of_range_say_the_range() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 100);
    let rec = text(&rec);
    insta::assert_snapshot!(refusal(&["replay", rec, "--set", "vm.pcp_batch_scale_max=5,7"]));
    insta::assert_snapshot!(refusal(&["replay", rec, "--set", "vm.pcp_batch_scale_max"]));
    insta::assert_snapshot!(refusal(&["replay", rec, "--at", "1:vm.pcp_batch_scale_max=0"]));
    insta::assert_snapshot!(refusal(&["replay", rec, MACHINE, "--cpus", "0-9999"]));
    insta::assert_snapshot!(refusal(&["replay", rec, "--copies", "0"]));
}

#[test]
fn a_knob_set_twice_or_unknown_to_the_kernel_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 100);
    let rec = text(&rec);
    let refused = |words: &[&str]| refusal(&[&["replay", rec], words].concat());
    insta::assert_snapshot!(refused(&["--set", "vm.swappiness=0", "--set", "vm.swappiness=60"]), @"freehold: vm.swappiness is set twice; give it all its values at once: --set vm.swappiness=V,V");
    insta::assert_snapshot!(refused(&["--set", "transparent_hugepage.enabled=sometimes"]), @"freehold: transparent_hugepage.enabled = sometimes cannot be: it takes never, always, madvise, a number or a range with a step (0-100:20)");
    insta::assert_snapshot!(refused(&["--at", "1ms:vm.swappiness=0", "--at", "1ms:vm.swappiness=1"]), @"freehold: vm.swappiness changes twice at 1000000 ns; keep one of the two");
    insta::assert_snapshot!(refused(&["--policy", "linux-4.4", "--set", "vm.compaction_proactiveness=20"]), @"freehold: vm.compaction_proactiveness is refused under linux-4.4: Linux since 5.9 has it");
    insta::assert_snapshot!(refused(&["--policy", "linux-4.4", "--at", "1ms:numa.demotion_enabled=true"]), @"freehold: numa.demotion_enabled is refused under linux-4.4: Linux since 5.15 has it");
}

#[test]
fn a_machine_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 100);
    insta::assert_snapshot!(refusal(&["replay", text(&rec), "--machine", "kvm-genoa-2c,kvm-genoa-2c"]), @"freehold: --machine names kvm-genoa-2c twice");
}

#[test]
fn a_knob_that_cannot_act_is_refused_unless_it_is_forced() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 100);
    let rec = text(&rec);
    insta::assert_snapshot!(refusal(&["replay", rec, MACHINE, "--set", "vm.swappiness=0"]), @"freehold: vm.swappiness cannot act here: the recording has page and slab events, but not what the program did to its memory (record has it by default); --force runs it all the same");
    insta::assert_snapshot!(refusal(&["replay", rec, MACHINE, "--at", "1ns:freehold.arenas=2"]), @"freehold: freehold.arenas cannot act here: linux-6.18: a zone has one set of free lists (+arenas and +zones divide it); --force runs it all the same");
}

#[test]
fn zone_order_is_refused_where_the_kernel_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 100);
    let rec = text(&rec);
    insta::assert_snapshot!(refusal(&["replay", rec, "--set", "vm.numa_zonelist_order=2"]));
    insta::assert_snapshot!(refusal(&["replay", rec, "--at", "1ms:vm.numa_zonelist_order=2"]));
    insta::assert_snapshot!(refusal(&["machines", "show", "xeon-8260", "--zonelists", "--order", "3"]));
    insta::assert_snapshot!(refusal(&[
        "machines",
        "show",
        "xeon-8260",
        "--zonelists",
        "--policy",
        "linux-2.6"
    ]));
}

#[test]
fn what_is_no_recording_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let message =
        |path: &std::path::Path| refusal(&["inspect", text(path)]).replace(text(folder.path()), "…");
    insta::assert_snapshot!(message(&write("empty.rec", b"")));
    insta::assert_snapshot!(message(&write(
        "text.rec",
        b"this is not a recording, but it is long enough to be one"
    )));
    insta::assert_snapshot!(message(&folder.path().join("missing.rec")));
    let mut damaged = fs::read(recording(folder.path(), 10)).unwrap();
    damaged[8] = 99;
    insta::assert_snapshot!(message(&write("damaged.rec", &damaged)));
}

#[test]
fn a_damaged_recording_says_so_first_and_goes_on_with_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 100_000);
    let whole = fs::read(&path).unwrap();
    let cut = whole[..whole.len() * 3 / 4].to_vec();
    let mut flipped = whole.clone();
    flipped[whole.len() / 3] ^= 0x5a;
    let mut without_index = whole.clone();
    *without_index.last_mut().unwrap() ^= 1;
    for (bytes, how) in [
        (cut, "is cut off at byte "),
        (flipped, "is damaged at byte "),
        (without_index, "costs none of its events"),
    ] {
        fs::write(&path, bytes).unwrap();
        for words in [&["inspect", text(&path)][..], &["replay", text(&path), "--quiet", MACHINE]] {
            let output = freehold(words);
            let stderr = String::from_utf8(output.stderr).unwrap();
            let shown = String::from_utf8(output.stdout).unwrap();
            assert_eq!(output.status.code(), Some(1), "{words:?}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{words:?}: {stderr}");
            assert!(stderr.contains(how) && stderr.contains("going on with what is whole"), "{stderr}");
            let top: String = shown.lines().take(4).collect::<Vec<_>>().join(" ");
            assert!(top.contains("is cut off") || top.contains("is damaged"), "{words:?}: {top}");
        }
        let output = freehold(&["replay", text(&path), "--json", "--quiet", MACHINE]);
        let document =
            lab::measurements::Document::from_json(&String::from_utf8_lossy(&output.stdout)).unwrap();
        assert!(document.notes[0].contains(how), "{:?}", document.notes);
        let lost = document.runs[0].omissions.get("unreadable_chunks").copied();
        assert_eq!(lost, (how != "costs none of its events").then_some(1));
        // A copy of what is left is whole itself, and must not hide that.
        let copy = folder.path().join("copy.rec");
        let output = freehold(&["inspect", text(&path), "--mask", text(&copy), "--quiet"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let copied = String::from_utf8(freehold(&["inspect", text(&copy)]).stdout).unwrap();
        assert_eq!(copied.contains("could not be expressed"), lost.is_some(), "{copied}");
    }
    fs::write(&path, &whole[..whole.len() / 20]).unwrap();
    let line = refusal(&["replay", text(&path)]);
    assert!(line.contains("cut"), "{line}");
}

fn placed(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    text(&path).to_owned()
}

/// What a new user may get wrong, each with a word that has to be in the answer.
#[test]
fn wrong_words_files_and_places_end_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 100);
    let place = |name: &str, bytes: &[u8]| placed(folder.path(), name, bytes);
    let (rec, empty) = (text(&rec).to_owned(), place("empty", b""));
    let garbage = place("garbage.toml", &[0x80, 0xff, 0, 1, 2, 250]);
    let list = place("list.json", b"[1, 2");
    let other = place("other.json", b"{\"a\": 1}");
    let (dir, page) = (text(folder.path()).to_owned(), folder.path().join("no/such/page.html"));
    let (page, none) = (text(&page).to_owned(), "/no/such/file".to_owned());
    let rows: &[(&[&str], &str)] = &[
        (&["inspect", &none], "/no/such/file"),
        (&["inspect", &dir], "directory"),
        (&["inspect", &empty], "cut short"),
        (&["inspect", &garbage], "not a Freehold recording"),
        (&["replay", &none], "/no/such/file"),
        (&["replay", &dir], "directory"),
        (&["replay", &garbage], "not a Freehold recording"),
        (&["replay", &rec, "--copies", "many"], "many"),
        (&["replay", &rec, "--seed", "-1"], "-1"),
        (&["replay", &rec, "--repeat", "99999999999999999999"], "repeat"),
        (&["replay", &rec, MACHINE, "--cpus", "3-1"], "3-1"),
        (&["replay", &rec, MACHINE, "--cpus", ","], "CPU"),
        (&["replay", &rec, "--machine", &garbage], "garbage.toml"),
        (&["replay", &rec, "--machine", &dir], "directory"),
        (&["replay", &rec, "--machine", ""], "profile"),
        (&["replay", &rec, "--policy", ""], "policy"),
        (&["replay", &rec, "--set", "=5"], "knob"),
        (&["replay", &rec, MACHINE, "--report", &page], "page.html"),
        (&["replay", &rec, MACHINE, "--report", &dir], "directory"),
        (&["replay", &rec, &rec], "side by side"),
        (&["inspect", &rec, "--mask", &page], "page.html"),
        (&["heat", "-o", "/no/such/folder/a.toml", "--", "true"], "/no/such/folder"),
        (&["machines", "probe", "-o", "/no/such/folder/a.toml"], "/no/such/folder"),
        (&["machines", "show"], "NAME|FILE.toml"),
        (&["conform", &dir], "directory"),
        (&["conform", &garbage], "garbage.toml"),
        (&["compare", &dir], "directory"),
        (&["compare", &empty], "JSON"),
        (&["compare", &list], "measurements"),
        (&["compare", &other], "measurements"),
        (&["lab", "run", &dir], "directory"),
        (&["lab", "run", &garbage], "garbage.toml"),
        (&["lab", "run", "pcp-batch", "--results", "/no/such/folder/a.md"], "/no/such/folder"),
        (&["lab", "run"], "NAME|FILE.toml"),
        (&["bench", "--mib", "1"], "64"),
        (&["bench", "contention", "--set", "vm.no_such=1"], "vm.no_such"),
        (&["validate", "--tasks", "0"], "0"),
        (&["validate", "--fail-if", "page_faults:max=1"], "-- CMD"),
        (&["try", "--mib", "1"], "4"),
        (&["--report"], "--report"),
    ];
    for (words, part) in rows {
        let line = refusal(words);
        assert!(line.contains(part) && line.starts_with("freehold: "), "{words:?}: {line}");
    }
}

#[test]
fn the_machine_at_hand_is_measured_after_all_else_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let (rec, cache) = (recording(folder.path(), 10), folder.path().join("cache"));
    let wrong: [&[&str]; 5] = [
        &["replay", "/no/such/file"],
        &["replay", text(&rec), "--set", "vm.swappines=0"],
        &["replay", text(&rec), "--machine", "this,nowhere"],
        &["machines", "show", "this", "--zonelists", "--policy", "linux-9.9"],
        &["validate", "--machine", "nowhere"],
    ];
    for words in wrong {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_freehold"));
        let output = command.args(words).env("XDG_CACHE_HOME", &cache).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{words:?}: {stderr}");
        assert!(!cache.exists(), "{words:?} measured this machine");
    }
    assert!(String::from_utf8(freehold(&["replay", "--help"]).stdout).unwrap().contains("[default: this]"));
    let line = refusal(&["replay", text(&rec), "--machine", "host"]);
    assert!(line.contains("kvm-genoa-2c") && line.contains("--machine this"), "{line}");
}

#[test]
fn what_may_not_be_read_is_said() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 10);
    fs::set_permissions(&rec, fs::Permissions::from_mode(0o000)).unwrap();
    // root may read everything.
    if fs::read(&rec).is_err() {
        for words in [["inspect", text(&rec)], ["replay", text(&rec)], ["compare", text(&rec)]] {
            assert!(refusal(&words).contains("ermission denied"));
        }
    }
}

#[test]
fn impossible_machines_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.toml");
    let refused = |toml: &str| {
        fs::write(&path, toml).unwrap();
        refusal(&["machines", "show", text(&path)]).replace(text(folder.path()), "…")
    };
    insta::assert_snapshot!(refused("name = \"a\"\ntitle = \"t\"\nextends = \"nowhere\"\n"));
    insta::assert_snapshot!(refused("name = [1"));
    let shape = |distances: &str| {
        format!(
            "name = \"a\"\ntitle = \"t\"\nextends = \"kvm-genoa-2c\"\n[topology]\nsource = \"s\"\nsockets = 1\n\
             cores_per_socket = 2\nthreads_per_core = 1\ncores_per_llc = 2\nsmt_numbering = \"adjacent\"\n\
             distances = {distances}\n[[topology.nodes]]\nsocket = 0\nmemory_mib = 1024\n"
        )
    };
    insta::assert_snapshot!(refused(&shape("[[10, 20]]")));
    insta::assert_snapshot!(refused(&shape("[[9]]")));
}

#[test]
fn recording_says_what_it_cannot_do() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.rec");
    let refusal = |words: &[&str]| common::refusal_with(125, words);
    insta::assert_snapshot!(refusal(&["record", "-o", text(&output)]));
    insta::assert_snapshot!(refusal(&["record", "-o", text(&output), "--events", "page,disk", "--", "true"]));
    let message = refusal(&["record", "-o", "/no/such/folder/out.rec", "--", "true"]);
    assert!(message.contains("/no/such/folder") || message.contains("perf"), "{message}");
    assert!(!output.exists());
}

#[test]
fn watching_says_what_it_cannot_do() {
    insta::assert_snapshot!(refusal(&["heat"]));
    insta::assert_snapshot!(refusal(&["heat", "--pid", "1", "--", "true"]));
    insta::assert_snapshot!(refusal(&["heat", "--interval", "2", "--", "true"]));
    insta::assert_snapshot!(refusal(&["heat", "--for", "long", "--", "true"]));
    insta::assert_snapshot!(refusal(&["heat", "--rounds", "0", "--", "true"]));
    insta::assert_snapshot!(refusal(&["heat", "-o", "heat.txt", "--", "true"]));
    insta::assert_snapshot!(refusal(&["heat", "--", "/no/such/command"]));
    // No process has such a number.
    insta::assert_snapshot!(refusal(&["heat", "--pid", "4194304"]));
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.toml");
    let message = refusal(&["heat", "-o", text(&output), "--", "true"]);
    assert!(message.contains("nothing was sampled") || message.contains("clear_refs"), "{message}");
    assert!(!output.exists(), "nothing is left where nothing was seen");
}

#[test]
fn words_that_mean_nothing_get_one_line() {
    insta::assert_snapshot!(refusal(&["reply"]));
    insta::assert_snapshot!(refusal(&["replay"]));
    insta::assert_snapshot!(refusal(&["compare", "/no/such/file.json"]));
    insta::assert_snapshot!(refusal(&["conform", "/no/such/capture.txt"]));
}
