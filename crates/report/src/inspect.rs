//! What is in a recording: `freehold inspect`.

use std::fmt::Write as _;

use trace::inspect::{
    CacheActivity, Losses, ObjectBalance, PageBalance, RunRow, SlabPageEvents, TaskActivity,
};
use trace::{Inspection, Keep};

use crate::style::Style;
use crate::table::{Table, wrap};
use crate::units::{duration, memory, plural};

/// Tasks that have a line of their own.
const TASKS: usize = 12;
/// Rows of the mix of allocations.
const MIX: usize = 12;
/// Slab caches that have a line of their own.
const CACHES: usize = 16;

/// The whole account; `name` is the file's.
pub fn text(style: Style, name: &str, of: &Inspection) -> String {
    let mut parts = vec![head(style, name, of), events(style, of)];
    parts.push(tasks(style, &of.tasks));
    parts.push(allocations(style, of));
    parts.push(runs(style, "refills", &of.refills) + &runs(style, "drains", &of.drains));
    parts.push(pages(&of.pages));
    parts.push(caches(style, &of.caches));
    parts.push(objects(&of.objects, of.slab_pages));
    parts.push(losses(style, of));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn head(style: Style, name: &str, of: &Inspection) -> String {
    let mut out = format!("{}\n", style.heading(name));
    if let Some(damage) = of.damage {
        let lines = wrap(&format!("the file {damage}; this is what of it is whole"), style.columns());
        for line in &lines {
            out += &style.bad(line);
            out.push('\n');
        }
    }
    let known =
        |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() };
    let _ = writeln!(
        out,
        "recorded by {} on Linux {}, {}, {}",
        known(&of.source, "an unknown program"),
        known(&of.kernel, "of unknown version"),
        known(&of.cpu_model, "CPU model not known"),
        plural(u64::from(of.cpus), "CPU"),
    );
    if !of.command.is_empty() {
        let lines = wrap(&of.command.join(" "), style.columns() - 9);
        let _ = writeln!(out, "command: {}", lines.join("\n         "));
    }
    let _ = writeln!(
        out,
        "{} from the first event to the last; {} in {} bytes, {:.2} bytes an event, {}",
        duration(of.last_ns.saturating_sub(of.first_ns) as f64),
        plural(of.events, "event"),
        of.bytes,
        of.bytes_per_event,
        plural(of.chunks as u64, "chunk"),
    );
    let kept = match of.keep {
        Keep::Workload => "the events of the workload were kept",
        Keep::System => "the events of the whole system were kept",
    };
    let cost = match of.cost_ns_per_event {
        Some(ns) => format!("; recording added {ns:.0} ns an event, as measured before the start"),
        None => "; what recording added is not known".into(),
    };
    let masked = if of.masked { "; addresses and names are masked" } else { "" };
    let _ = writeln!(out, "{kept}{cost}{masked}");
    out
}

fn events(style: Style, of: &Inspection) -> String {
    let mut table = Table::new(["<event", "count", "%"]);
    for kind in &of.kinds {
        table.row([kind.kind.to_owned(), kind.count.to_string(), percent(kind.count, of.events)]);
    }
    if table.is_empty() { "no events\n".into() } else { table.text(0, style.columns()) }
}

