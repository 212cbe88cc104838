//! The looks of a process's pages that it has before it, one after the other: each holds for as much own time of all of its tasks together as passed
//! in it when it was recorded. The tasks do not say when the next one begins: one that does little else than wait would be there at once.

/// Where a process is among its looks.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// Their numbers in the program, in order.
    looks: Vec<u32>,
    /// How many have begun.
    begun: usize,
    /// The process's own time when the last of them that has begun is over, ns.
    end_ns: u64,
}

/// A look that begins, with those before and after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Begins {
    pub(super) before: Option<u32>,
    pub(super) now: u32,
    pub(super) next: Option<u32>,
    /// The process's own time then, ns.
    pub(super) at_ns: u64,
}

impl Ahead {
    /// A task knows of these looks; each task knows of those of its life.
    pub(super) fn learn(&mut self, looks: impl Iterator<Item = u32>) {
        for look in looks {
            if self.looks.last().is_none_or(|last| *last < look) {
                self.looks.push(look);
            }
        }
    }

    /// The look that begins by the time that the process has had `age_ns` of own time, where each holds for `own_ns` of it; the first begins at once.
    pub(super) fn next(&mut self, age_ns: u64, own_ns: impl Fn(u32) -> u64) -> Option<Begins> {
        let now = *self.looks.get(self.begun)?;
        let at_ns = if self.begun == 0 { age_ns } else { self.end_ns };
        if at_ns > age_ns {
            return None;
        }
        let number = |index: Option<usize>| self.looks.get(index?).copied();
        let [before, next] = [self.begun.checked_sub(1), Some(self.begun + 1)].map(number);
        self.begun += 1;
        self.end_ns = at_ns + own_ns(now);
        Some(Begins { before, now, next, at_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_begins_when_those_before_it_have_had_their_time() {
        let mut ahead = Ahead::default();
        let own_ns = |look: u32| u64::from(look);
        assert_eq!(ahead.next(5, own_ns), None);
        // A second task knows of fewer, and of one more.
        ahead.learn([10, 20].into_iter());
        ahead.learn([20, 30].into_iter());
        let first = Begins { before: None, now: 10, next: Some(20), at_ns: 5 };
        assert_eq!(ahead.next(5, own_ns), Some(first));
        assert_eq!(ahead.next(14, own_ns), None, "whoever has got there");
        let second = Begins { before: Some(10), now: 20, next: Some(30), at_ns: 15 };
        let last = Begins { before: Some(20), now: 30, next: None, at_ns: 35 };
        assert_eq!(
            [15, 15, 90, 900].map(|age| ahead.next(age, own_ns)),
            [Some(second), None, Some(last), None]
        );
    }
}
