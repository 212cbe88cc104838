//! What a terminal is told, as HTML: the same words, with the emphasis of its colours.

use serde::Serialize;

use super::chart::escape;

/// A line of the answer.
#[derive(Serialize)]
pub(super) struct Line {
    /// How far it is set in.
    indent: usize,
    html: String,
}

/// The lines of `text`, set with terminal colours. What names an option of the terminal is left out: the page has all of it.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let is_for_a_page = |line: &&str| !line.trim_end().is_empty() && !line.contains("--full shows");
    text.lines().filter(is_for_a_page).map(line).collect()
}

fn line(text: &str) -> Line {
    let told = text.trim_start_matches(' ');
    Line { indent: text.len() - told.len(), html: html(told) }
}

/// Escapes of [`crate::style::Style`] become elements, everything else is escaped.
fn html(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut out = escape(parts.next().unwrap_or_default());
    let mut open = "";
    for part in parts {
        let (code, rest) = part.split_once('m').unwrap_or(("0", part));
        out += open;
        let (start, end) = match code {
            "1" => ("<b>", "</b>"),
            "32" => ("<span class=\"better\">", "</span>"),
            "31" => ("<span class=\"worse\">", "</span>"),
            "2" => ("<span class=\"soft\">", "</span>"),
            _ => ("", ""),
        };
        open = end;
        out += start;
        out += &escape(rest);
    }
    out + open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{Ink, Style};

    #[test]
    fn emphasis_becomes_elements_and_words_stay() {
        let style = Style::plain().with_ink(Ink::Ansi);
        let text =
            format!("{} a<b\n  {} {}\n", style.heading("x & y:"), style.good("less"), style.bad("more"));
        let lines = lines(&text);
        assert_eq!(lines[0].html, "<b>x &amp; y:</b> a&lt;b");
        assert_eq!(lines[1].indent, 2);
        assert_eq!(lines[1].html, "<span class=\"better\">less</span> <span class=\"worse\">more</span>");
    }

    #[test]
    fn options_of_the_terminal_are_left_out() {
        assert!(lines("--full shows all of it\n\n").is_empty());
    }
}
