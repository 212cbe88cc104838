//! The settings that `freehold tune` names first beside real runs under each: `make tune-real`, which leaves both in target/tune.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lab::measurements::{Document, KnobText, ValidatedRow};

/// So many of the search's settings are held against the real best.
const FIRST: usize = 3;

fn document(name: &str) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tune").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Document::from_json(&text).expect("measurements")
}

/// What differs from the setting in which nothing is huge, whichever way it is written.
fn switched_on(words: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    words.into_iter().filter(|word| !word.ends_with("=never")).collect()
}

fn of_row(row: &ValidatedRow) -> BTreeSet<String> {
    switched_on(row.setting.split(' ').map(str::to_owned))
}

/// A search names what differs from the machine as it was, where pages of 2 MiB are for those who ask for them.
fn of_search(knobs: &[KnobText]) -> BTreeSet<String> {
    switched_on(knobs.iter().map(|of| format!("{}={}", of.knob, of.value)))
}

/// Whether the real means differ by more than the interval of their difference.
fn is_told_apart(one: &ValidatedRow, other: &ValidatedRow) -> bool {
    let half = |row: &ValidatedRow| row.half.unwrap_or(f64::INFINITY);
    (one.real - other.real).abs() > half(one).hypot(half(other))
}

#[test]
#[ignore = "minutes, as root: make tune-real"]
fn the_best_setting_by_real_runs_is_among_the_first_of_the_search() {
    let (searched, real) = (document("searched.json"), document("real.json"));
    let of = &real.validated[0];
    let mut rows: Vec<&ValidatedRow> = of.rows.iter().filter(|row| row.metric == "CPU time").collect();
    rows.sort_by(|one, other| one.real.total_cmp(&other.real));
    // Pages of 2 MiB that are never made and those that nobody asks for are one setting here.
    let mut first: Vec<BTreeSet<String>> = vec![];
    for named in searched.tune[0].ranked.iter().map(|candidate| of_search(&candidate.knobs)) {
        if first.len() < FIRST && !first.contains(&named) {
            first.push(named);
        }
    }
    println!("{} real runs of each of {} settings; CPU time", of.repeats, rows.len());
    for row in &rows {
        let place = first.iter().position(|named| *named == of_row(row));
        let place = place.map_or_else(String::new, |place| format!("  number {} of the search", place + 1));
        let half = row.half.unwrap_or_default() / 1e6;
        let predicted = row.predicted.unwrap_or_default() / 1e6;
        let words = of_row(row).into_iter().collect::<Vec<_>>().join(" ");
        println!("  {:7.1} ms ± {half:5.1}  predicted {predicted:7.1}  [{words}]{place}", row.real / 1e6);
    }
    let (apart, equal): (Vec<&ValidatedRow>, Vec<&ValidatedRow>) =
        rows.iter().partition(|row| is_told_apart(row, rows[0]));
    println!("{} are told apart from the best", apart.len());
    assert!(
        !apart.is_empty(),
        "runs differ too much to say which setting is the best: REPEATS=N for more of them"
    );
    assert!(equal.iter().any(|row| first.contains(&of_row(row))), "the best is none of {first:?}");
}
