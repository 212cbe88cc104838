//! How long functions are.

use crate::{Finding, Line, Tree, lines};

/// Lines of a function at most, from `fn` to its closing brace.
const LONGEST: usize = 60;

/// `functions-are-short`: a function fits a screen; none has more than 60 lines, tests neither.
pub fn functions_are_short(tree: &Tree) -> Vec<Finding> {
    let mut found = vec![];
    for file in tree.ending_in(".rs") {
        for Function { name, first, count } in functions(&lines(&file.text)) {
            if count > LONGEST {
                found.push(Finding {
                    rule: "functions-are-short",
                    path: file.path.clone(),
                    line: first + 1,
                    what: format!("{name} has {count} lines; {LONGEST} at most"),
                });
            }
        }
    }
    found
}

struct Function {
    name: String,
    /// The line of its `fn`, from 0.
    first: usize,
    /// Lines up to its closing brace.
    count: usize,
}

/// The functions that have a body, with those inside of others.
fn functions(lines: &[Line]) -> Vec<Function> {
    let mut functions = vec![];
    for (first, line) in lines.iter().enumerate() {
        for (at, _) in line.code.match_indices("fn ") {
            let begins = !line.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let name: String =
                line.code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if let Some(count) = length(lines, first, at).filter(|_| begins && !name.is_empty()) {
                functions.push(Function { name, first, count });
            }
        }
    }
    functions
}

/// Lines of the function whose `fn` is at column `at` of line `first`; `None` if it has no body.
fn length(lines: &[Line], first: usize, at: usize) -> Option<usize> {
    let (mut brackets, mut braces) = (0_i32, 0_i32);
    for (index, line) in lines[first..].iter().enumerate() {
        let code = if index == 0 { &line.code[at..] } else { line.code.as_str() };
        for c in code.chars() {
            match c {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets -= 1,
                ';' if brackets == 0 && braces == 0 => return None,
                '{' => braces += 1,
                '}' if braces == 1 => return Some(index + 1),
                '}' => braces -= 1,
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/a/src/b.rs", text)]);
        functions_are_short(&tree).into_iter().map(|found| found.to_string()).collect()
    }

    #[test]
    fn a_long_function_is_found_and_a_short_one_is_not() {
        let body = |count: usize| format!("fn go(\n) {{\n{}}}\n", "    step(\"}\");\n".repeat(count));
        assert_eq!(found(&body(57)), Vec::<String>::new());
        let text = format!("trait Of {{ fn none(); }}\n{}", body(58));
        assert_eq!(found(&text), ["crates/a/src/b.rs:2: go has 61 lines; 60 at most [functions-are-short]"]);
    }

    #[test]
    fn a_function_ends_at_its_own_brace() {
        let text = "fn a(x: [u8; 2]) -> fn(u8) { if x { y } else { z } }\n\n\nfn b() {\n}\n";
        let lengths: Vec<(String, usize)> =
            functions(&lines(text)).into_iter().map(|of| (of.name, of.count)).collect();
        assert_eq!(lengths, [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    }
}
