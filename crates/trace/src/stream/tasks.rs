//! Tasks: their numbers, whether they belong to the workload, and what the recording calls them.

use mm::TaskId;

use crate::event::Task;

/// Linux has no larger task numbers.
const TID_MAX: u32 = 1 << 22;

/// All tasks that were heard of.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// By task number: index into `entries` + 1, or 0.
    by_tid: Vec<u32>,
    entries: Vec<TaskEntry>,
    count: u32,
}

/// A task's number in the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbered {
    pub(crate) id: TaskId,
    /// Whether it has it since now.
    pub(crate) is_new: bool,
}

/// A task, whether or not the recording knows it.
#[derive(Clone, Debug, Default)]
struct TaskEntry {
    task: Task,
    /// Its number in the recording, once an event needed one.
    id: Option<TaskId>,
    has_ended: bool,
}

/// A reference to a task that was looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskRef(u32);

impl Tasks {
    /// The task numbered `tid`; one that was not heard of is made up with what is known. `None` for a number that
    /// cannot be.
    #[inline]
    pub(crate) fn look_up(&mut self, tid: u32) -> Option<TaskRef> {
        match self.by_tid.get(tid as usize) {
            Some(&index) if index > 0 => Some(TaskRef(index - 1)),
            _ => self.add(Task { tid, ..Task::default() }),
        }
    }

    /// Adds a task; one with the same number is forgotten, though what is recorded of it stays.
    pub(crate) fn add(&mut self, task: Task) -> Option<TaskRef> {
        let tid = task.tid as usize;
        if task.tid > TID_MAX {
            return None;
        }
        if tid >= self.by_tid.len() {
            self.by_tid.resize(tid + 1, 0);
        }
        self.entries.push(TaskEntry { task, id: None, has_ended: false });
        self.by_tid[tid] = self.entries.len() as u32;
        Some(TaskRef(self.entries.len() as u32 - 1))
    }

    /// What is known of a task.
    #[inline]
    pub(crate) fn get(&self, task: TaskRef) -> &Task {
        &self.entries[task.0 as usize].task
    }

    /// Whether a task belongs to the workload.
    #[inline]
    pub(crate) fn in_workload(&self, task: TaskRef) -> bool {
        self.get(task).in_workload
    }

    /// The task ends.
    pub(crate) fn end(&mut self, task: TaskRef) {
        self.entries[task.0 as usize].has_ended = true;
    }

    /// Whether it has.
    pub(crate) fn has_ended(&self, task: TaskRef) -> bool {
        self.entries[task.0 as usize].has_ended
    }

    /// Changes what is known of a task. Gives its number in the recording, if it has one and something changed.
    pub(crate) fn update(&mut self, task: TaskRef, change: impl FnOnce(&mut Task)) -> Option<TaskId> {
        let entry = &mut self.entries[task.0 as usize];
        let before = entry.task.clone();
        change(&mut entry.task);
        entry.id.filter(|_| entry.task != before)
    }

    /// The task's number in the recording.
    #[inline]
    pub(crate) fn id(&mut self, task: TaskRef) -> Numbered {
        let entry = &mut self.entries[task.0 as usize];
        if let Some(id) = entry.id {
            return Numbered { id, is_new: false };
        }
        let id = TaskId(self.count);
        entry.id = Some(id);
        self.count += 1;
        Numbered { id, is_new: true }
    }

    /// How many tasks the recording knows.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_comes_again_is_another_task() {
        let mut tasks = Tasks::default();
        let first = tasks.look_up(7).unwrap();
        assert_eq!(tasks.id(first), Numbered { id: TaskId(0), is_new: true });
        assert_eq!(tasks.id(first), Numbered { id: TaskId(0), is_new: false });
        assert_eq!(tasks.update(first, |task| task.name = "a".into()), Some(TaskId(0)));
        assert_eq!(tasks.update(first, |task| task.name = "a".into()), None);
        tasks.add(Task { tid: 7, in_workload: true, ..Task::default() });
        let second = tasks.look_up(7).unwrap();
        assert!(second != first && tasks.in_workload(second) && !tasks.in_workload(first));
        assert_eq!(tasks.id(second), Numbered { id: TaskId(1), is_new: true });
        assert_eq!(tasks.look_up(u32::MAX), None);
        assert_eq!(tasks.count(), 2);
    }
}
