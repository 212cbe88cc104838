//! Any text as `/proc/PID/smaps`, cut into the three looks of a round, and what regions that makes over two rounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::heat::{parse, regions, total};

fuzz_target!(|text: &str| {
    let look = parse(text);
    let third = look.len() / 3;
    let round = [look[..third].to_vec(), look[third..2 * third].to_vec(), look[2 * third..].to_vec()];
    let rounds = [round, [look.clone(), look.clone(), look]];
    for region in regions(&rounds).iter().chain([&total(&rounds)]) {
        assert!(region.within.iter().all(|share| (0.0..=1.0).contains(share)), "{region:?}");
        assert!(region.within.is_sorted(), "{region:?}");
    }
});
