//! Machines that were fragmented: as seeded, as wanted, and in order.

use std::rc::Rc;

use mm::{Knob, MigrateType, Order, Policy};
use sim::{Profile, Sim, SimOptions};

use super::{Fragment, index_of, largest_zone};
use crate::stage::{GroupSetup, Setup, Stage};

const SPEC: Fragment = Fragment {
    seed: 1,
    kernel: 500,
    scattered: 100,
    huge: 2000,
    file: 3000,
    busy: 300,
    pinned: 1000,
    free: 600,
    index: 982,
};

/// The machine of Mel Gorman's SPECjbb with 1 GiB in each of its four nodes.
fn stage(policy: &str) -> (Sim, Rc<Stage>) {
    let text = Profile::load("westmere-ex").unwrap().to_toml();
    let profile = Profile::parse("small", &text.replace("memory_mib = 16384", "memory_mib = 1024")).unwrap();
    let sim = Sim::new(&profile, SimOptions::default());
    let policy = Policy::parse(policy).unwrap();
    let knobs = [(Knob::OvercommitMemory, 1)];
    let stage = Stage::new(
        &sim,
        &Setup {
            profile: &profile,
            policy: &policy,
            knobs: &knobs,
            built: &[],
            groups: GroupSetup::default(),
            cpus: &[],
            seed: 1,
        },
    )
    .unwrap();
    (sim, Rc::new(stage))
}

/// What /proc would say of memory.
fn seen(stage: &Stage) -> (String, String) {
    (stage.mm.views().buddyinfo(), stage.mm.views().pagetypeinfo())
}

#[test]
fn one_seed_gives_one_state_and_another_another() {
    let state = |seed| {
        let (_sim, stage) = stage("linux-3.16");
        Fragment { seed, ..SPEC }.apply(&stage).unwrap();
        stage.mm.views().check().unwrap();
        stage.mm.spaces().check_vm().unwrap();
        seen(&stage)
    };
    let first = state(1);
    assert_eq!(first, state(1));
    assert_ne!(first, state(2));
}

#[test]
fn free_memory_is_as_much_and_as_fragmented_as_wanted() {
    for policy in ["linux-3.15", "linux-6.18", "freehold"] {
        for (free, index) in [(600, 982), (1500, 980), (300, 988)] {
            let (_sim, stage) = stage(policy);
            let spec = Fragment { free, index, ..SPEC };
            let fragmented = spec.apply(&stage).unwrap();
            for remains in &fragmented.nodes {
                let off = remains.index - index as i32;
                assert!((-10..=5).contains(&off), "{policy}: {} in place of {index}", remains.index);
                let zone = largest_zone(&stage, remains.node).unwrap();
                let share = remains.free as f64 / f64::from(zone.managed()) * 10_000.0;
                assert!(
                    (f64::from(free) * 0.8..f64::from(free) * 1.7).contains(&share),
                    "{policy}: {share} of {free}"
                );
            }
        }
    }
}

#[test]
fn the_kernel_has_blocks_of_its_own_and_pages_in_those_of_others() {
    let (_sim, stage) = stage("linux-3.16");
    let fragmented = SPEC.apply(&stage).unwrap();
    let of_type = |wanted| {
        let kernel = fragmented.nodes.iter().flat_map(|node| &node.kernel);
        kernel.filter(|(pfn, _)| stage.mm.pages().pageblock(*pfn) == wanted).count()
    };
    assert!(of_type(MigrateType::Unmovable) > 10_000, "{}", of_type(MigrateType::Unmovable));
    // 1 % of 4 GiB, as far as holes in its own blocks were too few.
    assert!(of_type(MigrateType::Movable) > 1_000, "{}", of_type(MigrateType::Movable));
    // A tenth of the memory, and 3 % of the file, which is another 0.9 %; less the holes.
    let stay: u64 = fragmented.nodes.iter().map(|node| node.stay).sum();
    assert!((85_000..=125_000).contains(&stay), "{stay}");
}

#[test]
fn the_index_says_what_is_missing() {
    let mut blocks = [0; 11];
    assert_eq!(index_of(&blocks, Order::PAGEBLOCK), 0);
    blocks[0] = 512;
    // Pieces of a page each: as fragmented as it can be.
    assert_eq!(index_of(&blocks, Order::PAGEBLOCK), 997);
    blocks[0] = 0;
    blocks[8] = 1;
    // Half a block in one piece: memory is what is missing.
    assert_eq!(index_of(&blocks, Order::PAGEBLOCK), -500);
    blocks[10] = 1;
    assert_eq!(index_of(&blocks, Order::PAGEBLOCK), -1000);
}
