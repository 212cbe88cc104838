//! Power-of-two histograms as bcc's funclatency prints them, one alone or several that share their rows.
//!
//! A row covers `2^(i-1)` (0 for the first) to `2^i - 1` ns. Rows in which nothing fell are left out. A bar has
//! `floor(width × count / largest)` stars. Above 32 rows the figures take twice the room and a lone bar half of its.

use std::fmt::Write as _;

use lab::measurements::Distribution;

use crate::Style;

/// Widest bar, in characters.
const BAR: usize = 40;
/// Rows whose figures fit into ten digits.
const NARROW_ROWS: usize = 32;
/// Most histograms that share their rows; more are set below each other.
const ABREAST: usize = 4;

/// A histogram and its footer, to the byte as funclatency prints them with the label `nsecs`, but for empty rows.
pub fn one(of: &Distribution) -> String {
    let (label, digits, bar) = if of.rows.len() <= NARROW_ROWS { (5, 10, BAR) } else { (15, 20, BAR / 2) };
    // What follows the bounds of a row: ten digits make 25 columns in all, twenty make 45.
    let rest = 2 * digits + 4 - label;
    let mut out = String::new();
    let _ = writeln!(out, "{:label$}{:<rest$} : count     distribution", "", "nsecs");
    let most = largest(of);
    for (row, &count) in of.rows.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (low, high) = Distribution::bounds(row);
        let _ = writeln!(
            out,
            "{low:>digits$} -> {high:<digits$} : {count:<8} |{:<bar$}|",
            stars(count, most, bar)
        );
    }
    let _ = writeln!(out, "\n{}", footer(of));
    out
}

/// Several histograms beside each other, each under its name: the same rows, a count and a bar for each, and a footer
/// for each below. One alone is set as funclatency does.
pub fn side_by_side(style: Style, of: &[(&str, Distribution)]) -> String {
    match of {
        [] => String::new(),
        [(_, alone)] => one(alone),
        _ => of.chunks(ABREAST).map(|some| abreast(style, some)).collect::<Vec<_>>().join("\n"),
    }
}

fn abreast(style: Style, of: &[(&str, Distribution)]) -> String {
    let rows = of.iter().map(|(_, one)| one.rows.len()).max().unwrap_or(0);
    let digits = if rows <= NARROW_ROWS { 10 } else { 20 };
    let bounds = 2 * digits + 4;
    let count = of.iter().map(|(_, one)| largest(one).to_string().len()).max().unwrap_or(0).max(8);
    // " : ", the count, " |", the bar, "|".
    let around = count + 6;
    let bar = (style.columns().saturating_sub(bounds) / of.len()).saturating_sub(around).clamp(8, BAR);
    let mut out = " ".repeat(bounds);
    for (name, _) in of {
        let name: String = name.chars().take(around + bar - 3).collect();
        let _ = write!(out, "   {name:<width$}", width = around + bar - 3);
    }
    end_line(&mut out);
    let _ = write!(out, "     {:<width$}", "nsecs", width = bounds - 5);
    let word = if bar < "distribution".len() { "bar" } else { "distribution" };
    for _ in of {
        let _ = write!(out, " : {:<count$}  {word:<width$}", "count", width = bar + 1);
    }
    end_line(&mut out);
    let count_of = |one: &Distribution, row: usize| one.rows.get(row).copied().unwrap_or(0);
    for row in (0..rows).filter(|&row| of.iter().any(|(_, one)| count_of(one, row) > 0)) {
        let (low, high) = Distribution::bounds(row);
        let _ = write!(out, "{low:>digits$} -> {high:<digits$}");
        for (_, one) in of {
            let value = count_of(one, row);
            let _ = write!(out, " : {value:<count$} |{:<bar$}|", stars(value, largest(one), bar));
        }
        end_line(&mut out);
    }
    out.push('\n');
    let width = of.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, one) in of {
        let _ = writeln!(out, "{name:<width$}  {}", footer(one));
    }
    out
}

fn end_line(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

fn footer(of: &Distribution) -> String {
    format!("avg = {} nsecs, total: {} nsecs, count: {}", of.mean_ns(), of.total_ns, of.count)
}

fn largest(of: &Distribution) -> u64 {
    of.rows.iter().copied().max().unwrap_or(0)
}

fn stars(count: u64, most: u64, width: usize) -> String {
    let stars = (width as u128 * u128::from(count)).checked_div(u128::from(most)).unwrap_or(0);
    "*".repeat(stars as usize)
}
