//! Pages as a browser shows them: nothing on the console, nothing wider than the window, everything named and legible, in both themes.

mod browser;
mod fixture;

use std::time::Instant;

use browser::{Theme, browser, look};
use freehold_report::{html, verdict};
use lab::measurements::{
    Agreement, Cause, Document, Effect, HeatMap, HeatedMapping, Latency, Timeline, Validated,
    ValidatedChange, ValidatedRow, Why, WhyGoal,
};

/// Looks at `page` in both themes; it fails for anything that is wrong.
#[track_caller]
fn expect_fine(page: &str) {
    let Some(browser) = browser() else { return };
    for theme in [Theme::Light, Theme::Dark] {
        let seen = look(&browser, page, theme);
        println!("{theme:?}, {} bytes: {:#?}", page.len(), seen.measured);
        assert!(seen.wrong.is_empty(), "{theme:?}: {:#?}", seen.wrong);
        assert!(seen.console.is_empty(), "{theme:?}: {:#?}", seen.console);
    }
}

fn page(document: &Document) -> String {
    html::page(document, |style| verdict::replay(style, document)).expect("a page")
}

/// Three values of a knob, by their usual names.
fn three_values() -> Document {
    let mut document = fixture::document();
    let third: Vec<_> = document.runs.iter().take(3).cloned().collect();
    for mut run in third {
        run.variant = "scale-3".into();
        run.throughput.pages_per_second *= 0.97;
        document.runs.push(run);
    }
    for (slope, run) in (1..).zip(&mut document.runs) {
        run.variant = format!("vm.pcp_batch_scale_max={}", run.variant.trim_start_matches("scale-"));
        let over = |step: u64| (0..100).map(|moment| moment * step).collect::<Vec<u64>>();
        run.timeline = Timeline {
            at_ns: over(1_000_000),
            free_pages: vec![over(1000 * slope), over(slope)],
            faults: over(50 * slope),
            ..Timeline::default()
        };
    }
    document
}

#[test]
fn a_replay() {
    let page = page(&three_values());
    assert!(page.contains("by vm.pcp_batch_scale_max"));
    assert!(page.contains("<h3>Over time</h3>") && page.contains("Free memory, node 1"), "{page}");
    assert!(!page.contains("Waits for locks so far"), "there were none");
    expect_fine(&page);
}

/// A program whose mappings are walked to from never to always, in long names and short ones.
fn heat() -> HeatMap {
    let moments = 40;
    let mapping = |(place, name): (u64, &str)| HeatedMapping {
        name: name.to_owned(),
        address: 0x7f00_0000_0000 + (place << 30),
        pages: 2560 << place,
        resident_pages: vec![2560; moments],
        walks_per_second: (0..moments as u64)
            .map(|at| (at % 7 > 0).then_some([0.0, 0.3, 4.0, 40.0, 900.0][((at / 8 + place) % 5) as usize]))
            .collect(),
    };
    let names = ["[heap]", "libpython3.13.so.1.0", "[anon]", "a-file-with-a-very-long-name.db", "the rest"];
    HeatMap {
        recording: "skewed".to_owned(),
        process: "python3".to_owned(),
        at_ns: (0..moments as u64).map(|at| 25_000_000 * at).collect(),
        mappings: (0..).zip(names).map(mapping).collect(),
    }
}

#[test]
fn a_map_of_memory() {
    let mut document = three_values();
    document.heat.push(heat());
    let page = page(&document);
    assert!(page.contains("python3 in skewed") && page.contains("heat h4"), "{page}");
    expect_fine(&page);
}

#[test]
fn published_beside_simulated() {
    let document = fixture::published();
    expect_fine(&html::page(&document, |style| verdict::experiments(style, &document)).expect("a page"));
}

