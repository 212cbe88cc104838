//! Charts as SVG, made here: no library, nothing fetched.
//!
//! A chart is drawn 360 units wide, so that its letters can still be read on a telephone. Series differ in colour, and also in the
//! shape of their marks and the dashes of their lines. Each has a name for those who do not see it, and its figures as a table.

mod axis;
pub(super) mod change;
pub(super) mod forest;
pub(super) mod heat;
pub(super) mod knob;
mod mark;
pub(super) mod published;
pub(super) mod tail;
pub(super) mod timeline;
pub(super) mod validated;
pub(super) mod why;

use std::fmt::Write as _;

use serde::Serialize;

use crate::table::Table;

/// Width of a chart in its own units.
const WIDTH: f64 = 360.0;
/// Series that a chart draws: as many as there are colours, shapes and dashes.
pub(super) const SERIES: usize = 6;
/// Letters of the usual size that fit beside each other on a chart.
const LETTERS: usize = 54;

/// A chart with what stands around it.
#[derive(Serialize)]
pub(super) struct Chart {
    /// What it shows.
    title: String,
    /// How to read it.
    note: String,
    svg: String,
    /// The figures behind it.
    table: Table,
}

/// Text as HTML and attributes hold it.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `text` within `most` letters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A drawing under construction.
struct Drawing {
    out: String,
}

/// Where a text stands against its place.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

impl Drawing {
    /// One of `height` units, called `name`.
    fn new(height: f64, name: &str) -> Self {
        let out =
            format!("<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">", escape(name));
        Self { out }
    }

    fn text(&mut self, anchor: Anchor, class: &str, [x, y]: [f64; 2], text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.out,
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escape(text)
        );
    }

    fn path(&mut self, class: &str, d: &str) {
        let _ = write!(self.out, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    fn end(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }
}
