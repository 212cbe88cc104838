//! `freehold tune`, as a user runs it.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use common::{freehold, recording, refusal, stdout};
use lab::measurements::{Document, Run, Tune};
use serde_json::{Value, json};

/// Four copies of the recording on a small machine, whose lists of pages a patch lets one set.
const ON: [&str; 6] =
    ["--machine", "kvm-genoa-2c", "--copies", "4", "--policy", "linux-6.18+pcp_batch_scale_max"];
const KNOBS: [&str; 4] =
    ["--knob", "vm.pcp_batch_scale_max=0..6", "--knob", "vm.percpu_pagelist_high_fraction=0,8,64,512"];

fn words<'a>(rec: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["tune", rec, "--quiet"][..], &ON, &KNOBS, more].concat()
}

/// The answer, without how long simulations took.
fn document(words: &[&str]) -> Document {
    let document = Document::from_json(&stdout(&[words, &["--json"]].concat())).expect("measurements");
    let runs = document.runs.into_iter().map(|run| Run { wall_ns: 0, ..run }).collect();
    Document { runs, command: String::new(), ..document }
}

#[test]
fn an_answer_has_a_setting_what_it_does_where_it_holds_and_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 6000);
    let also = folder.path().join("also.rec");
    fs::copy(&rec, &also).unwrap();
    let (rec, also) = (rec.to_str().unwrap(), also.to_str().unwrap());
    let asked =
        words(rec, &["--goal", "refill.p99_ns", "--keep", "rss:max=110%", "--also", also, "--budget", "12"]);
    insta::assert_snapshot!(stdout(&asked));
    insta::assert_snapshot!("tune_in_full", stdout(&[&asked[..], &["--full"]].concat()));
    let page = folder.path().join("page.html");
    stdout(&[&asked[..], &["--report", page.to_str().unwrap()]].concat());
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("unseen seeds") && page.contains("machine variants"), "{page}");
}

#[test]
fn what_wins_is_a_plan_for_apply() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 6000);
    let plan = folder.path().join("best.plan");
    let plan = plan.to_str().unwrap();
    let asked = ["--goal", "refill.p99_ns", "--budget", "12", "--plan", plan];
    let document = document(&words(rec.to_str().unwrap(), &asked));
    let winner = document.tune[0].winner.as_ref().expect("a small refill is small");
    let applied = freehold(&["apply", "--kernel", "6.18", "--json", plan]);
    let applied: Value = serde_json::from_slice(&applied.stdout).expect("what it comes to");
    let settings = applied["settings"].as_array().unwrap();
    let named: Vec<&str> = settings.iter().map(|setting| setting["knob"].as_str().unwrap()).collect();
    assert_eq!(named, winner.knobs.iter().map(|set| set.knob.as_str()).collect::<Vec<_>>());
    let several = [&words(rec.to_str().unwrap(), &asked)[..], &["--machine", "xeon-snb"]].concat();
    assert!(refusal(&several).contains("--plan is for one machine's setting"));
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 6000);
    let with = |jobs| {
        document(&words(
            rec.to_str().unwrap(),
            &["--goal", "refill.mean_ns", "--budget", "8", "--jobs", jobs],
        ))
    };
    let one = with("1");
    assert_eq!(one, with("2"));
    let robustness = one.tune[0].robustness.as_ref().expect("a small refill is small");
    assert_eq!((robustness.seeds.of, robustness.variants.of > 10), (10, true));
}

