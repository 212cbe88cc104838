//! Whether documents were measured on the same thing, so that what differs between them is what was changed.
//!
//! Machine (by its name and its figures), workload and label have to be the same; policies, knobs and versions are what people compare. Documents with
//! several variants need one in common.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Document, Run};

/// What is looked at: its name, and what a run has there.
type Aspect = (&'static str, fn(&Run) -> &str);

const ASPECTS: [Aspect; 3] = [
    ("machine", |run| &run.machine),
    ("workload", |run| &run.workload),
    ("label", |run| run.confidence.name()),
];
/// Names of one document that are listed.
const LISTED: usize = 3;

/// In what the documents, each with its name, are not the same: `machine (a: host; b: epyc-7w83)`, and so on; empty if they
/// can be compared.
pub fn differences(documents: &[(String, Document)]) -> Vec<String> {
    let mut all: Vec<String> = ASPECTS.iter().filter_map(|aspect| difference(documents, *aspect)).collect();
    all.extend(figures_apart(documents));
    if let Some(apart) = variants_apart(documents) {
        all.push(apart);
    }
    all
}

fn difference(documents: &[(String, Document)], (name, of): Aspect) -> Option<String> {
    let sets = documents.iter().map(|(_, document)| set(document, of)).collect::<Vec<_>>();
    let first = sets.first()?;
    sets.iter().any(|set| set != first).then(|| told(name, documents, &sets))
}

/// A machine that goes by one name and has other figures: `figures of m (a: 0123…; b: 4567…)`. What has no digest, as documents
/// of earlier versions have none, is taken for the same.
fn figures_apart(documents: &[(String, Document)]) -> Vec<String> {
    let mut machines: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in documents.iter().flat_map(|(_, document)| &document.runs) {
        if !run.machine_digest.is_empty() {
            machines.entry(&run.machine).or_default().insert(&run.machine_digest);
        }
    }
    let apart = |machine: &str| {
        let parts = documents.iter().filter_map(|(name, document)| {
            let run = document.runs.iter().find(|run| run.machine == machine)?;
            Some(format!("{name}: {}", run.machine_digest))
        });
        format!("figures of {machine} ({})", parts.collect::<Vec<_>>().join("; "))
    };
    let several = machines.iter().filter(|(_, digests)| digests.len() > 1);
    several.map(|(machine, _)| apart(machine)).collect()
}

/// Documents of one variant each are columns beside each other, whatever these are called.
fn variants_apart(documents: &[(String, Document)]) -> Option<String> {
    let sets = documents.iter().map(|(_, document)| set(document, |run| &run.variant)).collect::<Vec<_>>();
    let (first, others) = sets.split_first()?;
    let is_common = |name: &&str| others.iter().all(|set| set.contains(name));
    let are_columns = sets.iter().all(|set| set.len() == 1);
    (!are_columns && !first.iter().any(is_common)).then(|| told("variants", documents, &sets))
}

fn set(document: &Document, of: fn(&Run) -> &str) -> BTreeSet<&str> {
    document.runs.iter().map(of).collect()
}

fn told(name: &str, documents: &[(String, Document)], sets: &[BTreeSet<&str>]) -> String {
    let parts = documents.iter().zip(sets).map(|((document, _), set)| {
        let mut names: Vec<&str> = set.iter().copied().take(LISTED).collect();
        if set.len() > LISTED {
            names.push("…");
        }
        format!("{document}: {}", names.join(", "))
    });
    format!("{name} ({})", parts.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Confidence;

    fn document(name: &str, runs: &[(&str, &str, &str)]) -> (String, Document) {
        let run = |&(machine, workload, variant): &(&str, &str, &str)| Run {
            machine: machine.into(),
            workload: workload.into(),
            variant: variant.into(),
            ..Run::default()
        };
        (name.into(), Document { runs: runs.iter().map(run).collect(), ..Document::default() })
    }

    #[test]
    fn what_was_changed_is_no_difference() {
        let mut other = document("b", &[("m", "w", "scale=0")]);
        other.1.runs[0].policy = "freehold".into();
        assert!(differences(&[document("a", &[("m", "w", "scale=5")]), other]).is_empty());
        let several = |name: &str| document(name, &[("m", "w", "x"), ("n", "w", "x"), ("n", "w", "y")]);
        assert!(differences(&[several("a"), several("b")]).is_empty());
        assert!(differences(&[several("a")]).is_empty());
    }

    #[test]
    fn another_machine_workload_or_label_is_one() {
        let base = || document("a", &[("m", "w", "x")]);
        let told = |other| differences(&[base(), other]);
        assert_eq!(told(document("b", &[("n", "w", "x")])), ["machine (a: m; b: n)"]);
        assert_eq!(told(document("b", &[("m", "v", "x")])), ["workload (a: w; b: v)"]);
        assert_eq!(told(document("b", &[("m", "w", "x"), ("n", "w", "x")])), ["machine (a: m; b: m, n)"]);
        let mut exact = document("b", &[("m", "w", "x")]);
        exact.1.runs[0].confidence = Confidence::Exact;
        assert_eq!(told(exact), ["label (a: extrapolated; b: exact)"]);
    }

    #[test]
    fn one_name_with_other_figures_is_one() {
        let with = |name: &str, digest: &str| {
            let mut document = document(name, &[("this", "w", "x")]);
            document.1.runs[0].machine_digest = digest.into();
            document
        };
        assert!(differences(&[with("a", "01"), with("b", "01"), with("c", "")]).is_empty());
        assert_eq!(differences(&[with("a", "01"), with("b", "02")]), ["figures of this (a: 01; b: 02)"]);
    }

    #[test]
    fn several_variants_need_one_in_common() {
        let one = || document("a", &[("m", "w", "x"), ("m", "w", "y")]);
        assert!(differences(&[one(), document("b", &[("m", "w", "y"), ("m", "w", "z")])]).is_empty());
        let apart = differences(&[one(), document("b", &[("m", "w", "p"), ("m", "w", "q")])]);
        assert_eq!(apart, ["variants (a: x, y; b: p, q)"]);
    }
}
