//! The JSON of measurements: stable keys out, unknown keys passed over.

use freehold_lab::measurements::{Confidence, Document, Latency, LockStat, Role, Row, Run, Score};

fn document() -> Document {
    let mut run = Run {
        workload: "loop x10".into(),
        machine: "epyc-7w83".into(),
        machine_digest: "cbf29ce484222325".into(),
        policy: "linux-6.18".into(),
        variant: "scale-5".into(),
        seed: 1,
        confidence: Confidence::Predicted,
        confidence_reason: "checked".into(),
        simulated_ns: 1_000_000_000,
        wall_ns: 7,
        operations: 3,
        ..Run::default()
    };
    run.knobs.insert("vm.pcp_batch_scale_max".into(), 5.into());
    run.latency.insert("refill".into(), Latency::from_samples([1, 700, 900]));
    run.locks.insert("zone".into(), LockStat { acquired: 3, contended: 1, ..LockStat::default() });
    run.counters.insert("pgalloc_normal".into(), u64::MAX);
    run.omissions.insert("frees_without_allocation".into(), 2);
    Document {
        runs: vec![run],
        rows: vec![Row { published: 0.5, error: f64::INFINITY, role: Role::Fitted, ..Row::default() }],
        score: vec![Score { experiment: "pcp-batch".into(), ..Score::default() }],
        ..Document::new("replay loop.fh")
    }
}

#[test]
fn every_key_of_the_format_is_there() {
    let value: serde_json::Value = serde_json::from_str(&document().to_json()).expect("JSON");
    for key in ["freehold", "command", "runs", "rows", "score"] {
        assert!(value.get(key).is_some(), "{key}");
    }
    let run = &value["runs"][0];
    let keys = "workload machine machine_digest policy variant seed confidence confidence_reason knobs simulated_ns wall_ns \
                operations throughput latency locks memory counters omissions";
    for key in keys.split_whitespace() {
        assert!(run.get(key).is_some(), "{key}");
    }
    assert_eq!(run["confidence"], "predicted");
    assert_eq!(run["knobs"]["vm.pcp_batch_scale_max"], 5);
    assert_eq!(run["latency"]["refill"]["log2"], serde_json::json!([[0, 1], [512, 2]]));
    assert_eq!(run["counters"]["pgalloc_normal"], u64::MAX);
    assert_eq!(value["rows"][0]["role"], "fitted");
    assert!(value["rows"][0]["error"].is_null(), "JSON has no infinity");
}

#[test]
fn what_was_written_reads_back() {
    let mut document = document();
    document.rows.clear();
    assert_eq!(Document::from_json(&document.to_json()).expect("readable"), document);
}

#[test]
fn keys_of_a_later_version_are_passed_over() {
    let text = r#"{ "freehold": "9.0.0", "runs": [ { "machine": "m", "colour": [1, {"a": 2}],
        "latency": { "refill": { "count": 2, "p999_ns": 5 } } } ], "weather": "fine" }"#;
    let document = Document::from_json(text).expect("readable");
    assert_eq!(document.runs[0].latency["refill"].count, 2);
    assert_eq!(document.runs[0].confidence, Confidence::Extrapolated);
}

#[test]
fn an_unreadable_file_says_where_in_one_line() {
    let not_json = Document::from_json("{ \"freehold\": ").expect_err("cut short").to_string();
    assert!(not_json.starts_with("not readable as JSON: ") && not_json.contains("line 1"), "{not_json}");
    let other = Document::from_json("{ \"name\": 1 }").expect_err("another format").to_string();
    assert!(other.starts_with("not measurements of freehold's: ") && other.contains("freehold"), "{other}");
    assert!(!other.contains('\n'));
}

#[test]
fn wall_time_is_the_only_figure_that_may_differ() {
    let (one, mut other) = (document(), document());
    other.runs[0].wall_ns = 99;
    assert_ne!(one.runs, other.runs);
    assert_eq!(one.without_wall_time().runs, other.without_wall_time().runs);
}
