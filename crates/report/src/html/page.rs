//! What the template is given.

use lab::measurements::{
    Comparison, Document, Group, Metric, MetricRow, Scene, compare, least_confidence, scenes,
};
use serde::Serialize;

use crate::interval::Model;
use crate::style::Style;
use crate::table::Table;
use crate::{
    bounds, changes, counters, findings, forks, heading, interval, knob_uses, labels, latency, locks, memory,
    published, units, validate_program,
};

use super::chart::{self, Chart};
use super::words::{Line, lines};
use super::{svg, to_write};

/// The whole page.
#[derive(Default, Serialize)]
pub(super) struct Page {
    title: String,
    version: String,
    command: String,
    /// The answer, in the words of the terminal.
    verdict: Vec<Line>,
    /// Charts of documents that no scene has: real beside predicted, causes.
    charts: Vec<Chart>,
    /// What to write on the machine, by variant.
    to_write: Vec<to_write::Commands>,
    label: Option<Label>,
    /// How sure each mechanism is, by policy and machine.
    labels: Vec<labels::OfPolicy>,
    /// What the model's intervals rest on, a line for each kind.
    intervals: Vec<String>,
    /// What is to be known first.
    notes: Vec<String>,
    /// What stands out, and bounds beside what came out.
    found: String,
    /// What the terminal shows, where nothing is drawn.
    text: String,
    /// What of recorded programs' memory was used when.
    heat: Vec<Chart>,
    scenes: Vec<PagePart>,
    published: Vec<Experiment>,
    scores: Option<Table>,
    json: String,
}

#[derive(Serialize)]
struct Label {
    name: &'static str,
    reason: String,
}

/// One workload on one machine.
#[derive(Serialize)]
struct PagePart {
    workload: String,
    machine: String,
    variants: Vec<PageVariant>,
    /// Each variant against the first.
    change: Option<Chart>,
    /// Figures against the values of a knob.
    by_knob: Vec<Chart>,
    /// Figures over simulated time.
    over_time: Vec<Chart>,
    changes: String,
    spans: Vec<PageSpan>,
    histograms: Vec<PageHistogram>,
    latency: Table,
    locks: Table,
    memory: Table,
    counters: Table,
    comparison: Vec<Compared>,
}

#[derive(Serialize)]
struct PageVariant {
    label: String,
    about: String,
    rate: String,
    omissions: Vec<String>,
    notes: Vec<String>,
    knobs: Vec<String>,
}

/// A kind of span, and how long it took.
#[derive(Serialize)]
struct PageSpan {
    title: String,
    charts: Vec<Chart>,
}

#[derive(Serialize)]
struct PageHistogram {
    title: String,
    svg: String,
}

#[derive(Serialize)]
struct Compared {
    columns: Vec<String>,
    rows: Vec<ComparedRow>,
}

#[derive(Serialize)]
struct ComparedRow {
    metric: String,
    cells: Vec<ComparedCell>,
}

#[derive(Serialize)]
struct ComparedCell {
    value: String,
    gain: String,
    class: &'static str,
}

#[derive(Serialize)]
struct Experiment {
    name: String,
    charts: Vec<Chart>,
    rows: Table,
    sources: Vec<String>,
}

impl Page {
    /// Of `document`; `verdict` is the answer as a terminal shows it, with its colours.
    pub(super) fn of(document: &Document, verdict: &str) -> Self {
        let scenes = scenes(&document.runs);
        let title = match scenes.as_slice() {
            [] => document.command.clone(),
            [only] => format!("{} on {}", only.workload, only.machine),
            [first, rest @ ..] => {
                let more = units::plural(rest.len() as u64, "other setup");
                format!("{} on {}, and {more}", first.workload, first.machine)
            }
        };
        let label = least_confidence(&document.runs)
            .map(|(confidence, reason)| Label { name: confidence.name(), reason: reason.to_owned() });
        let experiments = published::experiments(&document.rows);
        Self {
            title,
            version: document.freehold.clone(),
            command: document.command.clone(),
            verdict: lines(verdict),
            charts: document
                .validated
                .iter()
                .flat_map(chart::validated::charts)
                .chain(document.why.iter().flat_map(chart::why::charts))
                .collect(),
            to_write: to_write::commands(&scenes),
            label,
            labels: labels::by_policy(&document.runs.iter().collect::<Vec<_>>()),
            intervals: interval::lines(document),
            notes: document.notes.clone(),
            found: findings::text(Style::plain(), &document.findings)
                + &bounds::text(Style::plain(), &document.fail_if),
            text: document
                .why
                .as_ref()
                .map_or_else(String::new, |why| crate::why::text(Style::plain(), why, &document.runs))
                + &crate::tune::text(Style::plain(), document)
                + &validate_program::text(Style::plain(), &Document { proofs: vec![], ..document.clone() }),
            heat: document.heat.iter().filter_map(chart::heat::chart).collect(),
            scenes: scenes.iter().map(part).collect(),
            published: experiments
                .iter()
                .map(|(name, rows)| Experiment {
                    name: (*name).to_owned(),
                    charts: chart::published::charts(name, rows),
                    rows: published::grid(rows),
                    sources: published::sources(rows).into_iter().map(str::to_owned).collect(),
                })
                .collect(),
            scores: (!document.score.is_empty()).then(|| published::score_grid(&document.score)),
            json: embeddable(&document.to_json()),
        }
    }

