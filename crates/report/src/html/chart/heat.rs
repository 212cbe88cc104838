//! A map of a recorded process's memory: a line for each mapping, time from left to right, and how often its pages were walked to.

use std::fmt::Write as _;

use lab::measurements::{HeatMap, HeatedMapping};

use super::axis::{Kind, Scale, round};
use super::{Anchor, Chart, Drawing, WIDTH, cut};
use crate::table::Table;
use crate::units::{duration, memory, rate};

const LEFT: f64 = 112.0;
const RIGHT: f64 = 24.0;
/// Height of a mapping's line, and of what its cells fill at most.
const LINE: f64 = 17.0;
const FULL: f64 = 14.0;
const AXIS: f64 = 38.0;
/// Letters that fit before a line.
const LETTERS: usize = 17;
/// The least walks of a page in a second of CPU time for each step but the first, which is everything below.
const STEPS: [(f64, &str); 4] = [(0.1, "0.1"), (1.0, "1"), (10.0, "10"), (100.0, "100")];

/// The map; nothing of a process that was looked at less than twice.
pub(in crate::html) fn chart(map: &HeatMap) -> Option<Chart> {
    (map.at_ns.len() > 1).then(|| Chart {
        title: format!("{} in {}", map.process, map.recording),
        note: "as recorded: a darker, higher bar is a page walked to more often".to_owned(),
        svg: draw(map),
        table: table(map),
    })
}

/// What is drawn of a mapping at a moment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// Nothing was resident.
    Nothing,
    /// Pages were, and it is not known how often they were walked to.
    Unknown,
    /// They were walked to so often: 0 for least, one more for each of [`STEPS`].
    Step(usize),
}

impl Cell {
    fn of(mapping: &HeatedMapping, moment: usize) -> Self {
        let resident = mapping.resident_pages.get(moment).is_some_and(|pages| *pages > 0);
        match mapping.walks_per_second.get(moment) {
            Some(Some(walks)) => Self::Step(STEPS.iter().filter(|(least, _)| walks >= least).count()),
            _ if resident => Self::Unknown,
            _ => Self::Nothing,
        }
    }

    /// How high it is drawn.
    fn height(self) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::Unknown => 1.0,
            Self::Step(step) => FULL * (step + 1) as f64 / (STEPS.len() + 1) as f64,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Nothing | Self::Unknown => "heat",
            Self::Step(step) => ["heat h0", "heat h1", "heat h2", "heat h3", "heat h4"][step],
        }
    }
}

fn draw(map: &HeatMap) -> String {
    let name = format!("Memory of {} over time, by mapping; the table below has the figures", map.process);
    let top = 26.0;
    let bottom = top + LINE * map.mappings.len() as f64;
    let mut drawing = Drawing::new(bottom + AXIS, &name);
    legend(&mut drawing);
    let ends = [map.at_ns[0] as f64, end(map)];
    let time = Scale::new(Kind::Linear, ends, [LEFT, WIDTH - RIGHT]);
    for (number, mapping) in map.mappings.iter().enumerate() {
        let floor = top + LINE * (number + 1) as f64;
        drawing.path("grid", &format!("M{LEFT} {floor:.1}H{:.1}", WIDTH - RIGHT));
        drawing.text(Anchor::End, "tick", [LEFT - 5.0, floor - 4.0], &cut(&mapping.name, LETTERS));
        cells(&mut drawing, map, mapping, (&time, floor));
    }
    for ns in time.spaced(round(ends[0], ends[1], 4.0), 60.0) {
        drawing.path("axis", &format!("M{:.1} {bottom}v4", time.at(ns)));
        drawing.text(Anchor::Middle, "tick", [time.at(ns), bottom + 15.0], &duration(ns));
    }
    let middle = f64::midpoint(LEFT, WIDTH);
    drawing.text(Anchor::Middle, "axis-name", [middle, bottom + 32.0], "time of the recording");
    drawing.end()
}

/// Where the last moment's cell ends: as wide as they are on the average.
fn end(map: &HeatMap) -> f64 {
    let [first, last] = [map.at_ns[0], map.at_ns[map.at_ns.len() - 1]].map(|at| at as f64);
    last + (last - first) / (map.at_ns.len() - 1) as f64
}

