//! A process of a scene: its names, which are regions or files, its group and generators, and where it is in the program.

use std::collections::BTreeMap;
use std::sync::Arc;

use mm::mempolicy::{InterleaveCursor, MemPolicy};
use mm::vm::{AddressSpace, File, Vpn};
use mm::{Bare, Cpu, GroupId, Nanos, TaskId};

use super::balance::Hints;
use super::doing::Doing;
use super::draws::draw;
use super::play::At;
use super::program::{Order, Part};

/// A page's bytes.
pub(super) const PAGE: u64 = 4096;
/// Letters of a name that the program kept: one with more is never found.
const LONGEST_NAME: usize = 23;
/// Names and seeds that it had room for.
const MOST_NAMES: usize = 24;
const MOST_SEEDS: usize = 16;

/// A region of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) start: Vpn,
    pub(super) bytes: u64,
    /// Bytes that a write stores, from its place on.
    pub(super) stores: u64,
    /// The file that it maps, by its number among those that were made.
    pub(super) file: Option<usize>,
}

impl Region {
    pub(super) fn pages(&self) -> u32 {
        self.bytes.div_ceil(PAGE) as u32
    }
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Named {
    Region(Region),
    File { file: Arc<File<Bare>>, bytes: u64 },
}

impl Named {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Region(region) => region.bytes,
            Self::File { bytes, .. } => *bytes,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) id: String,
    pub(super) named: Named,
    /// Behind the last `next` of this name.
    next: u64,
}

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
    pub(super) names: Vec<Name>,
    seeds: BTreeMap<u64, u64>,
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
            names: vec![],
            seeds: BTreeMap::new(),
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
            seeds: self.seeds.clone(),
            has_slept: self.has_slept,
            policy: self.policy,
            cpu: self.cpu,
            is_pinned: self.is_pinned,
            score: self.score,
            at: self.at,
            ..Self::new(task, space, self.group, hints)
        }
    }

    /// Gives what `named` says a name, if there is room for one more.
    pub(super) fn add(&mut self, name: &str, named: Named) -> bool {
        let id = name.chars().take(LONGEST_NAME).collect();
        let has_room = self.names.len() < MOST_NAMES;
        if has_room {
            self.names.push(Name { id, named, next: 0 });
        }
        has_room
    }

    /// What is called `name`: of several, the first.
    pub(super) fn find(&self, name: &str) -> Option<&Named> {
        self.names.iter().find(|this| this.id == name).map(|this| &this.named)
    }

    /// The state of the generator of `seed`, if there is room for one more.
    pub(super) fn state(&mut self, seed: u64) -> Option<&mut u64> {
        if !self.seeds.contains_key(&seed) && self.seeds.len() >= MOST_SEEDS {
            return None;
        }
        Some(self.seeds.entry(seed).or_insert(seed))
    }

    /// The first byte and the one behind the last of `part` of what is called `name`. `None`: it is outside of it.
    pub(super) fn part(&mut self, name: &str, part: Part) -> Option<(u64, u64)> {
        let this = self.names.iter_mut().find(|this| this.id == name)?;
        let bytes = this.named.bytes();
        let (mut from, mut to) = (part.from, part.to.unwrap_or(bytes));
        if let Some(size) = part.next {
            if this.next.checked_add(size).is_none_or(|end| end > bytes) {
                this.next = 0;
            }
            (from, to) = (this.next, this.next.saturating_add(size));
            this.next = to;
        }
        (to <= bytes && from <= to).then_some((from, to))
    }

    /// Which of `all` is the one numbered `number`, in this order. `None`: there are too many seeds.
    pub(super) fn turn(&mut self, number: u64, all: u64, order: Order) -> Option<u64> {
        Some(match order {
            Order::Up => number,
            Order::Down => all - 1 - number,
            Order::Drawn(seed) => draw(self.state(seed)?) % all,
        })
    }
}
