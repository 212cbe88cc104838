//! `--json` of every command, held against docs/schema/freehold-1.json, and `--csv` of those that have tables.

mod common;

use std::path::Path;

use common::{MACHINE, freehold, recording, stdout};
use jsonschema::Validator;
use serde_json::{Value, json};

fn committed() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/freehold-1.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What an output of `kind` has to be.
fn validator(kind: &str) -> Validator {
    let schema = json!({ "$ref": format!("#/$defs/{kind}"), "$defs": committed()["$defs"] });
    jsonschema::validator_for(&schema).unwrap()
}

fn parsed(words: &[&str]) -> Value {
    serde_json::from_str(&stdout(words)).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// What of `output` does not fit, in lines.
fn misfits(validator: &Validator, output: &Value) -> Vec<String> {
    validator.iter_errors(output).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn path(of: &Path) -> &str {
    of.to_str().unwrap()
}

/// The example of docs/experiments.md, as a file in `folder`.
fn experiment(folder: &Path) -> String {
    let docs = include_str!("../../../docs/experiments.md");
    let (_, rest) = docs.split_once("<!-- example -->\n```toml\n").expect("an example begins");
    let file = folder.join("mine.toml");
    std::fs::write(&file, rest.split_once("```\n").expect("and ends").0).unwrap();
    path(&file).to_owned()
}

#[test]
fn the_committed_schema_is_what_the_program_prints() {
    assert_eq!(
        parsed(&["schema"]),
        committed(),
        "freehold schema > docs/schema/freehold-1.json makes it anew"
    );
}

#[test]
fn every_list_fits() {
    for (kind, words) in [
        ("machines", &["machines", "--json"][..]),
        ("machines", &["machines", "show", "epyc-7w83", "--json"]),
        ("zonelists", &["machines", "show", "xeon-8260", "--zonelists", "--json"]),
        ("knobs", &["knobs", "--json"]),
        ("knobs", &["knobs", "show", "vm.swappiness", "--json"]),
        ("policies", &["policies", "--json"]),
        ("policy", &["policies", "show", "linux-6.1+yield", "--json"]),
        ("policy", &["policies", "show", "linux-6.18", "--machine", "xeon-8260", "--json"]),
        ("experiments", &["lab", "--json"]),
        ("metrics", &["lab", "metrics", "--json"]),
        ("operations", &["bench", "--mib", "64", "--rounds", "1", "--threads", "1", "--quiet", "--json"]),
    ] {
        let output = parsed(words);
        assert_eq!(misfits(&validator(kind), &output), Vec::<String>::new(), "{words:?}");
        let rows = stdout(&[&words[..words.len() - 1], &["--csv"]].concat());
        assert!(rows.lines().count() > 1, "{words:?}: {rows}");
    }
}

#[test]
fn every_measurement_fits() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 3000);
    let program = format!("{}/../../recordings/redis-program.rec", env!("CARGO_MANIFEST_DIR"));
    let (rec, one) = (path(&rec), folder.path().join("one.json"));
    let set = ["--set", "vm.pcp_batch_scale_max=5,0", "--fail-if", "refill.p99_ns:max=1s"];
    let replay = [&["replay", rec, "--quiet", MACHINE, "--json"][..], &set].concat();
    std::fs::write(&one, stdout(&replay)).unwrap();
    let huge = ["--set", "transparent_hugepage.enabled=never,always", "--seeds", "1"];
    let experiment = experiment(folder.path());
    let why =
        ["why", rec, MACHINE, "--quiet", "--set", "vm.pcp_batch_scale_max=5,0", "--seeds", "2", "--json"];
    let tune = ["tune", rec, MACHINE, "--quiet", "--policy", "linux-6.18+pcp_batch_scale_max", "--goal"];
    let knob = ["refill.mean_ns", "--knob", "vm.pcp_batch_scale_max=0..6", "--budget", "4", "--json"];
    let validator = validator("measurements");
    for words in [
        replay,
        [&["replay", &program, "--quiet", MACHINE, "--json"][..], &huge].concat(),
        vec!["lab", "run", &experiment, "--seeds", "1", "--quiet", "--json", "--explain"],
        vec!["compare", path(&one), path(&one), "--json"],
        why.to_vec(),
        [&tune[..], &knob].concat(),
    ] {
        let output = parsed(&words);
        assert_eq!(misfits(&validator, &output), Vec::<String>::new(), "{words:?}");
        assert_eq!(output["schema"], json!(1), "{words:?}");
        let csv: Vec<&str> =
            words.iter().map(|word| if *word == "--json" { "--csv" } else { *word }).collect();
        let rows = stdout(&csv);
        assert!(
            rows.lines().count() > 1
                && ["metric", "setting"].iter().any(|of| rows.lines().next().unwrap().contains(of)),
            "{csv:?}: {rows}"
        );
    }
}

#[test]
fn what_is_said_of_files_fits() {
    let folder = tempfile::tempdir().unwrap();
    let rec = recording(folder.path(), 300);
    let file = |name: &str| format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    let redis = file("recordings/redis-program.rec");
    for (kind, words) in [
        ("inspection", vec!["inspect", path(&rec), "--json"]),
        ("inspection", vec!["inspect", &redis, "--json"]),
        (
            "conformed",
            vec![
                "conform",
                &file("conformance/linux-6.18-c2-4G.txt"),
                &file("conformance/traces/linux-6.18-c2-4G-one-task.csv.xz"),
                "--json",
            ],
        ),
        ("traced", vec!["conform", "--trace", &file("conformance/scenes/deferred-split.txt.xz"), "--json"]),
    ] {
        assert_eq!(misfits(&validator(kind), &parsed(&words)), Vec::<String>::new(), "{words:?}");
    }
}

#[test]
fn what_recording_and_this_machine_say_fits() {
    let plan = parsed(&["apply", "--set", "vm.swappiness=10", "--dry-run", "--json"]);
    assert_eq!(misfits(&validator("settings"), &plan), Vec::<String>::new());
    let folder = tempfile::tempdir().unwrap();
    let rec = folder.path().join("a.rec");
    let output = freehold(&["record", "-o", path(&rec), "--quiet", "--json", "--", "true"]);
    let said = String::from_utf8(output.stderr).unwrap();
    match serde_json::from_str(&said) {
        Ok(output) => assert_eq!(misfits(&validator("recorded"), &output), Vec::<String>::new(), "{said}"),
        Err(_) => eprintln!("skipped, for nothing can be recorded here: {said}"),
    }
}

#[test]
fn an_output_that_is_not_as_written_down_does_not_fit() {
    let validator = validator("knobs");
    let good = parsed(&["knobs", "show", "vm.swappiness", "--json"]);
    assert!(validator.is_valid(&good));
    let changed = |change: fn(&mut Value)| {
        let mut output = good.clone();
        change(&mut output);
        !validator.is_valid(&output)
    };
    assert!(changed(|output| output["knobs"][0]["new"] = json!(1)), "a key that nobody wrote down");
    assert!(changed(|output| output["knobs"][0]["min"] = json!("0")), "a text for a number");
    assert!(
        changed(|output| drop(output["knobs"][0].as_object_mut().unwrap().remove("unit"))),
        "a key is missing"
    );
    assert!(changed(|output| output["schema"] = json!(2)), "another version");
    let validator = of_any();
    assert!(validator.is_valid(&good) && !validator.is_valid(&json!({ "schema": 1 })));
}

/// Of any output.
fn of_any() -> Validator {
    jsonschema::validator_for(&committed()).unwrap()
}
