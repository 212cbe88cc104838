//! The walks through the code that ARCHITECTURE.md takes its reader on.

use crate::source::lines;
use crate::{Finding, Tree};

/// The page, and the heading of the walks in it.
const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Two walks";

/// `walks-lead-through`: each stop of the walks names a file that exists and a function that is in it.
pub fn walks_lead_through(tree: &Tree) -> Vec<Finding> {
    let finding =
        |line: usize, what: String| Finding { rule: "walks-lead-through", path: PAGE.to_owned(), line, what };
    let Some(page) = tree.files.iter().find(|file| file.path == PAGE) else {
        return vec![];
    };
    let within = page.text.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    let section = within.take_while(|(_, line)| !line.starts_with("## "));
    let stops: Vec<(usize, &str)> = section.filter_map(|(index, line)| Some((index, stop(line)?))).collect();
    if stops.is_empty() {
        return vec![finding(0, format!("no stop stands under \"{HEADING}\""))];
    }
    let wrong = |&(index, stop): &(usize, &str)| Some(finding(index + 1, what_is_wrong(tree, stop)?));
    stops.iter().filter_map(wrong).collect()
}

/// What stands behind the number of a stop.
fn stop(line: &str) -> Option<&str> {
    let (number, stop) = line.split_once(". ")?;
    number.parse::<u32>().is_ok().then_some(stop)
}

/// A stop is ``path.rs `fn name`: what happens there``.
fn what_is_wrong(tree: &Tree, stop: &str) -> Option<String> {
    let named = stop.split_once(" `fn ").and_then(|(path, rest)| Some((path, rest.split_once("`:")?.0)));
    let Some((path, name)) = named else {
        return Some("a stop is a file, `fn name`: and what happens there".to_owned());
    };
    let Some(file) = tree.files.iter().find(|file| file.path == path) else {
        return Some(format!("stops at {path}, which does not exist"));
    };
    let declares = |code: &str| {
        code.split_once("fn ")
            .is_some_and(|(_, rest)| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(['(', '<'])))
    };
    let is_there = lines(&file.text).iter().any(|line| declares(&line.code));
    (!is_there).then(|| format!("stops at {name}, which is not in {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(walk: &str) -> Vec<(usize, String)> {
        let page = format!(
            "# A\n1. gone.rs `fn far`: before\n{HEADING}\n{walk}\n## B\n2. gone.rs `fn far`: after\n"
        );
        let code = "impl A {\n    pub fn near<'a>(\n}\n// fn told(\nfn nearly() {}\n";
        let tree = Tree::of(&[(PAGE, &page), ("crates/a.rs", code)]);
        walks_lead_through(&tree).into_iter().map(|found| (found.line, found.what)).collect()
    }

    #[test]
    fn a_stop_is_held_against_the_code() {
        assert_eq!(found("1. crates/a.rs `fn near`: here\n2. crates/a.rs `fn nearly`: there"), []);
        let gone = found("1. crates/b.rs `fn near`: here\nof it\n2. crates/a.rs `fn told`: there");
        assert_eq!(gone[0], (4, "stops at crates/b.rs, which does not exist".to_owned()));
        assert_eq!(gone[1], (6, "stops at told, which is not in crates/a.rs".to_owned()));
        assert_eq!(gone.len(), 2);
    }

    #[test]
    fn a_walk_without_stops_is_none() {
        assert_eq!(found("- crates/a.rs `fn near`: here").len(), 1);
        assert_eq!(found("1. `near`: here").len(), 1);
        assert_eq!(walks_lead_through(&Tree::default()), []);
    }
}
