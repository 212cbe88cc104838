//! Scenes: small programs that ran alone on a stock kernel, with what it counted wherever they say `mark`. mm plays the
//! program on a machine of the same zones and must count the same: faults of the program, events of huge pages, and what
//! is resident of each region, by eighths.
//!
//! All operations of the language are played: regions of memory and of files, touches, calls, advice, processes beside each other and
//! whom they wait for, memory policies, groups and their limits, swap, settings, NUMA balancing as a program runs, and khugepaged while it
//! sleeps, with pages on classic lists or by generations. Zones begin with what was free by type (`types`), and kswapd and the
//! flusher take turns with the program where they have one CPU (`turns`). What the scene's program did not understand ended it, and so it does here; what a
//! call refused did not. A setting that nothing here stands for is told. Up to the mark at which memory was short for the first time
//! figures must be equal; after it they stand beside each other with the error (`counted`).

mod balance;
mod clock;
mod compare;
mod costs;
mod counted;
mod daemons;
mod doing;
mod elsewhere;
mod files;
mod flusher;
mod kcompactd;
mod machine;
mod memory;
mod oom;
mod play;
mod process;
mod seen;
mod settings;
mod trace;
mod trees;
mod turns;
mod types;
mod walks;

pub use trace::TraceRow;

use super::outcome::FileOutcome;
use super::read::sections::{FormatError, Sections};
use crate::script::program;

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

/// Plays the scene of `text`, and gives a row for each batch of reclaim and for each mark: what Linux tells by its tracepoints.
///
/// # Errors
/// The line that cannot be read, or a kernel without rules.
pub(super) fn trace(text: &str) -> Result<Vec<TraceRow>, FormatError> {
    let scene = Scene::of(text)?;
    scene.machine.daemons.trace.begin();
    Ok(play::play(scene.machine, scene.clock, scene.program, MOST_STEPS)?.trace)
}

fn conform_within(text: &str, most_steps: u64) -> Result<FileOutcome, FormatError> {
    let Scene { sections, marks, program, machine, clock } = Scene::of(text)?;
    let seen = play::play(machine, clock, program, most_steps)?;
    Ok(compare::compare(&sections, &marks, &seen))
}

/// A scene that is ready to be played.
struct Scene<'a> {
    sections: Sections<'a>,
    marks: Vec<compare::Mark<'a>>,
    program: Vec<program::Line>,
    machine: machine::Played,
    clock: clock::Clock,
}

impl<'a> Scene<'a> {
    fn of(text: &'a str) -> Result<Self, FormatError> {
        let sections = Sections::of(text);
        let program = program::parse(&sections.need("scene")?.lines);
        let marks = compare::marks(text)?;
        let machine = machine::Played::new(&sections, &program)?;
        let clock = clock::Clock::new(&sections, compare::times(&marks));
        Ok(Self { sections, marks, program, machine, clock })
    }
}

#[cfg(test)]
mod tests;
