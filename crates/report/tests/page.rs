//! The page that `--report` writes.

mod fixture;

use freehold_report::style::Style;
use freehold_report::{html, verdict};
use lab::measurements::{Confidence, Document, Label, MechanismLabel};

fn page(document: &Document) -> String {
    html::page(document, |style| verdict::replay(style, document)).expect("a page")
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
    assert_eq!(page.matches("<figure class=\"bars\">").count(), 4, "a histogram for each span");
    assert_eq!(page.matches("the tail").count(), page.matches(": cumulative").count());
}

/// What a reader of a page reads, without its elements.
fn words(html: &str) -> String {
    let text: String =
        html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    let text = text
        .replace("&gt;", ">")
        .replace("&lt;", "<")
        .replace("&quot;", "\"")
        .replace("&#x2f;", "/")
        .replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_answer_comes_first_in_the_terminals_words() {
    let document = fixture::document();
    let page = page(&document);
    let (_, body) = page.split_once("<div class=\"verdict\">").expect("an answer");
    let (answer, rest) = body.split_once("</div>").expect("its end");
    let terminal = verdict::replay(Style::plain(), &document);
    let terminal: Vec<&str> = terminal.lines().filter(|line| !line.contains("--full")).collect();
    assert_eq!(words(answer), words(&terminal.join(" ").replace('<', "&lt;").replace('>', "&gt;")));
    let place = |text: &str| rest.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    let order = [
        "Changes: ",
        "<h2>What to set</h2>",
        "<h2>Do it again</h2>",
        "<h2>All figures</h2>",
        ": the tail",
        "Histograms",
    ];
    assert!(order.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{:?}", order.map(place));
}

#[test]
fn what_to_set_can_be_copied_and_selected() {
    let mut document = fixture::document();
    for run in &mut document.runs[3..] {
        run.knobs.clear();
        run.knobs.insert("vm.swappiness".into(), 10.into());
    }
    let page = page(&document);
    let (_, rest) = page.split_once("<pre class=\"paste\" id=\"set-1\">").expect("a block");
    let (block, _) = rest.split_once("</pre>").expect("its end");
    assert_eq!(words(block), "echo 10 > /proc/sys/vm/swappiness");
    assert!(
        page.contains("data-copy=\"set-1\" hidden>Copy</button>"),
        "a button that needs a script is not there without"
    );
    assert!(page.contains("id=\"again\">freehold replay loop.fh"), "{page}");
}

#[test]
fn every_chart_has_a_name_axes_and_its_figures() {
    let page = page(&fixture::document());
    let charts: Vec<&str> =
        page.split("<svg ").skip(1).map(|rest| rest.split("</svg>").next().unwrap()).collect();
    assert!(charts.len() > 9, "{}", charts.len());
    for chart in charts {
        assert!(chart.contains("role=\"img\" aria-label=\""), "{chart}");
        assert!(!chart.contains("NaN") && !chart.contains("inf "), "{chart}");
    }
    let drawn = page.matches("<figure>").count();
    assert_eq!(page.matches("Figures of this chart").count(), drawn);
    assert_eq!(page.matches("class=\"axis-name\"").count(), drawn);
}

#[test]
fn series_differ_in_dashes_and_in_marks() {
    let page = page(&fixture::document());
    let (_, rest) = page.split_once("refill (rmqueue_bulk): the tail").expect("a tail");
    let (tail, _) = rest.split_once("</svg>").expect("its end");
    for text in ["line v0 d0", "line v1 d1", "mark v0", "mark v1", ">1 %<", ">0.001 %<", ">10 µs<"] {
        assert!(tail.contains(text), "{text} is missing from\n{tail}");
    }
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
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(place("simulated ÷ published, log scale") < place("28.5 %</td>"));
    for text in [
        ">as published<",
        "<title>+28 %</title>",
        ">-94.2 %, published -95.7 %<",
        "change against the baseline",
    ] {
        assert!(page.contains(text), "{text} is missing from\n{page}");
    }
}

#[test]
fn an_empty_document_is_an_empty_page() {
    let page = page(&Document::new("replay nothing"));
    assert!(page.contains("<h1>replay nothing</h1>") && !page.contains("<svg"));
}
