//! What a recording cannot answer: how much a program would have resident without huge pages that it had when it was attached to.

use mm::Knob;

use super::source::Source;
use crate::program::{HugeBefore, Program};
use crate::reach::Refusal;

/// Values of `transparent_hugepage.enabled`.
const NEVER: u64 = 0;
const ALWAYS: u64 = 1;
const MADVISE: u64 = 2;
/// Pages of a MiB.
const MIB: f64 = 256.0;

/// That one of the values that are `set` takes huge pages away which were there when the recording began.
pub(super) fn without_huge_pages(source: &Source, set: &[(Knob, u64)]) -> Option<Refusal> {
    let Source::Program(program) = source else { return None };
    let HugeBefore { pages, zeros } = program.huge_before;
    let stood = stood(program);
    let takes_away = |value: u64| value == NEVER || stood == ALWAYS && value == MADVISE;
    let of_huge = |knob: Knob| matches!(knob, Knob::TransparentHugepage | Knob::Hugepages2048kB);
    let (knob, _) = set.iter().find(|&&(knob, value)| of_huge(knob) && takes_away(value))?;
    (pages > 0).then(|| Refusal { knob: *knob, missing: missing(pages, zeros) })
}

/// What `transparent_hugepage.enabled` was while it was recorded.
fn stood(program: &Program) -> u64 {
    let knobs = &program.surroundings.knobs;
    let found = knobs.iter().find(|(knob, _)| *knob == Knob::TransparentHugepage);
    found.map_or(Knob::TransparentHugepage.spec().default, |(_, value)| *value)
}

fn missing(pages: u64, zeros: u64) -> String {
    let mib = |pages: u64| pages as f64 / MIB;
    format!(
        "{:.1} MiB were in huge pages when the recording began, and of these {:.1} to {:.1} MiB would be there without \
         (the first holds more than zeros); record the program from its start",
        mib(pages),
        mib(pages.saturating_sub(zeros)),
        mib(pages)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Surroundings;
    use std::sync::Arc;

    #[test]
    fn what_takes_huge_pages_away_that_were_there_is_refused_with_a_bound() {
        let asked = |stood: u64, value: u64, pages: u64| {
            let knob = Knob::TransparentHugepage;
            let surroundings = Surroundings { knobs: vec![(knob, stood)], ..Surroundings::default() };
            let huge_before = HugeBefore { pages, zeros: 128 };
            let program = Program { huge_before, surroundings, ..Program::default() };
            without_huge_pages(&Source::Program(Arc::new(program)), &[(knob, value)])
        };
        let text = asked(ALWAYS, NEVER, 1024).unwrap().to_string();
        assert!(text.contains("4.0 MiB were in huge pages") && text.contains("3.5 to 4.0 MiB"), "{text}");
        assert!(asked(ALWAYS, MADVISE, 512).is_some(), "nobody asked for these");
        assert!(asked(MADVISE, MADVISE, 512).is_none() && asked(MADVISE, ALWAYS, 512).is_none());
        assert!(asked(ALWAYS, NEVER, 0).is_none(), "there were none");
        let program = Program { huge_before: HugeBefore { pages: 512, zeros: 0 }, ..Program::default() };
        let by_their_own =
            without_huge_pages(&Source::Program(Arc::new(program)), &[(Knob::Hugepages2048kB, NEVER)]);
        assert_eq!(by_their_own.map(|refusal| refusal.knob), Some(Knob::Hugepages2048kB));
    }
}
