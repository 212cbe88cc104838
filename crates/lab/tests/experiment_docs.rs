//! docs/experiments.md says what there is: its example runs, its metrics are those of the code.

use freehold_lab::experiment::{Experiment, METRICS, Options, run};

const DOCS: &str = include_str!("../../../docs/experiments.md");

fn example() -> &'static str {
    let (_, rest) = DOCS.split_once("<!-- example -->\n```toml\n").expect("an example begins");
    rest.split_once("```\n<!-- end -->").expect("and ends").0
}

#[test]
fn the_example_runs() {
    let experiment =
        Experiment::parse("docs/experiments.md", example()).unwrap_or_else(|error| panic!("{error}"));
    let document =
        run(vec![experiment], &Options::default(), &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(document.rows.len(), 5);
    for row in &document.rows {
        assert!(row.simulated > 0.0 || row.unit == "percent", "{row:?}");
        assert!(row.error.is_finite(), "{row:?}");
    }
    let small = document.rows.iter().find(|row| row.unit == "ratio").expect("the first comparison");
    assert!(small.simulated < 0.5, "refills of 63 pages are much shorter than those of 2016: {small:?}");
    let table = &document.experiments[0].sweeps[0];
    assert!(
        table.metrics[0].means.iter().all(|means| means[0].is_some() && means[0] < means[1]),
        "{table:?}"
    );
}

#[test]
fn the_table_of_metrics_is_the_codes() {
    for spec in METRICS {
        let line = format!("| `{}` | {} | {} |", spec.path, spec.unit, spec.meaning);
        assert!(DOCS.contains(&line), "docs/experiments.md lacks\n{line}");
    }
    let documented = DOCS.split_once("| metric | unit |").expect("a table").1;
    let lines = documented.lines().skip(2).take_while(|line| line.starts_with('|')).count();
    assert_eq!(lines, METRICS.len(), "docs/experiments.md has a metric that the code has not");
}

#[test]
fn every_workload_is_described() {
    let unknown = example().replace("kind = \"page-fault\"", "kind = \"none\"");
    let said = Experiment::parse("f.toml", &unknown).expect_err("there is no such workload").to_string();
    let (_, kinds) = said.split_once("expected one of ").expect("it says which there are");
    for kind in kinds.split(", ") {
        assert!(DOCS.contains(&format!("| {kind} |")), "docs/experiments.md says nothing of {kind}");
    }
}

/// The example of a script runs to its end, and gives the samples that its page says.
#[test]
fn the_script_runs() {
    let (_, rest) = DOCS.split_once("<!-- script -->\n```toml\n").expect("an example begins");
    let workload = rest.split_once("```\n<!-- end -->").expect("and ends").0;
    let text = format!(
        "name = \"script\"\ntitle = \"x\"\nabout = \"x\"\nsource = \"x\"\nmachine = \"kvm-genoa-2c\"\nrun_ms = 2000\nseeds = 1\n\
        knobs = {{ \"zram.disksize\" = \"64M\" }}\n[workload]\n{workload}\n[[variant]]\nname = \"one\"\npublished = [\n\
        {{ metric = \"counters.script_done\", value = 2 }},\n{{ metric = \"counters.script_refused\", value = 0 }},\n\
        {{ metric = \"mean_ns.first\", value = nan }},\n{{ metric = \"mean_ns.round-3\", value = nan }},\n\
        {{ metric = \"sampled.round.heap.swap\", value = nan }},\n{{ metric = \"sampled.end.self.faults\", value = nan }},\n]\n"
    );
    let experiment =
        Experiment::parse("docs/experiments.md", &text).unwrap_or_else(|error| panic!("{error}"));
    let document =
        run(vec![experiment], &Options::default(), &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    let value = |metric: &str| {
        let row = document.rows.iter().find(|row| row.metric == metric);
        row.unwrap_or_else(|| panic!("no {metric} in {:#?}", document.rows)).simulated as u64
    };
    assert_eq!(value("counters.script_done"), 2, "the program and its child");
    assert_eq!(value("counters.script_refused"), 0);
    assert!(value("mean_ns.first") > 0 && value("mean_ns.round-3") > 0);
    assert!(value("sampled.round.heap.swap") > 900, "4 of 12 MiB do not fit");
    assert!(value("sampled.end.self.faults") > 0);
}
