//! What simulating costs: a touch, a lock, a switch from one simulated CPU to another.
//!
//! Each figure is the CPU time of one operation inside a running task, engine and all.

use std::fs;
use std::time::Duration;

use criterion::Criterion;
use mm::{Access, Cpu, Line, LineKind, LockClass, Machine, Nanos, Span, Work};
use sim::{Profile, Sim, SimMachine, SimOptions, TaskSpec};

/// The time that `tasks` tasks take, one a CPU, that each do `count` times `what`.
fn run(tasks: u16, count: u64, what: fn(&SimMachine, u64, sim::SimLock)) -> Duration {
    let profile = Profile::load("epyc-7w83").expect("it comes along");
    let mut sim = Sim::new(&profile, SimOptions::default());
    let lock = sim.machine().new_lock(LockClass::Zone, 0);
    for cpu in 0..tasks {
        let machine = sim.machine();
        sim.spawn(TaskSpec::new("t").on(Cpu(cpu * 8)), move || {
            for n in 0..count {
                what(&machine, n, lock);
            }
        });
    }
    let start = cpu_time();
    sim.run(None).expect("it ends");
    cpu_time().saturating_sub(start) / u32::from(tasks)
}

/// This thread's time on a CPU, which other programs do not disturb as they do the clock.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let ns = stat.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.expect("it begins with a number"))
}

fn touch(machine: &SimMachine, kind: LineKind, index: u32) {
    machine.touch(Line { kind, index }, Access::Write);
}

fn engine(c: &mut Criterion) {
    let mut bench = |name: &str, tasks, what: fn(&SimMachine, u64, sim::SimLock)| {
        c.bench_function(name, |b| b.iter_custom(|count| run(tasks, count, what)));
    };
    bench("touch: a frame again", 1, |m, _, _| touch(m, LineKind::Frame, 1 << 20));
    bench("touch: frames in sequence", 1, |m, n, _| {
        touch(m, LineKind::Frame, (1 << 20) + (n & 0xf_ffff) as u32);
    });
    bench("touch: a pageset again", 1, |m, _, _| touch(m, LineKind::Pageset, 2048));
    bench("touch: zone counters, 10 CPUs", 10, |m, _, _| touch(m, LineKind::ZoneStat, 2));
    bench("span", 1, |m, _, _| {
        let since = m.enter(Span::PageAlloc);
        m.leave(Span::PageAlloc, since, Work { count: 1, ..Work::default() });
    });
    bench("lock and unlock, alone", 1, |m, _, lock| {
        m.lock(&lock);
        m.unlock(&lock);
    });
    bench("lock, 1 µs, unlock, 10 CPUs", 10, |m, _, lock| {
        m.lock(&lock);
        m.compute(Nanos(1000));
        m.unlock(&lock);
    });
    bench("compute 1 µs and sync, 10 CPUs", 10, |m, _, _| {
        m.compute(Nanos(1000));
        m.sync();
    });
    bench("compute 1 µs and sync, 16 CPUs", 16, |m, _, _| {
        m.compute(Nanos(1000));
        m.sync();
    });
}

fn config() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .without_plots()
}

fn main() {
    let mut criterion = config().configure_from_args();
    engine(&mut criterion);
    criterion.final_summary();
}
