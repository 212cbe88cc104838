//! Figures against the values of a knob, where three or more were tried.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lab::measurements::{Group, Scene, figures};

use super::axis::{Kind, Scale, round};
use super::mark::{LEGEND, Mark};
use super::{Anchor, Chart, Drawing, SERIES, WIDTH, cut};
use crate::changes::{estimate, title};
use crate::table::Table;
use lab::measurements::Sample;

const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const PLOT: f64 = 150.0;
const AXIS: f64 = 38.0;
/// Fewer values are no curve.
const FEWEST: usize = 3;
/// Charts that a knob may have.
const MOST: usize = 6;

/// The figures that are drawn, in this order: the first of them that differ.
const FIGURES: [&str; 12] = [
    "elapsed_ns",
    "pages_per_second",
    "operations_per_second",
    "refill.p99_ns",
    "drain.p99_ns",
    "fault.p99_ns",
    "page_alloc.p99_ns",
    "lock.zone.wait_ns",
    "cpu_ns",
    "peak_rss",
    "page_faults",
    "failed_allocations",
];

/// A knob whose values were tried, for each combination of the others.
struct Tried {
    knob: String,
    values: Vec<String>,
    /// What the others are set to, and the variants by the value's place.
    series: Vec<Series>,
}

struct Series {
    name: String,
    /// The variant of each value, by its number in the scene.
    variants: Vec<Option<usize>>,
}

/// What a place on a curve is.
struct Spot {
    mean: f64,
    between: Option<[f64; 2]>,
    said: String,
}

/// A chart for each knob with three values or more and each of a few figures.
pub(in crate::html) fn charts(scene: &Scene<'_>) -> Vec<Chart> {
    let settings: Vec<BTreeMap<String, String>> = scene.groups.iter().map(settings).collect();
    let mut knobs: Vec<&String> = settings.iter().flat_map(BTreeMap::keys).collect();
    knobs.sort();
    knobs.dedup();
    let tried = knobs.into_iter().filter_map(|knob| tried(knob, &settings));
    tried.flat_map(|tried| of_knob(scene, &tried)).collect()
}

/// The knobs of a variant: as its name says, `K=V K2=V2`, or else as they differ from defaults.
fn settings(group: &Group<'_>) -> BTreeMap<String, String> {
    let run = group.first();
    let named: Option<BTreeMap<String, String>> = run
        .variant
        .split_whitespace()
        .map(|word| word.split_once('=').map(|(knob, value)| (knob.to_owned(), value.to_owned())))
        .collect();
    match named {
        Some(named) if !named.is_empty() => named,
        _ => run.knobs.iter().map(|(knob, value)| (knob.clone(), value.to_string())).collect(),
    }
}

fn tried(knob: &str, settings: &[BTreeMap<String, String>]) -> Option<Tried> {
    let value = |of: &BTreeMap<String, String>| of.get(knob).cloned().unwrap_or_else(|| "default".into());
    let mut values: Vec<String> = vec![];
    for value in settings.iter().map(value) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    if values.len() < FEWEST {
        return None;
    }
    // Words stay in the order in which they were asked for.
    if values.iter().all(|value| value.parse::<f64>().is_ok()) {
        values.sort_by(|one, other| {
            let number = |text: &str| text.parse::<f64>().unwrap_or(0.0);
            number(one).total_cmp(&number(other))
        });
    }
    let mut series: Vec<Series> = vec![];
    for (variant, of) in settings.iter().enumerate() {
        let others: Vec<String> = of
            .iter()
            .filter(|(name, _)| *name != knob)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let name = others.join(" ");
        let place = values.iter().position(|other| *other == value(of))?;
        let index = series.iter().position(|other| other.name == name).unwrap_or_else(|| {
            series.push(Series { name, variants: vec![None; values.len()] });
            series.len() - 1
        });
        // Two variants of one setting differ in something else, a policy perhaps: no curve tells them apart.
        if series[index].variants[place].replace(variant).is_some() {
            return None;
        }
    }
    series.retain(|series| series.variants.iter().flatten().count() >= FEWEST);
    (!series.is_empty()).then(|| Tried { knob: knob.to_owned(), values, series })
}

fn of_knob(scene: &Scene<'_>, tried: &Tried) -> Vec<Chart> {
    FIGURES.iter().filter_map(|figure| chart(scene, tried, figure)).take(MOST).collect()
}

