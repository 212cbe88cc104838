//! Nanoseconds per operation on this machine's cores, the allocator beside others in one run.

use host::bench::BenchFigure;
use host::bench::objects::ObjectRow;

use crate::style::Style;
use crate::table::Table;

/// A row per case, order and thread count; a column per allocator, each with its spread over the rounds.
pub fn table(style: Style, rows: &[BenchFigure]) -> String {
    let mut sources: Vec<&str> = vec![];
    for row in rows {
        if !sources.contains(&row.source) {
            sources.push(row.source);
        }
    }
    let mut heads = vec!["<case".to_owned(), "order".to_owned(), "threads".to_owned()];
    heads.extend(sources.iter().map(|source| format!("{source} ns")));
    heads.extend(sources.iter().map(|_| "(min–max)".to_owned()));
    let mut table = Table::new(heads);
    let mut keys: Vec<(usize, u8, u32)> = vec![];
    for row in rows {
        let key = (row.case as usize, row.order.get(), row.threads);
        if keys.contains(&key) {
            continue;
        }
        keys.push(key);
        let of_source = |source: &str| {
            rows.iter().find(|other| {
                other.source == source && (other.case as usize, other.order.get(), other.threads) == key
            })
        };
        let mut cells =
            vec![row.case.name().to_owned(), row.order.get().to_string(), row.threads.to_string()];
        let found: Vec<Option<&BenchFigure>> = sources.iter().map(|source| of_source(source)).collect();
        cells.extend(
            found.iter().map(|row| row.map_or_else(String::new, |row| format!("{:.1}", row.ns.median))),
        );
        cells.extend(
            found.iter().map(|row| {
                row.map_or_else(String::new, |row| format!("({:.1}–{:.1})", row.ns.min, row.ns.max))
            }),
        );
        table.row(cells);
    }
    let note =
        "median over the rounds, ns per operation and thread (a hot pair is an allocation and its free)\n";
    table.text(0, style.columns().max(120)) + note
}

/// A row per case, thread count and source: what an object costs, and how much of malloc's time that is.
pub fn objects(style: Style, rows: &[ObjectRow]) -> String {
    let heads = ["<case", "threads", "<objects of", "ns", "<(min–max)", "instructions", "× malloc"];
    let mut table = Table::new(heads);
    for row in rows {
        let beside = |other: &&ObjectRow| {
            other.source == "malloc" && (other.case, other.threads) == (row.case, row.threads)
        };
        let malloc = rows.iter().find(beside).map(|malloc| malloc.ns.median);
        table.row([
            row.case.name().to_owned(),
            row.threads.to_string(),
            row.source.clone(),
            format!("{:.1}", row.ns.median),
            format!("({:.1}–{:.1})", row.ns.min, row.ns.max),
            row.instructions.map_or_else(String::new, |count| format!("{count:.1}")),
            malloc.map_or_else(String::new, |malloc| format!("{:.2}", row.ns.median / malloc)),
        ]);
    }
    let size = rows.first().map_or(0, |row| row.object_size);
    let mut note = format!(
        "objects of {size} bytes; median over the rounds, ns of CPU time per object and thread (a hot pair is an \
         allocation and its free; of a hand-over, the time from one object to the next)\n"
    );
    if rows.iter().all(|row| row.instructions.is_none()) {
        note += "instructions: neither CPU nor system count them for us here\n";
    }
    table.text(0, style.columns().max(120)) + &note
}
