//! Simulations that are ended from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mm::{Cpu, Nanos};
use sim::{Ended, Profile, Sim, SimError, SimOptions, TaskSpec};

#[test]
fn a_sign_from_outside_ends_the_runs_of_its_thread() {
    let ended = |is_watched: bool| {
        let run = move || {
            let sign = Arc::new(AtomicBool::new(false));
            if is_watched {
                sim::stop_when(Arc::clone(&sign));
            }
            let mut sim = Sim::new(&Profile::load("epyc-7w83").unwrap(), SimOptions::default());
            // One alone is never taken up again.
            for cpu in [0, 1] {
                let machine = sim.machine();
                sim.spawn(TaskSpec::new("endless").on(Cpu(cpu)), move || {
                    loop {
                        machine.compute(Nanos(10_000));
                    }
                });
            }
            sim.on_pass(Nanos(5_000_000), move |_| {
                sign.store(true, Ordering::Relaxed);
                Nanos(u64::MAX / 2)
            });
            sim.run(Some(Nanos(50_000_000))).map(|summary| summary.ended)
        };
        std::thread::spawn(run).join().unwrap()
    };
    assert_eq!(ended(true), Err(SimError::Stopped));
    assert_eq!(ended(false), Ok(Ended::Limit), "nobody watched that sign");
}
