//! Scenes: small programs that ran alone on a stock kernel, with what it counted wherever they say `mark`. mm plays the
//! program on a machine of the same zones and must count the same: faults of the program, events of huge pages, and what
//! is resident of each region, by eighths.
//!
//! Played are regions of memory and of files, touches, calls, forks, advice, memory policies of regions, groups and their limits, swap, NUMA
//! balancing as a program runs, and khugepaged while it sleeps, with pages on classic lists or by generations. A scene is played up to the
//! first operation that is not (`spawn`, `vm.zone_reclaim_mode`), and its outcome says where that was. Up to the mark at
//! which memory was short for the first time figures must be equal; after it they stand beside each other with the error (`counted`).

mod balance;
mod clock;
mod compare;
mod counted;
mod daemons;
mod draws;
mod files;
mod machine;
mod play;
mod process;
mod program;
mod seen;
mod words;

use super::outcome::FileOutcome;
use super::read::sections::{FormatError, Sections};

/// Whether `text` is what a kernel said of a scene.
pub(super) fn is_scene(text: &str) -> bool {
    text.starts_with("# scene ")
}

/// How many operations and touches of pages are played: a scene says `repeat` as often as it likes.
const MOST_STEPS: u64 = 50_000_000;

/// Plays the scene of `text`, and compares.
///
/// # Errors
/// The line that cannot be read, or a kernel without rules.
pub(super) fn conform(text: &str) -> Result<FileOutcome, FormatError> {
    conform_within(text, MOST_STEPS)
}

fn conform_within(text: &str, most_steps: u64) -> Result<FileOutcome, FormatError> {
    let sections = Sections::of(text);
    let program = program::parse(sections.need("scene")?)?;
    let marks = compare::marks(text)?;
    let machine = machine::Played::new(&sections, &program)?;
    let clock = clock::Clock::new(&sections, compare::times(&marks));
    let seen = play::play(machine, clock, &program, most_steps)?;
    Ok(compare::compare(&sections, &marks, &seen))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::conform::unpack;

    /// A scene whose program goes on with `lines`.
    fn with(lines: &str) -> FileOutcome {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/scenes/thp-stride-never.txt.xz");
        let text = unpack(std::fs::read(path).unwrap()).unwrap();
        let (before, after) = text.split_once("\nmark").unwrap();
        conform_within(&format!("{before}\n{lines}\nmark{after}"), 100_000).unwrap()
    }

    #[test]
    fn what_would_never_end_is_cut() {
        for (lines, why) in [
            ("map x 4K\nrepeat 4000000000\ntouch x\nend", "more than 100000 steps are not played"),
            ("sleep 4000000000", "more than 100000 steps are not played"),
            ("map x 2G", "1000 regions of 1 GiB are the most that is played"),
        ] {
            let outcome = format!("{:?}", with(lines));
            assert!(outcome.contains(why), "{lines}: {outcome}");
        }
        // More than the region has: all of it.
        let outcome = format!("{:?}", with("map x 8K\ntouch x next 16K"));
        assert!(!outcome.contains("not played"), "{outcome}");
    }
}
