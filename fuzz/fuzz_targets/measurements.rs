//! Measurements from anywhere: reading, comparing and reporting them may refuse, and must never panic.
#![no_main]

use lab::measurements::{Document, compare};
use libfuzzer_sys::fuzz_target;
use report::{Style, html, lkp, mmtests, replay, verdict};

fuzz_target!(|text: &str| {
    let Ok(document) = Document::from_json(text) else { return };
    let again = Document::from_json(&document.to_json()).expect("what was written reads back");
    let _ = replay::full(Style::plain(), &document);
    let _ = verdict::replay(Style::terminal(80), &document);
    html::page(&document).expect("a page of any document");
    let Ok(comparison) = compare(&[("a".into(), document), ("b".into(), again)]) else { return };
    let _ = mmtests::comparison(Style::plain(), &comparison);
    let _ = lkp::comparison(&comparison);
});
