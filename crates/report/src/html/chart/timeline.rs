//! Figures over time: resident and free memory, faults and waits for locks, of each variant's first seed.

use lab::measurements::{Scene, TaskOverTime, Timeline};

use super::axis::{Kind, Scale, round};
use super::mark::{LEGEND, Mark};
use super::{Anchor, Chart, Drawing, SERIES, WIDTH};
use crate::table::Table;
use crate::units::{self, duration};

const LEFT: f64 = 70.0;
const RIGHT: f64 = 14.0;
const PLOT: f64 = 120.0;
const AXIS: f64 = 38.0;
/// Rows of a table, about: the chart has more moments.
const ROWS: usize = 8;

/// So many processes have a chart of their own; the document has more.
const PROCESSES: usize = 3;

/// So many names of tasks have one, of faults and of waits each.
const TASKS: usize = 2;

/// A figure over time.
struct Figure {
    title: String,
    /// What a value is in words.
    say: fn(f64) -> String,
    curves: Vec<Curve>,
}

/// One variant's.
struct Curve {
    label: String,
    /// Time in ns, and the value.
    points: Vec<[f64; 2]>,
}

/// A chart for each figure that moves.
pub(in crate::html) fn charts(scene: &Scene<'_>) -> Vec<Chart> {
    let nodes = scene.groups.iter().map(|group| group.first().timeline.free_pages.len()).max().unwrap_or(0);
    let mut figures = vec![figure(scene, "Resident memory", memory, |seen| &seen.resident_pages)];
    let first = scene.groups.first().map(|group| &group.first().timeline.processes[..]).unwrap_or_default();
    for process in first.iter().take(PROCESSES) {
        let title = format!("Resident memory of {}", process.name);
        figures.push(figure(scene, &title, memory, |seen| {
            let same = seen.processes.iter().find(|other| other.name == process.name);
            same.map_or(&[][..], |same| &same.resident_pages)
        }));
    }
    for node in 0..nodes {
        let title = if nodes > 1 { format!("Free memory, node {node}") } else { "Free memory".to_owned() };
        figures.push(figure(scene, &title, memory, |seen| {
            seen.free_pages.get(node).map_or(&[][..], Vec::as_slice)
        }));
    }
    figures.push(figure(scene, "Page faults so far", units::count, |seen| &seen.faults));
    figures.extend(by_task(scene, "Page faults of", units::count, |task| &task.faults));
    figures.push(figure(scene, "Waits for locks so far, all CPUs", duration, |seen| &seen.lock_wait_ns));
    figures.extend(by_task(scene, "Waits for locks of", duration, |task| &task.lock_wait_ns));
    figures.iter().filter(|figure| figure.moves()).map(chart).collect()
}

/// A figure for each of the tasks' names that came to most in the first variant.
fn by_task(
    scene: &Scene<'_>,
    what: &str,
    say: fn(f64) -> String,
    of: impl Fn(&TaskOverTime) -> &[u64],
) -> Vec<Figure> {
    let first = scene.groups.first().map(|group| &group.first().timeline.tasks[..]).unwrap_or_default();
    let came_to = |task: &TaskOverTime| of(task).last().copied().unwrap_or(0);
    let mut most: Vec<&TaskOverTime> = first.iter().filter(|task| came_to(task) > 0).collect();
    most.sort_by_key(|task| std::cmp::Reverse(came_to(task)));
    let one = |task: &&TaskOverTime| {
        figure(scene, &format!("{what} {}", task.name), say, |seen| {
            let same = seen.tasks.iter().find(|other| other.name == task.name);
            same.map_or(&[][..], &of)
        })
    };
    most.iter().take(TASKS).map(one).collect()
}

fn memory(pages: f64) -> String {
    units::memory(pages as u64)
}

fn figure(
    scene: &Scene<'_>,
    title: &str,
    say: fn(f64) -> String,
    of: impl Fn(&Timeline) -> &[u64],
) -> Figure {
    let curves = scene.groups.iter().map(|group| {
        let seen = &group.first().timeline;
        let points = seen.at_ns.iter().zip(of(seen)).map(|(at, value)| [*at as f64, *value as f64]);
        Curve { label: group.label.clone(), points: points.collect() }
    });
    Figure { title: title.to_owned(), say, curves: curves.filter(|curve| curve.points.len() > 1).collect() }
}

impl Figure {
    /// Whether there is anything to see.
    fn moves(&self) -> bool {
        let mut values = self.curves.iter().flat_map(|curve| &curve.points).map(|[_, value]| *value);
        let first = values.next();
        values.any(|value| Some(value) != first)
    }

