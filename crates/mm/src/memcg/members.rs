//! Which group a task is in, and what it owes for `memory.high`: read at each charge without a lock, as the kernel reads a task's
//! own group under RCU.

use alloc::boxed::Box;

use super::GroupId;
use crate::ground::{AtomicU32, AtomicU64, Once, Relaxed, TaskId};

/// Tasks of the first chunk; each further chunk has twice as many.
const FIRST: u32 = 64;
/// Chunks: room for 2^20 tasks and some. Numbers beyond are no tasks of the machine's and are at home.
const CHUNKS: usize = 15;
/// The group's number and one more, in a task's word; 0: nobody said where it is.
const GROUP: u64 = 0xffff;
/// Above that: pages that were charged while its group was over `high` since it last reclaimed for that.
const OWED_SHIFT: u32 = 32;

/// A word a task, in chunks that are made when a task of theirs first joins a group or owes something.
#[derive(Debug)]
pub(super) struct Members {
    chunks: [Once<Box<[AtomicU64]>>; CHUNKS],
    /// The group of tasks of which nothing was said.
    home: AtomicU32,
}

/// Where a task's word is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    chunk: usize,
    at: usize,
}

impl Place {
    fn of(task: TaskId) -> Option<Self> {
        let chunk = (task.0 / FIRST + 1).ilog2();
        let before = FIRST * ((1 << chunk) - 1);
        ((chunk as usize) < CHUNKS).then(|| Self { chunk: chunk as usize, at: (task.0 - before) as usize })
    }
}

impl Members {
    /// All tasks are in the root.
    pub(super) fn new() -> Self {
        Self { chunks: Default::default(), home: AtomicU32::new(0) }
    }

    #[inline]
    fn word(&self, task: TaskId) -> Option<&AtomicU64> {
        let place = Place::of(task)?;
        self.chunks[place.chunk].get()?.get(place.at)
    }

    fn word_made(&self, task: TaskId) -> Option<&AtomicU64> {
        let place = Place::of(task)?;
        let make = || (0..FIRST << place.chunk).map(|_| AtomicU64::new(0)).collect();
        self.chunks[place.chunk].get_or(make).get(place.at)
    }

    /// The group of `task`.
    #[inline]
    pub(super) fn group(&self, task: TaskId) -> GroupId {
        match self.word(task).map_or(0, |word| word.load(Relaxed) & GROUP) {
            0 => GroupId(self.home.load(Relaxed) as u16),
            said => GroupId((said - 1) as u16),
        }
    }

    /// `task` is in `group` from now on, and owes nothing.
    pub(super) fn join(&self, task: TaskId, group: GroupId) {
        if let Some(word) = self.word_made(task) {
            word.store(u64::from(group.0) + 1, Relaxed);
        }
    }

    /// `task` is gone: another of its number would be at home.
    pub(super) fn leave(&self, task: TaskId) {
        if let Some(word) = self.word(task) {
            word.store(0, Relaxed);
        }
    }

    /// Tasks of which nothing is said are in `group` from now on.
    pub(super) fn set_home(&self, group: GroupId) {
        self.home.store(group.0.into(), Relaxed);
    }

    /// `task` owes `pages` more; gives what it owes now.
    pub(super) fn owe(&self, task: TaskId, pages: u32) -> u32 {
        let Some(word) = self.word_made(task) else { return 0 };
        let more = u64::from(pages) << OWED_SHIFT;
        (word.fetch_add(more, Relaxed).wrapping_add(more) >> OWED_SHIFT) as u32
    }

    /// What `task` owes, which is nothing then.
    #[inline]
    pub(super) fn take_owed(&self, task: TaskId) -> u32 {
        let Some(word) = self.word(task) else { return 0 };
        if word.load(Relaxed) >> OWED_SHIFT == 0 {
            return 0;
        }
        (word.fetch_and(GROUP, Relaxed) >> OWED_SHIFT) as u32
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn each_task_has_a_place_of_its_own() {
        let places: Vec<Place> = (0..20_000).filter_map(|task| Place::of(TaskId(task))).collect();
        assert_eq!((places.len(), places[0]), (20_000, Place { chunk: 0, at: 0 }));
        let follows = |pair: &[Place]| match (pair[0], pair[1]) {
            (one, next) if one.chunk == next.chunk => next.at == one.at + 1,
            (one, next) => next == Place { chunk: one.chunk + 1, at: 0 } && one.at + 1 == 64 << one.chunk,
        };
        assert!(places.windows(2).all(follows));
        assert_eq!(Place::of(TaskId(u32::MAX)), None);
    }

    #[test]
    fn who_says_nothing_is_at_home_and_who_leaves_goes_there() {
        let members = Members::new();
        let [one, other] = [TaskId(3), TaskId(900)];
        members.join(one, GroupId(2));
        members.set_home(GroupId(7));
        assert_eq!([one, other, TaskId(u32::MAX)].map(|task| members.group(task).0), [2, 7, 7]);
        assert_eq!([members.owe(one, 64), members.owe(one, 6), members.owe(other, 5)], [64, 70, 5]);
        assert_eq!((members.group(one).0, members.group(other).0), (2, 7), "what is owed changes no group");
        assert_eq!([members.take_owed(one), members.take_owed(one)], [70, 0]);
        members.leave(one);
        assert_eq!((members.group(one).0, members.take_owed(other)), (7, 5));
        members.join(other, GroupId::ROOT);
        assert_eq!(members.group(other), GroupId::ROOT);
    }
}