#[test]
fn killed_in_the_middle_it_goes_on_and_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 6000);
    let [whole, torn] = ["whole", "torn"].map(|name| folder.path().join(name));
    let asked = |journal: &Path| {
        let more = [
            "--goal",
            "refill.mean_ns",
            "--budget",
            "8",
            "--seed",
            "5",
            "--journal",
            journal.to_str().unwrap(),
        ];
        words(rec.to_str().unwrap(), &more).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let text = |words: &[String]| document(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let uninterrupted = text(&asked(&whole));
    let lines = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    let mut running = Command::new(env!("CARGO_BIN_EXE_freehold"))
        .args(asked(&torn))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while lines(&torn) < 7 && running.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(lines(&torn) < lines(&whole), "it was not stopped in the middle");
    // As if it had been stopped while it wrote.
    fs::OpenOptions::new().append(true).open(&torn).unwrap().write_all(b"{\"key\":\"12").unwrap();
    assert_eq!(text(&asked(&torn)), uninterrupted);
    let keys = |path: &Path| -> Vec<String> {
        let key =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["key"].as_str().unwrap().to_owned();
        fs::read_to_string(path).unwrap().lines().map(key).collect()
    };
    let (all, again) = (keys(&whole), keys(&torn));
    assert_eq!(again.iter().collect::<BTreeSet<_>>().len(), again.len(), "nothing ran twice");
    assert_eq!(again.iter().collect::<BTreeSet<_>>(), all.iter().collect::<BTreeSet<_>>());
    // And once more: nothing runs.
    assert_eq!((text(&asked(&torn)), lines(&torn)), (uninterrupted, again.len()));
}

/// Four loops for some milliseconds, on two machines.
const EXPERIMENT: &str = r#"
name = "first-touch"
title = "Four loops"
about = "Made up."
source = "nowhere"
policy = "linux-6.18+pcp_batch_scale_max"
confidence = "extrapolated"
because = "nothing here was ever measured"
warm_up_ms = 5
run_ms = 20
[knobs]
vm.percpu_pagelist_high_fraction = 4096
[workload]
kind = "python-loop"
processes = 4
mib = 32
[[variant]]
name = "small"
machine = "kvm-genoa-2c"
[[variant]]
name = "large"
machine = "coffee-lake"
"#;

#[test]
fn an_experiment_is_tuned_on_each_machine_and_a_size_has_a_curve() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("first-touch.toml");
    fs::write(&file, EXPERIMENT).unwrap();
    let words = ["tune", file.to_str().unwrap(), "--quiet", "--seeds", "3", "--unseen", "3"];
    let asked = [
        "--knob",
        "vm.pcp_batch_scale_max=0..6",
        "--goal",
        "pages_per_second",
        "--machine",
        "kvm-genoa-2c,coffee-lake",
    ];
    let answers = document(&[&words[..], &asked].concat()).tune;
    let machines: Vec<(&str, &str)> =
        answers.iter().map(|of| (of.machine.as_str(), of.workload.as_str())).collect();
    assert_eq!(machines, [("kvm-genoa-2c", "small of first-touch"), ("coffee-lake", "large of first-touch")]);
    for answer in &answers {
        let curve = answer.curve.as_ref().expect("one numeric knob");
        assert_eq!(curve.points.len(), 7);
        assert_eq!((answer.goals[0].better.as_str(), answer.goals[0].unit.as_str()), ("higher", "pages/s"));
        assert!(answer.winner.is_some() || answer.stays.contains("beyond the noise"), "{answer:?}");
    }
    let two_goals = ["--knob", "vm.pcp_batch_scale_max=0..6", "--goal", "pages_per_second,peak_rss"];
    let of = |more: &[&str]| stdout(&[&words[..], &two_goals, more].concat());
    let front = "none of these is better";
    let (short, full) = (of(&[]), of(&["--full"]));
    assert!(short.contains("beside now") && !short.contains(front) && full.contains(front), "{short}{full}");
}

/// Under 8 MiB the program is killed, and so is the fastest.
#[test]
fn no_program_is_killed_for_its_time() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/redis-program.rec");
    let words = ["tune", recording, "--quiet", "--seeds", "2", "--unseen", "2", "--machine", "kvm-genoa-2c"];
    let asked = ["--knob", "memory.max=max,8M", "--goal", "elapsed_ns", "--every"];
    let answers = document(&[&words[..], &asked].concat()).tune;
    assert!(answers[0].winner.is_none(), "{:?}", answers[0].winner);
}

