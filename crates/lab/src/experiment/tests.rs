use std::path::Path;

use mm::{LockClass, Nanos, Order, Span};
use sim::{Measurements, TimedCount};

use super::run::run_with;
use super::*;
use crate::measurements::{Direction, Document, Latency, Role, Row, Run, Throughput};
use crate::scene::Outcome;

const SMALL: &str = r#"
name = "small"
title = "a small one"
about = """Made up
for tests."""
source = "somebody"
machine = "kvm-genoa-2c"
run_ms = 100
seeds = 2
confidence = "predicted"
because = "it says so"

[knobs]
vm.stat_interval = 2

[workload]
kind = "page-fault"
tasks = 2

[[variant]]
name = "five"
published = [
  { metric = "refill.mean_ns", value = 2.0, unit = "us", role = "fitted" },
  { metric = "refill.count_per_second", value = 6000, over_seconds = 600, source = "somebody else" },
  { metric = "drain.sizes", value = [126, 252, 504] },
]

[[variant.histogram]]
span = "refill"
text = '''
     1024 -> 2047       : 2        |****************************************|
     2048 -> 4095       : 2        |****************************************|
avg = 2000 nsecs, total: 8000 nsecs, count: 4
'''

[[variant]]
name = "zero"
knobs = { "vm.pcp_batch_scale_max" = 0 }
warm_up_ms = 5
cpus = "0"
published = [{ metric = "refill.mean_ns", value = 500 }]

[[variant]]
name = "changes"
policy = "linux-6.11"
confidence = "extrapolated"

[[variant.phase]]
name = "before"
run_ms = 10

[[variant.phase]]
name = "after"
run_ms = 20
knobs = { vm.pcp_batch_scale_max = 1 }

[[compare]]
variant = "zero"
against = "five"
metric = "refill.mean_ns"
as = "change"

[[compare]]
variant = "changes/after"
against = "changes/before"
metric = "pages_per_second"
as = "percent"
value = 90
"#;

fn small() -> Experiment {
    Experiment::parse("small.toml", SMALL).expect("an experiment")
}

#[allow(clippy::unnecessary_wraps, reason = "the form of a performer")]
/// What a variant leaves behind here: refills shorter with a smaller value and later seeds.
fn perform(variant: &Variant, seed: u64) -> Result<Vec<Outcome>, String> {
    let value = |knobs: &[(mm::Knob, u64)]| {
        knobs.iter().rfind(|(knob, _)| *knob == mm::Knob::PcpBatchScaleMax).map(|(_, value)| *value)
    };
    let mut scale = value(&variant.setup.knobs).unwrap_or(5);
    let mut outcomes = vec![];
    for phase in &variant.phases {
        scale = value(&phase.set).unwrap_or(scale);
        let ns = 400 * scale + 100 * seed;
        let mut run = Run { simulated_ns: phase.length.0, ..Run::default() };
        run.machine = variant.setup.profile.name().into();
        run.throughput = Throughput { pages_per_second: 1000.0 + scale as f64, ..Throughput::default() };
        run.latency.insert("refill".into(), Latency::from_samples([ns, ns]));
        run.sequences.insert("drain".into(), vec![126, 252, 500 + seed]);
        outcomes.push(Outcome { phase: phase.name.clone(), run, measured: measured(ns) });
    }
    Ok(outcomes)
}

fn measured(ns: u64) -> Measurements {
    let mut measured = Measurements { spans: vec![Default::default()], ..Measurements::default() };
    let refills = &mut measured.spans[0][Span::Refill as usize];
    refills.latency.record(Nanos(ns));
    refills.latency.record(Nanos(ns));
    refills.by_order[Order::ZERO.index()].pages = 126;
    let cost = &mut measured.costs[Span::Refill as usize];
    cost.waits[LockClass::Zone as usize] = TimedCount { count: 1, time: Nanos(ns) };
    cost.hand_overs = TimedCount { count: 1, time: Nanos(30) };
    cost.holds[LockClass::Zone as usize] = TimedCount { count: 2, time: Nanos(ns - 10) };
    cost.touches[7] = TimedCount { count: 3, time: Nanos(ns - 50) };
    measured
}

fn ran(experiment: Experiment, options: &Options) -> Document {
    run_with(vec![experiment], options, &perform, &|_| {}).expect("it runs")
}

fn row<'a>(document: &'a Document, variant: &str, metric: &str) -> &'a Row {
    let found = document.rows.iter().find(|row| row.variant == variant && row.metric == metric);
    found.unwrap_or_else(|| panic!("no row {variant} {metric} in {:#?}", document.rows))
}

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
}

