//! What a terminal and the results page show of experiments, as snapshots.

mod fixture;

use freehold_report::{Style, experiment, results};
use lab::experiment::Results;
use lab::measurements::{
    Account, Document, Explanation, HistogramPair, Latency, Part, SweepMetric, SweepTable, Verdict,
};

fn part(name: &str, count: u64, ns: u64) -> Part {
    Part { name: name.into(), count, ns }
}

fn sweep() -> SweepTable {
    let metric = |metric: &str, unit: &str, means: [[f64; 3]; 2]| SweepMetric {
        metric: metric.into(),
        unit: unit.into(),
        means: means.map(|row| row.map(|mean| mean.is_finite().then_some(mean)).to_vec()).to_vec(),
    };
    let verdict = |row: &str, usual: f64, advised: Option<u64>| Verdict {
        row: row.into(),
        usual,
        needed: advised.is_some(),
        advised,
        cost_percent: if advised.is_some() { -3.25 } else { f64::NAN },
    };
    SweepTable {
        title: "which machines need the knob".into(),
        knob: "vm.pcp_batch_scale_max".into(),
        values: vec![5, 3, 0],
        rows: vec!["epyc-7w83".into(), "xeon-8260".into()],
        metrics: vec![
            metric(
                "refill.mean_ns",
                "ns",
                [[449_775.0, 120_000.0, 19_359.0], [96_173.0, 40_000.0, f64::NAN]],
            ),
            metric("pages_per_second", "pages/s", [[4.3e6, 4.2e6, 3.8e6], [4.1e6, 4.0e6, 3.9e6]]),
        ],
        criterion: "a machine needs another value than 5 if refill.mean_ns is over 250000 ns with it".into(),
        criterion_unit: "ns".into(),
        verdicts: vec![verdict("epyc-7w83", 449_775.0, Some(3)), verdict("xeon-8260", 96_173.0, None)],
    }
}

fn explanation() -> Explanation {
    Explanation {
        variant: "epyc-7w83 scale-5".into(),
        span: "refill".into(),
        count: 1000,
        pages: 2_016_000,
        total_ns: 449_775_000,
        parts: vec![
            part("waiting for the zone lock", 980, 400_000_000),
            part("lines touched", 2_100_000, 49_755_000),
            part("fixed instructions", 1000, 20_000),
        ],
        hand_overs: part("hand-overs of the zone lock", 980, 110_000),
        holds: part("zone lock held", 1000, 49_700_000),
        touches: vec![part("L1", 100_000, 180_000), part("local DRAM", 2_000_000, 49_575_000)],
    }
}

/// Rows, a histogram, a sweep and an explanation; the figures are made up.
fn document() -> Document {
    let mut document = fixture::published();
    document.runs = fixture::document().runs;
    for run in &mut document.runs {
        run.experiment = "pcp-batch".into();
    }
    let latency = |samples: &[u64]| Latency::from_samples(samples.iter().copied());
    let pair = HistogramPair {
        variant: "epyc-7w83 scale-5".into(),
        span: "refill".into(),
        over_seconds: 600.0,
        published: latency(&[1500, 70_000, 140_000, 150_000, 300_000]),
        simulated: latency(&[1600, 140_000, 150_000, 160_000]),
    };
    document.experiments = vec![Account {
        name: "pcp-batch".into(),
        title: "vm.pcp_batch_scale_max at 5 and 0".into(),
        not_compared: vec![lab::measurements::NotCompared {
            figures: "the tracer's own time".into(),
            because: "nothing was published of it".into(),
        }],
        about: "Ten Python processes map, fill and unmap 6 GiB each, in a loop; bcc's funclatency counts how long \
                rmqueue_bulk takes."
            .into(),
        learnt: "How long a refill takes depends on how old the free lists are, and an average over ten minutes cannot \
                 show it."
            .into(),
        histograms: vec![pair],
        sweeps: vec![sweep()],
        explanations: vec![explanation()],
    }];
    document
}

#[test]
fn the_account_of_an_experiment() {
    let text = experiment::accounts(Style::plain(), &document());
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn an_experiments_page() {
    let document = document();
    let page = results::page(&document, &document.experiments[0]);
    assert!(!page.contains("\n\n\n"), "{page}");
    insta::assert_snapshot!(page);
}

#[test]
fn the_page_of_scores() {
    let document = document();
    let page = results::scores(&Results::of(&document, &[]).experiments);
    assert!(!page.contains("\n\n\n"), "{page}");
    insta::assert_snapshot!(page);
}

#[test]
fn without_experiments_there_is_nothing_to_say() {
    assert_eq!(experiment::accounts(Style::plain(), &fixture::document()), "");
}
