//! Pages that say where each rule of the memory manager is from.

use crate::{Finding, Tree};

/// Where rules are, and the pages about them.
const RULES: &str = "crates/mm/src/rules/policy";
const PAGES: &str = "docs/rules/";
/// What is a page about commits of rules, too.
const HISTORY: &str = "docs/compaction-history.md";

/// `rules-have-pages`: every enum of a rule is named in a page under docs/rules, and so is every commit of its history, or in that
/// of compaction.
pub fn rules_have_pages(tree: &Tree) -> Vec<Finding> {
    let pages: Vec<&str> = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with(PAGES))
        .map(|file| file.text.as_str())
        .collect();
    let is_history = |file: &&crate::File| file.path.starts_with(PAGES) || file.path == HISTORY;
    let histories: Vec<&str> = tree.files.iter().filter(is_history).map(|file| file.text.as_str()).collect();
    let mut found = vec![];
    for file in tree.ending_in(".rs").filter(|file| file.path.starts_with(RULES)) {
        for (index, line) in file.text.lines().enumerate() {
            let commits = commits_of(line).into_iter();
            for commit in commits.filter(|commit| !histories.iter().any(|page| page.contains(commit))) {
                let what = format!("no page under {PAGES} names commit {commit}");
                found.push(Finding {
                    rule: "rules-have-pages",
                    path: file.path.clone(),
                    line: index + 1,
                    what,
                });
            }
            let Some(name) = enum_of(line) else { continue };
            if !pages.iter().any(|page| names(page, name)) {
                found.push(Finding {
                    rule: "rules-have-pages",
                    path: file.path.clone(),
                    line: index + 1,
                    what: format!("no page under {PAGES} names {name}"),
                });
            }
        }
    }
    found
}

/// The public enum that a line begins.
fn enum_of(line: &str) -> Option<&str> {
    let name = line.strip_prefix("pub enum ")?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

/// The commits that a line of a history names.
fn commits_of(line: &str) -> Vec<&str> {
    let is_commit = |text: &&str| text.len() >= 10 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if line.contains("Since(") { line.split('"').filter(is_commit).collect() } else { vec![] }
}

/// Whether `page` has `name` as code, alone or with a variant.
fn names(page: &str, name: &str) -> bool {
    let mut spans = page.match_indices(name);
    spans.any(|(at, _)| {
        let after = page[at + name.len()..].chars().next();
        page[..at].ends_with('`') && matches!(after, Some('`' | ':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_without_a_page_is_found() {
        let code = "pub enum HoldRule {\n}\n\npub enum LruRule {\n}\npub struct Rules {\n}\n";
        let tree = |page| {
            Tree::of(&[
                ("crates/mm/src/rules/policy/zone.rs", code),
                ("docs/rules/a.md", page),
                ("docs/b.md", "`LruRule`"),
            ])
        };
        let lines = |page| rules_have_pages(&tree(page)).iter().map(|found| found.line).collect::<Vec<_>>();
        assert_eq!(lines("| `HoldRule`: a batch |"), [4]);
        assert_eq!(lines("| `HoldRule::Batch` | `LruRule` |"), []);
        assert_eq!(lines("HoldRule, `LruRules`"), [1, 4]);
        assert_eq!(rules_have_pages(&Tree::of(&[("crates/sim/src/policy.rs", code)])).len(), 0);
    }

    #[test]
    fn a_commit_without_a_page_is_found() {
        let code = "    Since(v(2, 6), Old, \"\"), Since(v(5, 1), New, \"0123456789ab\"),\n";
        let tree = |path, page| Tree::of(&[("crates/mm/src/rules/policy/zone.rs", code), (path, page)]);
        let found = |path, page| rules_have_pages(&tree(path, page)).len();
        assert_eq!(found("docs/rules/a.md", "5.1 (0123456789ab)"), 0);
        assert_eq!(found(HISTORY, "5.1 (0123456789ab)"), 0);
        assert_eq!(found("docs/b.md", "5.1 (0123456789ab)"), 1);
    }
}
