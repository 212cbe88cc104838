//! Marks and lines that are told apart without colour.

use std::fmt::Write as _;

use super::{Anchor, Drawing, LETTERS, SERIES, WIDTH, cut, escape};

/// Height of a line of the legend.
pub(super) const LEGEND: f64 = 16.0;

/// A path around the middle for each series: circle, square, diamond, triangle up, triangle down, cross.
const SHAPES: [&str; SERIES] = [
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "m-3.6-3.6h7.2v7.2h-7.2z",
    "m0-5.2l5.2 5.2l-5.2 5.2l-5.2-5.2z",
    "m0-4.8l5 8.6h-10z",
    "m0 4.8l5-8.6h-10z",
    "m-4-2.2l1.8-1.8l2.2 2.2l2.2-2.2l1.8 1.8l-2.2 2.2l2.2 2.2l-1.8 1.8l-2.2-2.2l-2.2 2.2l-1.8-1.8l2.2-2.2z",
];

/// Who a mark belongs to, and how it is filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// A series of a chart.
    Series(usize),
    /// A change for the better.
    Better,
    /// A change for the worse.
    Worse,
    /// One that is not told apart from none.
    Unclear,
    /// One that is neither better nor worse.
    Neither,
}

impl Mark {
    const fn class(self) -> &'static str {
        match self {
            Self::Series(series) => {
                ["mark v0", "mark v1", "mark v2", "mark v3", "mark v4", "mark v5"][series % SERIES]
            }
            Self::Better => "mark good",
            Self::Worse => "mark bad",
            Self::Unclear => "mark hollow",
            Self::Neither => "mark plain",
        }
    }

    const fn shape(self) -> &'static str {
        match self {
            Self::Series(series) => SHAPES[series % SERIES],
            Self::Better | Self::Unclear => SHAPES[0],
            Self::Worse => SHAPES[2],
            Self::Neither => SHAPES[1],
        }
    }
}

impl Drawing {
    /// A mark at a place; `told` is shown to whoever points at it.
    pub(super) fn mark(&mut self, mark: Mark, [x, y]: [f64; 2], told: &str) {
        let title = if told.is_empty() { String::new() } else { format!("<title>{}</title>", escape(told)) };
        let (class, shape) = (mark.class(), mark.shape());
        let _ = write!(self.out, "<path class=\"{class}\" d=\"M{x:.1} {y:.1}{shape}\">{title}</path>");
    }

    /// A line through `points`, with the colour and the dashes of `series`.
    pub(super) fn line(&mut self, series: usize, points: &[[f64; 2]]) {
        let mut d = String::new();
        for (number, [x, y]) in points.iter().enumerate() {
            let _ = write!(d, "{}{x:.1} {y:.1}", if number == 0 { "M" } else { "L" });
        }
        if points.len() > 1 {
            self.path(&format!("line v{0} d{0}", series % SERIES), &d);
        }
    }

    /// A line for each series with its dashes and its mark, from `top` on.
    pub(super) fn legend(&mut self, names: &[&str], top: f64) {
        for (series, name) in names.iter().enumerate().take(SERIES) {
            let y = top + LEGEND * series as f64 + 8.0;
            self.line(series, &[[2.0, y], [30.0, y]]);
            self.mark(Mark::Series(series), [16.0, y], "");
            self.text(Anchor::Start, "said", [36.0, y + 4.0], &cut(name, LETTERS - 6));
        }
    }

    /// A grid line over the whole width from `left`, with its value before it.
    pub(super) fn rung(&mut self, left: f64, y: f64, said: &str) {
        self.path("grid", &format!("M{left} {y:.1}H{WIDTH}"));
        self.text(Anchor::End, "tick", [left - 5.0, y + 3.5], said);
    }
}
