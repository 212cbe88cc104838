//! Latencies of the variants: how much of them took at most so long, and how much took at least so long.
//!
//! Spans were counted in power-of-two rows. A share is exact at the ends of rows and at the longest span; lines between are drawn
//! straight, and nothing else is known there.

use std::fmt::Write as _;

use lab::measurements::{Distribution, Scene};

use super::axis::{Kind, Scale, decades};
use super::mark::{LEGEND, Mark};
use super::{Anchor, Chart, Drawing, SERIES, WIDTH};
use crate::latency::{pooled, span_title};
use crate::table::Table;
use crate::units::duration;

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const PLOT: f64 = 170.0;
const AXIS: f64 = 38.0;

/// A variant and how long its spans took.
struct Curve {
    label: String,
    of: Distribution,
    /// Ends of rows with the spans that took less, the longest last.
    steps: Vec<Step>,
}

/// How many spans took less than a time.
struct Step {
    ns: f64,
    below: u64,
}

/// What is drawn against time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    /// That took at most so long, from 0 to 1.
    Done,
    /// That took at least so long, on a log axis: what is rare is seen.
    Left,
}

/// The two charts of a kind of span; none where it did not happen.
pub(in crate::html) fn charts(scene: &Scene<'_>, span: &str) -> Vec<Chart> {
    let curve = |group: &lab::measurements::Group<'_>| Curve::of(group.label.clone(), pooled(group, span));
    let curves: Vec<Curve> = scene.groups.iter().map(curve).filter(|curve| curve.of.count > 0).collect();
    if curves.is_empty() {
        return vec![];
    }
    [Share::Left, Share::Done].into_iter().map(|share| chart(span, &curves, share)).collect()
}

impl Curve {
    fn of(label: String, of: Distribution) -> Self {
        let mut steps = vec![];
        let mut below = 0u64;
        for (row, &count) in of.rows.iter().enumerate() {
            let (low, _) = Distribution::bounds(row);
            if count > 0 || below > 0 {
                steps.push(Step { ns: (low.max(1)) as f64, below });
            }
            below = below.saturating_add(count);
        }
        Self { label, of, steps }
    }

    fn all(&self) -> f64 {
        self.of.rows.iter().fold(0u64, |sum, count| sum.saturating_add(*count)).max(1) as f64
    }

    /// Time and share, in order of time.
    fn points(&self, share: Share) -> Vec<[f64; 2]> {
        let all = self.all();
        let longest = self.of.max_ns.max(1) as f64;
        // What is the longest is one span at least.
        let mut points: Vec<[f64; 2]> = self
            .steps
            .iter()
            .filter(|step| step.ns < longest)
            .map(|step| match share {
                Share::Done => [step.ns, step.below as f64 / all],
                Share::Left => [step.ns, (all - step.below as f64) / all],
            })
            .collect();
        points.push(match share {
            Share::Done => [longest, 1.0],
            Share::Left => [longest, 1.0 / all],
        });
        points
    }
}

fn chart(span: &str, curves: &[Curve], share: Share) -> Chart {
    let what = span_title(span);
    let (title, name) = match share {
        Share::Left => {
            (format!("{what}: the tail"), "share of spans that took at least so long, both axes logarithmic")
        }
        Share::Done => {
            (format!("{what}: cumulative"), "share of spans that took less than so long, time logarithmic")
        }
    };
    let mut note = "exact at powers of two and at the longest".to_owned();
    if curves.len() > SERIES {
        let _ = write!(note, "; the first {SERIES} of {} variants, the table has all", curves.len());
    }
    let name = format!("{what}: {name}; the table below has the figures");
    Chart { title, note, svg: draw(&name, curves, share), table: table(curves, share) }
}

fn draw(name: &str, curves: &[Curve], share: Share) -> String {
    let drawn = &curves[..curves.len().min(SERIES)];
    let names: Vec<&str> = drawn.iter().map(|curve| curve.label.as_str()).collect();
    let top = LEGEND * names.len() as f64 + 10.0;
    let bottom = top + PLOT;
    let mut drawing = Drawing::new(bottom + AXIS, name);
    drawing.legend(&names, 0.0);
    let points: Vec<Vec<[f64; 2]>> = drawn.iter().map(|curve| curve.points(share)).collect();
    let times = || points.iter().flatten().map(|[ns, _]| *ns);
    let (first, last) = (times().fold(f64::INFINITY, f64::min), times().fold(1.0, f64::max));
    let x = Scale::new(Kind::Log, [first, last.max(first * 2.0)], [LEFT, WIDTH - RIGHT]);
    let y = rungs(&mut drawing, &points, share, [bottom, top]);
    for ns in x.spaced(decades(first, last), 40.0) {
        drawing.path("axis", &format!("M{:.1} {bottom}v4", x.at(ns)));
        drawing.text(Anchor::Middle, "tick", [x.at(ns), bottom + 15.0], &round_duration(ns));
    }
    let middle = f64::midpoint(LEFT, WIDTH);
    drawing.text(Anchor::Middle, "axis-name", [middle, bottom + 32.0], "time of a span, log scale");
    for (series, of) in points.iter().enumerate() {
        let places: Vec<[f64; 2]> = of.iter().map(|[ns, part]| [x.at(*ns), y.at(*part)]).collect();
        drawing.line(series, &places);
        for ([ns, part], place) in of.iter().zip(&places) {
            drawing.mark(Mark::Series(series), *place, &format!("{}: {}", duration(*ns), percent(*part)));
        }
    }
    drawing.end()
}