#[test]
fn what_a_variant_does_not_say_the_file_says() {
    let experiment = small();
    assert_eq!((experiment.seeds, experiment.about.as_str()), (2, "Made up for tests."));
    assert_eq!(experiment.machines(), ["kvm-genoa-2c"]);
    assert_eq!(
        [Role::Fitted, Role::Predicted, Role::Derived].map(|role| experiment.figures(role)),
        [1, 5, 2]
    );
    let [five, zero, changes] = &experiment.variants[..] else { panic!("three variants") };
    let knobs = |variant: &Variant| -> Vec<(&str, u64)> {
        variant.setup.knobs.iter().map(|(knob, value)| (knob.spec().name, *value)).collect()
    };
    assert_eq!(knobs(five), [("vm.stat_interval", 2)]);
    assert_eq!(knobs(zero), [("vm.stat_interval", 2), ("vm.pcp_batch_scale_max", 0)]);
    assert_eq!((five.setup.policy.name(), changes.setup.policy.name()), ("linux-6.18", "linux-6.11"));
    assert_eq!((five.phases[0].length, zero.setup.warm_up), (Nanos(100_000_000), Nanos(5_000_000)));
    assert_eq!(zero.setup.cpus, [mm::Cpu(0)]);
    assert_eq!(changes.case_name(1), "changes/after");
    assert_eq!(changes.phases[1].set, [(mm::Knob::PcpBatchScaleMax, 1)]);
    assert_eq!(changes.confidence.name(), "extrapolated");
    assert_eq!(five.because, "it says so");
}

#[test]
fn rows_stand_beside_what_was_published() {
    let document = ran(small(), &Options::default());
    let mean = row(&document, "five", "refill.mean_ns");
    assert_eq!((mean.published, mean.unit.as_str(), mean.role), (2000.0, "ns", Role::Fitted));
    near(mean.simulated, 2150.0);
    near(mean.stddev, 5000f64.sqrt());
    near(mean.error, 0.075);
    let count = row(&document, "five", "refill.count_per_second");
    assert_eq!((count.published, count.source.as_str()), (10.0, "somebody else"));
    near(count.simulated, 20.0);
    let sizes: Vec<f64> =
        (0..3).map(|place| row(&document, "five", &format!("drain.sizes[{place}]")).simulated).collect();
    assert_eq!(sizes, [126.0, 252.0, 501.5]);
    // All of one row: half a row from each side.
    let distance = row(&document, "five", "refill.emd_buckets");
    near(distance.simulated, 0.5);
    let change = row(&document, "zero against five", "refill.mean_ns");
    assert_eq!((change.published, change.unit.as_str()), (-75.0, "percent"));
    near(change.simulated, f64::midpoint(100.0 / 2100.0, 200.0 / 2200.0) * 100.0 - 100.0);
    near(change.error, change.simulated + 75.0);
    let pages = row(&document, "changes/after against changes/before", "pages_per_second");
    near(pages.simulated, 100.0 * 1001.0 / 1005.0);
    assert_eq!(document.runs.len(), 2 * 4);
    assert_eq!(document.runs[6].variant, "changes/before");
    assert_eq!(document.runs[0].experiment, "small");
    assert_eq!(document.runs[1].seed, 2);
}

#[test]
fn the_score_is_of_predicted_rows() {
    let document = ran(small(), &Options::default());
    let score = &document.score[0];
    // mean_ns of zero, count, three sizes, a comparison; the histogram's mean is there twice, and `zero against five`
    // follows from two means.
    assert_eq!((score.independent_rows, score.histograms), (6, 1));
    assert_eq!((score.predicted_rows, score.derived_rows, score.fitted_rows), (8, 2, 1));
    assert_eq!((score.direction_rows, score.direction_right), (2, 2));
    near(score.worst_emd_buckets, 0.5);
    near(score.worst_abs_error, 1.0);
    let mut errors: Vec<f64> = document
        .rows
        .iter()
        .filter(|row| row.role == Role::Predicted && row.unit != "buckets")
        .map(|row| if row.unit == "percent" { row.error.abs() / 100.0 } else { row.error.abs() })
        .collect();
    errors.sort_by(f64::total_cmp);
    near(score.median_abs_error, f64::midpoint(errors[2], errors[3]));
}

