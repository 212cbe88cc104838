//! What every command owes whoever runs it: an option that it takes is honoured, output that is not whole is said to be
//! not whole, and no half file is left.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lab::measurements::{Document, groups};

use common::{MACHINE, freehold, recording, refusal, stdout};

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}

/// A shell's command line, in which `$0` is freehold.
fn shell(line: &str, words: &[&str]) -> Output {
    Command::new("/bin/sh").args(["-c", line, env!("CARGO_BIN_EXE_freehold")]).args(words).output().unwrap()
}

fn one_line(output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    stderr
}

fn capture() -> String {
    format!("{}/../../conformance/linux-6.18-c2-4G.txt", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_page_is_written_by_all_that_take_report() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 2000);
    let (rec, page) = (text(&rec), folder.path().join("page.html"));
    let measured = folder.path().join("measured.json");
    fs::write(&measured, stdout(&["replay", rec, "--json", "--quiet", MACHINE])).unwrap();
    let capture = capture();
    let commands: [&[&str]; 13] = [
        &["inspect", rec],
        &["replay", rec, MACHINE],
        &["conform", &capture],
        &["compare", text(&measured)],
        &["knobs"],
        &["knobs", "show", "vm.pcp_batch_scale_max"],
        &["machines"],
        &["machines", "show", "xeon-8260"],
        &["machines", "show", "xeon-8260", "--zonelists"],
        &["lab"],
        &["why", rec, MACHINE, "--to", "linux-6.12", "--seeds", "1"],
        &["lab", "list"],
        &["lab", "metrics"],
    ];
    for words in commands {
        let shown = stdout(words);
        let with_page = stdout(&[words, &["--report", text(&page), "--quiet"]].concat());
        let html = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert!(html.contains("</html>") && html.contains("id=\"measurements\""), "{words:?}");
        // Times of the simulation itself differ.
        if words[0] != "replay" {
            assert_eq!(shown, with_page, "{words:?}");
        }
        fs::remove_file(&page).unwrap();
    }
    assert!(stdout(&["knobs", "--json", "--report", text(&page), "--quiet"]).starts_with('{'));
    assert!(fs::read_to_string(&page).unwrap().contains("vm.pcp_batch_scale_max"));
}

#[test]
fn an_option_that_cannot_be_honoured_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 10);
    let (rec, page, masked) = (text(&rec), folder.path().join("page.html"), folder.path().join("masked.rec"));
    for words in [
        &["inspect", rec, "--mask", text(&masked), "--report", text(&page)][..],
        &["inspect", rec, "--mask", text(&masked), "--json"],
        &["--seed", "1", "knobs"],
        &["inspect", rec, "--seed", "3"],
        &["inspect", rec, "--full"],
        &["compare", rec, "--full"],
        &["machines", "--seed", "3"],
        &["lab", "list", "--seed", "3"],
        &["compare", rec, "--seed", "3"],
        &["conform", "--seed", "3", rec],
        &["bench", "--seed", "3"],
        &["heat", "--seed", "3", "--", "true"],
    ] {
        let line = refusal(words);
        assert!(line.contains("has no use for --"), "{words:?}: {line}");
        assert!(!page.exists() && !masked.exists(), "{words:?}");
    }
    let output = freehold(&["record", "--report", text(&page), "--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("inspect FILE --report"), "{output:?}");
}

#[test]
fn a_page_replaces_only_pages() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 10);
    let before = fs::read(&rec).unwrap();
    let line = refusal(&["inspect", text(&rec), "--report", text(&rec)]);
    assert!(line.contains("is no page"), "{line}");
    let line = refusal(&["inspect", text(&rec), "--mask", text(&rec)]);
    assert!(line.contains("is the input, too"), "{line}");
    assert_eq!(fs::read(&rec).unwrap(), before);
}

