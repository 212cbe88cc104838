//! The table of evidence against what is in the repository: conformance/ and experiments/.

use std::collections::BTreeSet;
use std::path::PathBuf;

use freehold_lab::evidence::{Check, Rows, Table, held_but_scenes, held_toml};
use freehold_lab::experiment::{Experiment, Published};
use freehold_lab::experiment::{Results, rows_of};
use freehold_lab::measurements::{Document, Role, Row};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap()
}

/// Every capture and trace is compared again: some seconds. What is played of scenes, conform_scenes holds against the table.
#[test]
fn what_was_held_is_what_conformance_holds() {
    let mut held = held_but_scenes(&repository().join("conformance")).unwrap();
    let bundled = &Table::bundled().held;
    held.extend(bundled.iter().filter(|held| held.check == Check::Scenes).cloned());
    assert_eq!(held, *bundled, "`make evidence` writes it anew");
    assert_eq!(held_toml(&held), text("crates/lab/src/evidence/held.toml"), "`make evidence` writes it anew");
}

/// Every scene in conformance/ has its lines, and none has that is not there. A child's own faults were chosen by fork-cow-never, which has
/// nothing else; in two of 7.2 kswapd's first pass has the only program killed, before anything is counted.
#[test]
fn every_scene_is_in_the_table() {
    let folder = std::fs::read_dir(repository().join("conformance/scenes")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let there: BTreeSet<String> = names.map(|name| name.replace(".txt.xz", "")).collect();
    let scenes = Table::bundled().held.iter().filter(|held| held.check == Check::Scenes);
    let mut held: BTreeSet<String> = scenes.map(|held| held.scene.clone()).collect();
    for name in ["fork-cow-never", "ttl-short-7.2", "ttl-thrash-7.2"] {
        assert!(held.insert(name.to_owned()), "{name} is evidence of nothing");
    }
    assert_eq!(held, there, "`make evidence` writes it anew");
}

#[test]
fn the_rows_are_those_that_make_results_wrote() {
    let results = Results::parse(&text("docs/results.toml")).unwrap();
    let names = results.experiments.iter().map(|outcome| outcome.score.experiment.as_str());
    assert_eq!(names.collect::<Vec<_>>(), Experiment::bundled_names().collect::<Vec<_>>());
    assert!(!results.rows.is_empty());
    assert_eq!(results.to_toml(), text("docs/results.toml"));
}

/// Each published figure of each experiment stands in the table, in its role: an experiment that changed has to be run again.
#[test]
fn every_published_figure_of_the_experiments_is_in_the_table() {
    let experiments: Vec<Experiment> =
        Experiment::bundled_names().map(|name| Experiment::load(name).unwrap()).collect();
    let mut document = Document::default();
    for experiment in &experiments {
        document.rows.extend(rows_without_errors(experiment));
    }
    let expected = rows_of(&document, &experiments);
    let named = |rows: &Rows| {
        let Rows { experiment, machine, policy, mechanism, figures, fitted, .. } = rows;
        format!("{experiment} {machine} {policy} {mechanism} {figures:?}: {fitted} fitted")
    };
    let there = &Table::bundled().rows;
    let names = |rows: &[Rows]| rows.iter().map(named).collect::<Vec<String>>();
    assert_eq!(names(there), names(&expected), "`make results` writes docs/results.toml anew");
    // A row that came out as 0 for a published 0, or within the published noise, is known by its result, and is no evidence.
    for (rows, all) in there.iter().zip(&expected) {
        let (has, most) = (rows.errors.len(), all.errors.len());
        assert!(has <= most, "{}: {has} rows of {most}", named(rows));
    }
}

fn rows_without_errors(experiment: &Experiment) -> Vec<Row> {
    let mut rows = vec![];
    let mut add = |variant: String, metric: &str, unit: &str, role: Role| {
        let (experiment, metric, unit) = (experiment.name.clone(), metric.to_owned(), unit.to_owned());
        rows.push(Row { experiment, variant, metric, unit, role, ..Row::default() });
    };
    for variant in &experiment.variants {
        for figure in &variant.figures {
            let (path, name) = (figure.metric.path(), variant.case_name(figure.phase));
            match &figure.published {
                Published::Value(value) if value.is_finite() => {
                    add(name, path, figure.metric.unit(), figure.role);
                }
                Published::Range(_) => add(name, path, figure.metric.unit(), figure.role),
                Published::Sequence(values) => {
                    for _ in values {
                        add(name.clone(), path, figure.metric.unit(), figure.role);
                    }
                }
                Published::Value(_) | Published::Histogram(_) => {}
            }
        }
    }
    for comparison in experiment.comparisons.iter().filter(|comparison| comparison.published.is_finite()) {
        let (case, against) =
            (experiment.case_name(comparison.case), experiment.case_name(comparison.against));
        add(format!("{case} against {against}"), comparison.metric.path(), "", comparison.role);
    }
    rows
}
