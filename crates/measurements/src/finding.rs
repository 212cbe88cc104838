//! A named finding: something in a run that is known to cost, with the figures that show it. docs/findings.md has a section for each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found in a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Finding {
    /// Its name: a heading of docs/findings.md.
    pub name: String,
    /// What ran.
    pub workload: String,
    /// Where.
    pub machine: String,
    /// The variant, as it is told from its siblings.
    pub variant: String,
    /// What it is about, where there are several: a span, a lock class, a knob.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// How much it weighs, from 0 to 1: findings are listed by it.
    pub weight: f64,
    /// The figures that show it, means over the seeds: times in ns (`_ns`), memory in pages (`_pages`), parts from 0 to 1 (`_share`).
    pub figures: BTreeMap<String, f64>,
}

/// Waits for locks by task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LockWaits {
    /// Tasks that there were, daemons too.
    pub tasks: u64,
    /// Those of them that ever waited.
    pub waited: u64,
    /// Time waited by all of them, ns.
    pub wait_ns: u64,
    /// Those that waited longest, [`Self::KEPT`] at most, the longest first.
    pub longest: Vec<TaskWait>,
}

/// What one task waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskWait {
    /// Its name in the simulation.
    pub task: String,
    /// For all locks together, ns.
    pub wait_ns: u64,
}

impl LockWaits {
    /// Tasks that are told one by one.
    pub const KEPT: usize = 8;

    /// Of all tasks, each with its name and what it waited.
    pub fn of<'a>(tasks: impl IntoIterator<Item = (&'a str, u64)>) -> Self {
        let mut all = Self::default();
        let mut waited: Vec<(&str, u64)> = vec![];
        for (name, wait_ns) in tasks {
            all.tasks += 1;
            all.wait_ns += wait_ns;
            if wait_ns > 0 {
                waited.push((name, wait_ns));
            }
        }
        all.waited = waited.len() as u64;
        // The first of equals stays first.
        waited.sort_by_key(|(_, wait_ns)| std::cmp::Reverse(*wait_ns));
        let kept = waited.into_iter().take(Self::KEPT);
        all.longest = kept.map(|(task, wait_ns)| TaskWait { task: task.to_owned(), wait_ns }).collect();
        all
    }

    /// Whether nobody waited.
    pub const fn is_empty(&self) -> bool {
        self.wait_ns == 0
    }

    /// What part of all waiting the `count` tasks did that waited longest; 0 where nobody waited.
    pub fn share_of(&self, count: usize) -> f64 {
        let those: u64 = self.longest.iter().take(count).map(|task| task.wait_ns).sum();
        if self.is_empty() { 0.0 } else { those as f64 / self.wait_ns as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_waiters_come_first_and_all_are_counted() {
        let names: Vec<String> = (0..20).map(|number| format!("task-{number}")).collect();
        let waits =
            LockWaits::of(names.iter().enumerate().map(|(number, name)| (name.as_str(), number as u64 % 12)));
        assert_eq!(
            (waits.tasks, waits.waited, waits.wait_ns, waits.longest.len()),
            (20, 18, 94, LockWaits::KEPT)
        );
        assert_eq!((waits.longest[0].task.as_str(), waits.longest[0].wait_ns), ("task-11", 11));
        assert!((waits.share_of(2) - 21.0 / 94.0).abs() < 1e-9);
        assert!(LockWaits::default().share_of(3).abs() < 1e-9);
    }
}
