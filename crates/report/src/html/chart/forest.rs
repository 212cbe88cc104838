//! Dots with whiskers around a line that means "no change": one row for each figure.

use super::axis::{Kind, Scale, decades, round};
use super::mark::{LEGEND, Mark};
use super::{Anchor, Drawing, LETTERS, WIDTH, cut};

/// Height of a row: its words, and its dot under them.
const ROW: f64 = 34.0;
/// Height of a row of words alone.
const HEADING: f64 = 24.0;
/// Room for values and the name of the axis.
const AXIS: f64 = 36.0;
/// Room at both sides for what stands at the ends.
const SIDE: f64 = 14.0;
/// A ratio beyond this, or its inverse, stands at the end.
const LARGEST_RATIO: f64 = 1e4;

/// A chart of several rows.
pub(super) struct Forest {
    /// What is drawn, for those who do not see it.
    pub(super) name: String,
    pub(super) unit: Unit,
    /// What the values are, with their unit.
    pub(super) axis: String,
    /// What the line in the middle says.
    pub(super) centre: &'static str,
    /// What marks of series mean; empty where there are none.
    pub(super) legend: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// What stands in the middle, and how values are spaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Ratios around 1.
    Ratio,
    /// Percent around 0.
    Percent,
}

/// A figure; without points, a heading of those that follow.
pub(super) struct Row {
    pub(super) label: String,
    /// What is said of it at the right.
    pub(super) said: String,
    pub(super) class: &'static str,
    pub(super) points: Vec<Point>,
}

/// A value and where it lies with 95 % confidence.
pub(super) struct Point {
    pub(super) at: f64,
    pub(super) between: Option<[f64; 2]>,
    pub(super) mark: Mark,
}

impl Row {
    /// Words above other rows.
    pub(super) fn heading(label: &str) -> Self {
        Self { label: label.to_owned(), said: String::new(), class: "said", points: vec![] }
    }

    fn height(&self) -> f64 {
        if self.points.is_empty() { HEADING } else { ROW }
    }
}

impl Forest {
    /// The drawing; empty where no row has a point.
    pub(super) fn svg(&self) -> String {
        let values: Vec<f64> = self.values().collect();
        if values.is_empty() {
            return String::new();
        }
        let scale = self.unit.scale(&values);
        let top = LEGEND * self.legend.len() as f64 + 4.0;
        let bottom = top + self.rows.iter().map(Row::height).sum::<f64>() + 6.0;
        let mut drawing = Drawing::new(bottom + AXIS, &self.name);
        let names: Vec<&str> = self.legend.iter().map(String::as_str).collect();
        drawing.legend(&names, 0.0);
        self.lines(&mut drawing, &scale, [top, bottom]);
        let mut y = top;
        for row in &self.rows {
            self.row(&mut drawing, &scale, row, y);
            y += row.height();
        }
        drawing.end()
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let points = self.rows.iter().flat_map(|row| &row.points);
        let all = points.flat_map(|point| point.between.into_iter().flatten().chain([point.at]));
        all.filter(|value| value.is_finite() && (self.unit == Unit::Percent || *value > 0.0))
    }

    fn lines(&self, drawing: &mut Drawing, scale: &Scale, [top, bottom]: [f64; 2]) {
        let centre = scale.at(self.unit.centre());
        for value in self.unit.lines(scale) {
            let x = scale.at(value);
            let is_centre = (x - centre).abs() < 1e-6;
            drawing.path(if is_centre { "centre" } else { "grid" }, &format!("M{x:.1} {top:.1}V{bottom:.1}"));
            let said = if is_centre { self.centre.to_owned() } else { self.unit.said(value) };
            drawing.text(Anchor::Middle, "tick", [x, bottom + 13.0], &said);
        }
        let middle = f64::midpoint(0.0, WIDTH);
        drawing.text(Anchor::Middle, "axis-name", [middle, bottom + 29.0], &self.axis);
    }

    fn row(&self, drawing: &mut Drawing, scale: &Scale, row: &Row, top: f64) {
        let words = top + 13.0;
        let room = LETTERS.saturating_sub(row.said.chars().count() + 2);
        let class = if row.points.is_empty() { "heading" } else { "label" };
        drawing.text(Anchor::Start, class, [0.0, words], &cut(&row.label, room));
        drawing.text(Anchor::End, row.class, [WIDTH, words], &row.said);
        let y = top + 24.0;
        for point in &row.points {
            if let Some([low, high]) = point.between {
                let [from, to] = [scale.at(low), scale.at(high)];
                drawing.path(
                    "whisker",
                    &format!("M{from:.1} {y:.1}H{to:.1}M{from:.1} {0:.1}v8M{to:.1} {0:.1}v8", y - 4.0),
                );
            }
            drawing.mark(point.mark, [scale.at(point.at), y], &self.unit.said(point.at));
        }
    }
}

impl Unit {
    const fn centre(self) -> f64 {
        match self {
            Self::Ratio => 1.0,
            Self::Percent => 0.0,
        }
    }

