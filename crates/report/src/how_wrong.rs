//! docs/how-wrong.md: how far the program was off wherever it was held against something, made of the tables that labels follow from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lab::evidence::{ChangeInterval, Check, FigureKind, Held, PERCENT, Rows, Table, TimeKind};
use mm::policy::Mechanism;

/// The page. The same table gives the same page.
pub fn markdown(table: &Table) -> String {
    let mut out = HEAD.to_owned();
    out += &rules(table);
    out += &short_scenes(table);
    out += &figures(table);
    out += &machines(table);
    out += &intervals(table);
    out += &worst(table);
    out + TAIL
}

const HEAD: &str = "\
# How wrong are we
Made by `make evidence` of the tables that labels follow from (`held.toml`, `docs/results.toml`); change those by measuring, not this page.

Three questions, in the order of their answers' quality: does it follow the kernel's rules, how near are counts, how near are times. Most
published rows were in sight while the model was made. A review with rows that are not in this repository found the median
error of times on machines that nobody had looked at to be about half of the published figure.

";

const TAIL: &str = "
## Programs of your own kind
Six real programs, run for real under several settings and predicted from one recording each: [programs.md](programs.md). Placement by node in
guests with two nodes, beside the replay of the same recording: [replay.md](replay.md). What the model leaves out: [model.md](model.md).
";

/// Rules: figures of captures, traces and scenes of stock kernels.
fn rules(table: &Table) -> String {
    let mut out = "## Rules\nFigures that stock kernels printed, computed anew; what they did by their own traces, step by step; what they counted of small \
                   programs while there was memory for all: equal or not.\n\n\
                   | mechanism | kernels | captures | traces | scenes |\n|---|---|---|---|---|\n"
        .to_owned();
    for mechanism in Mechanism::ALL {
        let held: Vec<_> = table.held.iter().filter(|held| held.mechanism == mechanism).collect();
        let compared: u64 = held.iter().map(|held| held.compared).sum();
        if compared == 0 {
            continue;
        }
        let kernels = kernels(held.iter().copied().filter(|held| held.compared > 0));
        let sum = |check: Check| {
            let of = held.iter().filter(|held| held.check == check);
            let (equal, compared) = of.fold((0, 0), |sum, held| (sum.0 + held.equal, sum.1 + held.compared));
            if compared == 0 { "none".to_owned() } else { format!("{equal} of {compared} equal") }
        };
        let [captures, traces, scenes] = [Check::Captures, Check::Traces, Check::Scenes].map(sum);
        let _ = writeln!(
            out,
            "| {} | {} | {captures} | {traces} | {scenes} |",
            mechanism.words(),
            kernels.join(", ")
        );
    }
    out
}

/// The kernels of what was held, each once.
fn kernels<'a>(held: impl Iterator<Item = &'a Held>) -> Vec<&'a str> {
    let mut kernels: Vec<&str> = held.map(|held| held.policy.as_str()).collect();
    kernels.sort_unstable();
    kernels.dedup();
    kernels
}

/// Scenes in which memory was short: no figure is equal to the page there.
fn short_scenes(table: &Table) -> String {
    let mut out = format!(
        "\n## Counters where memory was short\nScenes of stock kernels, played by their own programs (`freehold conform`): counters of vmstat and of groups of which the kernel \
         counted over 1,000, each figure once, but for those that a constant was chosen by. *Stayed*: by how many points of an eighth of a region or file those pages differ that are still in memory.\n\n\
         | mechanism | kernel | scenes | counters {SHORT_COLUMNS}"
    );
    for mechanism in Mechanism::ALL {
        let of_it = |held: &&Held| held.mechanism == mechanism && !held.errors.is_empty();
        for kernel in kernels(table.held.iter().filter(of_it)) {
            let held: Vec<&Held> =
                table.held.iter().filter(of_it).filter(|held| held.policy == kernel).collect();
            let errors = Errors::sorted(held.iter().flat_map(|held| &held.errors));
            let stayed = Errors::sorted(held.iter().flat_map(|held| &held.stayed));
            let Some(cells) = errors.cells() else { continue };
            let stayed = stayed.0.last().map_or_else(
                || "- | -".to_owned(),
                |worst| format!("{:.1} | {:.1}", 100.0 * stayed.at(0.5), 100.0 * worst),
            );
            let _ =
                writeln!(out, "| {} | {kernel} | {} | {cells} | {stayed} |", mechanism.words(), held.len());
        }
    }
    out
}

