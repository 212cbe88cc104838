//! The tables of `freehold bench`.

use freehold_report::Style;
use host::bench::objects::{OBJECT_SIZE, ObjectCase, ObjectRow};
use host::bench::{BenchFigure, Case, RoundSpread};

fn spread(median: f64) -> RoundSpread {
    RoundSpread { min: median / 2.0, median, max: median * 2.0 }
}

#[test]
fn pages_have_a_column_for_each_source() {
    let row = |source, case, median| BenchFigure {
        source,
        case,
        order: mm::Order::ZERO,
        threads: 2,
        blocks: 10,
        ns: spread(median),
    };
    let rows = [
        row("freehold", Case::HotPair, 30.0),
        row("malloc", Case::HotPair, 60.0),
        row("freehold", Case::Get, 12.0),
    ];
    insta::assert_snapshot!(freehold_report::bench::table(Style::plain(), &rows));
}

#[test]
fn objects_are_set_beside_malloc() {
    let row = |source: &str, case, median, instructions| ObjectRow {
        source: source.to_owned(),
        case,
        object_size: OBJECT_SIZE,
        threads: 1,
        objects: 10,
        ns: spread(median),
        instructions,
    };
    let rows = [
        row("linux-6.18 (sheaves)", ObjectCase::HotPair, 12.5, Some(199.0)),
        row("malloc", ObjectCase::HotPair, 5.0, Some(138.0)),
        row("linux-7.2", ObjectCase::HandOver, 40.0, None),
        row("ring alone", ObjectCase::HandOver, 10.0, None),
    ];
    insta::assert_snapshot!(freehold_report::bench::objects(Style::plain(), &rows));
    insta::assert_snapshot!(freehold_report::bench::objects(Style::plain(), &rows[2..]));
}
