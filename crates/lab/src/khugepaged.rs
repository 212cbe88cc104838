//! khugepaged as a daemon: rounds with pauses as [`mm::Mm::khugepaged`] says, and sleep without a clock where no address space
//! may have huge pages.

use mm::{Machine, Nanos};

use crate::stage::Stage;

/// The daemon's life.
pub(crate) fn run(stage: &Stage) -> ! {
    loop {
        let pause = stage.mm.khugepaged();
        stage.machine().block(pause.unwrap_or(Nanos(u64::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use mm::ids::PAGEBLOCK_PAGES;
    use mm::vm::{MapSpec, Touch};
    use mm::{Order, Pfn, Policy, Request, Urgency};
    use sim::{Profile, Sim, SimOptions, TaskSpec};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// All that could be a huge page is taken while a task touches its memory, and given back a while later.
    #[test]
    fn a_huge_page_comes_a_minute_after_none_was_to_be_had() {
        let profile = Profile::load("kvm-genoa-2c").unwrap();
        let mut sim = Sim::new(&profile, SimOptions::default());
        let stage = Stage::new(&sim, &profile, &Policy::default(), &[], &[]).unwrap();
        let stage = Rc::new(stage);
        stage.spawn_daemons(&sim);
        let came = Rc::new(Cell::new(0));
        let (seen, at) = (Rc::clone(&stage), Rc::clone(&came));
        sim.spawn(TaskSpec::new("task"), move || {
            let mm = &seen.mm;
            let request = Request { urgency: Urgency::Atomic, ..Request::USER }.of_order(Order::PAGEBLOCK);
            let mut taken: Vec<Pfn> = std::iter::from_fn(|| mm.alloc(request).ok()).collect();
            // One that all but a page of is free is none any more.
            let broken = taken.pop().expect("memory");
            mm.pages().split(broken, Order::PAGEBLOCK).unwrap();
            (1..PAGEBLOCK_PAGES).for_each(|page| mm.free(broken.add(page), Order::ZERO).unwrap());
            let space = mm.new_space();
            let start = mm.mmap(&space, MapSpec::anonymous(PAGEBLOCK_PAGES)).unwrap();
            mm.touch_page(&space, start, Touch::Write).unwrap();
            assert_eq!((space.resident_pages(), space.huge_pages()), (1, 0));
            seen.machine().sleep(Nanos(15 * SECOND));
            for pfn in taken {
                mm.free(pfn, Order::PAGEBLOCK).unwrap();
            }
            while space.huge_pages() == 0 && seen.machine().now() < Nanos(200 * SECOND) {
                seen.machine().sleep(Nanos(SECOND));
            }
            at.set(seen.machine().now().0 / SECOND);
            mm.exit(&space);
            mm.free(broken, Order::ZERO).unwrap();
        });
        sim.run(None).unwrap();
        stage.mm.check().unwrap();
        assert_eq!(stage.mm.counters().get("thp_collapse_alloc_failed"), 1);
        // When it was woken the page was on its way still; 10 s later there was no huge page, a minute after that there was.
        assert!((70..73).contains(&came.get()), "{} s", came.get());
    }
}
