//! All required keys that a file lacks, at once: `serde` stops at the first.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::experiment::error::{ExperimentError, Place};

/// Tables that can be in a file, by their path, and the keys that each must have. `file` has the same as types.
const REQUIRED: &[(&str, &[&str])] = &[
    ("", &["name", "title", "about", "source"]),
    ("variant", &["name"]),
    ("variant.phase", &["name", "run_ms"]),
    // A value or a range as well: `published` says so.
    ("variant.published", &["metric"]),
    ("variant.histogram", &["span", "text"]),
    ("compare", &["variant", "against", "metric", "as"]),
    ("sweep", &["title", "machines", "knob", "values", "metrics"]),
    ("not_compared", &["figures", "because"]),
    ("sweep.criterion", &["usual", "metric", "at_most", "cost", "because"]),
];

/// What the file lacks, each key of a table with the table's line; `None` if it has all that every file must have.
pub(super) fn keys(place: Place<'_>) -> Option<ExperimentError> {
    let file = DeTable::parse(place.text).ok()?;
    let mut lacking = vec![];
    look(place, file.get_ref(), "", None, &mut lacking);
    let list = lacking.join(", ");
    (!lacking.is_empty()).then(|| ExperimentError::new(place.file, format!("missing: {list}")))
}

/// Notes what `table` lacks, which is at `path` and begins on `line`, and what the tables in it lack.
fn look(place: Place<'_>, table: &DeTable<'_>, path: &str, line: Option<usize>, lacking: &mut Vec<String>) {
    let Some((_, required)) = REQUIRED.iter().find(|(known, _)| *known == path) else { return };
    for key in required.iter().filter(|key| value(table, key).is_none()) {
        lacking.push(match line {
            Some(line) => format!("{} (line {line})", joined(path, key)),
            None => (*key).to_owned(),
        });
    }
    for (key, value) in table {
        let path = joined(path, key.get_ref());
        for (below, line) in tables(place, value) {
            look(place, below, &path, Some(line), lacking);
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn value<'a, 'b>(table: &'a DeTable<'b>, key: &str) -> Option<&'a Spanned<DeValue<'b>>> {
    table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
}

/// The table that `value` is, or those that it lists, each with its line.
fn tables<'a, 'b>(place: Place<'_>, value: &'a Spanned<DeValue<'b>>) -> Vec<(&'a DeTable<'b>, usize)> {
    let one = |value: &'a Spanned<DeValue<'b>>| match value.get_ref() {
        DeValue::Table(table) => Some((table, place.line(&value.span()))),
        _ => None,
    };
    match value.get_ref() {
        DeValue::Array(values) => values.iter().filter_map(one).collect(),
        _ => one(value).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::File;
    use super::*;

    const EMPTY: &str = "about = \"a\"\n\n[[variant]]\n[[variant.phase]]\n[[variant.published]]\n\
        [[variant.histogram]]\n[[compare]]\n[[sweep]]\n[sweep.criterion]\n";

    #[test]
    fn all_that_is_missing_is_said_at_once() {
        let error = keys(Place { file: "f.toml", text: EMPTY }).unwrap().to_string();
        for part in [
            "missing: name, title, source, ",
            "variant.phase.run_ms (line 4)",
            "sweep.criterion.because (line 9)",
        ] {
            assert!(error.contains(part), "{part} is missing from {error}");
        }
    }

    /// If a type gains a required key that the table lacks, or loses one, this fails.
    #[test]
    fn the_table_is_what_the_types_require() {
        let whole = "name = \"n\"\ntitle = \"t\"\nabout = \"a\"\nsource = \"s\"\n\
            [[variant]]\nname = \"v\"\n[[variant.phase]]\nname = \"p\"\nrun_ms = 1\n\
            [[variant.published]]\nmetric = \"m\"\n[[variant.histogram]]\nspan = \"s\"\ntext = \"t\"\n\
            [[compare]]\nvariant = \"v\"\nagainst = \"w\"\nmetric = \"m\"\nas = \"ratio\"\n\
            [[not_compared]]\nfigures = \"f\"\nbecause = \"b\"\n\
            [[sweep]]\ntitle = \"t\"\nmachines = []\nknob = \"k\"\nvalues = [1]\nmetrics = []\n\
            [sweep.criterion]\nusual = 1\nmetric = \"m\"\nat_most = 1.0\ncost = \"c\"\nbecause = \"b\"\n";
        toml::from_str::<File>(whole).unwrap();
        assert!(keys(Place { file: "f", text: whole }).is_none());
        let lines: Vec<&str> = whole.lines().collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with('[')) {
            let without = [&lines[..index], &lines[index + 1..]].concat().join("\n");
            let problem = toml::from_str::<File>(&without).unwrap_err().to_string();
            assert!(problem.contains("missing field"), "{line}: {problem}");
            assert!(keys(Place { file: "f", text: &without }).is_some(), "{line}");
        }
    }
}