    /// The lowest and the highest value, or time.
    fn ends(&self, which: usize) -> [f64; 2] {
        let all = || self.curves.iter().flat_map(|curve| &curve.points).map(|point| point[which]);
        [all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max)]
    }
}

fn chart(figure: &Figure) -> Chart {
    let drawn = match figure.curves.len() {
        more if more > SERIES => format!("; the first {SERIES} of {more} variants, the table has all"),
        _ => String::new(),
    };
    let note = format!("simulated time, one seed{drawn}");
    let name = format!("{} over simulated time; the table below has the figures", figure.title);
    Chart { title: figure.title.clone(), note, svg: draw(&name, figure), table: table(figure) }
}

fn draw(name: &str, figure: &Figure) -> String {
    let drawn = &figure.curves[..figure.curves.len().min(SERIES)];
    let names: Vec<&str> = drawn.iter().map(|curve| curve.label.as_str()).collect();
    let top = LEGEND * names.len() as f64 + 10.0;
    let bottom = top + PLOT;
    let mut drawing = Drawing::new(bottom + AXIS, name);
    drawing.legend(&names, 0.0);
    let x = Scale::new(Kind::Linear, figure.ends(0), [LEFT, WIDTH - RIGHT]);
    let y = Scale::new(Kind::Linear, figure.ends(1), [bottom, top]);
    let [low, high] = figure.ends(1);
    for value in y.spaced([low, f64::midpoint(low, high), high], 16.0) {
        drawing.rung(LEFT, y.at(value), &(figure.say)(value));
    }
    let [first, last] = figure.ends(0);
    for ns in x.spaced(round(first, last, 4.0), 60.0) {
        drawing.path("axis", &format!("M{:.1} {bottom}v4", x.at(ns)));
        drawing.text(Anchor::Middle, "tick", [x.at(ns), bottom + 15.0], &duration(ns));
    }
    let middle = f64::midpoint(LEFT, WIDTH);
    drawing.text(Anchor::Middle, "axis-name", [middle, bottom + 32.0], "simulated time");
    for (series, curve) in drawn.iter().enumerate() {
        let places: Vec<[f64; 2]> =
            curve.points.iter().map(|[ns, value]| [x.at(*ns), y.at(*value)]).collect();
        drawing.line(series, &places);
        if let (Some([ns, value]), Some(place)) = (curve.points.last(), places.last()) {
            let told = format!("{} at {}", (figure.say)(*value), duration(*ns));
            drawing.mark(Mark::Series(series), *place, &told);
        }
    }
    drawing.end()
}

/// Evenly spaced moments; of a run that is over by then the last value.
fn table(figure: &Figure) -> Table {
    let heads = figure.curves.iter().map(|curve| curve.label.clone());
    let mut table = Table::new(std::iter::once("<time".to_owned()).chain(heads));
    let [first, last] = figure.ends(0);
    for row in 0..=ROWS {
        let at = first + (last - first) * row as f64 / ROWS as f64;
        let said = |curve: &Curve| {
            let until = curve.points.iter().take_while(|[ns, _]| *ns <= at).last();
            until.map_or_else(|| "–".to_owned(), |[_, value]| (figure.say)(*value))
        };
        table.row(std::iter::once(duration(at)).chain(figure.curves.iter().map(said)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[&[u64]]) -> Figure {
        let curve = |values: &&[u64]| Curve {
            label: "a".to_owned(),
            points: (0..)
                .zip(values.iter())
                .map(|(at, value)| [f64::from(at) * 1e6, *value as f64])
                .collect(),
        };
        Figure { title: "Free".to_owned(), say: units::count, curves: values.iter().map(curve).collect() }
    }

    #[test]
    fn a_figure_that_stands_still_is_no_chart() {
        assert!(!figure(&[&[5, 5, 5]]).moves() && !figure(&[]).moves());
        assert!(figure(&[&[5, 5, 6]]).moves());
        assert!(figure(&[&[5, 5], &[6, 6]]).moves(), "variants that differ are a chart");
    }

    #[test]
    fn the_table_has_values_as_of_then_and_a_shorter_runs_last() {
        let text = table(&figure(&[&[0, 10, 20, 30, 40], &[1, 2]])).text(0, 100);
        assert!(text.contains("0 ns") && text.contains("4.000 ms  40  2"), "{text}");
    }

    #[test]
    fn any_run_can_be_drawn() {
        for values in [&[&[0, 1][..]][..], &[&[7, 7, 7], &[1, 2, u64::MAX]], &[&[0, 0][..]; 9]] {
            let svg = draw("name", &figure(values));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{values:?}: {svg}");
        }
    }
}
