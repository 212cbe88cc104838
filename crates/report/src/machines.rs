//! Machine profiles: `freehold machines`.

use std::fmt::Write as _;

use lab::this_machine::probe::Probed;
use sim::{Figure, FigureKind, Profile};

use crate::style::Style;
use crate::table::{Table, wrap};
use crate::units;

/// A line per profile.
pub fn list(style: Style, profiles: &[Profile]) -> String {
    let mut table = Table::new(["<machine", "CPUs", "nodes", "memory", "<what it is"]);
    for profile in profiles {
        table.row([
            profile.name().to_owned(),
            cpus(profile),
            profile.shape().nodes.len().to_string(),
            units::memory(pages(profile)),
            profile.title().to_owned(),
        ]);
    }
    table.text(0, style.columns())
}

/// A profile in full: its shape, then every figure with its origin.
pub fn show(style: Style, profile: &Profile) -> String {
    let mut out = shape(style, profile);
    let source = format!("source: {}", profile.shape().source);
    let _ = writeln!(out, "{}\n", wrap(&source, style.columns()).join("\n"));
    out.push_str(&figures(style, profile));
    let _ = writeln!(out, "\n{}", origins(profile));
    out
}

/// What a probe measured: each figure with how far its repetitions lay apart, then what it could not measure.
pub fn probed(style: Style, probed: &Probed) -> String {
    let profile = &probed.profile;
    let mut out = shape(style, profile) + "\n";
    let mut table = Table::new(["<figure", "median", "<middle half", "<all", "times"]);
    let mut inherited = Table::new(["<not measured here", "value", "<origin"]);
    for (spec, figure) in profile.figures() {
        let value = figure.value.to_string();
        if figure.source.contains(lab::this_machine::probe::NOT_MEASURED) {
            inherited.row([spec.key.to_owned(), value, figure.kind.name().to_owned()]);
        } else {
            let mut row = vec![spec.key.to_owned(), value];
            row.extend(spread(figure));
            table.row(row);
        }
    }
    out.push_str(&table.text(0, style.columns()));
    if !inherited.is_empty() {
        let _ = writeln!(out, "\n{}", inherited.text(0, style.columns()).trim_end());
    }
    for note in &probed.notes {
        let _ = writeln!(out, "\n{}", wrap(&format!("note: {note}"), style.columns()).join("\n"));
    }
    let _ = writeln!(out, "\n{}", origins(profile));
    out
}

/// The cells of a spread, none where there is none.
fn spread(figure: &Figure) -> Vec<String> {
    figure.spread.map_or_else(Vec::new, |spread| {
        let sim::profile::FigureSpread { min, p25, p75, max, samples } = spread;
        vec![format!("{p25}–{p75}"), format!("{min}–{max}"), samples.to_string()]
    })
}

/// Name, title, and what the machine is made of.
fn shape(style: Style, profile: &Profile) -> String {
    let shape = profile.shape();
    let mut out = format!("{}\n{}\n\n", style.heading(profile.name()), profile.title());
    let _ = writeln!(
        out,
        "{}, {} a socket, {} a core; {} share a last-level cache",
        units::plural(u64::from(shape.sockets), "socket"),
        units::plural(u64::from(shape.cores_per_socket), "core"),
        units::plural(u64::from(shape.threads_per_core), "thread"),
        units::plural(u64::from(shape.cores_per_llc), "core"),
    );
    for (number, node) in shape.nodes.iter().enumerate() {
        let memory = units::memory(node.memory_mib * 256);
        let cpus = if node.has_cpus { "" } else { ", no CPUs" };
        let _ = writeln!(out, "node {number}: {memory} on socket {}{cpus}", node.socket);
    }
    out
}

fn figures(style: Style, profile: &Profile) -> String {
    let mut table = Table::new(["<figure", "value", "<origin", "<source"]);
    for (spec, figure) in profile.figures() {
        table.row([
            spec.key.to_owned(),
            figure.value.to_string(),
            figure.kind.name().to_owned(),
            figure.source.clone(),
        ]);
    }
    table.text(0, style.columns())
}

/// `52 figures: 3 measured, 40 published …`.
fn origins(profile: &Profile) -> String {
    let count = |kind: FigureKind| profile.figures().filter(|(_, figure)| figure.kind == kind).count();
    let each: Vec<String> = FigureKind::ALL
        .into_iter()
        .map(|kind| (count(kind), kind.name()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    format!("{}: {}", units::plural(profile.figures().count() as u64, "figure"), each.join(", "))
}

fn cpus(profile: &Profile) -> String {
    let (all, used) = (profile.shape().cpu_count() as usize, profile.default_cpus().len());
    if all == used { all.to_string() } else { format!("{used} of {all}") }
}

fn pages(profile: &Profile) -> u64 {
    profile.shape().nodes.iter().map(|node| node.memory_mib * 256).sum()
}
