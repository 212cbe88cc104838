//! Whether the docs name items and folders of the code that there are.

use std::collections::BTreeSet;

use crate::{Finding, Tree, lines};

/// What tells of the past in its own names, or is made by a program.
const NOT_HELD: [&str; 2] = ["CHANGELOG.md", "docs/results"];

/// A folder that the tree leaves out.
const UNSEEN: &str = "conformance";

/// `docs-name-items`: a page names no `Type::item`, `module::item` or `folder/` that does not exist. An item exists if one
/// source file has both names, or has the second and stands in a folder, file or crate of the first.
pub fn docs_name_items(tree: &Tree) -> Vec<Finding> {
    let sources: Vec<Source<'_>> =
        tree.ending_in(".rs").map(|file| Source::of(&file.path, &file.text)).collect();
    let is_held = |path: &str| !NOT_HELD.iter().any(|start| path.starts_with(start));
    let mut found = vec![];
    for page in tree.ending_in(".md").filter(|page| is_held(&page.path)) {
        for (index, line) in page.text.lines().enumerate() {
            for span in spans(line).filter(|span| !exists(&sources, tree, span)) {
                found.push(Finding {
                    rule: "docs-name-items",
                    path: page.path.clone(),
                    line: index + 1,
                    what: format!("names `{span}`, which does not exist"),
                });
            }
        }
    }
    found
}

/// A source file, as far as names go.
struct Source<'a> {
    path: &'a str,
    words: BTreeSet<String>,
}

impl<'a> Source<'a> {
    fn of(path: &'a str, text: &str) -> Self {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let code = lines(text).into_iter().map(|line| line.code);
        let words = code.flat_map(|code| {
            code.split(|c: char| !is_name(c))
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        });
        Self { path, words: words.collect() }
    }

    /// Whether it is in a folder, file or crate called so.
    fn is_in(&self, name: &str) -> bool {
        self.path.split(['/', '.']).any(|part| part == name)
    }
}

/// The code on `line`: what stands between backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn exists(sources: &[Source<'_>], tree: &Tree, span: &str) -> bool {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    if let Some(folder) = span.strip_suffix('/').filter(|folder| is_name(folder)) {
        return folder == UNSEEN
            || tree.files.iter().any(|file| file.path.split('/').any(|part| part == folder));
    }
    let parts: Vec<&str> = span.trim_end_matches("()").split("::").collect();
    if parts.len() < 2 || !parts.iter().all(|part| is_name(part)) {
        return true;
    }
    parts.windows(2).all(|pair| {
        let both = |source: &Source<'_>| {
            (source.words.contains(pair[1]) || source.is_in(pair[1]))
                && (source.words.contains(pair[0]) || source.is_in(pair[0]))
        };
        sources.iter().any(both)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_folders_that_are_gone_are_found() {
        let page = "`Mm::alloc()` and `Mm::gone`, `pages::Zone`, `pages::gone`, `a::b::C`\n`pages/`, `gone/`, `a: b::`, `lists`";
        let tree = Tree::of(&[
            ("crates/mm/src/mm.rs", "impl Mm { fn alloc() {} } // gone"),
            ("crates/mm/src/pages/zone.rs", "struct Zone; const X: &str = \"gone\";"),
            ("docs/page.md", page),
            ("CHANGELOG.md", "`Mm::gone`"),
        ]);
        let found: Vec<String> = docs_name_items(&tree).iter().map(ToString::to_string).collect();
        let of = |line: u32, span: &str| {
            format!("docs/page.md:{line}: names `{span}`, which does not exist [docs-name-items]")
        };
        assert_eq!(found, [of(1, "Mm::gone"), of(1, "pages::gone"), of(1, "a::b::C"), of(2, "gone/")]);
    }
}
