//! The real memory manager on the simulated machine.

use std::rc::Rc;

use mm::{Knob, Knobs, LockClass, Mm, Nanos, Order, Pfn, Policy, Request, Span};
use sim::{Measurements, Profile, Sim, SimMachine, SimOptions, TaskSpec};

/// `tasks` tasks fault in `pages` pages each and free them in batches, `rounds` times.
fn page_loop(machine: &str, scale: u64, tasks: u32, pages: usize) -> (Measurements, Rc<Mm<SimMachine>>) {
    page_loop_under("linux-6.11", machine, scale, (tasks, pages))
}

fn page_loop_under(
    policy: &str,
    machine: &str,
    scale: u64,
    (tasks, pages): (u32, usize),
) -> (Measurements, Rc<Mm<SimMachine>>) {
    let profile = Profile::load(machine).unwrap();
    let policy = Policy::parse(policy).unwrap();
    let descriptor_bytes = policy.rules().lists.descriptor_bytes;
    let mut sim = Sim::new(&profile, SimOptions { descriptor_bytes, ..SimOptions::default() });
    let mm = Rc::new(Mm::new(sim.machine(), profile.topology(), policy, Knobs::default()).unwrap());
    mm.set_knob(Knob::PcpBatchScaleMax, scale).unwrap();
    for number in 0..tasks {
        let (mm, machine) = (Rc::clone(&mm), sim.machine());
        let spec = TaskSpec::new(format!("loop/{number}")).at(Nanos(u64::from(number) * 777));
        sim.spawn(spec, move || {
            for _ in 0..2 {
                let mut taken: Vec<(Pfn, Order)> = Vec::with_capacity(pages);
                for _ in 0..pages {
                    machine.charge(sim::Path::Fault);
                    let pfn = mm.alloc(Request { zero: true, ..Request::USER }).unwrap();
                    taken.push((pfn, Order::ZERO));
                }
                for batch in taken.chunks(31) {
                    mm.free_batch(batch).unwrap();
                }
            }
        });
    }
    let tick = Rc::clone(&mm);
    let here = sim.machine();
    let interval = Nanos(mm.pages().stat_interval_ns());
    sim.every(move || interval, "vmstat", move || tick.vmstat_tick(mm::Machine::cpu(&here)));
    sim.run(None).unwrap();
    mm.views().check().unwrap();
    (sim.measurements(), mm)
}

#[test]
fn a_smaller_scale_makes_refills_shorter_and_more() {
    let (five, _) = page_loop("epyc-7w83", 5, 10, 20_000);
    let (zero, _) = page_loop("epyc-7w83", 0, 10, 20_000);
    let refills = |measured: &Measurements| measured.span(Span::Refill);
    let (five, zero) = (refills(&five), refills(&zero));
    // Both took every page from the zone at least once.
    assert!(five.pages() >= 200_000 && zero.pages() >= 200_000, "{} {}", five.pages(), zero.pages());
    assert!(zero.latency.count() > 5 * five.latency.count());
    assert!(
        five.latency.mean().0 > 5 * zero.latency.mean().0,
        "{:?} {:?}",
        five.latency.mean(),
        zero.latency.mean()
    );
}

/// What freehold is for: value 0's latency or less, value 5's pages or more, hardly any waiting, as many huge pages.
#[test]
fn freehold_needs_no_choice_between_latency_and_throughput() {
    for machine in ["epyc-7w83", "xeon-8260-1n"] {
        let run = |policy, scale| page_loop_under(policy, machine, scale, (10, 70_000));
        let (five, five_mm) = run("linux-6.18", 5);
        let (zero, _) = run("linux-6.18", 0);
        let (ours, ours_mm) = run("freehold", 5);
        let refill = |measured: &Measurements| measured.span(Span::Refill).latency;
        assert!(refill(&ours).mean() <= refill(&zero).mean(), "{machine}");
        assert!(refill(&ours).percentile(990) <= refill(&zero).percentile(990), "{machine}");
        assert!(ours.simulated <= five.simulated, "{machine}: the same work takes no longer");
        let waited = |measured: &Measurements| measured.class(LockClass::Zone).wait.0;
        assert!(waited(&five) > 0 && waited(&ours) * 10 <= waited(&five), "{machine}: {}", waited(&ours));
        let large = |mm: &Mm<SimMachine>| {
            mm.drain_all();
            mm.views().free_blocks()[9] + 2 * mm.views().free_blocks()[10]
        };
        assert!(large(&ours_mm) >= large(&five_mm), "{machine}");
        let again = run("freehold", 0).0;
        assert_eq!(refill(&again), refill(&ours), "{machine}: repeated, and with another scale");
    }
}

#[test]
fn contention_is_seen_where_it_is() {
    let (alone, _) = page_loop("xeon-8260-1n", 5, 1, 20_000);
    let (ten, _) = page_loop("xeon-8260-1n", 5, 10, 20_000);
    assert_eq!(alone.class(LockClass::Zone).contended, 0);
    let zone = ten.class(LockClass::Zone);
    assert!(zone.contended > 0 && zone.wait.0 > 0, "{zone:?}");
    let refill = ten.cost(Span::Refill);
    assert_eq!(refill.zone_hold.count(), ten.span(Span::Refill).latency.count(), "one hold a refill");
    let touched: u64 = refill.touches.iter().map(|tally| tally.count).sum();
    assert!(touched > ten.span(Span::Refill).pages(), "each page's descriptor at least");
}