const SHORT_COLUMNS: &str = "| within 25 % | median | nine in ten below | worst | stayed, median | worst |\n\
                             |---|---|---|---|---|---|---|---|---|---|\n";

/// Errors of a kind of figures, in order.
struct Errors(Vec<f64>);

impl Errors {
    fn of<'a>(rows: impl IntoIterator<Item = &'a Rows>) -> Self {
        Self::sorted(rows.into_iter().flat_map(|rows| &rows.errors))
    }

    fn sorted<'a>(errors: impl IntoIterator<Item = &'a f64>) -> Self {
        let mut errors: Vec<f64> = errors.into_iter().copied().collect();
        errors.sort_by(f64::total_cmp);
        Self(errors)
    }

    fn at(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0[rank.saturating_sub(1)]
    }

    fn within(&self, limit: f64) -> String {
        let within = self.0.iter().filter(|error| **error <= limit).count();
        format!("{:.0} %", 100.0 * within as f64 / self.0.len() as f64)
    }

    /// The columns of a table: how many, within a quarter, median, nine in ten, worst; `None` where there are none.
    fn cells(&self) -> Option<String> {
        let last = *self.0.last()?;
        let [median, most, worst] = [self.at(0.5), self.at(0.9), last].map(percent);
        Some(format!("{} | {} | {median} | {most} | {worst}", self.0.len(), self.within(0.25)))
    }
}

fn percent(error: f64) -> String {
    if error.is_finite() { format!("{:.0} %", 100.0 * error) } else { "infinite".to_owned() }
}

const COLUMNS: &str =
    "rows | within 25 % | median | nine in ten below | worst |\n|---|---|---|---|---|---|---|\n";

/// Published rows by mechanism.
fn figures(table: &Table) -> String {
    let mut out = format!(
        "\n## Counts and times, by mechanism\nPublished rows, simulated: those that nothing was chosen by. An error is a part of the published figure, or so many points \
         of a published percentage; infinite where one of the two is nothing.\n\n| mechanism | figures | {COLUMNS}"
    );
    for mechanism in Mechanism::ALL {
        for kind in [FigureKind::Counts, FigureKind::Times] {
            let rows = table.rows.iter().filter(|rows| rows.mechanism == mechanism && rows.figures == kind);
            if let Some(cells) = Errors::of(rows).cells() {
                let _ = writeln!(out, "| {} | {} | {cells} |", mechanism.words(), kind.name());
            }
        }
    }
    for kind in [FigureKind::Counts, FigureKind::Times] {
        let rows = table.rows.iter().filter(|rows| rows.figures == kind);
        if let Some(cells) = Errors::of(rows).cells() {
            let _ = writeln!(out, "| **all** | {} | {cells} |", kind.name());
        }
    }
    out
}

/// The same by machine: what a profile is worth.
fn machines(table: &Table) -> String {
    let mut by_machine: BTreeMap<&str, Vec<&Rows>> = BTreeMap::new();
    for rows in table.rows.iter().filter(|rows| rows.figures == FigureKind::Times) {
        by_machine.entry(&rows.machine).or_default().push(rows);
    }
    let mut out = format!(
        "\n## Times, by machine\nA machine of which rows were fitted had costs chosen by some of its published rows; these are not counted here, but what is \
         counted leans on them. The others are what a machine that nobody fitted comes to.\n\n| machine | rows fitted | {COLUMNS}"
    );
    for (machine, rows) in by_machine {
        let fitted: u64 = rows.iter().map(|rows| rows.fitted).sum();
        if let Some(cells) = Errors::of(rows).cells() {
            let _ = writeln!(out, "| {machine} | {fitted} | {cells} |");
        }
    }
    out
}

/// Kinds that have a line, those that may have an interval.
const KINDS: [TimeKind; 7] = [
    TimeKind::Hold,
    TimeKind::Wait,
    TimeKind::Rate,
    TimeKind::Mean,
    TimeKind::Program,
    TimeKind::Change,
    TimeKind::P99,
];

