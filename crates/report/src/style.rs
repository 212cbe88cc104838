//! How text is set: how wide, and whether in colour.

/// Width and ink of a terminal, or of a file that text goes to.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    columns: usize,
    ink: Ink,
}

/// Whether text carries terminal colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ink {
    /// Text only: files, pipes, snapshots.
    Plain,
    /// ANSI escapes.
    Ansi,
}

impl Default for Style {
    fn default() -> Self {
        Self::plain()
    }
}

impl Style {
    /// Text only, as wide as a mail or a log may be.
    pub const fn plain() -> Self {
        Self { columns: 110, ink: Ink::Plain }
    }

    /// For a terminal of `columns`; text is set 80 to 120 wide.
    pub fn terminal(columns: usize) -> Self {
        Self { columns: columns.clamp(80, 120), ink: Ink::Ansi }
    }

    /// For what breaks lines itself, as a browser does; with colours.
    pub const fn unbroken() -> Self {
        Self { columns: 100_000, ink: Ink::Ansi }
    }

    /// The same width in another ink.
    #[must_use]
    pub const fn with_ink(self, ink: Ink) -> Self {
        Self { ink, ..self }
    }

    /// How many columns text may take.
    pub const fn columns(self) -> usize {
        self.columns
    }

    /// A heading.
    pub fn heading(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Something that got better.
    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Something that got worse, or that is wrong.
    pub fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Something of less weight.
    pub fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self.ink {
            Ink::Plain => text.to_owned(),
            Ink::Ansi => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}