#[test]
fn real_beside_predicted() {
    let change = |metric: &str, from: f64, real: f64, predicted: f64, agreement: Agreement| ValidatedChange {
        setting: "transparent_hugepage.enabled=always".into(),
        metric: metric.into(),
        unit: "count".into(),
        from,
        real,
        half: Some(from.abs() / 50.0),
        predicted_from: from * 1.1,
        predicted,
        agreement,
    };
    let row = ValidatedRow {
        setting: "transparent_hugepage.enabled=never".into(),
        metric: "page faults".into(),
        real: 9.0,
        ..ValidatedRow::default()
    };
    let validated = Validated {
        workload: "sort --parallel=2 a-file-with-a-name-that-is-long-enough-to-be-too-wide-for-a-telephone"
            .into(),
        settings: vec![
            "transparent_hugepage.enabled=never".into(),
            "transparent_hugepage.enabled=always".into(),
        ],
        repeats: 5,
        rows: vec![row],
        changes: vec![
            change("page faults", 76_800.0, -75_900.0, -76_150.0, Agreement::Right),
            change("CPU time", 3e8, -1e8, 5e7, Agreement::Wrong),
            change("huge faults", 0.0, 150.0, 149.0, Agreement::Right),
        ],
        ..Validated::default()
    };
    let document = Document { validated: vec![validated], ..Document::new("validate -- sort") };
    let page = html::page(&document, |style| verdict::program(style, &document)).expect("a page");
    assert!(page.contains("Real and predicted") && page.contains(">real, with its 95 % interval<"), "{page}");
    expect_fine(&page);
}

#[test]
fn causes_of_a_difference() {
    let effect = |mean: f64| Effect { mean, low: Some(mean - 5.0), high: Some(mean + 5.0) };
    let cause = |name: &str, share: f64| Cause {
        name: name.into(),
        about: "what is freed at once".into(),
        share: effect(share),
        ..Cause::default()
    };
    let goal = WhyGoal {
        metric: "refill.p99_ns".into(),
        unit: "ns".into(),
        before: 400.0,
        after: 500.0,
        change: effect(100.0),
        causes: vec![cause("free-high", 110.0), cause("pcp-batch", -10.0)],
        ..WhyGoal::default()
    };
    let why =
        Why { workload: "a".into(), machine: "b".into(), seeds: 3, goals: vec![goal], ..Why::default() };
    let document = Document { why: Some(why), ..Document::new("why a") };
    let page = html::page(&document, |style| freehold_report::why::answer(style, &document)).expect("a page");
    assert!(page.contains(">110 %<") && page.contains(">-10 %<"), "{page}");
    expect_fine(&page);
}

#[test]
fn a_text() {
    let text = "a table that is wider than a telephone ".repeat(5);
    expect_fine(&html::plain_page("Machines", &text, "[]").expect("a page"));
}

#[test]
fn a_page_of_a_million_samples_holds_rows() {
    let mut document = three_values();
    let began = Instant::now();
    for (number, run) in document.runs.iter_mut().enumerate() {
        let samples = (0..1_000_000u64)
            .map(|i| 200 + (i * 7919 + number as u64) % 1000 + if i % 1000 == 0 { i * 40 } else { 0 });
        run.latency.insert("fault".into(), Latency::from_samples(samples));
    }
    let counted = began.elapsed();
    let began = Instant::now();
    let page = page(&document);
    let made = began.elapsed();
    println!(
        "9 runs of 1000000 samples: counted in {counted:?}, page of {} bytes made in {made:?}",
        page.len()
    );
    assert!(page.len() < 400_000, "a page holds rows, not samples: {} bytes", page.len());
    let Some(browser) = browser() else { return };
    let seen = look(&browser, &page, Theme::Light);
    assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
    // Times are for who reads them: a busy machine takes longer.
    println!("{:#?}", seen.measured);
}

#[test]
fn the_checks_find_what_is_wrong() {
    let Some(browser) = browser() else { return };
    let page = "<!doctype html><html lang=en><title>a</title><body style=\"margin:0;background:#fff\"><main><h1>a</h1><h3>b</h3>\
        <p style=\"color:#aaa;width:900px\">pale and wide</p><svg></svg><button></button></main>\
        <script>console.log(\"said\")</script></body></html>";
    let seen = look(&browser, page, Theme::Light);
    let all = seen.wrong.join("\n");
    for part in [
        "390: the page is 900 wide",
        "contrast 2.32 of p \"pale",
        "skips a level",
        "button \"\" has no name",
        "svg \"\" has no name",
        "0 of body &gt; header",
        "first link",
    ] {
        assert!(all.contains(part), "{part} is missing from\n{all}");
    }
    assert!(!all.contains("1280: the page is"), "{all}");
    assert_eq!(seen.console.len(), 3, "once in each frame: {:?}", seen.console);
}
