use mm::{Knob, Knobs, LockClass, Mm, Nanos, Order, Pfn, Policy, Request, Span};
use sim::{Level, Profile, Sim, SimOptions, TaskSpec};
use std::rc::Rc;
fn cpu_time() -> f64 {
    let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    s.split_whitespace().next().unwrap().parse::<f64>().unwrap()
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (name, scale, tasks, pages, rounds): (&str, u64, u32, usize, u32) =
        (&a[1], a[2].parse().unwrap(), a[3].parse().unwrap(), a[4].parse().unwrap(), a[5].parse().unwrap());
    let profile = Profile::load(name).unwrap();
    let t0 = cpu_time();
    let mut sim = Sim::new(&profile, SimOptions::default());
    let mm = Rc::new(
        Mm::new(sim.machine(), profile.topology(), Policy::parse("linux-6.11").unwrap(), Knobs::default())
            .unwrap(),
    );
    mm.set_knob(Knob::PcpBatchScaleMax, scale).unwrap();
    for number in 0..tasks {
        let (mm, machine) = (Rc::clone(&mm), sim.machine());
        sim.spawn(TaskSpec::new("t").at(Nanos(u64::from(number) * 77777)), move || {
            let mut taken: Vec<(Pfn, Order)> = Vec::with_capacity(pages);
            for _ in 0..rounds {
                for _ in 0..pages {
                    machine.charge(sim::Path::Fault);
                    let pfn = mm.alloc(Request { zero: true, ..Request::USER }).unwrap();
                    taken.push((pfn, Order::ZERO));
                }
                for batch in taken.chunks(31) {
                    mm.free_batch(batch).unwrap();
                }
                taken.clear();
            }
        });
    }
    let tick = Rc::clone(&mm);
    let here = sim.machine();
    sim.every(Nanos(mm.stat_interval_ns()), "vmstat", move || tick.vmstat_tick(mm::Machine::cpu(&here)));
    let t1 = cpu_time();
    let s = sim.run(None).unwrap();
    let t2 = cpu_time();
    let ops = f64::from(tasks) * pages as f64 * f64::from(rounds) * 2.0;
    println!(
        "setup {:.0} ms, run {:.0} ms, {:.1} ns/page op, {:.2} M ops/s, simulated {} ms, pages/s {:.0}",
        (t1 - t0) / 1e6,
        (t2 - t1) / 1e6,
        (t2 - t1) / ops,
        ops / (t2 - t1) * 1e3,
        s.now.0 / 1_000_000,
        ops / 2.0 / (s.now.0 as f64 / 1e9)
    );
    let m = sim.measurements();
    for span in [Span::Refill, Span::Drain, Span::PageAlloc, Span::PageFree] {
        let st = m.span(span);
        let c = m.cost(span);
        println!(
            "{}: n {} mean {} p99 {} pages/span {:.0}; zone hold mean {} ({:.1} ns/page) wait {} handover {}",
            span.name(),
            st.latency.count(),
            st.latency.mean().0,
            st.latency.percentile(990).0,
            st.pages() as f64 / st.latency.count() as f64,
            c.zone_hold.mean().0,
            c.zone_hold.total().0 as f64 / st.pages() as f64,
            c.waits[0].time.0 / st.latency.count().max(1),
            c.hand_overs.time.0 / st.latency.count().max(1)
        );
        for l in Level::ALL {
            let t = c.touches[l as usize];
            if t.count > 0 {
                print!(
                    "  {} {:.2}/page {:.1}ns",
                    l.name(),
                    t.count as f64 / st.pages() as f64,
                    t.time.0 as f64 / st.pages() as f64
                );
            }
        }
        println!(
            "  instr {:.1} mem {:.1} locktake {:.1}",
            c.instructions.time.0 as f64 / st.pages() as f64,
            c.memory.time.0 as f64 / st.pages() as f64,
            c.lock_taking.time.0 as f64 / st.pages() as f64
        );
    }
    println!(
        "zone {:?}\npcp {:?}\nyields {} switches {}",
        m.class(LockClass::Zone),
        m.class(LockClass::Pcp),
        m.yields,
        m.context_switches
    );
    println!(
        "{}",
        std::fs::read_to_string("/proc/self/status")
            .unwrap()
            .lines()
            .find(|l| l.starts_with("VmHWM"))
            .unwrap()
    );
}
