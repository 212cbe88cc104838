//! The real memory manager on the simulated machine.

use std::rc::Rc;

use mm::{Knob, Knobs, LockClass, Mm, Nanos, Order, Pfn, Policy, Request, Span};
use sim::{Measurements, Profile, Sim, SimMachine, SimOptions, TaskSpec};

/// `tasks` tasks fault in `pages` pages each and free them in batches, `rounds` times.
fn page_loop(machine: &str, scale: u64, tasks: u32, pages: usize) -> (Measurements, Rc<Mm<SimMachine>>) {
    let profile = Profile::load(machine).unwrap();
    let mut sim = Sim::new(&profile, SimOptions::default());
    let policy = Policy::parse("linux-6.11").unwrap();
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
    sim.every(Nanos(mm.stat_interval_ns()), "vmstat", move || tick.vmstat_tick(mm::Machine::cpu(&here)));
    sim.run(None).unwrap();
    mm.check().unwrap();
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