/// The axis of shares.
fn rungs(drawing: &mut Drawing, points: &[Vec<[f64; 2]>], share: Share, place: [f64; 2]) -> Scale {
    let rarest = points.iter().flatten().map(|[_, part]| *part).fold(1.0, f64::min);
    let (scale, lines) = match share {
        Share::Done => (Scale::new(Kind::Linear, [0.0, 1.0], place), vec![0.0, 0.25, 0.5, 0.75, 1.0]),
        Share::Left => {
            let low = 10f64.powf(rarest.log10().floor()).min(0.1);
            (Scale::new(Kind::Log, [low, 1.0], place), decades(low, 1.0).collect())
        }
    };
    for value in scale.spaced(lines, 16.0) {
        drawing.rung(LEFT, scale.at(value), &percent(value));
    }
    scale
}

/// `100 %`, `0.1 %`, `0.0005 %`.
fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    let digits = match percent {
        10.0.. | ..=0.0 => 0,
        _ => (1.0 - percent.log10().floor()) as usize,
    };
    let said = format!("{percent:.digits$}");
    let said = if digits > 0 { said.trim_end_matches('0').trim_end_matches('.') } else { said.as_str() };
    format!("{said} %")
}

/// `100 ns`, `1 µs` of a power of ten.
fn round_duration(ns: f64) -> String {
    let said = duration(ns);
    match said.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => said,
    }
}

fn table(curves: &[Curve], share: Share) -> Table {
    let head = if share == Share::Left { "<took at least" } else { "<took less than" };
    let mut times: Vec<f64> = curves.iter().flat_map(|curve| &curve.steps).map(|step| step.ns).collect();
    times.sort_by(f64::total_cmp);
    times.dedup_by(|one, other| (*one - *other).abs() < 0.5);
    let mut table =
        Table::new(std::iter::once(head.to_owned()).chain(curves.iter().map(|curve| curve.label.clone())));
    for ns in times {
        let said = |curve: &Curve| {
            let step = curve.steps.iter().find(|step| (step.ns - ns).abs() < 0.5);
            let none = if ns < curve.of.max_ns as f64 { 0.0 } else { curve.all() };
            let below = step.map_or(none, |step| step.below as f64) / curve.all();
            percent(if share == Share::Left { 1.0 - below } else { below })
        };
        table.row(std::iter::once(duration(ns)).chain(curves.iter().map(said)));
    }
    table.row(
        std::iter::once("the longest".to_owned())
            .chain(curves.iter().map(|curve| duration(curve.of.max_ns as f64))),
    );
    table
}

#[cfg(test)]
mod tests {
    use lab::measurements::Latency;

    use super::*;

    fn curve(samples: &[u64]) -> Curve {
        Curve::of("a".into(), Distribution::from(&Latency::from_samples(samples.iter().copied())))
    }

    #[test]
    fn shares_are_those_of_the_samples() {
        let curve = curve(&[4, 5, 6, 7, 20, 21, 22, 100]);
        let left = curve.points(Share::Left);
        assert_eq!(left, [[4.0, 1.0], [8.0, 0.5], [16.0, 0.5], [32.0, 0.125], [64.0, 0.125], [100.0, 0.125]]);
        let done = curve.points(Share::Done);
        assert_eq!(done[..2], vec![[4.0, 0.0], [8.0, 0.5]]);
        assert_eq!(done.last(), Some(&[100.0, 1.0]));
    }

    #[test]
    fn the_table_has_what_is_drawn() {
        let text = table(&[curve(&[4, 5, 300]), curve(&[40])], Share::Left).text(0, 100);
        assert!(text.contains("4 ns            100 %  100 %"), "{text}");
        assert!(text.contains("64 ns            33 %    0 %"), "{text}");
        assert!(text.contains("the longest    300 ns  40 ns"), "{text}");
    }

    #[test]
    fn shares_are_said_to_two_digits() {
        assert_eq!(
            [1.0, 0.25, 0.0, 0.001, 0.000_012_3].map(percent),
            ["100 %", "25 %", "0 %", "0.1 %", "0.0012 %"]
        );
    }

    #[test]
    fn any_spans_can_be_drawn() {
        for samples in [&[0][..], &[1, 1, 1], &[u64::MAX, 0], &[1023], &[1024]] {
            for share in [Share::Left, Share::Done] {
                let svg = draw("name", &[curve(samples)], share);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{samples:?}: {svg}");
            }
        }
    }
}
