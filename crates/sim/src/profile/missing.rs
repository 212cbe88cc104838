//! What a profile lacks, all at once.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::figure::FIGURES;
use super::lines::Lines;

/// What a `[topology]` must say.
const TOPOLOGY: [&str; 8] = [
    "sockets",
    "cores_per_socket",
    "threads_per_core",
    "cores_per_llc",
    "smt_numbering",
    "nodes",
    "distances",
    "source",
];
/// What each of its nodes must say.
const NODE: [&str; 2] = ["socket", "memory_mib"];
/// What a figure must say.
const FIGURE: [&str; 3] = ["value", "kind", "source"];

/// What `table` lacks, section by section, as one line; `None` if it lacks less than two keys, which has a message of its
/// own. Without a `[topology]` it is a base for others, and none is asked for.
pub(super) fn in_a_line(table: &Table, lines: &Lines) -> Option<String> {
    let mut lacking = Lacking::default();
    if let Some(Value::Table(topology)) = table.get("topology") {
        lacking.look("topology", topology, &TOPOLOGY);
        if let Some(Value::Array(nodes)) = topology.get("nodes") {
            nodes
                .iter()
                .filter_map(Value::as_table)
                .for_each(|node| lacking.look("topology.nodes", node, &NODE));
        }
    }
    for spec in FIGURES {
        let (section, key) = spec.key.split_once('.').unwrap_or((spec.key, ""));
        match table.get(section).and_then(|section| section.get(key)) {
            None => lacking.add(section, key),
            Some(Value::Table(figure)) => lacking.look(spec.key, figure, &FIGURE),
            Some(_) => {}
        }
    }
    lacking.told(table, lines)
}

/// Keys by the section that they should be in.
#[derive(Default)]
struct Lacking(BTreeMap<String, Vec<String>>);

impl Lacking {
    fn add(&mut self, section: &str, key: &str) {
        let keys = self.0.entry(section.to_owned()).or_default();
        if !keys.iter().any(|known| known == key) {
            keys.push(key.to_owned());
        }
    }

    fn look(&mut self, section: &str, table: &Table, keys: &[&str]) {
        keys.iter().filter(|key| !table.contains_key(**key)).for_each(|key| self.add(section, key));
    }

    fn told(&self, table: &Table, lines: &Lines) -> Option<String> {
        if self.0.values().map(Vec::len).sum::<usize>() < 2 {
            return None;
        }
        let is_there = |section: &str| {
            section.split('.').try_fold(table, |table, key| table.get(key)?.as_table()).is_some()
                || section == "topology.nodes"
        };
        let parts = self.0.iter().map(|(section, keys)| {
            let (place, verb) = if is_there(section) {
                (lines.place(section), "lacks")
            } else {
                (String::new(), "is missing:")
            };
            format!("{section}{place} {verb} {}", keys.join(", "))
        });
        let parts = parts.collect::<Vec<_>>().join("; ");
        Some(format!(
            "is not complete: {parts}; `extends = \"NAME\"` takes what is not said from another profile"
        ))
    }
}