#[test]
fn a_full_disk_ends_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 100);
    for words in [
        &["knobs", "--json"][..],
        &["knobs"],
        &["machines"],
        &["--help"],
        &["--version"],
        &["inspect", text(&rec)],
        &["replay", text(&rec), "--json", "--quiet", MACHINE],
    ] {
        let line = one_line(&shell("\"$0\" \"$@\" > /dev/full", words));
        assert!(line.contains("stdout: No space left"), "{words:?}: {line}");
    }
    // Nobody can be told that stderr is full, and that is no reason to panic.
    assert_eq!(shell("\"$0\" \"$@\" 2> /dev/full", &["reply"]).status.code(), Some(2));
    let page = ["knobs", "--report", "/dev/full"];
    assert!(one_line(&shell("exec \"$0\" \"$@\"", &page)).contains("/dev/full: No space left"));
    let masked = ["inspect", text(&rec), "--mask", "/dev/full"];
    assert!(one_line(&shell("exec \"$0\" \"$@\"", &masked)).contains("No space left"));
}

#[test]
fn a_reader_that_leaves_ends_it_in_a_line() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(ours);
    let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
    command.args(["knobs", "--json"]).stdout(std::os::fd::OwnedFd::from(theirs));
    let line = one_line(&command.output().unwrap());
    assert_eq!(line, "freehold: stdout: its reader was gone before everything was written\n");
}

#[test]
fn no_half_file_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 400_000);
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let (page, masked) = (out.join("page.html"), out.join("masked.rec"));
    // Files of at most half a kilobyte or one; the signal that tells so is ignored, and writing fails.
    let limited = "ulimit -f 1; trap '' XFSZ; exec \"$0\" \"$@\"";
    for words in
        [&["lab", "metrics", "--report", text(&page)][..], &["inspect", text(&rec), "--mask", text(&masked)]]
    {
        let line = String::from_utf8(shell(limited, words).stderr).unwrap();
        assert!(line.contains("File too large") && line.lines().count() == 1, "{words:?}: {line}");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0, "{words:?}");
    }
    // What was there stays.
    fs::write(&page, "<!doctype html>").unwrap();
    shell(limited, &["lab", "metrics", "--report", text(&page)]);
    assert_eq!(fs::read_to_string(&page).unwrap(), "<!doctype html>");
}

#[test]
fn what_is_not_the_same_thing_is_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 2000);
    let measured = |name: &str, extra: &[&str]| {
        let path = folder.path().join(name);
        let words = [&["replay", text(&rec), "--json", "--quiet"], extra].concat();
        fs::write(&path, stdout(&words)).unwrap();
        text(&path).to_owned()
    };
    let new = measured("new.json", &["--machine", "xeon-8260", "--policy", "linux-6.18"]);
    let old = measured("old.json", &["--machine", "xeon-8260", "--policy", "linux-6.1"]);
    let other = measured("other.json", &["--machine", "epyc-7w83"]);
    let copies = measured("copies.json", &["--machine", "xeon-8260", "--copies", "2"]);
    assert!(!stdout(&["compare", &new, &old]).contains("force"));
    for (file, part) in
        [(&other, "machine (new: xeon-8260; other: epyc-7w83)"), (&copies, "workload (new: worker; copies: ")]
    {
        let line = refusal(&["compare", &new, file]);
        assert!(line.contains(part) && line.contains("--force"), "{line}");
        let forced = stdout(&["compare", &new, file, "--force"]);
        assert!(forced.starts_with("compared by force: ") && forced.contains(part), "{forced}");
        assert!(stdout(&["compare", &new, file, "--force", "--json"]).contains("compared by force: "));
    }
    // The same variant of two documents stays two columns.
    let again = measured("again.json", &["--machine", "xeon-8260", "--seed", "2"]);
    let all = Document::from_json(&stdout(&["compare", &new, &again, "--json"])).unwrap();
    assert_eq!(groups(&all.runs).len(), 2);
}

