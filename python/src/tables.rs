//! The tables of a document. Each begins with the columns that say which run a row is of.

use lab::measurements::{Cause, Document, Mean, Row, Run, WhyGoal, figures};
use pyo3::PyResult;

use crate::table::{Column, Table};

/// What tells runs apart.
fn which<'a>(runs: impl Iterator<Item = &'a Run> + Clone) -> Vec<Column> {
    vec![
        Column::word("experiment", runs.clone().map(|run| run.experiment.as_str())),
        Column::word("workload", runs.clone().map(|run| run.workload.as_str())),
        Column::word("machine", runs.clone().map(|run| run.machine.as_str())),
        Column::word("policy", runs.clone().map(|run| run.policy.as_str())),
        Column::word("variant", runs.clone().map(|run| run.variant.as_str())),
        Column::count("seed", runs.map(|run| run.seed)),
    ]
}

/// A row for each run.
pub(crate) fn runs(document: &Document) -> PyResult<Table> {
    let runs = document.runs.iter();
    let mut columns = which(runs.clone());
    columns.extend([
        Column::count("simulated_ns", runs.clone().map(|run| run.simulated_ns)),
        Column::count("wall_ns", runs.clone().map(|run| run.wall_ns)),
        Column::count("operations", runs.clone().map(|run| run.operations)),
        Column::number("pages_per_second", runs.clone().map(|run| Some(run.throughput.pages_per_second))),
        Column::count("peak_pages", runs.clone().map(|run| run.memory.peak_pages)),
        Column::word("confidence", runs.map(|run| run.confidence.name())),
    ]);
    Table::new(columns)
}

/// A row for each figure of each run: its name, unit and value.
pub(crate) fn figures_of(document: &Document) -> PyResult<Table> {
    let all: Vec<_> =
        document.runs.iter().flat_map(|run| figures(run).into_iter().map(move |one| (run, one))).collect();
    let mut columns = which(all.iter().map(|(run, _)| *run));
    columns.extend([
        Column::word("metric", all.iter().map(|(_, (figure, _))| figure.name.as_str())),
        Column::word("unit", all.iter().map(|(_, (figure, _))| figure.unit)),
        Column::number("value", all.iter().map(|(_, (_, value))| Some(*value))),
    ]);
    Table::new(columns)
}

/// A row for each counter of each run, by vmstat's names.
pub(crate) fn counters(document: &Document) -> PyResult<Table> {
    let all = document.runs.iter().flat_map(|run| run.counters.iter().map(move |one| (run, one)));
    let mut columns = which(all.clone().map(|(run, _)| run));
    columns.extend([
        Column::word("counter", all.clone().map(|(_, (name, _))| name.as_str())),
        Column::count("value", all.map(|(_, (_, value))| *value)),
    ]);
    Table::new(columns)
}

/// A row for each power of two of each kind of span: how many took `low_ns` to `2 × low_ns - 1`.
pub(crate) fn histograms(document: &Document) -> PyResult<Table> {
    let all = document.runs.iter().flat_map(|run| {
        let of = run.latency.iter();
        of.flat_map(move |(span, latency)| latency.log2.iter().map(move |row| (run, span, row)))
    });
    let mut columns = which(all.clone().map(|(run, ..)| run));
    columns.extend([
        Column::word("span", all.clone().map(|(_, span, _)| span.as_str())),
        Column::count("low_ns", all.clone().map(|(.., (low, _))| *low)),
        Column::count("count", all.map(|(.., (_, count))| *count)),
    ]);
    Table::new(columns)
}

/// A row for each moment at which a run was looked at.
pub(crate) fn timeline(document: &Document) -> PyResult<Table> {
    let all = document.runs.iter().flat_map(|run| (0..run.timeline.at_ns.len()).map(move |at| (run, at)));
    let mut columns = which(all.clone().map(|(run, _)| run));
    let number = |values: &[u64], at: usize| values.get(at).map(|value| *value as f64);
    let free = |run: &Run, at: usize| run.timeline.free_pages.iter().filter_map(|node| node.get(at)).sum();
    columns.extend([
        Column::count("at_ns", all.clone().map(|(run, at)| run.timeline.at_ns[at])),
        Column::count("free_pages", all.clone().map(|(run, at)| free(run, at))),
        Column::number(
            "resident_pages",
            all.clone().map(|(run, at)| number(&run.timeline.resident_pages, at)),
        ),
        Column::number("faults", all.clone().map(|(run, at)| number(&run.timeline.faults, at))),
        Column::number("lock_wait_ns", all.map(|(run, at)| number(&run.timeline.lock_wait_ns, at))),
    ]);
    Table::new(columns)
}

