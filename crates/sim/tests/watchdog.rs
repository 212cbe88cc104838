//! Runs whose simulated time stands still end with an error that says what every task does.

use std::time::Duration;

use mm::{Cpu, LockClass, Machine, Nanos, Span};
use sim::{Profile, Sim, SimError, SimOptions, Standstill, TaskSpec};

fn sim_with(still_events_max: u64, still_wall_max: Duration) -> Sim {
    let options = SimOptions { still_events_max, still_wall_max, ..SimOptions::default() };
    Sim::new(&Profile::load("xeon-8260").unwrap(), options)
}

const NEVER: Duration = Duration::from_secs(100_000);

/// A task that asks for the time for ever, among others that wait for it in every way.
fn stands_still(mut sim: Sim) -> SimError {
    let machine = sim.machine();
    let lock = machine.new_lock(LockClass::Zone, 7);
    let looping = sim.machine();
    sim.spawn(TaskSpec::new("looping").on(Cpu(0)), move || {
        looping.lock(&lock);
        looping.compute(Nanos(20_000));
        // So that the others come to what they do.
        looping.sync();
        let _since = looping.enter(Span::PageAlloc);
        while looping.now() < Nanos(1 << 40) {}
    });
    let queued = sim.machine();
    sim.spawn(TaskSpec::new("queued").on(Cpu(0)).at(Nanos(100)), move || queued.compute(Nanos(1)));
    let spinning = sim.machine();
    sim.spawn(TaskSpec::new("spinning").on(Cpu(1)).at(Nanos(5000)), move || {
        spinning.lock(&lock);
        spinning.unlock(&lock);
    });
    let computing = sim.machine();
    sim.spawn(TaskSpec::new("computing").on(Cpu(2)), move || computing.compute(Nanos(1 << 40)));
    let sleeping = sim.machine();
    sim.spawn(TaskSpec::new("sleeping").on(Cpu(3)), move || sleeping.sleep_until(Nanos(1_000_000)));
    let waiting = sim.machine();
    sim.spawn(TaskSpec::new("waiting").on(Cpu(4)), move || waiting.block(Nanos(u64::MAX)));
    sim.spawn(TaskSpec::new("ended"), || {});
    let daemon = sim.machine();
    sim.spawn_background(TaskSpec::new("daemon").on(Cpu(5)), move || daemon.block(Nanos(u64::MAX)));
    sim.run(None).expect_err("time stands still")
}

#[test]
fn events_without_progress_end_a_run_and_name_what_tasks_do() {
    let error = stands_still(sim_with(10_000, NEVER));
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn wall_time_without_progress_ends_a_run() {
    let error = stands_still(sim_with(u64::MAX, Duration::from_millis(20)));
    let SimError::Standstill { task, limit, tasks, .. } = &error else { panic!("{error}") };
    assert_eq!((task.as_str(), *limit), ("looping", Standstill::Wall(Duration::from_millis(20))));
    assert_eq!(tasks.len(), 7);
}

#[test]
fn tasks_that_only_wake_each_other_are_seen_too() {
    let mut sim = sim_with(10_000, NEVER);
    for name in ["one", "other"] {
        let machine = sim.machine();
        // Giving way to nobody takes no time, and neither does a wait that is already over.
        sim.spawn(TaskSpec::new(name), move || {
            loop {
                machine.yield_now();
                machine.unblock(machine.task());
                machine.block(Nanos(u64::MAX));
            }
        });
    }
    let error = sim.run(None).expect_err("time stands still");
    assert!(matches!(&error, SimError::Standstill { limit: Standstill::Events(10_000), .. }), "{error}");
}

#[test]
fn a_run_that_goes_on_is_let_alone() {
    let mut sim = sim_with(100, Duration::ZERO);
    let machine = sim.machine();
    sim.spawn(TaskSpec::new("slow"), move || {
        for _ in 0..10_000 {
            (0..50).for_each(|_| assert!(machine.now() < Nanos(1 << 40)));
            machine.compute(Nanos(1));
        }
    });
    sim.run(None).expect("it goes on");
}

#[test]
fn outside_of_tasks_time_may_stand_still() {
    let machine = sim_with(100, Duration::ZERO).machine();
    (0..1000).for_each(|_| assert_eq!(machine.now(), Nanos(0)));
}
