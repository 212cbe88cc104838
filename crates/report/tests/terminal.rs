//! What a terminal shows of a document, as snapshots.

mod fixture;

use freehold_report::style::{Ink, Style};
use freehold_report::{lkp, mmtests, published, replay};
use lab::measurements::{Document, compare};

fn columns(document: Document) -> lab::measurements::Comparison {
    compare(&[("replay".into(), document)]).expect("comparable")
}

#[test]
fn the_full_account() {
    insta::assert_snapshot!(replay::full(Style::plain(), &fixture::document()));
}

#[test]
fn the_brief_account() {
    insta::assert_snapshot!(replay::brief(Style::plain(), &fixture::document()));
}

#[test]
fn a_single_run_has_nothing_to_compare() {
    let mut document = fixture::document();
    document.runs.truncate(1);
    let text = replay::full(Style::plain(), &document);
    assert!(!text.contains("->  ") && !text.contains("Amean"), "{text}");
    assert!(text.contains("\navg = "), "one histogram is set as funclatency sets it:\n{text}");
}

#[test]
fn an_mmtests_table() {
    let text = mmtests::comparison(Style::plain(), &columns(fixture::document()));
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn an_mmtests_table_of_one_run_each_has_means_only() {
    let mut document = fixture::document();
    document.runs.retain(|run| run.seed == 1);
    insta::assert_snapshot!(mmtests::comparison(Style::plain(), &columns(document)));
}

#[test]
fn an_lkp_table() {
    insta::assert_snapshot!(lkp::comparison(&columns(fixture::document())));
}

#[test]
fn rows_beside_published_ones() {
    let document = fixture::published();
    insta::assert_snapshot!(published::table(Style::plain(), &document.rows, &document.score));
}

#[test]
fn everything_fits_the_width_that_was_asked_for() {
    for width in [80, 100, 120] {
        let style = Style::terminal(width).with_ink(Ink::Plain);
        let text = replay::brief(style, &fixture::document());
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|longest| longest <= width), "{width}: {longest:?}\n{text}");
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let plain = replay::full(Style::terminal(110).with_ink(Ink::Plain), &fixture::document());
    let mut inked = replay::full(Style::terminal(110), &fixture::document());
    assert!(inked.contains("\x1b[1m"));
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"] {
        inked = inked.replace(code, "");
    }
    assert_eq!(inked, plain);
}

#[test]
fn an_empty_document_is_an_empty_account() {
    assert_eq!(replay::full(Style::plain(), &Document::new("replay")), "");
}
