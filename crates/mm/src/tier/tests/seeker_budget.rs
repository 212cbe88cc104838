//! What freehold's promotion spends on looking: a share of one CPU, whatever there is to look at.

use proptest::prelude::*;

use super::super::*;
use super::world::*;
use crate::ground::{Nanos, Node, SpaceId};

/// The largest piece of work between two looks at the clock: a stride of 4096 pages.
const PIECE: u64 = 4096 * World::LOOK + World::RANGE;

/// Rounds whose share may be spent at once where it was not before, from the first round on.
const SAVED: u64 = 20;

/// Twenty seconds of rounds; gives the time spent within them. Nothing that is wanted is moved: it stays there to be found.
fn spent(world: &World, budget: Budget, spaces: u32) -> u64 {
    let mut seeker = Seeker::new(budget, 1);
    (0..spaces).for_each(|space| seeker.enter(SpaceId(space)));
    let mut spent = 0;
    while world.now().0 < 20_000 * MS {
        let start = world.now();
        let pause = seeker.round(world, 0, &mut |_| {});
        spent += world.now().0 - start.0;
        world.sleep(pause);
    }
    spent
}

fn runs() -> impl Strategy<Value = Vec<(u32, u32, u16, u64)>> {
    // Pages before and of an area, its node, and how often it is accessed, ms.
    prop::collection::vec((0..3 * GIB, 1..40_000u32, 0..3u16, 1..3000u64), 0..12)
}

proptest! {
    // A case is millions of looks.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn looking_stays_within_its_share(
        spaces in prop::collection::vec(runs(), 1..12),
        permille in 1..20u64,
        period_ms in prop::sample::select(&[20, 100, 500][..]),
    ) {
        let world = World::new();
        for (space, runs) in spaces.iter().enumerate() {
            let mut at = 0;
            for &(gap, count, node, every) in runs {
                let start = at + gap;
                at = start + count;
                world.area(space as u32, start, at);
                let access = Access { from: 0, until: u64::MAX, every: every * MS };
                world.map(space as u32, start, count, Node(node), access);
            }
        }
        let budget = Budget { period: Nanos(period_ms * MS), permille };
        let spent = spent(&world, budget, spaces.len() as u32);
        let share = (world.now().0 + SAVED * budget.period.0) / 1000 * permille;
        // What rounds may save up is there at the start.
        let saved = 20 * (budget.period.0 / 1000 * permille);
        prop_assert!(spent <= share + saved + PIECE, "{spent} ns, of {share}");
    }
}

#[test]
fn a_thousand_address_spaces_have_their_turns_within_the_budget() {
    let world = World::new();
    for space in 0..1000 {
        world.area(space, 0, 4 * MIB);
        world.map(space, 0, MIB, SLOW, Access::ALWAYS);
    }
    let budget = Budget { period: Nanos(100 * MS), permille: 10 };
    let mut seeker = Seeker::new(budget, 1);
    (0..1000).for_each(|space| seeker.enter(SpaceId(space)));
    let mut mover = Mover::new(Flush::EachBatch);
    let (mut found, mut spent) = (std::collections::BTreeSet::new(), 0);
    while world.now().0 < 60_000 * MS {
        let (start, mut wanted) = (world.now(), vec![]);
        let pause = seeker.round(&world, 0, &mut |page| wanted.push(page));
        spent += world.now().0 - start.0;
        for page in &wanted {
            found.insert(page.space);
            mover.work(&world, std::slice::from_ref(page));
        }
        world.sleep(pause);
    }
    assert!(spent <= (600 + SAVED) * MS + PIECE);
    assert!(found.len() >= 900, "{}", found.len());
}
