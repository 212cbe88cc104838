//! `freehold bench`: ns per operation on this machine's cores and memory; `freehold bench contention`: policies against
//! each other.

use std::thread::available_parallelism;
use std::time::Duration;

use host::bench::contention::{self, Variant};
use host::bench::objects::{self, ObjectPlan, ObjectRow};
use host::bench::{BenchFigure, BenchPlan, RoundSpread};
use host::probe::Hardware;

use crate::args::{Bench, BenchWhat, Contention, Global};
use crate::common::{CommandVerdict, Failure, command_line, knob, policy, present, show};
use crate::progress::Bar;

pub(crate) fn run(global: &Global, options: &Bench) -> Result<CommandVerdict, Failure> {
    match &options.what {
        None => operations(global, options),
        Some(BenchWhat::Contention(options)) => contend(global, options),
    }
}

/// Policies where threads want the same lock.
fn contend(global: &Global, options: &Contention) -> Result<CommandVerdict, Failure> {
    let cpus = host::probe::allowed().map_or(1, |cpus| cpus.len() as u32);
    let mut threads = if options.threads.is_empty() { vec![cpus] } else { options.threads.clone() };
    threads.push(1);
    threads.sort_unstable();
    threads.dedup();
    let plan = contention::ContentionPlan {
        threads,
        variants: contenders(options)?,
        pages: options.pages,
        rounds: options.rounds,
        slice: Duration::from_millis(options.slice_ms),
    };
    let refused = lab::this_machine::contention::refusals(&plan, &plan.topology().map_err(Failure::of)?);
    if let Some(refusal) = refused.iter().flatten().next().filter(|_| !options.force) {
        return Err(Failure::of(format!("{refusal}; --force measures it all the same")));
    }
    let slices = plan.threads.len() * plan.variants.len() * plan.rounds as usize;
    let bar = Bar::new(global, slices as u64);
    let name = |variant: usize| plan.variants[variant].policy.name().to_owned();
    let outcome = contention::run(&plan, |slice| {
        bar.step(format!("{}, {} threads", name(slice.variant), slice.threads));
    });
    bar.done();
    let outcome = outcome.map_err(Failure::of)?;
    let mut document =
        lab::this_machine::contention::document(command_line(), &plan, &outcome, &Hardware::this());
    lab::this_machine::contention::mark_forced(&mut document, &plan, &refused);
    present(global, &document, |style| report::contention::text(style, &document))?;
    Ok(match report::shortfall::line(&document.runs) {
        Some(short) => {
            eprintln!("freehold: {short}");
            CommandVerdict::FellShort
        }
        None => CommandVerdict::Fine,
    })
}

/// What is set against each other.
fn contenders(options: &Contention) -> Result<Vec<Variant>, Failure> {
    let settings = knob(lab::replay::parse_settings_of_all(&options.set))?;
    let mut policies = options.policy.iter().map(|name| policy(name)).collect::<Result<Vec<_>, _>>()?;
    if policies.is_empty() {
        if settings.is_empty() {
            return Ok(lab::this_machine::contention::default_variants());
        }
        for variant in lab::this_machine::contention::default_variants() {
            if !policies.contains(&variant.policy) {
                policies.push(variant.policy);
            }
        }
    }
    Ok(lab::this_machine::contention::variants(&policies, &settings))
}

/// What an allocation and a free cost.
fn operations(global: &Global, options: &Bench) -> Result<CommandVerdict, Failure> {
    let threads = match options.threads {
        0 => available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let mut plan = BenchPlan::up_to(threads as u32);
    plan.rounds = options.rounds;
    plan.policy = policy(&options.policy)?;
    plan.pages = (options.mib << 20 >> mm::ids::PAGE_SHIFT) as u32 / 4;
    let mut object_plan = ObjectPlan::up_to(threads as u32);
    object_plan.rounds = options.rounds;
    if !object_plan.policies.contains(&plan.policy) {
        object_plan.policies.push(plan.policy.clone());
    }
    let bar = Bar::new(global, 0);
    let rows = host::bench::run(&plan, |row| bar.step(format!("{} {}", row.source, row.case.name())));
    let objects = objects::run(&object_plan, |source| bar.step(format!("{source}, objects")));
    bar.done();
    let (rows, objects) = (rows.map_err(Failure::of)?, objects.map_err(Failure::of)?);
    show(global, "The allocator on this machine's cores", &json(&rows, &objects), |style| {
        format!("{}\n{}", report::bench::table(style, &rows), report::bench::objects(style, &objects))
    })?;
    Ok(CommandVerdict::Fine)
}

/// Pages first, then objects, which have bytes in the place of an order.
fn json(rows: &[BenchFigure], objects: &[ObjectRow]) -> serde_json::Value {
    let spread = |ns: &RoundSpread| serde_json::json!({ "min": ns.min, "median": ns.median, "max": ns.max });
    let pages = rows.iter().map(|row| {
        serde_json::json!({
            "source": row.source,
            "case": row.case.name(),
            "order": row.order.get(),
            "threads": row.threads,
            "blocks": row.blocks,
            "ns": spread(&row.ns),
        })
    });
    let objects = objects.iter().map(|row| {
        serde_json::json!({
            "source": row.source,
            "case": row.case.name(),
            "bytes": row.object_size,
            "threads": row.threads,
            "objects": row.objects,
            "ns": spread(&row.ns),
            "instructions": row.instructions,
        })
    });
    serde_json::json!({ "operations": pages.chain(objects).collect::<Vec<_>>() })
}