/// What the intervals of times are worth: on machines left out, and on published rows that had no part in them.
fn intervals(table: &Table) -> String {
    let mut out = format!(
        "\n## Intervals\nEach simulated time carries an interval of {PERCENT} %, by its kind: [costs.md](costs.md#how-far-off-the-next-machine-may-be) says how they are made. Each \
         machine's rows are held against the interval that the others give; 75 to 90 % inside are wanted. *Score* is the width, of logarithms, and ten times how far a row lies \
         outside: the less the better. The naive interval knows what other machines published, and no model. *Never fitted* are published rows \
         of the experiments that had no part in making the interval.\n\n| kind | rows | machines | inside | median factor either way | score | naive | in answers | \
         never fitted: inside |\n|---|---|---|---|---|---|---|---|---|\n"
    );
    for kind in KINDS {
        if let Some(cells) = cells(table, kind) {
            let _ = writeln!(out, "| {kind} | {cells} | {} |", since(table, kind));
        }
    }
    out += "\nThe interval of a change is the factor in answers times the root of the change, either way. Maxima, and times that no left-out row is of, have no interval.\n";
    out
}

/// Rows, machines, inside, factor of those left out, score, naive score, factor in answers; `None` of a kind without evidence.
fn cells(table: &Table, kind: TimeKind) -> Option<String> {
    let said = match table.factor(kind) {
        Ok(factor) => format!("{factor:.2}"),
        Err(_) => "none".to_owned(),
    };
    let (rows, machines, inside, left_out, score, naive) = if kind == TimeKind::Change {
        let of = ChangeInterval::of(&table.times)?;
        (of.rows as u64, of.machines as u64, of.inside, of.left_out, of.score, Some(of.naive))
    } else {
        let of = table.kind(kind)?;
        (of.rows, of.machines, of.inside, of.left_out, of.score, of.naive)
    };
    let naive = naive.map_or_else(|| "none".to_owned(), |naive| format!("{naive:.2}"));
    Some(format!("{rows} | {machines} | {} | {left_out:.2} | {score:.2} | {naive} | {said}", percent(inside)))
}

/// How many published times that nothing was fitted to lie in the interval of their kind; a change's are those that made it.
fn since(table: &Table, kind: TimeKind) -> String {
    let Some(factor) = table.factor(kind).ok().filter(|_| kind != TimeKind::Change) else {
        return "-".to_owned();
    };
    let of_kind = table.times.iter().filter(|times| times.kind == kind);
    let pairs: Vec<(f64, f64)> = of_kind
        .flat_map(|times| times.published.iter().copied().zip(times.simulated.iter().copied()))
        .collect();
    let inside = pairs
        .iter()
        .filter(|(published, simulated)| (simulated / factor..=simulated * factor).contains(published));
    if pairs.is_empty() { "-".to_owned() } else { format!("{} of {}", inside.count(), pairs.len()) }
}

/// Experiments whose times are off by more than half at the median.
fn worst(table: &Table) -> String {
    let mut by_experiment: BTreeMap<&str, Vec<&Rows>> = BTreeMap::new();
    for rows in &table.rows {
        by_experiment.entry(&rows.experiment).or_default().push(rows);
    }
    let mut far: Vec<(f64, &str)> = vec![];
    for (experiment, rows) in by_experiment {
        let errors = Errors::of(rows);
        if !errors.0.is_empty() && errors.at(0.5) > 0.5 {
            far.push((errors.at(0.5), experiment));
        }
    }
    far.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut out = "\n## Where it is worst\nExperiments whose median error is over half of the published figure; each page says what is known of why.\n\n".to_owned();
    for (median, experiment) in &far {
        let _ = writeln!(out, "- [{experiment}](results/{experiment}.md): {}", percent(*median));
    }
    if far.is_empty() {
        out += "None.\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_page_is_what_the_tables_say() {
        let page = include_str!("../../../docs/how-wrong.md");
        assert!(page == markdown(Table::bundled()), "docs/how-wrong.md is old: run `make evidence`");
    }

    #[test]
    fn rows_are_sorted_counted_and_named() {
        let table = Table::parse(
            "[[held]]\npolicy = 'linux-6.18'\nmechanism = 'page-lists'\ncheck = 'traces'\nfiles = 1\ncompared = 9\nequal = 8\n\
             [[held]]\npolicy = 'linux-6.12'\nmechanism = 'generations'\ncheck = 'scenes'\nscene = 's'\nfiles = 1\ncompared = 4\nequal = 3\n\
             errors = [0.01, 0.2, 0.9]\nstayed = [0.004, 0.02]\n\
             [[rows]]\nexperiment = 'e'\nmachine = 'm'\npolicy = 'linux-6.18'\nmechanism = 'page-lists'\nfigures = 'times'\n\
             fitted = 2\nerrors = [0.9, 0.1, inf, 0.6]\n",
        );
        insta::assert_snapshot!(markdown(&table.unwrap()));
    }
}