#[test]
fn with_one_seed_no_direction_is_scored() {
    let document = ran(small(), &Options { seeds: Some(1), ..Options::default() });
    let score = &document.score[0];
    assert_eq!((score.direction_rows, score.direction_right, score.direction_unqualified), (0, 0, 2));
    let change = row(&document, "zero against five", "refill.mean_ns");
    assert_eq!((change.direction, change.role), (Some(Direction::OneSeed), Role::Derived));
}

/// `small` with other words.
fn changed(changes: &[(&str, &str)]) -> Experiment {
    let mut text = SMALL.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    Experiment::parse("small.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_change_within_the_published_noise_is_not_scored() {
    let known = |stddev: u32| {
        changed(&[
            (
                "value = 2.0, unit",
                &format!("value = 2.0, stddev = {}, runs = 4, unit", f64::from(stddev) / 1e3),
            ),
            ("value = 500", &format!("value = 500, stddev = {stddev}, runs = 4")),
        ])
    };
    // 2000 to 500 ns: beyond deviations of 100, not beyond deviations of 3000 (of 4 runs each).
    let way = |experiment| {
        row(&ran(experiment, &Options::default()), "zero against five", "refill.mean_ns").direction
    };
    assert_eq!(way(known(100)), Some(Direction::Right));
    assert_eq!(way(known(3000)), Some(Direction::WithinNoise));
    let said = changed(&[("value = 90", "value = 90\nnoise = \"the post says so\"")]);
    let document = ran(said, &Options::default());
    let pages = row(&document, "changes/after against changes/before", "pages_per_second");
    assert_eq!((pages.role, pages.because.as_str()), (Role::Noise, "the post says so"));
    assert_eq!((document.score[0].direction_unqualified, document.score[0].noise_rows), (1, 1));
    let small = changed(&[("value = 90", "value = 90\nstddev = 6")]);
    assert_eq!(ran(small, &Options::default()).score[0].noise_rows, 1, "10 points with a deviation of 6");
}

#[test]
fn a_range_is_read_in_its_unit() {
    let experiment = changed(&[
        ("value = 500", "range = [0.1, 0.15], unit = \"us\""),
        ("as = \"change\"", "as = \"change\"\nvalue = -75"),
    ]);
    let zero = &row(&ran(experiment, &Options::default()), "zero", "refill.mean_ns").clone();
    assert_eq!((zero.published, zero.published_high), (100.0, Some(150.0)));
    near(zero.simulated, 150.0);
    near(zero.error, 0.0);
}

#[test]
fn a_figure_that_does_not_come_out_counts_as_far_off() {
    let text = SMALL.replace("refill.count_per_second", "drain.count_per_second");
    let document = ran(Experiment::parse("small.toml", &text).expect("an experiment"), &Options::default());
    assert!(row(&document, "five", "drain.count_per_second").simulated.is_nan());
    assert!(document.score[0].worst_abs_error.is_infinite());
}

#[test]
fn a_figure_that_was_not_published_is_shown_and_not_counted() {
    let text = SMALL.replace("value = 90", "value = nan").replace("value = 500", "value = nan").replace(
        "metric = \"refill.mean_ns\"\nas = \"change\"",
        "metric = \"refill.mean_ns\"\nas = \"change\"\nvalue = -75",
    );
    let document = ran(Experiment::parse("small.toml", &text).expect("an experiment"), &Options::default());
    let zero = row(&document, "zero", "refill.mean_ns");
    assert!(zero.published.is_nan() && zero.error.is_nan());
    near(zero.simulated, 150.0);
    assert_eq!((document.score[0].independent_rows, document.score[0].direction_rows), (5, 1));
}

#[test]
fn a_histogram_is_set_beside_the_published_one() {
    let document = ran(small(), &Options::default());
    let pair = &document.experiments[0].histograms[0];
    assert_eq!((pair.variant.as_str(), pair.published.count, pair.simulated.count), ("five", 4, 4));
    assert_eq!(pair.simulated.log2, [(2048, 4)]);
    assert_eq!(pair.simulated.mean_ns, 2150);
    let timed = SMALL.replace("span = \"refill\"", "span = \"refill\"\nover_seconds = 2");
    let document = ran(Experiment::parse("small.toml", &timed).expect("an experiment"), &Options::default());
    assert_eq!(document.experiments[0].histograms[0].simulated.log2, [(2048, 40)], "2 s after 2 × 0.1 s");
}

#[test]
fn explanations_say_where_a_mean_comes_from() {
    let options = Options { detail: Detail::Explained, ..Options::default() };
    let document = ran(small(), &options);
    let explanation = &document.experiments[0].explanations[0];
    assert_eq!((explanation.variant.as_str(), explanation.span.as_str()), ("five", "refill"));
    assert_eq!((explanation.count, explanation.pages, explanation.total_ns), (4, 252, 8600));
    let parts: Vec<(&str, u64)> =
        explanation.parts.iter().map(|part| (part.name.as_str(), part.ns)).collect();
    assert_eq!(
        parts,
        [("waiting for the zone lock", 4300), ("lines touched", 4200), ("interrupted by others", 100)]
    );
    assert_eq!((explanation.touches[0].name.as_str(), explanation.touches[0].count), ("local DRAM", 6));
    assert!(ran(small(), &Options::default()).experiments[0].explanations.is_empty());
}

#[test]
fn seeds_follow_each_other() {
    let options = Options { seeds: Some(3), first_seed: 7, ..Options::default() };
    let document = ran(small(), &options);
    let seeds: Vec<u64> = document.runs.iter().take(3).map(|run| run.seed).collect();
    assert_eq!(seeds, [7, 8, 9]);
    assert_eq!(simulations(&[small()], &options), 9);
}

#[test]
fn elsewhere_there_is_nothing_published_to_set_beside() {
    let xeon = sim::Profile::load("xeon-8260").expect("a profile");
    let options = Options { machines: vec![xeon], ..Options::default() };
    let document = ran(small(), &options);
    let mean = row(&document, "xeon-8260 as five", "refill.mean_ns");
    assert!(mean.published.is_nan() && mean.simulated > 0.0);
    assert!(document.runs.iter().all(|run| run.confidence.name() == "extrapolated"));
    assert_eq!((document.score[0].predicted_rows, document.score[0].direction_rows), (0, 0));
    let own = Options {
        machines: vec![sim::Profile::load("kvm-genoa-2c").expect("a profile")],
        ..Options::default()
    };
    assert_eq!(ran(small(), &own).rows, ran(small(), &Options::default()).rows);
}

const SWEEP: &str = r#"
name = "sweep"
title = "t"
about = "a"
source = "s"
run_ms = 10
seeds = 1
workload = { kind = "page-fault", tasks = 1 }

[[sweep]]
title = "who needs it"
machines = ["kvm-genoa-2c", "xeon-8260"]
knob = "vm.pcp_batch_scale_max"
values = [5, 3, 0]
metrics = ["refill.mean_ns", "pages_per_second"]

[sweep.criterion]
usual = 5
metric = "refill.mean_ns"
at_most = 1500
cost = "pages_per_second"
because = "so it is"
"#;

#[test]
fn a_sweep_says_which_machines_need_another_value() {
    let document = ran(Experiment::parse("sweep.toml", SWEEP).expect("an experiment"), &Options::default());
    let table = &document.experiments[0].sweeps[0];
    assert_eq!(table.rows, ["kvm-genoa-2c", "xeon-8260"]);
    assert_eq!(table.metrics[0].means, [[Some(2100.0), Some(1300.0), Some(100.0)]; 2]);
    let verdict = &table.verdicts[0];
    assert_eq!((verdict.usual, verdict.needed, verdict.advised), (2100.0, true, Some(3)));
    near(verdict.cost_percent, 100.0 * (1003.0 / 1005.0 - 1.0));
    assert!(document.rows.is_empty() && document.score.is_empty());
    assert_eq!(document.runs[1].variant, "kvm-genoa-2c vm.pcp_batch_scale_max=3");
    let elsewhere =
        Options { machines: vec![sim::Profile::load("epyc-7w83").expect("a profile")], ..Options::default() };
    let document = ran(Experiment::parse("sweep.toml", SWEEP).expect("an experiment"), &elsewhere);
    assert_eq!(document.experiments[0].sweeps[0].rows, ["epyc-7w83"]);
    assert_eq!(document.runs[0].variant, "epyc-7w83 vm.pcp_batch_scale_max=5");
}

#[test]
fn a_sweep_over_policies_has_a_row_for_each() {
    let text = SWEEP.replace("[[sweep]]", "[[sweep]]\npolicies = [\"linux-6.1\", \"linux-6.18\"]");
    let experiment = Experiment::parse("sweep.toml", &text).expect("an experiment");
    assert_eq!(experiment.sweeps[0].rows[1..3], ["kvm-genoa-2c linux-6.18", "xeon-8260 linux-6.1"]);
    assert_eq!(experiment.sweeps[0].cells[3].name, "kvm-genoa-2c linux-6.18 vm.pcp_batch_scale_max=5");
    let moved = experiment.on(&[sim::Profile::load("epyc-7w83").expect("a profile")]);
    assert_eq!(moved.sweeps[0].rows, ["epyc-7w83 linux-6.1", "epyc-7w83 linux-6.18"]);
    assert_eq!(moved.sweeps[0].cells.len(), 6);
}

/// `text` with `from` replaced by `to` is refused; what is said.
fn refusal(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    let changed = text.replacen(from, to, 1);
    Experiment::parse("f.toml", &changed).expect_err(to).to_string()
}

#[test]
fn bad_files_end_in_one_line_with_place_and_key() {
    let of_small = [
        ("name = \"small\"", ""),
        ("name = \"small\"", "name = \"a b\""),
        ("title = \"a small one\"", "title = 3"),
        ("title = \"a small one\"", "titel = \"a\""),
        ("seeds = 2", "seeds = 0"),
        ("run_ms = 100", "run_ms = -1"),
        ("run_ms = 100", ""),
        ("machine = \"kvm-genoa-2c\"", "machine = \"kvm-genua-2c\""),
        ("machine = \"kvm-genoa-2c\"", ""),
        ("machine = \"kvm-genoa-2c\"", "machine = \"./mine.toml\""),
        ("vm.stat_interval = 2", "vm.stat_interval = 0"),
        ("vm.stat_interval = 2", "vm.stat_intervall = 1"),
        ("vm.stat_interval = 2", "vm.stat_interval = \"soon\""),
        ("vm.stat_interval = 2", "vm.stat_interval = 1.5"),
        ("vm.stat_interval = 2", "vm.numa_zonelist_order = \"zone\""),
        ("name = \"zero\"", "name = \"five\""),
        ("policy = \"linux-6.11\"", "policy = \"linux-2.4\""),
        ("cpus = \"0\"", "cpus = \"0-7\""),
        ("confidence = \"extrapolated\"", "confidence = \"sure\""),
        ("refill.mean_ns", "refill.mean"),
        ("unit = \"us\"", "unit = \"pages\""),
        ("over_seconds = 600", "over_seconds = 0"),
        ("value = 6000, over_seconds = 600", "value = \"6000\""),
        ("metric = \"refill.count_per_second\", value = 6000", "metric = \"refill.p99_ns\", value = 6000"),
        ("role = \"fitted\"", "role = \"derived\""),
        ("role = \"fitted\"", "role = \"zero\""),
        ("value = 500", "range = [2, 1]"),
        ("value = 500", "value = 1, range = [1, 2]"),
        ("value = 500", "value = 1, stddev = -1"),
        ("value = 500", "value = 1, stddev = 1, runs = 0"),
        ("value = [126, 252, 504]", "value = 126"),
        ("role = \"fitted\"", "role = \"guessed\""),
        ("count: 4", "count: 5"),
        ("span = \"refill\"", "span = \"refil\""),
        ("span = \"refill\"", "span = \"refill\"\nfitted = [\"p99_ns\"]"),
        ("variant = \"zero\"", "variant = \"nought\""),
        ("against = \"five\"", "against = \"changes\""),
        ("metric = \"refill.mean_ns\"\nas", "metric = \"refill.p50_ns\"\nas"),
        ("as = \"change\"", "as = \"delta\""),
        ("run_ms = 10\n", "run_ms = 3600001\n"),
        ("name = \"after\"", "name = \"before\""),
        ("[workload]", "[[workload]]"),
    ];
    let mut said: Vec<String> = of_small.iter().map(|(from, to)| refusal(SMALL, from, to)).collect();
    let of_sweep = [
        ("knob = \"vm.pcp_batch_scale_max\"", "knob = \"vm.pcp\""),
        ("values = [5, 3, 0]", "values = [5, 7]"),
        ("values = [5, 3, 0]", "values = []"),
        ("metrics = [\"refill.mean_ns\", ", "metrics = [\"refill.emd_buckets\", "),
        ("usual = 5", "usual = 4"),
        ("[[sweep]]", "[[sweeps]]"),
    ];
    said.extend(of_sweep.iter().map(|(from, to)| refusal(SWEEP, from, to)));
    said.push(Experiment::parse("f.toml", "name = ").expect_err("cut").to_string());
    assert!(said.iter().all(|line| line.lines().count() == 1), "{said:#?}");
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn every_bundled_experiment_can_be_read_under_its_name() {
    for name in Experiment::bundled_names() {
        let experiment = Experiment::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(experiment.name, name);
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(format!("{name}.toml"));
        let from_file =
            Experiment::load(file.to_str().expect("UTF-8")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(from_file.figures(Role::Predicted), experiment.figures(Role::Predicted));
    }
    let error = Experiment::load("pcp-bach").expect_err("unknown").to_string();
    assert!(error.contains("pcp-batch"), "{error}");
}

#[test]
fn what_should_be_exact_and_is_not_is_found() {
    let exact = SMALL.replace("confidence = \"predicted\"", "confidence = \"exact\"");
    let document = ran(Experiment::parse("small.toml", &exact).expect("an experiment"), &Options::default());
    let found: Vec<&str> = inexact_rows(&document).iter().map(|row| row.metric.as_str()).collect();
    assert!(found.contains(&"drain.sizes[2]") && !found.contains(&"drain.sizes[0]"), "{found:?}");
    assert!(inexact_rows(&ran(small(), &Options::default())).is_empty());
}

#[test]
fn no_row_of_a_bundled_experiment_follows_from_others_and_counts() {
    for name in Experiment::bundled_names() {
        let experiment = Experiment::load(name).unwrap_or_else(|error| panic!("{error}"));
        let mut facts: Vec<(usize, usize, &str)> = vec![];
        for (index, variant) in experiment.variants.iter().enumerate() {
            let known = variant.figures.iter().filter(|figure| figure.published.is_known());
            let counted = known.filter(|figure| matches!(figure.role, Role::Predicted | Role::Fitted));
            facts.extend(counted.map(|figure| (index, figure.phase, figure.metric.path())));
        }
        for (at, fact @ (variant, phase, path)) in facts.iter().enumerate() {
            assert!(!facts[..at].contains(fact) || path.ends_with("sizes"), "{name}: {path} counts twice");
            let has = |other: String| facts.contains(&(*variant, *phase, other.as_str()));
            if let Some(span) = path.strip_suffix(".mean_ns") {
                let both =
                    has(format!("{span}.count_per_second")) && has(format!("{span}.total_ns_per_second"));
                assert!(!both, "{name}: {span} has mean, count and total");
            }
            if let Some(alike) = path.strip_prefix("mean.") {
                assert!(!has(format!("sum.{alike}")), "{name}: a sum of {alike} beside its mean");
            }
        }
        for of in
            experiment.comparisons.iter().filter(|of| of.role == Role::Predicted && of.published.is_finite())
        {
            let has = |case: Case| facts.contains(&(case.variant, case.phase, of.metric.path()));
            assert!(!(has(of.case) && has(of.against)), "{name}: {} is a quotient of two rows", of.metric);
        }
    }
}

#[test]
fn a_machine_on_which_nothing_happens_predicts_nothing() {
    let nothing = |variant: &Variant, _: u64| -> Result<Vec<Outcome>, String> {
        let one = |phase: &crate::scene::Phase| {
            let run = Run { simulated_ns: phase.length.0, ..Run::default() };
            Outcome { phase: phase.name.clone(), run, measured: Measurements::default() }
        };
        Ok(variant.phases.iter().map(one).collect())
    };
    let all: Vec<Experiment> =
        Experiment::bundled_names().map(|name| Experiment::load(name).expect("an experiment")).collect();
    let document = run_with(all, &Options::default(), &nothing, &|_| {}).expect("it runs");
    let right = document.rows.iter().filter(|row| row.role == Role::Predicted && row.error == 0.0);
    let right: Vec<&Row> = right.collect();
    assert!(right.is_empty(), "{right:#?}");
    assert!(document.score.iter().all(|score| score.direction_right == 0));
}

#[test]
fn every_knob_of_a_bundled_experiment_can_act_there() {
    let said: Vec<String> = Experiment::bundled_names()
        .filter_map(|name| super::run::check_knobs(&Experiment::load(name).unwrap()).err())
        .map(|error| error.to_string())
        .collect();
    assert!(said.is_empty(), "{}", said.join("\n"));
}

#[test]
fn a_knob_that_cannot_act_is_an_error_that_names_the_file_and_the_variant() {
    let text = SMALL.replace("vm.pcp_batch_scale_max\" = 0", "vm.swappiness\" = 0");
    let experiment = Experiment::parse("small.toml", &text).unwrap();
    let error = super::run::check_knobs(&experiment).unwrap_err();
    insta::assert_snapshot!(error, @"small.toml: variant zero: vm.swappiness cannot act here: the workload has no address spaces; --force runs it all the same");
}
