//! Plain tables: cells are set to the widest of their column, two spaces apart.

use std::fmt::Write as _;

use serde::Serialize;

/// How a column's cells are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table under construction; a page in a browser takes it as it is.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Columns by their heads; a head that begins with `<` is of a column set to the left.
    pub(crate) fn new<S: AsRef<str>>(heads: impl IntoIterator<Item = S>) -> Self {
        let (mut aligns, mut row) = (vec![], vec![]);
        for head in heads {
            let (align, text) = match head.as_ref().strip_prefix('<') {
                Some(text) => (Align::Left, text),
                None => (Align::Right, head.as_ref()),
            };
            aligns.push(align);
            row.push(text.to_owned());
        }
        Self { aligns, rows: vec![row] }
    }

    /// Adds a row; cells that are missing at its end stay empty.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The same without the line of heads: for lists that explain themselves.
    pub(crate) fn without_heads(mut self) -> Self {
        self.rows.remove(0);
        self
    }

    /// Whether there is anything under the heads.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The table's lines, `indent` spaces in, none with spaces at its end. The last column, where it is set to the
    /// left, is wrapped to end within `columns`.
    pub(crate) fn text(&self, indent: usize, columns: usize) -> String {
        let widths: Vec<usize> = (0..self.aligns.len())
            .map(|column| self.rows.iter().filter_map(|row| row.get(column)).map(|s| s.chars().count()).max())
            .map(Option::unwrap_or_default)
            .collect();
        let last = self.aligns.len() - 1;
        let start = indent + widths[..last].iter().map(|width| width + 2).sum::<usize>();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                match self.aligns[column] {
                    Align::Left if column == last => {
                        let room = columns.saturating_sub(start).max(20);
                        line.push_str(&wrap(cell, room).join(&format!("\n{}", " ".repeat(start))));
                    }
                    Align::Left => {
                        let _ = write!(line, "{cell:<width$}  ");
                    }
                    Align::Right => {
                        let _ = write!(line, "{cell:>width$}  ");
                    }
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// `text` in lines of at most `width` characters, broken between words; a longer word has a line of its own.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_line_up_and_lines_end_clean() {
        let mut table = Table::new(["<name", "µs", "<meaning"]);
        table.row(["a", "1", "one two three four five six"]);
        table.row(["long", "100"]);
        insta::assert_snapshot!(table.text(2, 35), @r"
          name   µs  meaning
          a       1  one two three four
                     five six
          long  100
        ");
    }
}
