//! When things happen in a scene: the capture says how long each line took, and when each mark was. Between these, accesses follow
//! each other evenly. It decides when statistics of groups are brought up to date and when daemons get the CPU, nothing else.

use std::collections::{BTreeMap, VecDeque};

use mm::Nanos;

use crate::conform::read::sections::Sections;

/// How long the recorder takes at a mark, after the time that it writes down: 22 to 23 ms in the captures at hand.
const A_MARK: u64 = 22_000_000;

/// Times of lines and marks.
#[derive(Debug, Default)]
pub(super) struct Clock {
    now: Nanos,
    /// By line of the scene, how long it took, each time.
    lines: BTreeMap<usize, VecDeque<u64>>,
    /// When the marks were, in ns.
    marks: VecDeque<u64>,
    /// The scene's line 1 in the file.
    first: usize,
}

/// A stretch of the clock that a line takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    start: Nanos,
    length: u64,
}

impl Clock {
    pub(super) fn new(sections: &Sections<'_>, marks: VecDeque<u64>) -> Self {
        let first = sections.get("scene").and_then(|scene| scene.lines.first()).map_or(1, |(line, _)| *line);
        let mut lines: BTreeMap<usize, VecDeque<u64>> = BTreeMap::new();
        for (_, text) in sections.get("log").map(|log| &log.lines[..]).unwrap_or_default() {
            if let Some((line, us)) = entry(text) {
                lines.entry(line).or_default().push_back(us * 1000);
            }
        }
        Self { now: Nanos(0), lines, marks, first }
    }

    /// What it shows.
    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    /// The line that stands at `number` of the file begins.
    pub(super) fn begin(&mut self, number: usize) -> Stretch {
        let line = (number + 1).saturating_sub(self.first);
        let length = self.lines.get_mut(&line).and_then(VecDeque::pop_front).unwrap_or(0);
        Stretch { start: self.now, length }
    }

    /// So many of `all` parts of `stretch` are over.
    pub(super) fn go_on(&mut self, stretch: Stretch, done: u64, all: u64) {
        let part = u128::from(stretch.length) * u128::from(done) / u128::from(all.max(1));
        self.now = self.now.max(Nanos(stretch.start.0 + part as u64));
    }

    /// The next mark is said.
    pub(super) fn mark(&mut self) {
        if let Some(at) = self.marks.pop_front() {
            self.now = self.now.max(Nanos(at + A_MARK));
        }
    }
}

/// `line 3: 117 us, 1 minor, 0 major faults`
fn entry(text: &str) -> Option<(usize, u64)> {
    let (line, rest) = text.strip_prefix("line ")?.split_once(": ")?;
    let (us, _) = rest.split_once(" us,")?;
    Some((line.parse().ok()?, us.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_as_long_as_the_log_says_each_time() {
        let text = "@@scene\n# a\nmap x\n@@log\nline 2: 5 us, 1 minor, 0 major faults\nline 2: 7 us, 0 minor, 0 major faults\n";
        let mut clock = Clock::new(&Sections::of(text), VecDeque::from([40_000]));
        let first = clock.begin(3);
        clock.go_on(first, 1, 2);
        assert_eq!(clock.now(), Nanos(2_500));
        clock.go_on(first, 2, 2);
        let second = clock.begin(3);
        clock.go_on(second, 1, 1);
        assert_eq!(clock.now(), Nanos(12_000));
        clock.mark();
        assert_eq!(clock.now(), Nanos(40_000 + A_MARK));
    }
}
