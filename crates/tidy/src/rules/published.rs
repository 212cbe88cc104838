//! Figures that experiments are scored with, and the page that says who published them.

use toml::Value;

use crate::{Finding, Tree};

const PAGE: &str = "docs/published.md";
const EXPERIMENTS: &str = "experiments/";

/// `figures-are-published`: a figure that an experiment calls published stands in docs/published.md. Not those that are
/// derived from others, nor those with a source of their own, which says how they follow.
pub fn figures_are_published(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.files.iter().find(|file| file.path == PAGE) else {
        return vec![];
    };
    let there = numbers(&page.text);
    let mut found = vec![];
    for file in tree.ending_in(".toml").filter(|file| file.path.starts_with(EXPERIMENTS)) {
        // What cannot be read is found by the tests of experiments.
        let Ok(table) = file.text.parse::<toml::Table>() else { continue };
        let variants = table.get("variant").and_then(Value::as_array).into_iter().flatten();
        for row in variants.filter_map(|variant| variant.get("published")?.as_array()).flatten() {
            let missing = |value: &f64| value.is_finite() && !there.contains(&value.abs());
            found.extend(values(row).into_iter().filter(missing).map(|value| Finding {
                rule: "figures-are-published",
                path: file.path.clone(),
                line: 0,
                what: format!("{} of {value} is not in {PAGE}", metric(row)),
            }));
        }
    }
    found
}

/// The figures of a row that somebody else published as they are.
fn values(row: &Value) -> Vec<f64> {
    let is_derived = row.get("role").and_then(Value::as_str) == Some("derived");
    if is_derived || row.get("source").is_some() {
        return vec![];
    }
    match row.get("value") {
        Some(Value::Array(values)) => values.iter().filter_map(number).collect(),
        Some(value) => number(value).into_iter().collect(),
        None => vec![],
    }
}

fn number(value: &Value) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "counters of people's tables are far below 2^53")]
    value.as_float().or_else(|| value.as_integer().map(|value| value as f64))
}

fn metric(row: &Value) -> &str {
    row.get("metric").and_then(Value::as_str).unwrap_or("a row")
}

/// All numbers of a text, with commas between thousands or without.
fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')));
    let plain = words.map(|word| word.trim_matches(['.', ',']).replace(',', ""));
    plain.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(row: &str) -> Vec<String> {
        let experiment = format!("[[variant]]\npublished = [{{ metric = \"m\", {row} }}]\n");
        let page = "Means are 1,234.50 and 7, 8. A change of −20.4 %.";
        let tree = Tree::of(&[("experiments/a.toml", &experiment), (PAGE, page)]);
        figures_are_published(&tree).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn a_figure_that_nobody_published_is_found() {
        assert_eq!(found("value = 1234.5"), Vec::<String>::new());
        assert_eq!(found("value = [7, 8]"), Vec::<String>::new());
        assert_eq!(found("value = -20.4"), Vec::<String>::new());
        assert_eq!(found("value = [7, 9]"), ["m of 9 is not in docs/published.md"]);
        assert_eq!(found("value = 1234").len(), 1);
    }

    #[test]
    fn what_is_asked_for_or_follows_is_passed_over() {
        for row in ["value = nan", "value = 3, role = \"derived\"", "value = 3, source = \"half of 6\""] {
            assert_eq!(found(row), Vec::<String>::new(), "{row}");
        }
    }
}