    /// One that holds `values` and the middle.
    fn scale(self, values: &[f64]) -> Scale {
        let low = values.iter().copied().fold(self.centre(), f64::min);
        let high = values.iter().copied().fold(self.centre(), f64::max);
        let place = [SIDE, WIDTH - SIDE];
        match self {
            Self::Percent => {
                let width = (high - low).max(2.0);
                Scale::new(Kind::Linear, [low - 0.08 * width, high + 0.08 * width], place)
            }
            Self::Ratio => {
                let [low, high] = [low.max(1.0 / LARGEST_RATIO), high.min(LARGEST_RATIO)];
                let slack = (high / low).max(1.02).powf(0.08);
                Scale::new(Kind::Log, [low / slack, high * slack], place)
            }
        }
    }

    /// The middle, and round values that stand far enough from it and from each other.
    fn lines(self, scale: &Scale) -> Vec<f64> {
        let centre = self.centre();
        let x = scale.at(centre);
        let has_room = |at: f64| (22.0..=WIDTH - 22.0).contains(&at) && (at - x).abs() >= 44.0;
        let mut lines: Vec<f64> = match self {
            Self::Percent => {
                let [low, high] = scale.ends();
                spread(&round(low, high, 5.0), scale, centre)
            }
            Self::Ratio => {
                let near =
                    [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.01, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0];
                let far = decades(1.0 / LARGEST_RATIO, LARGEST_RATIO);
                let all: Vec<f64> = far.chain(near).chain([0.2, 5.0]).collect();
                spread(&all, scale, centre)
            }
        };
        lines.retain(|value| has_room(scale.at(*value)));
        lines.push(centre);
        lines
    }

    fn said(self, value: f64) -> String {
        match self {
            Self::Percent => format!("{value:+.0} %"),
            Self::Ratio => match value {
                f64::INFINITY => "from nothing".into(),
                0.0 => "gone".into(),
                LARGEST_RATIO.. if value > LARGEST_RATIO => format!("over ×{LARGEST_RATIO:.0}"),
                _ if value < 1.0 / LARGEST_RATIO => format!("over ÷{LARGEST_RATIO:.0}"),
                2.0.. => format!("×{}", short(value)),
                ..=0.5 => format!("÷{}", short(1.0 / value)),
                _ => format!("{:+.0} %", 100.0 * (value - 1.0)),
            },
        }
    }
}

/// `10`, `2.5`, `10 000` without the gap.
fn short(value: f64) -> String {
    if value >= 9.95 || (value - value.round()).abs() < 1e-9 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// Of `values`, those furthest from the middle first, that have room on `scale`.
fn spread(values: &[f64], scale: &Scale, centre: f64) -> Vec<f64> {
    let mut kept: Vec<f64> = vec![];
    for side in [f64::lt as fn(&f64, &f64) -> bool, f64::gt] {
        let mut of_side: Vec<f64> =
            values.iter().copied().filter(|value| side(value, &centre) && scale.holds(*value)).collect();
        of_side.sort_by(|one, other| (other - centre).abs().total_cmp(&(one - centre).abs()));
        if centre > 0.0 {
            // Of ratios, what is far is far by its logarithm.
            of_side.sort_by(|one, other| other.ln().abs().total_cmp(&one.ln().abs()));
        }
        kept.extend(scale.spaced(of_side, 44.0));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forest(unit: Unit, points: &[(f64, Option<[f64; 2]>)]) -> Forest {
        let row = |&(at, between): &(f64, Option<[f64; 2]>)| Row {
            label: "refill <p99>".into(),
            said: "23.1 times shorter".into(),
            class: "better",
            points: vec![Point { at, between, mark: Mark::Better }],
        };
        Forest {
            name: "a \"name\"".into(),
            unit,
            axis: "after ÷ before".into(),
            centre: "no change",
            legend: vec![],
            rows: points.iter().map(row).collect(),
        }
    }

    #[test]
    fn what_is_smaller_stands_left_of_no_change() {
        let svg = forest(Unit::Ratio, &[(0.05, Some([0.04, 0.06])), (3.0, None)]).svg();
        assert!(
            svg.contains("aria-label=\"a &quot;name&quot;\"") && svg.contains("refill &lt;p99&gt;"),
            "{svg}"
        );
        assert!(
            svg.contains(">÷10<") && svg.contains(">no change<") && svg.contains(">after ÷ before<"),
            "{svg}"
        );
        assert_eq!(svg.matches("class=\"whisker\"").count(), 1, "one value has an interval");
        let x = |class: &str| {
            let (_, rest) = svg.split_once(class).unwrap();
            rest.split_once("d=\"M").unwrap().1.split(' ').next().unwrap().parse::<f64>().unwrap()
        };
        assert!(x("class=\"mark good\"") < x("class=\"centre\""), "{svg}");
    }

    #[test]
    fn nothing_stands_outside() {
        for unit in [Unit::Ratio, Unit::Percent] {
            let svg = forest(unit, &[(1e30, Some([-5.0, f64::INFINITY])), (0.0, None), (1.0, None)]).svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        assert_eq!(forest(Unit::Ratio, &[]).svg(), "");
    }
}
