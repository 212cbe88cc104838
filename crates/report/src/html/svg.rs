//! Latency histograms as SVG: one panel a variant, below each other on one axis of time, so that a shift to the left or
//! right is seen at once.
//!
//! The axis is logarithmic; a bar is one of funclatency's power-of-two rows. Heights are shares of the variant's spans
//! on one scale for all panels, so that variants of different counts compare.

use std::fmt::Write as _;

use lab::measurements::Distribution;

use super::chart::escape;
use crate::units::duration;

const WIDTH: f64 = 560.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 12.0;
/// Room above a panel's bars for its name.
const HEAD: f64 = 32.0;
const BARS: f64 = 92.0;
const AXIS: f64 = 26.0;
/// Characters of a panel's name.
const LONGEST_NAME: usize = 30;
/// Colours that the page defines for variants.
const COLOURS: usize = 6;

/// A variant's distribution.
pub(super) struct Panel {
    pub(super) label: String,
    pub(super) of: Distribution,
}

/// The panels that have anything in them, called `name`; nothing where none has.
pub(super) fn histograms(name: &str, panels: &[Panel]) -> String {
    let rows = panels.iter().flat_map(|panel| panel.of.rows.iter().enumerate());
    let filled = rows.filter(|(_, count)| **count > 0).map(|(row, _)| row);
    let (Some(first), Some(last)) = (filled.clone().min(), filled.max()) else { return String::new() };
    let axis = Axis { first: first as f64, last: (last + 1) as f64 };
    let shares = panels.iter().flat_map(|panel| panel.of.rows.iter().map(|&count| share(&panel.of, count)));
    let scale = Scale::to(shares.fold(0.0, f64::max));
    let height = panels.len() as f64 * (HEAD + BARS) + AXIS;
    let mut out =
        format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">", escape(name));
    for (index, panel) in panels.iter().enumerate() {
        let top = index as f64 * (HEAD + BARS) + HEAD;
        draw(&mut out, panel, index % COLOURS, &Frame { top, axis, scale });
    }
    ticks(&mut out, axis, height - AXIS);
    out.push_str("</svg>");
    out
}

/// Time from left to right, in powers of two.
#[derive(Clone, Copy)]
struct Axis {
    first: f64,
    last: f64,
}

impl Axis {
    fn at(self, log2: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (log2 - self.first) / (self.last - self.first)
    }
}

/// Shares from the bottom up, in percent.
#[derive(Clone, Copy)]
struct Scale {
    top: f64,
    step: f64,
}

impl Scale {
    /// One that holds `most` percent, with lines at two to four round figures.
    fn to(most: f64) -> Self {
        let step = [2.0, 5.0, 10.0, 20.0, 25.0].into_iter().find(|step| most <= 3.0 * step).unwrap_or(50.0);
        Self { top: most.max(1.0), step }
    }

    fn height(self, percent: f64) -> f64 {
        BARS * percent / self.top
    }
}

struct Frame {
    top: f64,
    axis: Axis,
    scale: Scale,
}

fn draw(out: &mut String, panel: &Panel, colour: usize, frame: &Frame) {
    let Frame { top, axis, scale } = *frame;
    let bottom = top + BARS;
    let _ = write!(
        out,
        "<text class=\"name v{colour}\" x=\"{LEFT}\" y=\"{}\">{}</text><text class=\"note\" x=\"{}\" y=\"{}\">{}</text>",
        top - 8.0,
        escape(&short(&panel.label)),
        WIDTH - RIGHT,
        top - 8.0,
        note(&panel.of),
    );
    for line in (0..).map(|n| f64::from(n) * scale.step).take_while(|share| *share <= scale.top) {
        let y = bottom - scale.height(line);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text class=\"tick y\" x=\"{}\" y=\"{:.1}\">{line}%</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 3.5,
        );
    }
    for (row, &count) in panel.of.rows.iter().enumerate().filter(|(_, count)| **count > 0) {
        let percent = share(&panel.of, count);
        // A bar of a few spans among millions is still to be seen.
        let height = scale.height(percent).max(1.0);
        let (left, right) = (axis.at(row as f64), axis.at(row as f64 + 1.0));
        let (low, high) = Distribution::bounds(row);
        let _ = write!(
            out,
            "<rect class=\"v{colour}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\">\
             <title>{low} to {high} ns: {count} ({percent:.2} %)</title></rect>",
            left + 0.5,
            bottom - height,
            (right - left - 1.0).max(0.5),
        );
    }
    if panel.of.count > 0 {
        let x = axis.at((panel.of.mean_ns().max(1) as f64).log2()).clamp(LEFT, WIDTH - RIGHT);
        let _ = write!(
            out,
            "<path class=\"mean\" d=\"M{x:.1} {:.1}V{bottom:.1}\"><title>mean</title></path>",
            top - 2.0
        );
    }
}

/// A name that leaves room for the note beside it; the table of variants has it whole.
fn short(label: &str) -> String {
    if label.chars().count() <= LONGEST_NAME {
        return label.to_owned();
    }
    label.chars().take(LONGEST_NAME - 1).chain(['…']).collect()
}

fn note(of: &Distribution) -> String {
    if of.count == 0 {
        return "none".into();
    }
    format!(
        "{} of them, mean {}, longest {}",
        of.count,
        duration(of.mean_ns() as f64),
        duration(of.max_ns as f64)
    )
}

fn ticks(out: &mut String, axis: Axis, y: f64) {
    for exponent in 0..=19 {
        let ns = 10f64.powi(exponent);
        let log2 = ns.log2();
        if log2 < axis.first || log2 > axis.last {
            continue;
        }
        let x = axis.at(log2);
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{x:.1} {y}v4\"/><text class=\"tick x\" x=\"{x:.1}\" y=\"{}\">{}</text>",
            y + 17.0,
            decade(exponent),
        );
    }
}

/// `100 ns`, `1 µs` …
fn decade(exponent: i32) -> String {
    let unit = ["ns", "µs", "ms", "s"][(exponent as usize / 3).min(3)];
    let over = exponent - 3 * (exponent / 3).min(3);
    format!("{:.0} {unit}", 10f64.powi(over))
}

fn share(of: &Distribution, count: u64) -> f64 {
    let all: u64 = of.rows.iter().fold(0, |sum, count| sum.saturating_add(*count));
    100.0 * count as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use lab::measurements::Latency;

    use super::*;

    fn panel(label: &str, samples: &[u64]) -> Panel {
        Panel { label: label.into(), of: Distribution::from(&Latency::from_samples(samples.iter().copied())) }
    }

    #[test]
    fn a_bar_for_each_row_that_is_not_empty() {
        let svg = histograms("spans", &[panel("a<b", &[1000, 1001, 70_000]), panel("c", &[5])]);
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(svg.contains("a&lt;b") && svg.contains("512 to 1023 ns: 2 (66.67 %)"), "{svg}");
        assert!(svg.contains(">10 µs<") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn a_long_name_leaves_room() {
        let svg = histograms("spans", &[panel(&"long".repeat(10), &[1])]);
        assert!(svg.contains(">longlonglonglonglonglonglongl…<"), "{svg}");
    }

    #[test]
    fn nothing_draws_nothing() {
        assert_eq!(histograms("spans", &[panel("a", &[])]), "");
        assert_eq!(histograms("spans", &[]), "");
    }

    #[test]
    fn the_longest_of_times_still_fits() {
        let svg = histograms("spans", &[panel("a", &[u64::MAX, 0])]);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
