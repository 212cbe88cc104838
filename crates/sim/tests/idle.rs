//! CPUs with nothing to run, and the way out of that.

use mm::{Cpu, Nanos};
use sim::{CpuTime, Profile, Sim, SimOptions, TaskSpec};

const US: u64 = 1_000;

#[test]
fn leaving_idleness_takes_time_that_nobody_had_on_a_cpu() {
    let profile = Profile::load("kvm-genoa-2c").unwrap().to_toml();
    let slow = "wakeup_ns = { value = 40000.0, kind = \"estimated\", source = \"a test\" }";
    let line = profile.lines().find(|line| line.starts_with("wakeup_ns")).unwrap();
    let profile = Profile::parse("slow", &profile.replace(line, slow)).unwrap();
    let mut sim = Sim::new(&profile, SimOptions::default());
    let machine = sim.machine();
    sim.spawn(TaskSpec::new("sleeper").on(Cpu(0)), move || {
        for _ in 0..100 {
            machine.compute(Nanos(10 * US));
            machine.sleep(Nanos(100 * US));
        }
    });
    let summary = sim.run(None).unwrap();
    assert!(summary.now.0 > 14_900 * US, "each sleep is 40 us longer: {summary:?}");
    let CpuTime { busy, idle, .. } = sim.measurements().cpus[0];
    assert!((1_000 * US..1_100 * US).contains(&busy.0), "{busy:?}");
    assert!(idle.0 > 13_800 * US, "{idle:?}");
}
