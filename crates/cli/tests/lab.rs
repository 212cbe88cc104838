//! `freehold lab`, as a user runs it.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{freehold, refusal, stdout};
use lab::measurements::Document;

/// The example of docs/experiments.md, or what `change` makes of it, as a file of somebody's own.
fn file(folder: &Path, change: impl FnOnce(String) -> String) -> PathBuf {
    let docs = include_str!("../../../docs/experiments.md");
    let (_, rest) = docs.split_once("<!-- example -->\n```toml\n").expect("an example begins");
    let example = rest.split_once("```\n").expect("and ends").0;
    let path = folder.join("mine.toml");
    fs::write(&path, change(example.to_owned())).expect("the folder is ours");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}

fn document(words: &[&str]) -> Document {
    let mut document = Document::from_json(&stdout(words)).expect("measurements").without_wall_time();
    // The command line names a temporary file, or the number of threads.
    document.command.clear();
    document
}

#[test]
fn experiments_and_metrics_are_listed() {
    let list = stdout(&["lab", "list"]);
    assert!(list.contains("pcp-batch") && list == stdout(&["lab"]), "{list}");
    assert!(stdout(&["lab", "metrics"]).contains("SPAN.emd_buckets"));
    for (key, what) in [("experiments", "list"), ("metrics", "metrics")] {
        let output: serde_json::Value = serde_json::from_str(&stdout(&["lab", what, "--json"])).unwrap();
        assert!(output[key].as_array().is_some_and(|list| !list.is_empty()));
    }
}

#[test]
fn what_was_published_as_nothing_and_is_something_is_not_left_out() {
    let short = stdout(&["lab", "run", "pageout-thp", "--seeds", "1"]);
    assert!(short.contains("2 infinitely far off (sampled.before.a.huge"), "{short}");
}

#[test]
fn a_file_of_ones_own_is_run_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), |text| text);
    let short = stdout(&["lab", "run", text(&path), "--seeds", "1"]);
    for part in ["first-touch: Page faults of two", "published: 4 independent figures", "\n--full shows"] {
        assert!(short.contains(part), "{part} is missing from\n{short}");
    }
    assert!(short.lines().count() < 20, "{short}");
    let shown = stdout(&["lab", "run", text(&path), "--seeds", "1", "--explain", "--full"]);
    for part in [
        "first-touch: Page faults of two",
        "two-tasks-small against two-tasks",
        "changed/small against changed/large",
        "Where do refills get long?",
        "where a refill's",
        "waiting for the zone lock",
        "source: message ID or link",
        "score: 4 independent rows",
    ] {
        assert!(shown.contains(part), "{part} is missing from\n{shown}");
    }
    // The last column is wrapped.
    assert!(shown.contains("derived; one seed: not"), "{shown}");
    let page = folder.path().join("page.html");
    stdout(&["lab", "run", text(&path), "--seeds", "1", "--quiet", "--report", text(&page)]);
    assert!(fs::read_to_string(&page).unwrap().contains("two-tasks-small against two-tasks"));
}

#[test]
fn one_seed_gives_one_document_whatever_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), |text| text);
    let with = |jobs: &str| document(&["lab", "run", text(&path), "--json", "--jobs", jobs, "--seeds", "2"]);
    let one = with("1");
    assert_eq!(one.runs.len(), 2 * (2 + 2 + 4));
    assert!(one.to_json() == with("2").to_json(), "two threads make another document than one");
}

#[test]
fn it_runs_on_another_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), |text| text);
    let words = ["lab", "run", text(&path), "--json", "--seeds", "1", "--machine", "xeon-8260"];
    let document = document(&words);
    assert!(document.runs.iter().all(|run| run.machine == "xeon-8260"));
    assert!(document.rows.iter().all(|row| row.published.is_nan() && row.variant.contains("xeon-8260 as ")));
}

#[test]
fn a_profile_beside_the_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "name = \"ours\"\ntitle = \"ours\"\nextends = \"kvm-genoa-2c\"\n";
    fs::write(folder.path().join("ours.toml"), profile).unwrap();
    let path =
        file(folder.path(), |text| text.replace("machine = \"kvm-genoa-2c\"", "machine = \"./ours.toml\""));
    let document = document(&["lab", "run", text(&path), "--json", "--seeds", "1"]);
    assert_eq!(document.runs[0].machine, "ours");
}

#[test]
fn what_cannot_be_run_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(refusal(&["lab", "run", "pcp-bach"]));
    insta::assert_snapshot!(refusal(&["lab", "run", "pcp-batch", "--machine", "epic"]));
    insta::assert_snapshot!(refusal(&["lab", "run", "pcp-batch", "--seeds", "0"]));
    let refused = |from: &str, to: &str| {
        let path = file(folder.path(), |text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        refusal(&["lab", "run", text(&path)]).replace(text(folder.path()), "…")
    };
    insta::assert_snapshot!(refused("tasks = 2", "tasks = \"two\""));
    insta::assert_snapshot!(refused("tasks = 2", "task = 2"));
    insta::assert_snapshot!(refused("tasks = 2", "tasks = 0"));
    insta::assert_snapshot!(refused("kind = \"page-fault\"", "kind = \"page-faults\""));
    insta::assert_snapshot!(refused("kind = \"page-fault\"\n", ""));
    insta::assert_snapshot!(refused("[workload]", "[workload"));
    let nothing = file(folder.path(), |_| "[[variant]]\n[[compare]]\nas = \"ratio\"\n".into());
    let line = refusal(&["lab", "run", text(&nothing)]);
    let all = "missing: name, title, about, source, compare.variant (line 2), compare.against (line 2), \
               compare.metric (line 2), variant.name (line 1)\n";
    assert!(line.ends_with(all), "{line}");
    let missing = folder.path().join("none.toml");
    insta::assert_snapshot!(refusal(&["lab", "run", text(&missing)]).replace(text(folder.path()), "…"));
}

#[test]
fn what_should_be_exact_and_is_not_ends_with_status_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), |text| text.replace("\"extrapolated\"", "\"exact\""));
    assert_eq!(freehold(&["lab", "run", text(&path), "--seeds", "1"]).status.code(), Some(1));
}
