//! Which files there are, and whether the docs name files that there are.

use crate::{Finding, Tree};

/// What a committed file may end in. A kind that is not here is a leftover, or a line to add.
const ENDINGS: [&str; 27] = [
    "c",
    "data",
    "fhr",
    "gitignore",
    "h",
    "html",
    "ipynb",
    "json",
    "lock",
    "md",
    "o",
    "pl",
    "py",
    "pyi",
    "rec",
    "rs",
    "sh",
    "snap",
    "sql",
    "suppressions",
    "toml",
    "txt",
    "typed",
    "xz",
    "csv",
    "css",
    "js",
];
/// Folders whose files may be called anything: scripts have no ending, seeds of a fuzzer are input of any kind.
const ANY_NAME: [&str; 3] = ["scripts/", "fuzz/seeds/", ".ci/"];
/// Files at the root that have no ending.
const BARE_NAMES: [&str; 3] = ["Makefile", "LICENSE-APACHE", "LICENSE-MIT"];
/// Folders whose text files are all in the tree, so that a name that is not there is wrong.
const CHECKED: [&str; 7] = ["crates/", "docs/", "experiments/", "machines/", "python/", "scripts/", "fuzz/"];

/// `known-files`: a file is of a kind that the house has.
pub fn known_files(tree: &Tree) -> Vec<Finding> {
    let unknown = tree.files.iter().filter(|file| !is_known(&file.path));
    let finding = |path: &String| {
        Finding {
        rule: "known-files",
        path: path.clone(),
        line: 1,
        what: "a kind of file that nobody expects; delete it, or add its ending to crates/tidy/src/rules/files.rs".to_owned(),
    }
    };
    unknown.map(|file| finding(&file.path)).collect()
}

fn is_known(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ANY_NAME.iter().any(|folder| path.starts_with(folder))
        || BARE_NAMES.contains(&path)
        || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// `docs-name-what-is`: a page names no file or folder of the repository that does not exist.
pub fn docs_name_what_is(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for page in tree.ending_in(".md") {
        for (index, line) in page.text.lines().enumerate() {
            let paths = paths_in(line).filter(|path| !exists(tree, path));
            for path in paths.chain(ends_in(line).filter(|end| !ends_a_path(tree, end))) {
                found.push(Finding {
                    rule: "docs-name-what-is",
                    path: page.path.clone(),
                    line: index + 1,
                    what: format!("names {path}, which does not exist"),
                });
            }
        }
    }
    found
}

/// The words of `line` that are paths from the repository's root, without a pattern or a placeholder in them.
fn paths_in(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !(c.is_alphanumeric() || "/._-*{}<>$".contains(c)));
    // A link from a page goes up first.
    let words = words.map(|word| word.trim_start_matches("../").trim_end_matches(['.', '/']));
    let paths = words.filter(|word| {
        CHECKED.iter().any(|folder| word.starts_with(folder)) && !word.contains(['*', '{', '<', '$'])
    });
    // NAME stands for any name.
    paths.filter(|path| {
        !path.split(['/', '.']).any(|part| {
            part.len() > 1 && part == part.to_uppercase() && part.chars().any(char::is_alphabetic)
        })
    })
}

/// The words of `line` that are Rust files without the path to them: `pcp/refill.rs`.
fn ends_in(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !(c.is_alphanumeric() || "/._-*{}<>$".contains(c)));
    let files =
        words.filter(|word| word.strip_suffix(".rs").is_some() && !word.contains(['*', '{', '<', '$']));
    files.filter(|word| !word.starts_with('.') && !CHECKED.iter().any(|folder| word.starts_with(folder)))
}

/// Whether a file's path is `end`, or ends in it after a folder.
fn ends_a_path(tree: &Tree, end: &str) -> bool {
    tree.files.iter().any(|file| {
        file.path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

/// Whether `path` is a file, a folder, or a module without its ending.
fn exists(tree: &Tree, path: &str) -> bool {
    tree.files.iter().any(|file| {
        file.path
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest == ".rs")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leftover_is_found() {
        let tree = Tree::of(&[
            ("crates/a/src/a.snap.new", ""),
            ("crates/a/src/a.rs", ""),
            ("Makefile", ""),
            ("notes", ""),
        ]);
        let paths: Vec<String> = known_files(&tree).into_iter().map(|found| found.path).collect();
        assert_eq!(paths, ["crates/a/src/a.snap.new", "notes"]);
    }

    #[test]
    fn a_page_that_names_what_is_gone_is_found() {
        let page = "see crates/a/src/a.rs, `crates/a/src/b.rs` and docs/\n[a](docs/gone.md), machines/NAME.toml, crates/*/x\ncrates/a.";
        let tree = Tree::of(&[("crates/a/src/a.rs", ""), ("docs/page.md", page)]);
        let found: Vec<(usize, String)> =
            docs_name_what_is(&tree).into_iter().map(|found| (found.line, found.what)).collect();
        assert_eq!(found[0], (1, "names crates/a/src/b.rs, which does not exist".to_owned()));
        assert_eq!(found[1], (2, "names docs/gone.md, which does not exist".to_owned()));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn links_and_ends_of_paths_that_are_gone_are_found() {
        let tree = Tree::of(&[
            ("crates/a/src/pcp/refill.rs", ""),
            (
                "docs/page.md",
                "| pcp/refill.rs, refill.rs | `cp/refill.rs`, *.rs | ../docs/page.md, ../docs/gone.md, .rs |",
            ),
        ]);
        let found: Vec<String> = docs_name_what_is(&tree).into_iter().map(|found| found.what).collect();
        let gone = ["names docs/gone.md, which does not exist", "names cp/refill.rs, which does not exist"];
        assert_eq!(found, gone);
    }
}
