//! On which line of a profile each key is: `toml`'s values do not tell.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// The lines of one file's keys, by their dotted paths. Keys of a profile that it extends are not among them.
#[derive(Default)]
pub(super) struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// Those of `text`; none if it is no TOML.
    pub(super) fn of(text: &str) -> Self {
        let mut lines = Self::default();
        if let Ok(table) = DeTable::parse(text) {
            lines.note(text, "", table.get_ref());
        }
        lines
    }

    fn note(&mut self, text: &str, above: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let path = if above.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{above}.{}", key.get_ref())
            };
            if let DeValue::Table(below) = value.get_ref() {
                self.note(text, &path, below);
            }
            self.0.insert(path, line_of(text, key.span().start));
        }
    }

    /// ` (line 4)` for a key that is in the file, or nothing.
    pub(super) fn place(&self, key: &str) -> String {
        self.0.get(key).map_or_else(String::new, |line| format!(" (line {line})"))
    }

    /// `problem`, which begins with the key that it is about, after the line of that key.
    pub(super) fn told(&self, problem: String) -> String {
        let key = problem.split([' ', ':']).next().unwrap_or_default();
        match self.0.get(key) {
            Some(line) => format!("line {line}: {problem}"),
            None => problem,
        }
    }
}

/// The line of the byte at `at`, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_sections_and_figures_have_lines() {
        let lines =
            Lines::of("name = 'a'\n\n[cache]\nl1_ns = { value = 1.0 }\n[[topology.nodes]]\nsocket = 0\n");
        assert_eq!(lines.told("cache.l1_ns: value is 1".into()), "line 4: cache.l1_ns: value is 1");
        assert_eq!(lines.told("topology.nodes socket is -1".into()), "line 5: topology.nodes socket is -1");
        assert_eq!(lines.told("cache.l2_ns is missing".into()), "cache.l2_ns is missing");
        assert_eq!((lines.place("cache").as_str(), lines.place("dram").as_str()), (" (line 3)", ""));
    }
}
