//! Paths of one person's machine.

use crate::{Finding, Tree};

/// Beginnings of paths that exist on some machine only. Split, so that this file is clean itself.
const OURS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tm", "p/")];

/// `no-machine-paths`: no committed text names a place that only its writer's machine has.
pub fn no_machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(path) = OURS.into_iter().find(|path| begins_a_path(line, path)) {
                found.push(Finding {
                    rule: "no-machine-paths",
                    path: file.path.clone(),
                    line: index + 1,
                    what: format!("a path under {path}"),
                });
            }
        }
    }
    found
}

/// Whether `line` has `path` where a path begins: `crates/work/` is none.
fn begins_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at].chars().last().is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_ours_is_found_wherever_it_stands() {
        let text = ["see ", OURS[0], "main\nok\nHOME=", OURS[1], "\n../", &OURS[0][1..], "x and $d", OURS[3]]
            .concat();
        let lines: Vec<usize> = no_machine_paths(&Tree::of(&[("docs/a.md", &text)]))
            .into_iter()
            .map(|found| found.line)
            .collect();
        assert_eq!(lines, [1, 3]);
    }
}