fn legend(drawing: &mut Drawing) {
    drawing.text(Anchor::Start, "tick", [0.0, 12.0], "walks/s of a page:");
    let least = ["below".to_owned()].into_iter().chain(STEPS.iter().map(|(_, least)| format!("{least}+")));
    for (step, said) in least.enumerate() {
        let (cell, x) = (Cell::Step(step), 118.0 + 46.0 * step as f64);
        drawing.path(cell.class(), &bar([x, 14.0], 8.0, cell.height()));
        drawing.text(Anchor::Start, "tick", [x + 11.0, 12.0], &said);
    }
}

/// A bar that stands on a place.
fn bar([x, floor]: [f64; 2], width: f64, height: f64) -> String {
    format!("M{x:.1} {floor:.1}v{:.1}h{width:.1}v{height:.1}z", -height)
}

/// A mapping's moments; those beside each other that are alike are one bar, and bars that are alike one path.
fn cells(drawing: &mut Drawing, map: &HeatMap, mapping: &HeatedMapping, (time, floor): (&Scale, f64)) {
    let moments: Vec<Cell> = (0..map.at_ns.len()).map(|moment| Cell::of(mapping, moment)).collect();
    let from = |moment: usize| time.at(map.at_ns.get(moment).map_or_else(|| end(map), |at| *at as f64));
    let mut paths: Vec<(Cell, String)> = vec![];
    let mut moment = 0;
    for run in moments.chunk_by(|a, b| a == b) {
        let (cell, x) = (run[0], from(moment));
        moment += run.len();
        if cell == Cell::Nothing {
            continue;
        }
        let drawn = bar([x, floor], from(moment) - x, cell.height());
        match paths.iter_mut().find(|(of, _)| *of == cell) {
            Some((_, path)) => write!(path, "{drawn}").unwrap_or_default(),
            None => paths.push((cell, drawn)),
        }
    }
    for (cell, path) in &paths {
        drawing.path(cell.class(), path);
    }
}

fn table(map: &HeatMap) -> Table {
    let mut table = Table::new(["<mapping", "<from", "resident at most", "walks/s median", "at most"]);
    for mapping in &map.mappings {
        let mut walks: Vec<f64> = mapping.walks_per_second.iter().copied().flatten().collect();
        walks.sort_by(f64::total_cmp);
        let said = |walks: Option<&f64>| walks.map_or_else(|| "–".to_owned(), |walks| rate(*walks));
        table.row([
            mapping.name.clone(),
            if mapping.address > 0 { format!("{:#x}", mapping.address) } else { String::new() },
            memory(mapping.resident_pages.iter().copied().max().unwrap_or(0)),
            said(walks.get(walks.len() / 2)),
            said(walks.last()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(walks: &[Option<f64>]) -> HeatMap {
        let mapping = HeatedMapping {
            name: "[heap]".to_owned(),
            address: 0x1000,
            pages: 9,
            resident_pages: walks.iter().map(|_| 3).collect(),
            walks_per_second: walks.to_vec(),
        };
        let at_ns = (0..walks.len() as u64).map(|at| 1_000_000 * at).collect();
        HeatMap { process: "db".to_owned(), at_ns, mappings: vec![mapping], ..HeatMap::default() }
    }

    #[test]
    fn what_was_walked_to_more_stands_higher() {
        let steps = [None, Some(0.0), Some(0.5), Some(5.0), Some(50.0), Some(5e6)];
        let map = map(&steps);
        let heights: Vec<f64> = (0..steps.len()).map(|at| Cell::of(&map.mappings[0], at).height()).collect();
        assert!(heights.is_sorted_by(|a, b| a < b) && heights[5] <= LINE, "{heights:?}");
        let drawn = draw(&map);
        assert!(drawn.contains("heat h0") && drawn.contains("heat h4"), "{drawn}");
    }

    #[test]
    fn what_is_alike_is_one_bar() {
        let long = draw(&map(&[Some(5.0); 60]));
        assert_eq!(long.matches("heat h2").count(), 2, "one beside that of the legend: {long}");
        assert!(chart(&map(&[Some(1.0)])).is_none(), "one look is no map");
    }

    #[test]
    fn any_map_can_be_drawn() {
        let mut odd = map(&[Some(f64::MAX), None, Some(0.0)]);
        odd.mappings[0].resident_pages.clear();
        odd.at_ns = vec![7; 3];
        let chart = chart(&odd).expect("three looks");
        assert!(!chart.svg.contains("NaN") && !chart.svg.contains("inf"), "{}", chart.svg);
    }
}
