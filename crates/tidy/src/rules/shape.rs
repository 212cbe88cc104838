//! How long files are and how they open.

use crate::{Finding, Tree};

/// Lines of a Rust file at most.
const LONGEST: usize = 600;
/// Half of all Rust files have fewer lines than this.
const MEDIAN: usize = 250;

/// `file-length`: a file is one idea; none is over 600 lines.
pub fn file_length(tree: &Tree) -> Vec<Finding> {
    let long =
        tree.ending_in(".rs").map(|file| (file, file.text.lines().count())).filter(|(_, n)| *n > LONGEST);
    long.map(|(file, count)| Finding {
        rule: "file-length",
        path: file.path.clone(),
        line: 0,
        what: format!("{count} lines; {LONGEST} at most"),
    })
    .collect()
}

/// `median-length`: half of all files have fewer than 250 lines.
pub fn median_length(tree: &Tree) -> Vec<Finding> {
    let mut lengths: Vec<usize> = tree.ending_in(".rs").map(|file| file.text.lines().count()).collect();
    lengths.sort_unstable();
    match lengths.get(lengths.len() / 2) {
        Some(&median) if median >= MEDIAN => vec![Finding {
            rule: "median-length",
            path: "crates".into(),
            line: 0,
            what: format!("the median file has {median} lines; fewer than {MEDIAN} are wanted"),
        }],
        _ => vec![],
    }
}

/// `module-opening`: a source file opens with what it is for, in a `//!` comment. Files of nothing but tests need none.
pub fn module_opening(tree: &Tree) -> Vec<Finding> {
    let is_source = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    let is_test =
        |path: &str| path.ends_with("tests.rs") || path.ends_with("test.rs") || path.contains("/tests/");
    tree.ending_in(".rs")
        .filter(|file| is_source(&file.path) && !is_test(&file.path) && !file.text.starts_with("//!"))
        .map(|file| Finding {
            rule: "module-opening",
            path: file.path.clone(),
            line: 1,
            what: "does not open with what it is for (//!)".into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_found_and_a_short_one_is_not() {
        let long = "//! a\n".repeat(601);
        let tree = Tree::of(&[("crates/a/src/b.rs", &long), ("crates/a/src/c.rs", "//! c\n")]);
        let found = file_length(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "crates/a/src/b.rs: 601 lines; 600 at most [file-length]");
    }

    #[test]
    fn the_median_counts_all_files() {
        let (long, short) = ("\n".repeat(300), "\n".repeat(10));
        let two_of_three = Tree::of(&[("a.rs", &long), ("b.rs", &long), ("c.rs", &short)]);
        assert_eq!(median_length(&two_of_three).len(), 1);
        let one_of_three = Tree::of(&[("a.rs", &long), ("b.rs", &short), ("c.rs", &short)]);
        assert_eq!(median_length(&one_of_three), []);
        assert_eq!(median_length(&Tree::default()), []);
    }

    #[test]
    fn a_module_without_an_opening_is_found() {
        let tree = Tree::of(&[("crates/a/src/b.rs", "use c;"), ("crates/a/src/tests.rs", "use c;")]);
        assert_eq!(module_opening(&tree).len(), 1);
    }
}
