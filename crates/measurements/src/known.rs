//! The figures that a run can have, by name and unit, known before anything has run: whoever names one that does not exist hears of
//! it at once.

use mm::{LockClass, Span};

/// Figures of whole runs.
const WHOLE: [(&str, &str); 20] = [
    ("pages_per_second", "pages/s"),
    ("operations_per_second", "ops/s"),
    ("elapsed_ns", "ns"),
    ("cpu_ns", "ns"),
    ("walk_ns", "ns"),
    ("page_faults", "count"),
    ("huge_faults", "count"),
    ("pages_copied", "count"),
    ("peak_rss", "pages"),
    ("major_faults", "count"),
    ("swapped_in", "pages"),
    ("swapped_out", "pages"),
    ("refaults_anon", "pages"),
    ("refaults_file", "pages"),
    ("killed", "count"),
    ("fork_ns", "ns"),
    ("forked_fault_p99_ns", "ns"),
    ("forked_copies", "pages"),
    ("simulated_ns", "ns"),
    ("failed_allocations", "count"),
];

/// Figures of a kind of span, and of a lock class.
const OF_SPAN: [(&str, &str); 4] =
    [("mean_ns", "ns"), ("p99_ns", "ns"), ("max_ns", "ns"), ("count", "count")];
const OF_LOCK: [(&str, &str); 2] = [("wait_ns", "ns"), ("wait_max_ns", "ns")];
/// Figures of each of several recordings, whose names are anybody's.
const OF_RECORDING: [(&str, &str); 3] =
    [("elapsed_ns", "ns"), ("page_faults", "count"), ("peak_rss", "pages")];

/// Every name, those of single recordings apart.
pub fn figure_names() -> Vec<String> {
    let whole = WHOLE.iter().map(|(name, _)| (*name).to_owned());
    let spans = Span::ALL.iter().flat_map(|span| OF_SPAN.map(|(what, _)| format!("{}.{what}", span.name())));
    let locks = LockClass::ALL
        .iter()
        .flat_map(|class| OF_LOCK.map(|(what, _)| format!("lock.{}.{what}", class.name())));
    whole.chain(spans).chain(locks).collect()
}

/// A figure's unit: `ns`, `count`, `pages`, `pages/s` or `ops/s`; `None` if no run can have a figure of that name.
pub fn figure_unit(name: &str) -> Option<&'static str> {
    let unit = |table: &[(&str, &'static str)], what: &str| {
        table.iter().find(|(name, _)| *name == what).map(|(_, unit)| *unit)
    };
    let Some((subject, what)) = name.rsplit_once('.') else { return unit(&WHOLE, name) };
    if subject.strip_prefix("recording.").is_some_and(|name| !name.is_empty()) {
        return unit(&OF_RECORDING, what);
    }
    match subject.strip_prefix("lock.") {
        Some(class) if LockClass::ALL.iter().any(|known| known.name() == class) => unit(&OF_LOCK, what),
        None if Span::ALL.iter().any(|known| known.name() == subject) => unit(&OF_SPAN, what),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ForkUse, Forks, Latency, LockStat, ProgramUse, RecordingUse, Run, figures};

    #[test]
    fn every_figure_of_a_run_is_known_with_its_unit() {
        let latency = Latency { count: 1, ..Latency::default() };
        let lock = LockStat { wait_ns: 1, ..LockStat::default() };
        let recording = |name: &str| RecordingUse { name: name.into(), ..RecordingUse::default() };
        let mut run = Run {
            latency: Span::ALL.map(|span| (span.name().to_owned(), latency.clone())).into(),
            locks: LockClass::ALL.map(|class| (class.name().to_owned(), lock)).into(),
            recordings: vec![recording("a"), recording("b")],
            program: Some(ProgramUse { walk_known_ns: 1, ..ProgramUse::default() }),
            forks: Forks { count: 1, largest: vec![ForkUse::default()] },
            ..Run::default()
        };
        let mut seen = figures(&run);
        run.program = None;
        (run.throughput.pages_per_second, run.throughput.operations_per_second) = (1.0, 1.0);
        seen.extend(figures(&run));
        for (figure, _) in &seen {
            assert_eq!(figure_unit(&figure.name), Some(figure.unit), "{}", figure.name);
        }
        for name in figure_names() {
            assert!(seen.iter().any(|(figure, _)| figure.name == name), "no run has {name}");
        }
        for name in ["refil.p99_ns", "refill.p98_ns", "lock.none.wait_ns", "recording..peak_rss", "nothing"] {
            assert_eq!(figure_unit(name), None, "{name}");
        }
    }
}
