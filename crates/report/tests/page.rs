//! The page that `--report` writes.

mod fixture;

use freehold_report::html;
use lab::measurements::{Confidence, Document, Label, MechanismLabel};

fn page(document: &Document) -> String {
    html::page(document).expect("a page")
}

/// The measurements that a page carries.
fn embedded(page: &str) -> Document {
    let start = "<script type=\"application/json\" id=\"measurements\">";
    let (_, rest) = page.split_once(start).expect("embedded measurements");
    let (json, _) = rest.split_once("</script>").expect("their end");
    Document::from_json(json).expect("readable measurements")
}

#[test]
fn everything_is_on_the_page() {
    let page = page(&fixture::document());
    let expected = [
        "<title>loop.fh, 10 copies on epyc-7w83 - Freehold</title>",
        "<b>predicted</b>",
        "vm.pcp_batch_scale_max=0",
        "refill (rmqueue_bulk)",
        "not as recorded: 12 frees without allocation",
        "pgalloc_dma32",
        "<td class=\"left\">zone</td>",
        "+95.3 %",
    ];
    for text in expected {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(page.matches("<svg").count(), 4, "one figure a span");
}

#[test]
fn nothing_is_fetched() {
    let page = page(&fixture::document());
    for text in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(text), "{text}");
    }
}

#[test]
fn the_measurements_come_back_out_of_the_page() {
    let document = fixture::document();
    assert_eq!(embedded(&page(&document)), document);
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let mut document = fixture::document();
    document.command = "replay </script><script>alert(1)</script>".into();
    document.runs.truncate(1);
    document.runs[0].workload = "<img onerror=x>".into();
    document.runs[0].variant = "a\"b<i>".into();
    let page = page(&document);
    assert!(!page.contains("<script>alert") && !page.contains("<img") && !page.contains("<i>"), "{page}");
    assert_eq!(embedded(&page), document);
}

#[test]
fn every_mechanism_has_its_labels_with_their_reasons() {
    let mut document = fixture::document();
    for run in &mut document.runs {
        let counts = Label::new(Confidence::Exact, "887 of 887 figures of traces are equal");
        let times = Label::new(Confidence::Extrapolated, "no figure was published of <this> machine");
        let of = MechanismLabel { counts, times: Some(times), ..MechanismLabel::default() };
        run.labels.insert("page-lists".into(), of.clone());
        run.labels.insert("zonelists".into(), MechanismLabel { times: None, ..of });
    }
    let page = page(&document);
    let heading = "<h3>How sure, by mechanism <small>linux-6.18 on epyc-7w83</small></h3>";
    assert_eq!(page.matches(heading).count(), 1, "six runs of one policy say it once");
    let row = |mechanism: &str, what: &str, label: &str, reason: &str| {
        format!(
            "<tr><td class=\"left\">{mechanism}</td><td class=\"left\">{what}</td><td class=\"left {label}\"><b>{label}</b></td>\
             <td class=\"about\">{reason}</td></tr>"
        )
    };
    let (exact, none) =
        ("887 of 887 figures of traces are equal", "no figure was published of &lt;this&gt; machine");
    for row in [
        row("page lists", "counts", "exact", exact),
        row("", "times", "extrapolated", none),
        row("zonelists", "counts", "exact", exact),
    ] {
        assert!(page.contains(&row), "{row} is missing from\n{page}");
    }
    let (table, _) = page.split_once(heading).unwrap().1.split_once("</table>").unwrap();
    assert_eq!(table.matches("<tr>").count(), 3, "what has no times has no row of them");
    assert!(table.contains("class=\"sure\""));
}

#[test]
fn rows_beside_published_ones_are_a_table() {
    let page = page(&fixture::published());
    assert!(page.contains("<h2>pcp-batch</h2>") && page.contains("+28.5 %"), "{page}");
    assert!(page.contains("28.5 %</td>"));
}

#[test]
fn an_empty_document_is_an_empty_page() {
    let page = page(&Document::new("replay nothing"));
    assert!(page.contains("<h1>replay nothing</h1>") && !page.contains("<svg"));
}
