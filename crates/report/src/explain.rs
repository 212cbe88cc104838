//! Where a mean comes from: what a refill or drain spends its time on, per span and per page.

use lab::measurements::{Explanation, Part};

use crate::style::Style;
use crate::table::Table;
use crate::units::duration;

/// The mean's parts with their share, then what overlaps with them (hand-overs, the time under the zone lock), then the
/// lines touched by where they were found.
pub fn text(style: Style, of: &Explanation) -> String {
    let pages = of.pages as f64 / of.count.max(1) as f64;
    let title = format!(
        "{}: where a {}'s {} come from ({} of them, {pages:.0} pages each)",
        of.variant,
        of.span,
        duration(of.total_ns as f64 / of.count.max(1) as f64),
        of.count
    );
    let mut table = Table::new(["<", "per span", "%", "per page", "times a span", "each"]);
    for part in &of.parts {
        table.row(cells("", part, of));
        if part.name == "waiting for the zone lock" && of.hand_overs.ns > 0 {
            table.row(cells("  of this ", &of.hand_overs, of));
        }
        if part.name == "lines touched" {
            for touch in &of.touches {
                table.row(cells("  in ", touch, of));
            }
        }
    }
    table.row(cells("besides, ", &of.holds, of));
    format!("{}\n{}", style.heading(&title), table.text(2, style.columns()))
}

fn cells(before: &str, part: &Part, of: &Explanation) -> [String; 6] {
    let ns = part.ns as f64;
    let per = |count: u64| if count > 0 { duration_of(ns / count as f64) } else { "-".into() };
    let times = match part.count {
        0 => "-".to_owned(),
        count => format!("{:.2}", count as f64 / of.count.max(1) as f64),
    };
    let share = 100.0 * ns / of.total_ns.max(1) as f64;
    [
        format!("{before}{}", part.name),
        per(of.count),
        format!("{share:.1}"),
        per(of.pages),
        times,
        per(part.count),
    ]
}

/// With decimals below ten ns: a line in the first level takes one or two.
fn duration_of(ns: f64) -> String {
    if ns < 10.0 { format!("{ns:.2} ns") } else { duration(ns) }
}
