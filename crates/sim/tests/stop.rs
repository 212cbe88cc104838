//! Simulations that are ended from outside.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mm::{Cpu, LockClass, Machine, Nanos};
use sim::{Ended, Profile, Sim, SimError, SimLock, SimMachine, SimOptions, TaskSpec};

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

/// Gives its lock back when it is dropped, as the memory manager's guards do.
struct Held<'a>(&'a SimMachine, &'a SimLock);

impl<'a> Held<'a> {
    fn take(machine: &'a SimMachine, lock: &'a SimLock) -> Self {
        machine.lock(lock);
        Self(machine, lock)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.unlock(self.1);
    }
}

/// Tasks that are taken down hold locks since a moment that is later than the last task's clock, or wait for one.
#[test]
fn tasks_that_hold_locks_are_taken_down_at_any_moment() {
    for moment in 0..100 {
        let sign = Arc::new(AtomicBool::new(false));
        sim::stop_when(Arc::clone(&sign));
        let mut sim = Sim::new(&Profile::load("epyc-7w83").unwrap(), SimOptions::default());
        let shared = Rc::new(sim.machine().new_lock(LockClass::Zone, 0));
        for cpu in 0..6 {
            let (machine, shared) = (sim.machine(), Rc::clone(&shared));
            let own = machine.new_lock(LockClass::Pcp, cpu.into());
            sim.spawn(TaskSpec::new("holds two").on(Cpu(cpu)), move || {
                loop {
                    let _own = Held::take(&machine, &own);
                    machine.compute(Nanos(700 + 130 * u64::from(cpu)));
                    let _shared = Held::take(&machine, &shared);
                    machine.compute(Nanos(300));
                }
            });
        }
        sim.on_pass(Nanos(1_000_000 + 777 * moment), move |_| {
            sign.store(true, Ordering::Relaxed);
            Nanos(u64::MAX / 2)
        });
        assert_eq!(sim.run(None).map(|summary| summary.ended), Err(SimError::Stopped), "{moment}");
    }
}
