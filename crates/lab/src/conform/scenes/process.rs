//! A process of a scene: its names, which are regions or files, its group and generators, and where it is in the program.

use std::sync::Arc;

use mm::mempolicy::{InterleaveCursor, MemPolicy};
use mm::vm::AddressSpace;
use mm::{Bare, Cpu, GroupId, Nanos, TaskId};

use super::balance::Hints;
use super::doing::Doing;
use super::play::At;
use crate::script::names::Names;

/// Lines that are being run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The next line, the first of them, and the one behind the last.
    pub(super) at: usize,
    pub(super) from: usize,
    pub(super) end: usize,
    /// Times more.
    pub(super) left: u64,
    /// The line that said so.
    pub(super) line: Option<At>,
}

/// What a process waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waits {
    For(TaskId),
    ForAll,
}

/// What it did first of things that touch pages of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own {
    pub(super) has_logged: bool,
    pub(super) has_drawn: bool,
}

pub(super) struct Process {
    pub(super) task: TaskId,
    pub(super) parent: Option<TaskId>,
    pub(super) space: Arc<AddressSpace<Bare>>,
    pub(super) names: Names<Bare>,
    pub(super) last: Option<(u64, u64)>,
    pub(super) has_slept: bool,
    pub(super) own: Own,
    pub(super) group: GroupId,
    pub(super) policy: MemPolicy,
    pub(super) turn: InterleaveCursor,
    pub(super) cpu: Cpu,
    pub(super) is_pinned: bool,
    /// What it added to `oom_score_adj`.
    pub(super) score: i64,
    pub(super) hints: Hints,
    pub(super) blocks: Vec<Block>,
    pub(super) doing: Option<Doing>,
    pub(super) waits: Option<Waits>,
    /// How far it is.
    pub(super) at: Nanos,
    /// When it ended at the latest, if that is known.
    pub(super) ends: Option<Nanos>,
}

impl Process {
    pub(super) fn new(task: TaskId, space: Arc<AddressSpace<Bare>>, group: GroupId, hints: Hints) -> Self {
        Self {
            task,
            parent: None,
            space,
            names: Names::default(),
            last: None,
            has_slept: false,
            own: Own::default(),
            group,
            policy: MemPolicy::Local,
            turn: InterleaveCursor::default(),
            cpu: Cpu(0),
            is_pinned: false,
            score: 0,
            hints,
            blocks: vec![],
            doing: None,
            waits: None,
            at: Nanos(0),
            ends: None,
        }
    }

    /// One that it forks, with `space`.
    pub(super) fn child(&self, task: TaskId, space: Arc<AddressSpace<Bare>>, hints: Hints) -> Self {
        Self {
            parent: Some(self.task),
            names: self.names.clone(),
            has_slept: self.has_slept,
            policy: self.policy,
            cpu: self.cpu,
            is_pinned: self.is_pinned,
            score: self.score,
            at: self.at,
            ..Self::new(task, space, self.group, hints)
        }
    }
}