/// What `record` did, or nothing where the kernel does not let us.
fn record(folder: &Path, words: &[&str]) -> Option<Output> {
    let file = folder.join("out.rec");
    let output = freehold(&[&["record", "--ring", "64", "-o", text(&file)], words].concat());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(125) && (stderr.contains("perf") || stderr.contains("tracefs")) {
        eprintln!("skipped: {stderr}");
        return None;
    }
    Some(output)
}

#[test]
fn record_ends_as_its_command_did() {
    let folder = tempfile::tempdir().unwrap();
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)] {
        let Some(output) = record(folder.path(), &["--", "/bin/sh", "-c", script]) else { return };
        assert_eq!(output.status.code(), Some(status), "{script}: {output:?}");
    }
    let status = |words: &[&str]| record(folder.path(), words).unwrap().status.code();
    assert_eq!(status(&["--", "/no/such/command"]), Some(127));
    assert_eq!(status(&["--", "/etc/passwd"]), Some(126));
    assert_eq!(status(&["--events", "disk", "--", "true"]), Some(125));
    assert_eq!(status(&["--no-such-option", "--", "true"]), Some(125));
    assert_eq!(freehold(&["record", "-o", "/no/such/folder/a.rec", "--", "true"]).status.code(), Some(125));
}

#[test]
fn the_commands_output_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for extra in [&[][..], &["--json"]] {
        let words = [extra, &["--", "/bin/sh", "-c", "echo one; exec echo two"]].concat();
        let Some(output) = record(folder.path(), &words) else { return };
        assert_eq!(output.stdout, b"one\ntwo\n", "{output:?}");
        assert!(!output.stderr.is_empty());
    }
    let words = ["--json", "--quiet", "--", "/bin/sh", "-c", "echo one"];
    let output = record(folder.path(), &words).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(json["events"].as_u64() > Some(0) && json["exit_status"] == 0, "{json}");
}

#[test]
fn an_older_recording_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (file, older) = (folder.path().join("out.rec"), folder.path().join("out.rec.old"));
    fs::write(&file, "what was there").unwrap();
    if record(folder.path(), &["--", "/no/such/command"]).is_none() {
        return;
    }
    assert_eq!(fs::read(&file).unwrap(), b"what was there", "nothing ran, so nothing moved");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    record(folder.path(), &["--", "true"]).unwrap();
    assert_eq!(fs::read(&older).unwrap(), b"what was there");
    let first = fs::read(&file).unwrap();
    record(folder.path(), &["--", "true"]).unwrap();
    assert_eq!(fs::read(&older).unwrap(), first);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn nothing_is_left_of_a_recording_that_finds_no_room() {
    let folder = tempfile::tempdir().unwrap();
    if record(folder.path(), &["--", "true"]).is_none() {
        return;
    }
    let file = folder.path().join("full.rec");
    let limited = "ulimit -f 1; trap '' XFSZ; exec \"$0\" \"$@\"";
    let output = shell(
        limited,
        &["record", "--ring", "64", "-o", text(&file), "--", "/bin/sh", "-c", "ls -lR /usr/lib"],
    );
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(!file.exists());
}

/// The Python package's command gets the words as they are, and says how it ended.
#[test]
fn sweep_hands_its_words_over() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let begin = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
        command.args(words).env("PATH", folder.path()).output().unwrap()
    };
    let missing = begin(&["sweep", "plan.toml"]);
    let line = String::from_utf8(missing.stderr).unwrap();
    assert!(missing.status.code() == Some(2) && line.lines().count() == 1, "{line}");
    assert!(line.contains("make wheel"), "{line}");

    let script = folder.path().join("freehold-sweep");
    fs::write(&script, "#!/bin/sh\necho \"$*\"\nexit 3\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for words in [&["plan.toml", "--store", "s3://x", "--count", "2"][..], &["--help"]] {
        let ended = begin(&[&["sweep"], words].concat());
        assert_eq!(
            (ended.status.code(), String::from_utf8(ended.stdout).unwrap()),
            (Some(3), words.join(" ") + "\n")
        );
    }
}
