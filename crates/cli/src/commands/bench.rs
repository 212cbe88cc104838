//! `freehold bench`: ns per operation on this machine's cores and memory.

use std::thread::available_parallelism;

use host::bench::{Plan, Row};

use crate::args::{Bench, Global};
use crate::common::{Failure, Verdict, policy, print, style};
use crate::progress::Bar;

pub(crate) fn run(global: &Global, options: &Bench) -> Result<Verdict, Failure> {
    let threads = match options.threads {
        0 => available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let mut plan = Plan::up_to(threads as u32);
    plan.rounds = options.rounds;
    plan.policy = policy(&options.policy)?;
    plan.pages = (options.mib << 20 >> mm::ids::PAGE_SHIFT) as u32 / 4;
    let bar = Bar::new(global, 0);
    let rows = host::bench::run(&plan, |row| bar.step(format!("{} {}", row.source, row.case.name())));
    bar.done();
    let rows = rows.map_err(Failure::of)?;
    if global.json {
        print(&json(&rows)?);
    } else {
        print(&report::bench::table(style(), &rows));
    }
    Ok(Verdict::Fine)
}

fn json(rows: &[Row]) -> Result<String, Failure> {
    let rows: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| {
            serde_json::json!({
                "source": row.source,
                "case": row.case.name(),
                "order": row.order.get(),
                "threads": row.threads,
                "blocks": row.blocks,
                "ns": { "min": row.ns.min, "median": row.ns.median, "max": row.ns.max },
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rows).map_err(Failure::of)? + "\n")
}