fn tasks(style: Style, tasks: &[TaskActivity]) -> String {
    let is_active = |task: &&TaskActivity| task.allocs + task.frees + task.faults + task.runs > 0;
    let active: Vec<&TaskActivity> = tasks.iter().filter(is_active).collect();
    let mut table = Table::new(["<task", "pid", "tid", "allocated", "freed", "faults", "ran", "on CPU", "<"]);
    for task in active.iter().take(TASKS) {
        table.row([
            if task.name.is_empty() { "-".to_owned() } else { task.name.clone() },
            task.pid.to_string(),
            task.tid.to_string(),
            memory_or_none(task.alloc_pages),
            memory_or_none(task.free_pages),
            task.faults.to_string(),
            format!("{} x", task.runs),
            if task.run_ns > 0 { duration(task.run_ns as f64) } else { "-".into() },
            if task.in_workload { "workload" } else { "other" }.to_owned(),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    let mut out = table.text(0, style.columns());
    if active.len() > TASKS {
        let _ = writeln!(out, "and {}", plural((active.len() - TASKS) as u64, "more task"));
    }
    out
}

fn allocations(style: Style, of: &Inspection) -> String {
    let all: u64 = of.allocations.iter().map(|row| row.count).sum();
    let mut table = Table::new(["<allocations", "<type", "blocks", "%"]);
    for row in of.allocations.iter().take(MIX) {
        table.row([
            format!("order {}", row.order),
            row.migratetype.to_owned(),
            row.count.to_string(),
            percent(row.count, all),
        ]);
    }
    if table.is_empty() { String::new() } else { table.text(0, style.columns()) }
}

/// A line per order and type: how many runs, then each size and how often it was seen.
fn runs(style: Style, what: &str, rows: &[RunRow]) -> String {
    let mut out = String::new();
    for row in rows {
        let mut title = what.to_owned();
        if let (Some(order), Some(migratetype)) = (row.order, row.migratetype) {
            let _ = write!(title, ", order {order} {migratetype}");
        }
        let sizes: Vec<String> = row.sizes.iter().map(|(size, count)| format!("{size}x{count}")).collect();
        let _ = writeln!(out, "{title}: {} of {} blocks in all; blocks x times:", row.count, row.blocks);
        for line in wrap(&sizes.join(" "), style.columns() - 2) {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

fn pages(of: &PageBalance) -> String {
    let mut out = format!(
        "pages: {} allocated, {} freed, at most {} ({}) out at once, {} out at the end\n",
        of.allocated,
        of.freed,
        of.peak,
        memory(of.peak),
        of.held,
    );
    if of.unmatched_frees > 0 {
        let _ = writeln!(out, "{} freed that was not seen allocated", plural(of.unmatched_frees, "block"));
    }
    if of.allocated_twice > 0 {
        let pages = plural(of.allocated_twice, "page");
        let _ = writeln!(out, "{pages} allocated while still out: the free was lost or left out");
    }
    out
}

fn caches(style: Style, caches: &[CacheActivity]) -> String {
    let mut table =
        Table::new(["<slab cache", "bytes", "allocated", "freed", "at most out", "out at the end", "again"]);
    for cache in caches.iter().take(CACHES) {
        let some = |count: u64| if count == 0 { "-".to_owned() } else { count.to_string() };
        table.row([
            cache.cache.clone(),
            some(cache.object_bytes.into()),
            cache.allocs.to_string(),
            some(cache.frees),
            some(cache.peak),
            some(cache.held),
            some(cache.allocated_twice),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    let mut out = table.text(0, style.columns());
    if caches.len() > CACHES {
        let _ = writeln!(out, "and {}", plural((caches.len() - CACHES) as u64, "more slab cache"));
    }
    out
}

fn objects(of: &ObjectBalance, pages: SlabPageEvents) -> String {
    if of.allocated == 0 {
        return String::new();
    }
    let mut out = format!(
        "slab objects: {} allocated, {} freed, at most {} out at once, {} out at the end\n",
        of.allocated, of.freed, of.peak, of.held,
    );
    if of.unmatched_frees > 0 {
        let _ = writeln!(out, "{} freed that was not seen allocated", plural(of.unmatched_frees, "object"));
    }
    if of.allocated_twice > 0 {
        let objects = plural(of.allocated_twice, "object");
        let _ =
            writeln!(out, "{objects} allocated again without a free (kfree_rcu into a sheaf has no event)");
    }
    let _ = writeln!(
        out,
        "of the page events, {} and {} are the slab allocator's own",
        plural(pages.allocations, "allocation"),
        plural(pages.frees, "free"),
    );
    out
}

/// What is missing, a line each, and that nothing is where nothing is.
fn losses(style: Style, of: &Inspection) -> String {
    let Losses { lost, occasions, unreadable, left_out } = of.losses;
    let mut out = String::new();
    if lost > 0 {
        let line = format!("{} lost on {}", plural(lost, "event"), plural(occasions, "occasion"));
        let _ = writeln!(out, "{}", style.bad(&line));
    } else {
        out.push_str("no event was lost\n");
    }
    if unreadable > 0 {
        let _ = writeln!(
            out,
            "{}",
            style.bad(&format!("{} could not be expressed", plural(unreadable, "event")))
        );
    }
    if left_out > 0 {
        let _ = writeln!(out, "{} of others left out on purpose", plural(left_out, "event"));
    }
    if of.interrupted {
        out.push_str("the recording was stopped from outside\n");
    }
    if let Some(status) = of.exit_status.filter(|status| *status != 0) {
        let _ = writeln!(out, "{}", style.bad(&format!("the command ended with status {status}")));
    }
    out
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.2}", 100.0 * part as f64 / all.max(1) as f64)
}

fn memory_or_none(pages: u64) -> String {
    if pages == 0 { "-".into() } else { memory(pages) }
}
