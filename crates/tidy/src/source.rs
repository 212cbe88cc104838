//! Rust source, line by line, with code and comments told apart and strings emptied.

/// A line of Rust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The code, with nothing inside of string and character literals.
    pub code: String,
    /// The comments.
    pub comment: String,
    /// What is inside of strings, a space after each.
    pub literals: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    /// How deep.
    BlockComment(usize),
    /// In a string that ends at a quote that no backslash precedes.
    Text,
    /// In a raw string that ends at a quote and this many hashes.
    Raw(usize),
}

/// The lines of `text`.
pub fn lines(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        if chars[at] == '\n' {
            if state == State::LineComment {
                state = State::Code;
            }
            lines.push(Line::default());
            at += 1;
            continue;
        }
        let line = lines.last_mut().expect("there is always a line");
        let (next, used) = step(state, &chars[at..], line);
        state = next;
        at += used;
    }
    lines
}

/// Takes one token off `rest`, which does not begin with a line's end.
fn step(state: State, rest: &[char], line: &mut Line) -> (State, usize) {
    let starts = |token: &str| token.chars().enumerate().all(|(i, c)| rest.get(i) == Some(&c));
    match state {
        State::Code if starts("//") => (State::LineComment, 2),
        State::Code if starts("/*") => (State::BlockComment(1), 2),
        State::Code => code(rest, line),
        State::BlockComment(depth) if starts("/*") => (State::BlockComment(depth + 1), 2),
        State::BlockComment(1) if starts("*/") => (State::Code, 2),
        State::BlockComment(depth) if starts("*/") => (State::BlockComment(depth - 1), 2),
        State::LineComment | State::BlockComment(_) => {
            line.comment.push(rest[0]);
            (state, 1)
        }
        // A backslash at a line's end takes nothing but itself.
        State::Text if rest[0] == '\\' => (state, if rest.get(1) == Some(&'\n') { 1 } else { 2 }),
        State::Text if rest[0] == '"' => {
            line.literals.push(' ');
            line.code.push('"');
            (State::Code, 1)
        }
        State::Raw(hashes) if is_raw_end(rest, hashes) => {
            line.literals.push(' ');
            line.code.push('"');
            (State::Code, 1 + hashes)
        }
        State::Text | State::Raw(_) => {
            line.literals.push(rest[0]);
            (state, 1)
        }
    }
}

fn code(rest: &[char], line: &mut Line) -> (State, usize) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let in_word = line.code.chars().last().is_some_and(is_word);
    if !in_word && matches!(rest[0], 'r' | 'b' | 'c') {
        let prefix = rest.iter().take_while(|c| matches!(c, 'r' | 'b' | 'c')).count();
        let hashes = rest[prefix..].iter().take_while(|c| **c == '#').count();
        if rest[..prefix].contains(&'r') && rest.get(prefix + hashes) == Some(&'"') {
            line.code.push('"');
            return (State::Raw(hashes), prefix + hashes + 1);
        }
    }
    match rest[0] {
        '"' => {
            line.code.push('"');
            (State::Text, 1)
        }
        '\'' => (State::Code, character(rest)),
        c => {
            line.code.push(c);
            (State::Code, 1)
        }
    }
}

/// How long a character literal is; 1 for the quote of a lifetime.
fn character(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', _, tail @ ..] => 3 + tail.iter().take(10).take_while(|c| **c != '\'').count() + 1,
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

fn is_raw_end(rest: &[char], hashes: usize) -> bool {
    rest[0] == '"' && rest.len() > hashes && rest[1..=hashes].iter().all(|c| *c == '#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn comments_and_code_are_told_apart() {
        let lines = lines("let a = 1; // unsafe {\n/* one /* two */ unsafe */ b();");
        assert_eq!(
            lines[0],
            Line { code: "let a = 1; ".into(), comment: " unsafe {".into(), ..Line::default() }
        );
        assert_eq!(lines[1].code, " b();");
    }

    #[test]
    fn strings_are_emptied() {
        assert_eq!(code_of(r#"f("unsafe \" {", 'x', '\'', '"', b'"') + g"#), [r#"f("", , , , b) + g"#]);
        assert_eq!(code_of("r#\"a \" unsafe\"# + br\"x\" + c\"y\""), ["\"\" + \"\" + c\"\""]);
        assert_eq!(lines(r##"f("a b", r#"c"#) // "d""##)[0].literals, "a b c ");
        assert_eq!(code_of("f(\"one\n// two\", 3)"), ["f(\"", "\", 3)"]);
        assert_eq!(code_of("f(\"one \\\n  two\"); g"), ["f(\"", "\"); g"]);
    }

    #[test]
    fn lifetimes_are_not_characters() {
        assert_eq!(code_of("fn f<'a>(x: &'a str) {}"), ["fn f<a>(x: &a str) {}"]);
        assert_eq!(code_of("let c = '\\u{1f600}'; d"), ["let c = ; d"]);
    }
}