    /// A page of `text` as it is.
    pub(super) fn plain(title: &str, text: &str, json: &str) -> Self {
        Self {
            title: title.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            text: text.to_owned(),
            json: embeddable(json),
            ..Self::default()
        }
    }
}

/// JSON that no browser takes for the end of the script that holds it.
fn embeddable(json: &str) -> String {
    // Without what indents it, which is half of it: no text in JSON holds the end of a line.
    json.lines().map(str::trim_start).collect::<String>().replace('<', "\\u003c")
}

fn part(scene: &Scene<'_>) -> PagePart {
    PagePart {
        workload: scene.workload.to_owned(),
        machine: scene.machine.to_owned(),
        variants: scene.groups.iter().map(variant).collect(),
        change: chart::change::chart(scene),
        by_knob: chart::knob::charts(scene),
        over_time: chart::timeline::charts(scene),
        changes: [changes::text(Style::plain(), scene), forks::text(Style::plain(), scene)].concat(),
        spans: spans(scene),
        histograms: histograms(scene),
        latency: latency::grid(scene),
        locks: locks::grid(scene),
        memory: memory::grid(scene),
        counters: counters::grid(scene),
        comparison: comparison(scene),
    }
}

fn variant(group: &Group<'_>) -> PageVariant {
    let run = group.first();
    PageVariant {
        label: group.label.clone(),
        about: heading::variant(group),
        rate: match heading::mean_of(group, |run| run.throughput.pages_per_second) {
            rate if rate > 0.0 => format!("{} pages", units::rate(rate)),
            _ => String::new(),
        },
        notes: run.notes.clone(),
        omissions: heading::omissions(group),
        knobs: knob_uses::lines(group),
    }
}

fn spans(scene: &Scene<'_>) -> Vec<PageSpan> {
    let of = |span| PageSpan { title: latency::span_title(span), charts: chart::tail::charts(scene, span) };
    latency::spans(scene).into_iter().map(of).collect()
}

fn histograms(scene: &Scene<'_>) -> Vec<PageHistogram> {
    latency::spans(scene)
        .into_iter()
        .map(|span| {
            let of: Vec<_> = scene
                .groups
                .iter()
                .map(|group| svg::Panel { label: group.label.clone(), of: latency::pooled(group, span) })
                .collect();
            let title = latency::span_title(span);
            let name = format!("{title}: share of spans by time, a panel for each variant");
            PageHistogram { svg: svg::histograms(&name, &of), title }
        })
        .collect()
}

fn comparison(scene: &Scene<'_>) -> Vec<Compared> {
    if scene.groups.len() < 2 {
        return vec![];
    }
    let runs = scene.groups.iter().flat_map(|group| &group.runs).map(|run| (*run).clone()).collect();
    let document = Document { runs, ..Document::default() };
    let Ok(Comparison { tables, .. }) = compare(&[(String::new(), document)]) else { return vec![] };
    tables
        .into_iter()
        .map(|table| Compared { rows: table.rows.iter().map(compared_row).collect(), columns: table.columns })
        .collect()
}

fn compared_row(row: &MetricRow) -> ComparedRow {
    let base = row.mean(0);
    let cell = |column: usize| {
        let mean = row.mean(column);
        let gain = match (base, mean) {
            (Some(base), Some(mean)) if column > 0 => row.metric.better.gain_percent(base, mean),
            _ => None,
        };
        let said = match row.metric.unit {
            "ns" => mean.map(units::duration),
            _ => mean.map(units::rate),
        };
        let Metric { name, unit, .. } = &row.metric;
        let survives =
            base.zip(mean).is_some_and(|(base, mean)| Model::between(name, unit, base, mean).survives());
        let differs = survives && row.differs(column);
        ComparedCell {
            value: said.unwrap_or_else(|| "-".into()),
            gain: gain.map(|gain| format!("{gain:+.1} %")).unwrap_or_default(),
            class: match gain {
                Some(gain) if differs && gain > 0.0 => "better",
                Some(gain) if differs && gain < 0.0 => "worse",
                _ => "",
            },
        }
    };
    ComparedRow { metric: row.metric.name.clone(), cells: (0..row.samples.len()).map(cell).collect() }
}
