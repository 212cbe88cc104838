//! A process of a scene: its names, which are regions or files, its groups and generators.

use std::collections::BTreeMap;
use std::sync::Arc;

use mm::vm::{AddressSpace, File, Vpn};
use mm::{Bare, GroupId};

use super::balance::Hints;
use super::draws::draw;
use super::program::{Order, Part};

/// A region of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) start: Vpn,
    pub(super) pages: u32,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Named {
    Region(Region),
    File { file: Arc<File<Bare>>, pages: u32 },
}

impl Named {
    pub(super) fn pages(&self) -> u32 {
        match self {
            Self::Region(region) => region.pages,
            Self::File { pages, .. } => *pages,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) named: Named,
    /// Behind the last `next` of this name.
    next: u32,
}

pub(super) struct Process {
    pub(super) space: Arc<AddressSpace<Bare>>,
    pub(super) names: BTreeMap<String, Name>,
    seeds: BTreeMap<u64, u64>,
    pub(super) last: Option<(u64, u64)>,
    pub(super) has_slept: bool,
    pub(super) is_child: bool,
    pub(super) group: GroupId,
    pub(super) hints: Hints,
}

impl Process {
    pub(super) fn new(space: Arc<AddressSpace<Bare>>, group: GroupId, hints: Hints) -> Self {
        let (names, seeds) = Default::default();
        Self { space, names, seeds, last: None, has_slept: false, is_child: false, group, hints }
    }

    /// One that it forks, with `space`.
    pub(super) fn child(&self, space: Arc<AddressSpace<Bare>>, hints: Hints) -> Self {
        Self {
            space,
            names: self.names.clone(),
            seeds: self.seeds.clone(),
            last: None,
            has_slept: self.has_slept,
            is_child: true,
            group: self.group,
            hints,
        }
    }

    pub(super) fn add(&mut self, name: &str, named: Named) {
        self.names.insert(name.to_owned(), Name { named, next: 0 });
    }

    /// The state of the generator of `seed`.
    pub(super) fn state(&mut self, seed: u64) -> &mut u64 {
        self.seeds.entry(seed).or_insert(seed)
    }

    /// The first page and the one behind the last of `part` of what is called `name`.
    pub(super) fn part(&mut self, name: &str, part: Part) -> (u32, u32) {
        let Some(this) = self.names.get_mut(name) else { return (0, 0) };
        let pages = this.named.pages();
        if let Some(size) = part.next.map(|size| size.min(pages)) {
            let from = if pages - this.next < size { 0 } else { this.next };
            this.next = from + size;
            return (from, from + size);
        }
        let to = part.to.unwrap_or(pages).min(pages);
        (part.from.unwrap_or(0).min(to), to)
    }

    /// The pieces of `part`: where each begins, and its pages.
    pub(super) fn pieces(&mut self, name: &str, part: Part) -> Vec<(u32, u32)> {
        let (from, to) = self.part(name, part);
        let (every, piece) = part.every.unwrap_or((to - from, to - from));
        let starts = (from..to).step_by(every.max(1) as usize);
        starts.map(|at| (at, piece.min(to - at))).collect()
    }

    /// Which of `all` is the one numbered `number`, in this order.
    pub(super) fn turn(&mut self, number: u32, all: u32, order: Order) -> u32 {
        match order {
            Order::Up => number,
            Order::Down => all - 1 - number,
            Order::Drawn(seed) => (draw(self.state(seed)) % u64::from(all)) as u32,
        }
    }
}
