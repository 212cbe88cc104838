//! A node's kcompactd as a daemon: what it is asked for when it is woken, and what [`mm::Mm::compact_proactively`] finds to
//! do besides.

use mm::{Machine, Nanos, Node};

use crate::stage::Stage;

/// The daemon's life.
pub(crate) fn run(stage: &Stage, node: Node) -> ! {
    loop {
        stage.mm.kcompactd(node);
        let pause = stage.mm.compact_proactively(node);
        stage.machine().block(pause.unwrap_or(Nanos(u64::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use mm::ids::PAGEBLOCK_PAGES;
    use mm::vm::MapSpec;
    use mm::{Knob, Order, Pfn, Policy, Request, Urgency};
    use sim::{Profile, Sim, SimOptions, TaskSpec};

    use super::*;

    /// How much of free memory is in pieces, every 250 ms for 4 s, after a program has given back three pages of four of most
    /// of memory.
    fn scores(policy: &str, proactiveness: u64) -> Vec<u32> {
        let profile = Profile::load("kvm-genoa-2c").unwrap();
        let mut sim = Sim::new(&profile, SimOptions::default());
        let policy = Policy::parse(policy).unwrap();
        let mut knobs = vec![(Knob::MinFreeKbytes, 1024)];
        // Kernels before 5.9 have no such knob, and no such daemon.
        if policy.check_knob(Knob::CompactionProactiveness, proactiveness).is_ok() {
            knobs.push((Knob::CompactionProactiveness, proactiveness));
        }
        let stage = Rc::new(Stage::new(&sim, &profile, &policy, &knobs, &[]).unwrap());
        stage.spawn_daemons(&sim);
        let scores = Rc::new(RefCell::new(vec![]));
        let (seen, noted) = (Rc::clone(&stage), Rc::clone(&scores));
        sim.spawn(TaskSpec::new("program"), move || {
            let mm = &seen.mm;
            let space = mm.new_space();
            // What is left over is taken in whole blocks.
            let request = Request { urgency: Urgency::Never, ..Request::USER };
            let pages = 200 * PAGEBLOCK_PAGES;
            let start = mm.mmap(&space, MapSpec::anonymous(pages).small()).unwrap();
            mm.populate(&space, start, pages).unwrap();
            let blocks = std::iter::from_fn(|| mm.alloc(request.of_order(Order::PAGEBLOCK)).ok());
            let blocks: Vec<Pfn> = blocks.collect();
            for page in (0..pages).step_by(4) {
                mm.munmap(&space, start.add(page), 3);
            }
            for _ in 0..16 {
                seen.machine().sleep(Nanos(250_000_000));
                noted.borrow_mut().push(mm.fragmentation_score(Node(0)));
            }
            for block in blocks {
                mm.free(block, Order::PAGEBLOCK).unwrap();
            }
            mm.exit(&space);
        });
        sim.run(None).unwrap();
        stage.mm.check().unwrap();
        stage.mm.check_vm().unwrap();
        scores.take()
    }

    #[test]
    fn memory_in_pieces_is_put_together_by_the_daemon() {
        let without = scores("linux-6.18", 0);
        assert!(without.iter().all(|score| *score > 80), "{without:?}");
        // From 60 percent down to 50 of each zone.
        let with = scores("linux-6.18", 50);
        assert!(with[0] > 80 && with[15] <= 60, "{with:?}");
        let before = scores("linux-5.8", 50);
        assert!(before.iter().all(|score| *score > 80), "not before 5.9: {before:?}");
    }
}
