//! Every short life of a small zone: all sequences of allocations and frees up to a depth. Whatever happened, when all
//! is freed the free lists are those of boot.
#![cfg(not(shuttle))]

mod common;

use common::{Model, free_blocks, order, small, small_divided};
use freehold_mm::{MigrateType, Order, Pfn, Request};

/// Enumerates all sequences of choices: each run asks `below` some times, and the next run takes the next branch.
#[derive(Default)]
struct Choices {
    /// What was chosen, of how many.
    made: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        if self.at == self.made.len() {
            self.made.push((0, limit));
        }
        let (chosen, before) = self.made[self.at];
        assert_eq!(before, limit, "a run that is repeated asks the same");
        self.at += 1;
        chosen
    }

    /// Goes on to the next sequence; says whether there is one.
    fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, limit)) = self.made.pop() {
            if chosen + 1 < limit {
                self.made.push((chosen + 1, limit));
                return true;
            }
        }
        false
    }
}

/// A zone and what its users ask for.
struct Case {
    start: u32,
    pages: u32,
    policy: &'static str,
    arenas: u64,
    asks: &'static [(u8, MigrateType)],
    depth: usize,
}

impl Case {
    fn model(&self) -> Model {
        small_divided(self.start, self.pages, 1, self.policy, self.arenas)
    }
}

/// Runs every sequence of `case`; gives how many there are.
fn all_sequences(case: &Case) -> u32 {
    let mut choices = Choices::default();
    let boot = free_blocks(&case.model().mm);
    let mut sequences = 0;
    loop {
        let mut model = case.model();
        for _ in 0..case.depth {
            let chosen = choices.below(case.asks.len() + model.held.len());
            match case.asks.get(chosen) {
                Some(&(size, migratetype)) => {
                    let request = Request { migratetype, ..Request::KERNEL }.of_order(order(size));
                    let _ = model.alloc(request);
                }
                None => model.free(model.pick(chosen - case.asks.len()).unwrap()),
            }
            model.mm.views().check().unwrap();
        }
        model.free_all();
        model.mm.drain_all();
        model.check();
        assert_eq!(free_blocks(&model.mm), boot, "after {:?}", choices.made);
        sequences += 1;
        if !choices.next() {
            return sequences;
        }
    }
}

const MOVABLE: MigrateType = MigrateType::Movable;
const UNMOVABLE: MigrateType = MigrateType::Unmovable;

#[test]
fn sixteen_frames_without_page_lists() {
    // Before 5.14 only order 0 goes through page lists.
    let asks = &[(1, MOVABLE), (2, MOVABLE), (3, MOVABLE)];
    let case = Case { start: 0, pages: 16, policy: "linux-5.10", arenas: 1, asks, depth: 7 };
    assert!(all_sequences(&case) > 20_000);
}

#[test]
fn sixteen_frames_with_page_lists() {
    let asks = &[(0, MOVABLE), (1, UNMOVABLE), (3, MOVABLE)];
    let case = Case { start: 0, pages: 16, policy: "linux-6.18", arenas: 1, asks, depth: 7 };
    assert!(all_sequences(&case) > 20_000);
}

#[test]
fn forty_frames_from_an_odd_one() {
    let asks = &[(0, UNMOVABLE), (2, MOVABLE), (4, UNMOVABLE)];
    let case = Case { start: 7, pages: 40, policy: "linux-5.10", arenas: 1, asks, depth: 7 };
    assert!(all_sequences(&case) > 20_000);
}

#[test]
fn sixty_four_frames_of_three_types() {
    let asks = &[(0, UNMOVABLE), (3, MigrateType::Reclaimable), (5, MOVABLE)];
    let case = Case { start: 64, pages: 64, policy: "linux-6.18", arenas: 1, asks, depth: 7 };
    assert!(all_sequences(&case) > 20_000);
}

/// Blocks that only one arena has, and blocks for which it takes all of them.
const LARGE: &[(u8, MigrateType)] = &[(10, MOVABLE), (9, UNMOVABLE), (4, MOVABLE), (0, UNMOVABLE)];

#[test]
fn three_arenas_that_borrow() {
    let case = Case { start: 0, pages: 3072, policy: "linux-6.18+arenas", arenas: 3, asks: LARGE, depth: 5 };
    assert!(all_sequences(&case) > 1000);
}

#[test]
fn three_zones_that_do_not() {
    let case = Case { start: 0, pages: 3072, policy: "linux-6.18+zones", arenas: 3, asks: LARGE, depth: 5 };
    assert!(all_sequences(&case) > 1000);
}

#[test]
fn two_arenas_of_an_odd_zone() {
    let case = Case { start: 700, pages: 2600, policy: "freehold", arenas: 2, asks: LARGE, depth: 5 };
    assert!(all_sequences(&case) > 1000);
}

#[test]
fn four_pairs_in_every_order() {
    // Each merge meets each state of its buddy.
    let mut choices = Choices::default();
    let boot = free_blocks(&small(0, 8, 1, "linux-5.10").mm);
    loop {
        let mut model = small(0, 8, 1, "linux-5.10");
        let pair = Request::USER.of_order(order(1));
        while model.alloc(pair).is_ok() {}
        assert_eq!(model.held.len(), 4);
        while !model.held.is_empty() {
            let chosen = choices.below(model.held.len());
            model.free(model.pick(chosen).unwrap());
            model.mm.views().check().unwrap();
        }
        assert_eq!(free_blocks(&model.mm), boot);
        assert!(model.mm.free(Pfn(0), Order::ZERO).is_err(), "freed already");
        if !choices.next() {
            break;
        }
    }
}
