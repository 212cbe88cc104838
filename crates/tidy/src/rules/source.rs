//! What stands in Rust code.

use crate::source::{Line, lines};
use crate::{File, Finding, Tree};

/// How far above an unsafe block its argument may stand, in lines.
const NEAR: usize = 5;

/// `safety-comment`: every unsafe block and impl has `SAFETY:` within five lines above it.
pub fn safety_comment(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for file in tree.ending_in(".rs") {
        let lines = lines(&file.text);
        for (index, _) in lines.iter().enumerate().filter(|(index, _)| opens_unsafe(&lines[*index..])) {
            let near = &lines[index.saturating_sub(NEAR)..=index];
            if !near.iter().any(|line| line.comment.contains("SAFETY:")) {
                found.push(finding(
                    "safety-comment",
                    file,
                    index,
                    "unsafe without a SAFETY: comment above it",
                ));
            }
        }
    }
    found
}

/// Whether the first of `lines` has the word `unsafe` before a block or an `impl`, which may stand on the next line.
fn opens_unsafe(lines: &[Line]) -> bool {
    let code = &lines[0].code;
    code.match_indices("unsafe").any(|(at, word)| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let before = code[..at].chars().last().is_some_and(is_word);
        let rest = code[at + word.len()..].trim_start();
        let rest =
            if rest.is_empty() { lines.get(1).map_or("", |next| next.code.trim_start()) } else { rest };
        !before && (rest.starts_with('{') || rest.starts_with("impl"))
    })
}

/// `finished-code`: nothing is left to be done later, nothing is printed to find a fault.
pub fn finished_code(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for file in tree.ending_in(".rs") {
        for (index, line) in lines(&file.text).iter().enumerate() {
            for macro_name in ["todo!", "unimplemented!", "dbg!"] {
                if line.code.contains(macro_name) {
                    found.push(finding("finished-code", file, index, macro_name));
                }
            }
        }
    }
    found
}

/// `oldest-rust`: nothing newer than Rust 1.85, which Debian 13 has. `let` within a chain of conditions came with 1.88,
/// and no lint of clippy's sees it.
pub fn oldest_rust(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for file in tree.ending_in(".rs") {
        for (index, line) in lines(&file.text).iter().enumerate() {
            if line.code.contains("&& let ") {
                found.push(finding("oldest-rust", file, index, "`&& let` needs Rust 1.88"));
            }
        }
    }
    found
}

fn finding(rule: &'static str, file: &File, index: usize, what: &str) -> Finding {
    Finding { rule, path: file.path.clone(), line: index + 1, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: fn(&Tree) -> Vec<Finding>, text: &str) -> Vec<usize> {
        rule(&Tree::of(&[("a.rs", text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_unsafe_block_wants_its_argument_near() {
        assert_eq!(found(safety_comment, "fn f() {\n    unsafe { g() }\n}"), [2]);
        assert_eq!(found(safety_comment, "// SAFETY: g takes nothing.\nunsafe { g() }"), []);
        let far = format!("// SAFETY: g takes nothing.\n{}unsafe {{ g() }}", "\n".repeat(5));
        assert_eq!(found(safety_comment, &far), [7]);
        assert_eq!(found(safety_comment, "unsafe impl Send for A {}"), [1]);
        assert_eq!(found(safety_comment, "let a = unsafe\n{ g() };"), [1]);
    }

    #[test]
    fn other_uses_of_the_word_are_left_alone() {
        let text = "unsafe fn f();\nunsafe trait A {}\n// unsafe {\nlet not_unsafe = \"unsafe {\";\n#[unsafe(no_mangle)]";
        assert_eq!(found(safety_comment, text), []);
    }

    #[test]
    fn a_chain_of_lets_is_found() {
        assert_eq!(found(oldest_rust, "if a\n    && let Some(b) = c {}\n// && let \nif a && b {}"), [2]);
    }

    #[test]
    fn unfinished_code_is_found_outside_of_strings() {
        assert_eq!(found(finished_code, concat!("a\nto", "do!()\nunimple", "mented!();")), [2, 3]);
        assert_eq!(found(finished_code, "let a = \"todo!\"; // todo!"), []);
    }
}