/// A program on the other end of `--ask-tell`.
struct Driver {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Driver {
    fn new(words: &[&str]) -> (Self, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut driver = Self { child, to, from };
        let hello = driver.hear();
        (driver, hello)
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn say(&mut self, line: &Value) -> Value {
        writeln!(self.to, "{line}").unwrap();
        self.hear()
    }

    fn end(mut self) {
        writeln!(self.to, "{}", json!({ "end": {} })).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn another_program_searches_by_our_simulations() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 6000);
    let (mut driver, hello) =
        Driver::new(&words(rec.to_str().unwrap(), &["--goal", "refill.mean_ns", "--ask-tell"]));
    assert_eq!((&hello["protocol"], &hello["figures"]), (&json!(1), &json!(["refill.mean_ns"])));
    assert_eq!(hello["shares"], json!([0.333, 1.0]));
    assert_eq!(hello["space"][0]["values"], json!(["0", "1", "2", "3", "4", "5", "6"]));
    // It goes through one knob, as a grid search does.
    let mut values = vec![];
    for value in 0..=6 {
        let ask = json!({ "evaluate": { "knobs": { "vm.pcp_batch_scale_max": value }, "seed": 1, "share": 0.333 } });
        let came = driver.say(&ask);
        values
            .push(came["evaluated"]["values"]["refill.mean_ns"].as_f64().unwrap_or_else(|| panic!("{came}")));
    }
    assert!(values[0] < values[6], "{values:?}");
    let problems = [
        (json!({ "evaluate": { "knobs": { "vm.pcp_batch_scale_max": 7 }, "seed": 1 } }), "out of range"),
        (
            json!({ "evaluate": { "knobs": { "vm.swappiness": 7 }, "seed": 1 } }),
            "vm.swappiness cannot act here",
        ),
        (json!({ "evaluate": { "seed": 1, "share": 0.5 } }), "no part of 500 thousandths"),
        (json!({ "evaluate": { "knobs": {} } }), "seed"),
        (json!({ "tell": { "id": 4, "values": {} } }), "4 was not asked for"),
        (json!(["evaluate"]), "not a line of the protocol"),
    ];
    for (line, part) in problems {
        let said = driver.say(&line);
        assert!(said["error"].as_str().is_some_and(|said| said.contains(part)), "{part} is not in {said}");
    }
    driver.end();
}

#[test]
fn we_search_by_another_programs_measurements() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 6000);
    let (mut driver, _) = Driver::new(&words(
        rec.to_str().unwrap(),
        &["--goal", "fault.p99_ns", "--ask-tell", "--budget", "60"],
    ));
    let (mut asked, mut held) = (0, vec![]);
    let answer = loop {
        let said = driver.say(&json!({ "ask": {} }));
        if !said["answer"].is_null() {
            break said["answer"].clone();
        }
        if !said["wait"].is_null() {
            // Told in another order than they were asked for.
            assert_eq!(said["wait"]["for"].as_array().unwrap().len(), held.len());
            for (id, value) in held.drain(..).rev() {
                let said = driver.say(&json!({ "tell": { "id": id, "values": { "fault.p99_ns": value } } }));
                assert_eq!(said, json!({ "told": id }));
            }
            continue;
        }
        asked += 1;
        let trial = &said["asked"];
        let scale =
            trial["knobs"]["vm.pcp_batch_scale_max"].as_str().map_or(5.0, |of| of.parse::<f64>().unwrap());
        let seed = trial["seed"].as_u64().unwrap();
        let value = 1000.0 + 10.0 * (scale - 2.0) * (scale - 2.0) + (seed % 5) as f64;
        held.push((trial["id"].as_u64().unwrap(), value));
    };
    let answer: Tune = serde_json::from_value(answer).unwrap();
    let winner = answer.winner.expect("two is the best scale");
    assert_eq!((winner.knobs[0].value.as_str(), winner.knobs.len()), ("2", 1));
    assert!((winner.means[0] - winner.changes[0].mean - 1092.0).abs() < 1.0, "{winner:?}");
    assert!(asked > 20, "{asked}");
    driver.end();
}

#[test]
fn what_cannot_be_asked_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 2000);
    let rec = rec.to_str().unwrap();
    let notes = folder.path().join("notes");
    fs::write(&notes, "my notes\n").unwrap();
    let of = |more: &[&str]| refusal(&words(rec, more));
    let with = |knob: &str| refusal(&[&["tune", rec, "--quiet"][..], &ON, &["--knob", knob]].concat());
    let cases = [
        (of(&["--goal", "refil.p99_ns"]), "there is no figure `refil.p99_ns` here"),
        (of(&["--goal", "huge_faults"]), "huge_faults:lower or huge_faults:higher"),
        (of(&["--keep", "rss"]), "--keep `rss` is no bound"),
        (of(&["--variant", "x"]), "--variant is for experiments"),
        (of(&["--set", "vm.stat_interval=1,2"]), "--knob vm.stat_interval=V,V searches them"),
        (of(&["--journal", notes.to_str().unwrap()]), "line 1 is none of a journal of freehold tune"),
        (of(&["--also", "./none.rec"]), "none.rec"),
        (of(&["--budget", "0"]), "--budget"),
        (with("vm.pcp_bach_scale_max"), "vm.pcp_batch_scale_max"),
        (with("vm.pcp_batch_scale_max=7"), "out of range"),
        (with("vm.pcp_batch_scale_max=5"), "leaves nothing to choose"),
        (with("vm.pcp_batch_scale_max=5..2"), "the lower end first"),
        (with("vm.swappiness"), "vm.swappiness cannot act here"),
        (refusal(&["tune", "pcp-bach"]), "pcp-batch"),
        (refusal(&["tune", "pcp-batch", "--copies", "2"]), "--copies is for recordings"),
        (refusal(&["tune", "pcp-batch", "--machine", "nowhere"]), "nowhere"),
    ];
    for (said, part) in cases {
        assert!(said.starts_with("freehold: ") && said.contains(part), "{part} is not in {said}");
    }
    assert_eq!(freehold(&["tune"]).status.code(), Some(2));
}
