//! Bad input ends in one line on stderr and status 2; nothing is lost.

mod common;

use std::fs;

use common::{freehold, recording, refusal};

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
    insta::assert_snapshot!(refusal(&["replay", rec, "--cpus", "0-9999"]));
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
    insta::assert_snapshot!(refusal(&["replay", text(&rec), "--machine", "host,host"]), @"freehold: --machine names host twice");
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
fn a_cut_recording_is_read_up_to_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 200_000);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() * 3 / 4]).unwrap();
    let output = freehold(&["inspect", text(&path)]);
    assert_eq!(output.status.code(), Some(1), "it ran, and something is missing");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("cut"), "{shown}");
}

#[test]
fn damage_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 100_000);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 3;
    for byte in &mut bytes[middle..middle + 64] {
        *byte ^= 0x5a;
    }
    fs::write(&path, bytes).unwrap();
    let output = freehold(&["replay", text(&path)]);
    assert_ne!(output.status.code(), Some(0), "damage does not pass for a whole recording");
    assert!(String::from_utf8_lossy(&output.stderr).lines().count() <= 1);
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
            "name = \"a\"\ntitle = \"t\"\nextends = \"host\"\n[topology]\nsource = \"s\"\nsockets = 1\n\
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
