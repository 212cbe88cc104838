//! What a run leaves behind when its last ordinary task has ended.

use std::cell::Cell;
use std::rc::Rc;

use mm::{Cpu, LockClass, Machine, Nanos};
use sim::{Ended, Profile, Sim, SimOptions, TaskSpec};

/// A daemon has a lock when the last task ends: it goes on until it has given it back, and not to its own end; the run's time is the task's.
#[test]
fn no_lock_is_held_by_a_daemon_after_the_end() {
    let mut sim = Sim::new(&Profile::load("xeon-8260-1n").unwrap(), SimOptions::default());
    let machine = sim.machine();
    let lock = Rc::new(machine.new_lock(LockClass::Pcp, 0));
    let rounds = Rc::new(Cell::new(0));
    let (daemon, held, counted) = (sim.machine(), Rc::clone(&lock), Rc::clone(&rounds));
    sim.spawn_background(TaskSpec::new("tick").on(Cpu(1)), move || {
        loop {
            daemon.lock(&held);
            daemon.compute(Nanos(1_000_000));
            counted.set(counted.get() + 1);
            daemon.unlock(&held);
            daemon.compute(Nanos(1_000_000));
        }
    });
    let task = sim.machine();
    sim.spawn(TaskSpec::new("task").on(Cpu(0)), move || task.compute(Nanos(400_000)));
    let summary = sim.run(None).unwrap();
    assert_eq!((summary.ended, rounds.get()), (Ended::AllTasks, 1));
    assert!(summary.now < Nanos(900_000), "{:?}", summary.now);
    machine.lock(&lock);
    machine.unlock(&lock);
}
