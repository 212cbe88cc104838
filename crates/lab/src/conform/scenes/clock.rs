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
    /// By label, when the marks were that are to come, in ns.
    marks: BTreeMap<String, VecDeque<u64>>,
    /// The scene's line 1 in the file.
    first: usize,
}

/// A stretch of the clock that a line takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretch {
    start: Nanos,
    length: u64,
}

impl Clock {
    pub(super) fn new(sections: &Sections<'_>, marks: BTreeMap<String, VecDeque<u64>>) -> Self {
        let scene = sections.get("scene").map(|scene| &scene.lines[..]).unwrap_or_default();
        let first = scene.first().map_or(1, |(line, _)| *line);
        let mut lines: BTreeMap<usize, VecDeque<u64>> = BTreeMap::new();
        for (_, text) in sections.get("log").map(|log| &log.lines[..]).unwrap_or_default() {
            if let Some((line, us)) = entry(text) {
                lines.entry(line).or_default().push_back(us.saturating_mul(1000));
            }
        }
        let before: u64 = top_lines(scene.iter().map(|(_, text)| *text))
            .filter_map(|line| lines.get(&line).and_then(VecDeque::front))
            .sum();
        let first_mark = marks.values().flatten().min().copied().unwrap_or(0);
        Self { now: Nanos(first_mark.saturating_sub(before)), lines, marks, first }
    }

    /// What it shows.
    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    /// It shows `at`, if it does not show more.
    pub(super) fn pass_to(&mut self, at: Nanos) {
        self.now = self.now.max(at);
    }

    /// The line that stands at `number` of the file begins at `start`. Of one that the kernel's program did not come to the end
    /// of, the end is `until` or, earlier, the next mark.
    pub(super) fn begin(&mut self, number: usize, start: Nanos, until: Option<Nanos>) -> Stretch {
        let line = (number + 1).saturating_sub(self.first);
        let length = self.lines.get_mut(&line).and_then(VecDeque::pop_front);
        let next = || {
            let marks = self.marks.values().flatten().map(|at| Nanos(*at));
            let ends = marks.chain(until).filter(|end| *end > start).min();
            ends.map_or(0, |end| end.0 - start.0)
        };
        Stretch { start, length: length.unwrap_or_else(next) }
    }

    /// A mark is said at `at` of a process's time: when that is.
    pub(super) fn mark(&mut self, label: &str, at: Nanos) -> Nanos {
        let said = self.marks.get_mut(label).and_then(VecDeque::pop_front);
        said.map_or(at, |said| at.max(Nanos(said.saturating_add(A_MARK))))
    }
}

impl Stretch {
    /// When so many of `all` parts of it are over.
    pub(super) fn after(self, done: u64, all: u64) -> Nanos {
        let part = u128::from(self.length) * u128::from(done) / u128::from(all.max(1));
        Nanos(self.start.0.saturating_add(part as u64))
    }
}

/// Lines of a scene before the first that makes a mark, those inside of others left out.
fn top_lines<'a>(scene: impl Iterator<Item = &'a str>) -> impl Iterator<Item = usize> {
    let mut depth = 0_u32;
    let words = scene.map(|text| text.split_whitespace().next().unwrap_or_default());
    let before = (1..).zip(words).take_while(|(_, word)| *word != "mark");
    before.filter_map(move |(line, word)| {
        let at = depth;
        match word {
            "fork" | "spawn" | "repeat" => depth += 1,
            "end" => depth = depth.saturating_sub(1),
            _ => {}
        }
        (at == 0 && word != "end").then_some(line)
    })
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
        let marks = BTreeMap::from([("a".to_owned(), VecDeque::from([40_000, 90_000_000]))]);
        let mut clock = Clock::new(&Sections::of(text), marks);
        let first = clock.begin(3, Nanos(0), None);
        assert_eq!([first.after(1, 2), first.after(2, 2)], [Nanos(2_500), Nanos(5_000)]);
        assert_eq!(clock.begin(3, Nanos(5_000), None).after(1, 1), Nanos(12_000));
        assert_eq!(clock.mark("a", Nanos(12_000)), Nanos(40_000 + A_MARK));
        // Nothing is known of a third time: it is over with the next mark, or before that.
        assert_eq!(clock.begin(3, Nanos(50_000), None).after(1, 1), Nanos(90_000_000));
        assert_eq!(clock.begin(3, Nanos(50_000), Some(Nanos(60_000))).after(1, 1), Nanos(60_000));
    }

    #[test]
    fn a_scene_begins_as_long_before_its_first_mark_as_its_lines_took() {
        let text = "@@scene\n# a\nrepeat 2\ntouch x\nend\nmark a\ntouch x\n\
                    @@log\nline 3: 5 us, 1 minor, 0 major faults\nline 3: 7 us, 1 minor, 0 major faults\n\
                    line 2: 12 us, 2 minor, 0 major faults\nline 6: 9 us, 0 minor, 0 major faults\n";
        let marks = BTreeMap::from([("a".to_owned(), VecDeque::from([40_000]))]);
        assert_eq!(Clock::new(&Sections::of(text), marks).now(), Nanos(28_000));
        assert_eq!(Clock::new(&Sections::of(text), BTreeMap::new()).now(), Nanos(0));
    }
}