/// A row for each moment of each mapping of recorded processes whose accessed bits were looked at.
pub(crate) fn heat(document: &Document) -> PyResult<Table> {
    let all = document.heat.iter().flat_map(|map| {
        let mappings = map.mappings.iter();
        mappings.flat_map(move |mapping| (0..map.at_ns.len()).map(move |at| (map, mapping, at)))
    });
    Table::new(vec![
        Column::word("recording", all.clone().map(|(map, ..)| map.recording.as_str())),
        Column::word("process", all.clone().map(|(map, ..)| map.process.as_str())),
        Column::word("mapping", all.clone().map(|(_, mapping, _)| mapping.name.as_str())),
        Column::count("address", all.clone().map(|(_, mapping, _)| mapping.address)),
        Column::count("at_ns", all.clone().map(|(map, _, at)| map.at_ns[at])),
        Column::number(
            "resident_pages",
            all.clone().map(|(_, mapping, at)| mapping.resident_pages.get(at).map(|pages| *pages as f64)),
        ),
        Column::number(
            "walks_per_second",
            all.map(|(_, mapping, at)| mapping.walks_per_second.get(at).copied().flatten()),
        ),
    ])
}

/// A row for each figure's mean over a variant's seeds, with where it lies with 95 % confidence.
pub(crate) fn means(document: &Document) -> PyResult<Table> {
    let all = lab::measurements::means(&document.runs);
    let word = |name, of: fn(&Mean) -> &str| Column::word(name, all.iter().map(of));
    Table::new(vec![
        word("workload", |mean| &mean.workload),
        word("machine", |mean| &mean.machine),
        word("policy", |mean| &mean.policy),
        word("variant", |mean| &mean.variant),
        word("metric", |mean| &mean.metric),
        word("unit", |mean| &mean.unit),
        Column::number("mean", all.iter().map(|mean| Some(mean.mean))),
        Column::number("low", all.iter().map(|mean| mean.low)),
        Column::number("high", all.iter().map(|mean| mean.high)),
        Column::count("seeds", all.iter().map(|mean| mean.seeds)),
    ])
}

/// A row for each published figure beside the simulated one.
pub(crate) fn rows(document: &Document) -> PyResult<Table> {
    let all = document.rows.iter();
    let word = |name, of: fn(&Row) -> &str| Column::word(name, document.rows.iter().map(of));
    let known = |value: f64| Some(value).filter(|value| !value.is_nan());
    Table::new(vec![
        word("experiment", |row| &row.experiment),
        word("variant", |row| &row.variant),
        word("metric", |row| &row.metric),
        word("unit", |row| &row.unit),
        Column::number("published", all.clone().map(|row| known(row.published))),
        Column::number("published_high", all.clone().map(|row| row.published_high)),
        Column::number("simulated", all.clone().map(|row| known(row.simulated))),
        Column::number("error", all.clone().map(|row| known(row.error))),
        word("role", |row| row.role.name()),
        Column::text("source", all.map(|row| row.source.as_str())),
    ])
}

/// A row for each cause of each figure of a question.
pub(crate) fn causes(document: &Document) -> PyResult<Table> {
    let goals = document.why.iter().flat_map(|why| &why.goals);
    let all: Vec<(&WhyGoal, &Cause)> =
        goals.flat_map(|goal| goal.causes.iter().map(move |cause| (goal, cause))).collect();
    let word = |name, of: fn(&Cause) -> &str| Column::text(name, all.iter().map(|(_, cause)| of(cause)));
    let number =
        |name, of: fn(&Cause) -> Option<f64>| Column::number(name, all.iter().map(|(_, cause)| of(cause)));
    let commits: Vec<String> = all
        .iter()
        .map(|(_, cause)| cause.steps.iter().map(|step| step.commit.as_str()).collect::<Vec<_>>().join(" "))
        .collect();
    Table::new(vec![
        Column::word("metric", all.iter().map(|(goal, _)| goal.metric.as_str())),
        Column::word("unit", all.iter().map(|(goal, _)| goal.unit.as_str())),
        word("cause", |cause| &cause.name),
        word("from", |cause| &cause.from),
        word("to", |cause| &cause.to),
        number("share", |cause| Some(cause.share.mean)),
        number("share_low", |cause| cause.share.low),
        number("share_high", |cause| cause.share.high),
        number("alone", |cause| Some(cause.alone.mean)),
        number("taken_back", |cause| Some(cause.taken_back.mean)),
        Column::text("commits", commits.iter().map(String::as_str)),
    ])
}
