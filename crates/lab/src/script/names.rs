//! What a process of a script has names for, regions of memory and files, and its generators of random numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use mm::Machine;
use mm::vm::{File, Vpn};

use super::draws::draw;
use super::program::{Order, Part};

/// A page's bytes.
pub(crate) const PAGE: u64 = 4096;
/// Pages of 1 GiB: regions lie so far apart.
pub(crate) const GIB: u64 = 1 << 18;
/// Letters of a name that the program kept: one with more is never found.
pub(crate) const LONGEST_NAME: usize = 23;
/// Names and seeds that it had room for.
pub(crate) const MOST_NAMES: usize = 24;
pub(crate) const MOST_SEEDS: usize = 16;

/// A region of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) start: Vpn,
    pub(crate) bytes: u64,
    /// Bytes that a write stores, from its place on.
    pub(crate) stores: u64,
    /// The file that it maps, by its number among those that were made.
    pub(crate) file: Option<usize>,
}

impl Region {
    pub(crate) fn pages(&self) -> u32 {
        self.bytes.div_ceil(PAGE) as u32
    }

    /// Pages from a byte in it on, with so many bytes in them.
    pub(crate) fn span(&self, start: u64, bytes: u64) -> (Vpn, u32) {
        let first = self.start.add((start / PAGE) as u32);
        // Behind a region there is nothing, up to the next one.
        let room = u64::from(self.pages()).next_multiple_of(GIB) - start / PAGE;
        (first, bytes.div_ceil(PAGE).min(room) as u32)
    }
}

/// What a name stands for.
#[derive(Debug)]
pub(crate) enum Named<M: Machine> {
    Region(Region),
    File { file: Arc<File<M>>, bytes: u64 },
}

impl<M: Machine> Clone for Named<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Region(region) => Self::Region(*region),
            Self::File { file, bytes } => Self::File { file: Arc::clone(file), bytes: *bytes },
        }
    }
}

impl<M: Machine> Named<M> {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Region(region) => region.bytes,
            Self::File { bytes, .. } => *bytes,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Name<M: Machine> {
    pub(crate) id: String,
    pub(crate) named: Named<M>,
    /// Behind the last `next` of this name.
    next: u64,
}

impl<M: Machine> Clone for Name<M> {
    fn clone(&self) -> Self {
        Self { id: self.id.clone(), named: self.named.clone(), next: self.next }
    }
}

/// Names and generators of a process; a child begins with a copy.
#[derive(Debug)]
pub(crate) struct Names<M: Machine> {
    all: Vec<Name<M>>,
    seeds: BTreeMap<u64, u64>,
}

impl<M: Machine> Clone for Names<M> {
    fn clone(&self) -> Self {
        Self { all: self.all.clone(), seeds: self.seeds.clone() }
    }
}

impl<M: Machine> Default for Names<M> {
    fn default() -> Self {
        Self { all: vec![], seeds: BTreeMap::new() }
    }
}

impl<M: Machine> Names<M> {
    /// All names, in the order in which they were given.
    pub(crate) fn all(&self) -> &[Name<M>] {
        &self.all
    }

    /// Where the region of the next name lies.
    pub(crate) fn next_start(&self) -> Vpn {
        Vpn(((5 + self.all.len() as u64) * GIB) as u32)
    }

    /// A whole GiB behind all regions that there are.
    pub(crate) fn free_start(&self) -> Vpn {
        let ends = self.all.iter().map(|name| match &name.named {
            Named::Region(region) => u64::from(region.start.0) + u64::from(region.pages()),
            Named::File { .. } => 0,
        });
        Vpn(ends.max().unwrap_or(0).max(5 * GIB).next_multiple_of(GIB) as u32)
    }

    /// Gives what `named` says a name, if there is room for one more.
    pub(crate) fn add(&mut self, name: &str, named: Named<M>) -> bool {
        let id = name.chars().take(LONGEST_NAME).collect();
        let has_room = self.all.len() < MOST_NAMES;
        if has_room {
            self.all.push(Name { id, named, next: 0 });
        }
        has_room
    }

    /// What is called `name`: of several, the first.
    pub(crate) fn find(&self, name: &str) -> Option<&Named<M>> {
        self.all.iter().find(|this| this.id == name).map(|this| &this.named)
    }

    /// The state of the generator of `seed`, if there is room for one more.
    pub(crate) fn state(&mut self, seed: u64) -> Option<&mut u64> {
        if !self.seeds.contains_key(&seed) && self.seeds.len() >= MOST_SEEDS {
            return None;
        }
        Some(self.seeds.entry(seed).or_insert(seed))
    }

    /// The first byte and the one behind the last of `part` of what is called `name`. `None`: it is outside of it.
    pub(crate) fn part(&mut self, name: &str, part: Part) -> Option<(u64, u64)> {
        let this = self.all.iter_mut().find(|this| this.id == name)?;
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
    pub(crate) fn turn(&mut self, number: u64, all: u64, order: Order) -> Option<u64> {
        Some(match order {
            Order::Up => number,
            Order::Down => all - 1 - number,
            Order::Drawn(seed) => draw(self.state(seed)?) % all,
        })
    }
}

#[cfg(test)]
mod tests {
    use mm::Bare;

    use super::*;

    #[test]
    fn next_goes_on_where_it_stopped_and_begins_again_where_too_little_is_left() {
        let mut names = Names::<Bare>::default();
        let region = Region { start: names.next_start(), bytes: 10 * PAGE, stores: 8, file: None };
        assert!(names.add("a", Named::Region(region)));
        let mut next = || names.part("a", Part { next: Some(4 * PAGE), ..Part::default() });
        assert_eq!([next(), next(), next()], [0, 4, 0].map(|first| Some((first * PAGE, (first + 4) * PAGE))));
        assert_eq!(names.part("a", Part { to: Some(11 * PAGE), ..Part::default() }), None);
        assert_eq!(names.part("b", Part::default()), None);
    }

    #[test]
    fn regions_lie_a_gib_apart() {
        let mut names = Names::<Bare>::default();
        let region = |start, bytes| Named::Region(Region { start, bytes, stores: 8, file: None });
        let first = names.next_start();
        assert!(names.add("a", region(first, 3 << 30)));
        assert_eq!(names.next_start(), first.add(GIB as u32), "whatever reaches over it");
        assert_eq!(names.free_start(), Vpn(8 * GIB as u32), "behind three GiB from 5 on");
    }
}