/// A figure against the knob; none where it is the same everywhere, or missing.
fn chart(scene: &Scene<'_>, tried: &Tried, figure: &str) -> Option<Chart> {
    let (mut unit, mut curves) = ("", vec![]);
    for series in &tried.series {
        let spots = series.variants.iter().map(|variant| {
            let (found, spot) = spot(&scene.groups[(*variant)?], figure)?;
            unit = found;
            Some(spot)
        });
        curves.push(spots.collect::<Vec<Option<Spot>>>());
    }
    let means = || curves.iter().flatten().flatten().map(|spot| spot.mean);
    let (low, high) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
    if means().count() < FEWEST || high <= low {
        return None;
    }
    let what = title(figure);
    let name = format!(
        "{what} against {}, {} values; the table below has the figures",
        tried.knob,
        tried.values.len()
    );
    let mut note = "whiskers: 95 % interval; values are evenly spaced".to_owned();
    if tried.series.len() > SERIES {
        let _ = write!(note, "; the first {SERIES} of {} curves, the table has all", tried.series.len());
    }
    Some(Chart {
        title: format!("{what} by {}", tried.knob),
        note,
        svg: draw(&name, tried, &curves, unit),
        table: table(tried, &curves),
    })
}

/// A figure of one variant over its seeds.
fn spot(group: &Group<'_>, figure: &str) -> Option<(&'static str, Spot)> {
    let of_run =
        |run: &&lab::measurements::Run| figures(run).into_iter().find(|(other, _)| other.name == figure);
    let found: Vec<(&'static str, f64)> =
        group.runs.iter().filter_map(of_run).map(|(figure, value)| (figure.unit, value)).collect();
    let sample = Sample::new(found.iter().map(|(_, value)| *value));
    let unit = found.first()?.0;
    let between = sample.mean_interval().map(|interval| [interval.low, interval.high]);
    Some((unit, Spot { mean: sample.mean()?, between, said: estimate(unit, &sample) }))
}

fn draw(name: &str, tried: &Tried, curves: &[Vec<Option<Spot>>], unit: &str) -> String {
    let names: Vec<&str> = tried.series.iter().map(|series| series.name.as_str()).take(SERIES).collect();
    let names = if names.len() > 1 { names } else { vec![] };
    let top = LEGEND * names.len() as f64 + 8.0;
    let bottom = top + PLOT;
    let mut drawing = Drawing::new(bottom + AXIS, name);
    drawing.legend(&names, 0.0);
    let drawn = || curves.iter().take(SERIES).flatten().flatten();
    let ends = drawn().map(|spot| spot.between.map_or(spot.mean, |[_, high]| high.max(spot.mean)));
    let highest = ends.fold(0.0, f64::max);
    // From 0, so that a small difference looks small.
    let scale = Scale::new(Kind::Linear, [0.0, highest * 1.05], [bottom, top]);
    for value in round(0.0, highest * 1.05, 4.0) {
        drawing.rung(LEFT, scale.at(value), &estimate(unit, &Sample::new([value])));
    }
    let last = (tried.values.len() - 1) as f64;
    let inset = 16.0;
    let width = WIDTH - LEFT - RIGHT - 2.0 * inset;
    let x = |place: usize| LEFT + inset + width * place as f64 / last;
    let letters = ((width / last) / 6.0).max(4.0) as usize;
    for (place, value) in tried.values.iter().enumerate() {
        drawing.path("axis", &format!("M{:.1} {bottom}v4", x(place)));
        drawing.text(Anchor::Middle, "tick", [x(place), bottom + 15.0], &cut(value, letters));
    }
    drawing.text(Anchor::Middle, "axis-name", [f64::midpoint(LEFT, WIDTH), bottom + 32.0], &tried.knob);
    for (series, curve) in curves.iter().enumerate().take(SERIES) {
        let spots: Vec<(usize, &Spot)> =
            curve.iter().enumerate().filter_map(|(place, spot)| Some((place, spot.as_ref()?))).collect();
        let points: Vec<[f64; 2]> =
            spots.iter().map(|(place, spot)| [x(*place), scale.at(spot.mean)]).collect();
        drawing.line(series, &points);
        for ((_, spot), [x, y]) in spots.iter().zip(&points) {
            if let Some([low, high]) = spot.between {
                let [low, high] = [scale.at(low), scale.at(high)];
                drawing.path(
                    "whisker",
                    &format!("M{x:.1} {low:.1}V{high:.1}M{0:.1} {low:.1}h6M{0:.1} {high:.1}h6", x - 3.0),
                );
            }
            drawing.mark(Mark::Series(series), [*x, *y], &spot.said);
        }
    }
    drawing.end()
}

fn table(tried: &Tried, curves: &[Vec<Option<Spot>>]) -> Table {
    let name = |series: &Series| if series.name.is_empty() { "mean".to_owned() } else { series.name.clone() };
    let heads = std::iter::once(format!("<{}", tried.knob)).chain(tried.series.iter().map(name));
    let mut table = Table::new(heads);
    for (place, value) in tried.values.iter().enumerate() {
        let said = |curve: &Vec<Option<Spot>>| {
            curve[place].as_ref().map_or_else(|| "-".into(), |spot| spot.said.clone())
        };
        table.row(std::iter::once(value.clone()).chain(curves.iter().map(said)));
    }
    table
}
