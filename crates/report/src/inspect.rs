//! What is in a recording.

use std::fmt::Write as _;

use trace::Inspection;
use trace::inspect::RunRow;

use crate::style::Style;
use crate::table::Table;
use crate::units::{duration, memory, plural};

/// Tasks shown; the rest is counted.
const TASKS: usize = 20;
/// Run sizes shown per line, the most frequent.
const SIZES: usize = 12;

/// The account of a recording: origin, events by kind, tasks, mix of requests, refill and drain sizes, what is missing.
pub fn text(style: Style, of: &Inspection) -> String {
    let mut out = origin(of);
    for (title, table) in [
        ("events", kinds(style, of)),
        ("tasks", tasks(style, of)),
        ("allocations", mix(style, of)),
        ("refills: runs of blocks taken from the buddy lists for a CPU's list", runs(style, &of.refills)),
        ("drains: runs of blocks given back", runs(style, &of.drains)),
    ] {
        if !table.is_empty() {
            let _ = write!(out, "\n{}\n{table}", style.heading(title));
        }
    }
    let _ = write!(out, "\n{}\n{}", style.heading("pages"), pages(of));
    out + &missing(style, of)
}

fn origin(of: &Inspection) -> String {
    let mut out = String::new();
    let command = if of.command.is_empty() { "no command".to_owned() } else { of.command.join(" ") };
    let command: String = command.chars().take(100).collect();
    let _ = writeln!(out, "made by {} on Linux {}, {}, {} CPUs", of.source, of.kernel, of.cpu_model, of.cpus);
    let _ = writeln!(out, "recorded: {command}");
    let span = of.last_ns.saturating_sub(of.first_ns);
    let _ = write!(
        out,
        "{} over {}, {} bytes ({:.2} an event)",
        plural(of.events, "event"),
        duration(span as f64),
        of.bytes,
        of.bytes_per_event
    );
    if let Some(cost) = of.cost_ns_per_event {
        let _ = write!(out, ", recording cost about {cost:.0} ns an event");
    }
    out.push('\n');
    if of.masked {
        out.push_str("addresses and names are hidden\n");
    }
    out
}

fn kinds(style: Style, of: &Inspection) -> String {
    let mut table = Table::new(["<kind", "events", "%"]);
    for kind in of.kinds.iter().filter(|kind| kind.count > 0) {
        let share = 100.0 * kind.count as f64 / of.events.max(1) as f64;
        table.row([kind.kind.to_owned(), kind.count.to_string(), format!("{share:.1}")]);
    }
    if table.is_empty() { String::new() } else { table.text(2, style.columns()) }
}

fn tasks(style: Style, of: &Inspection) -> String {
    let mut table = Table::new(["<task", "pid", "<workload", "allocs", "pages", "frees", "pages", "runs", "on CPU"]);
    for task in of.tasks.iter().take(TASKS) {
        table.row([
            task.name.clone(),
            task.tid.to_string(),
            if task.in_workload { "yes" } else { "no" }.to_owned(),
            task.allocs.to_string(),
            task.alloc_pages.to_string(),
            task.frees.to_string(),
            task.free_pages.to_string(),
            task.runs.to_string(),
            duration(task.run_ns as f64),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    let mut out = table.text(2, style.columns());
    if of.tasks.len() > TASKS {
        let _ = writeln!(out, "  and {}", plural((of.tasks.len() - TASKS) as u64, "other task"));
    }
    out
}

fn mix(style: Style, of: &Inspection) -> String {
    let mut table = Table::new(["order", "<type", "blocks"]);
    for row in &of.allocations {
        table.row([row.order.to_string(), row.migratetype.to_owned(), row.count.to_string()]);
    }
    if table.is_empty() { String::new() } else { table.text(2, style.columns()) }
}

fn runs(style: Style, rows: &[RunRow]) -> String {
    let mut table = Table::new(["order", "<type", "runs", "blocks", "<sizes (runs of that size)"]);
    for row in rows {
        let mut sizes = row.sizes.clone();
        sizes.sort_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
        let shown: Vec<String> =
            sizes.iter().take(SIZES).map(|(size, count)| format!("{size} ({count})")).collect();
        let more = if sizes.len() > SIZES { " …" } else { "" };
        table.row([
            row.order.map_or_else(|| "any".to_owned(), |order| order.to_string()),
            row.migratetype.unwrap_or("any").to_owned(),
            row.count.to_string(),
            row.blocks.to_string(),
            shown.join(", ") + more,
        ]);
    }
    if table.is_empty() { String::new() } else { table.text(2, style.columns()) }
}

fn pages(of: &Inspection) -> String {
    let pages = &of.pages;
    let mut out = format!(
        "  {} handed out, {} freed, at most {} at a time ({}), {} held at the end\n",
        pages.allocated,
        pages.freed,
        pages.peak,
        memory(pages.peak),
        pages.held
    );
    if pages.unmatched_frees > 0 {
        let _ = writeln!(out, "  {} of pages whose allocation was not recorded", plural(pages.unmatched_frees, "free"));
    }
    if pages.allocated_twice > 0 {
        let _ = writeln!(out, "  {} handed out again without a free in between", plural(pages.allocated_twice, "page"));
    }
    out
}

fn missing(style: Style, of: &Inspection) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", style.bad(&text));
    };
    if of.losses.lost > 0 {
        line(format!("{} lost on {} occasions", plural(of.losses.lost, "event"), of.losses.occasions));
    }
    if of.losses.unreadable > 0 {
        line(format!("{} could not be expressed", plural(of.losses.unreadable, "event")));
    }
    if of.truncated {
        line("the recording was cut short; this is what there is up to the cut".to_owned());
    }
    if of.interrupted {
        line("recording was stopped from outside".to_owned());
    }
    if out.is_empty() { "nothing was lost\n".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use trace::inspect::{KindCount, MixRow, PageBalance, TaskActivity};
    use trace::{Keep, inspect::Losses};

    use super::*;

    fn inspection() -> Inspection {
        Inspection {
            source: "freehold 0.1.0".into(),
            kernel: "6.18.44".into(),
            cpu_model: "AMD EPYC".into(),
            cpus: 2,
            command: vec!["python3".into(), "-c".into(), "pass".into()],
            keep: Keep::Workload,
            masked: false,
            truncated: true,
            interrupted: false,
            exit_status: Some(0),
            chunks: 1,
            bytes: 4_000,
            events: 1_000,
            bytes_per_event: 4.0,
            first_ns: 1_000,
            last_ns: 2_001_000,
            cost_ns_per_event: Some(131.0),
            kinds: vec![KindCount { kind: "page_alloc", count: 600 }, KindCount { kind: "page_free", count: 400 }],
            tasks: vec![TaskActivity {
                name: "python3".into(),
                pid: 7,
                tid: 7,
                in_workload: true,
                allocs: 600,
                alloc_pages: 600,
                frees: 400,
                free_pages: 400,
                ..TaskActivity::default()
            }],
            allocations: vec![MixRow { order: 0, migratetype: "Movable", count: 600 }],
            refills: vec![RunRow {
                order: Some(0),
                migratetype: Some("Movable"),
                count: 3,
                blocks: 189,
                sizes: vec![(63, 3)],
            }],
            drains: vec![],
            pages: PageBalance { allocated: 600, freed: 400, peak: 600, held: 200, ..PageBalance::default() },
            losses: Losses { lost: 2, occasions: 1, ..Losses::default() },
        }
    }

    #[test]
    fn an_inspection_reads_from_origin_to_losses() {
        insta::assert_snapshot!(text(Style::plain(), &inspection()));
    }
}
