//! Histograms against what funclatency printed on the machines of the published results.

use freehold_report::{Style, histogram};
use lab::measurements::{Distribution, Latency};

const PUBLISHED: [(&str, &str); 5] = [
    ("epyc, 5", include_str!("published/epyc-7w83-scale-5.txt")),
    ("epyc, 0", include_str!("published/epyc-7w83-scale-0.txt")),
    ("xeon two nodes, 5", include_str!("published/xeon-8260-two-nodes-scale-5.txt")),
    ("xeon one node, 5", include_str!("published/xeon-8260-one-node-scale-5.txt")),
    ("xeon one node, 0", include_str!("published/xeon-8260-one-node-scale-0.txt")),
];

/// The figures of a printed histogram: nothing of its layout.
fn figures(text: &str) -> Latency {
    let mut latency = Latency::default();
    for line in text.lines() {
        if let Some(row) = line.split_once("->") {
            let low = row.0.trim().parse().expect("a row's lower bound");
            let count = row.1.split(':').nth(1).and_then(|rest| rest.split('|').next()).expect("a count");
            latency.log2.push((low, count.trim().parse().expect("a row's count")));
        }
        if line.starts_with("avg") {
            let figures: Vec<u64> =
                line.split(|c: char| !c.is_ascii_digit()).filter_map(|s| s.parse().ok()).collect();
            (latency.mean_ns, latency.total_ns, latency.count) = (figures[0], figures[1], figures[2]);
        }
    }
    latency
}

#[test]
fn the_published_histograms_come_out_to_the_byte_but_for_empty_rows() {
    for (name, text) in PUBLISHED {
        let latency = figures(text);
        let filled = text.split_inclusive('\n').filter(|line| !line.contains(" : 0        |"));
        let filled: String = filled.collect();
        assert!(filled.len() < text.len(), "{name} has empty rows");
        assert_eq!(histogram::one(&Distribution::from(&latency)), filled, "{name}");
        assert_eq!(
            Distribution::from(&latency).mean_ns(),
            latency.mean_ns,
            "{name}: the mean is rounded down"
        );
    }
}

#[test]
fn two_share_their_rows() {
    let columns: Vec<(&str, Distribution)> =
        PUBLISHED[..2].iter().map(|(name, text)| (*name, Distribution::from(&figures(text)))).collect();
    insta::assert_snapshot!(histogram::side_by_side(Style::plain(), &columns));
}

#[test]
fn five_are_set_in_two_rows_within_the_width() {
    let columns: Vec<(&str, Distribution)> =
        PUBLISHED.iter().map(|(name, text)| (*name, Distribution::from(&figures(text)))).collect();
    let text = histogram::side_by_side(Style::terminal(120), &columns);
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    assert_eq!(text.matches("avg = ").count(), 5);
    insta::assert_snapshot!(text);
}

#[test]
fn rows_above_four_seconds_take_twice_the_room() {
    let latency = Latency::from_samples([5_000_000_000, 6, 6]);
    let text = histogram::one(&Distribution::from(&latency));
    let last = "          4294967296 -> 8589934591           : 1        |**********          |";
    assert_eq!(text.lines().nth(2), Some(last), "{text}");
    assert_eq!(
        text.lines().next(),
        Some("               nsecs                         : count     distribution")
    );
}

#[test]
fn nothing_is_a_header_and_a_footer() {
    let text = histogram::one(&Distribution::default());
    assert_eq!(
        text,
        "     nsecs               : count     distribution\n\navg = 0 nsecs, total: 0 nsecs, count: 0\n"
    );
}
