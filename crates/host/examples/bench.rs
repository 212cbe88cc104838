//! `cargo run --release -p freehold-host --example bench -- [THREADS [quick]]`: what pages and objects cost on this machine,
//! with 1 to THREADS threads (default: as many as there are CPUs).

use freehold_host::bench::objects::{self, ObjectPlan};
use freehold_host::bench::{BenchPlan, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let threads = match arguments.next() {
        Some(threads) => threads.parse()?,
        None => std::thread::available_parallelism()?.get() as u32,
    };
    let plan = BenchPlan::up_to(threads);
    let plan = if arguments.next().as_deref() == Some("quick") { plan.quick() } else { plan };
    run(&plan, |row| println!("{row}"))?;
    let plan = ObjectPlan { rounds: plan.rounds, ..ObjectPlan::up_to(threads) };
    objects::run(&plan, |_| ())?.iter().for_each(|row| println!("{row}"));
    Ok(())
}
