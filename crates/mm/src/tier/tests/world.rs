//! A ground whose pages are accessed by a rule, and whose clock goes on by what looks, marks and moves cost.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use super::super::{Area, Ground, HintGround, PageRange, Seen, Stayed};
use crate::ground::{Nanos, Node, PAGE_SIZE, SpaceId, Vpn};

/// Pages of a MiB and of a GiB.
pub(super) const MIB: u32 = 256;
pub(super) const GIB: u32 = 1024 * MIB;
/// Nanoseconds of a millisecond.
pub(super) const MS: u64 = 1_000_000;

/// The node of the slow tier; nodes 0 and 1 are fast.
pub(super) const SLOW: Node = Node(2);

pub(super) fn pages(start: u32, end: u32) -> PageRange {
    PageRange { start: Vpn(start), end: Vpn(end) }
}

pub(super) fn list<T>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    items.into_iter().collect()
}

/// When pages are accessed: at `from` and after each `every`, until before `until`, all in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Access {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) every: u64,
}

impl Access {
    pub(super) const NEVER: Self = Self { from: u64::MAX, until: u64::MAX, every: 1 };
    /// Each ms.
    pub(super) const ALWAYS: Self = Self { from: 0, until: u64::MAX, every: MS };

    pub(super) const fn once(at: u64) -> Self {
        Self { from: at, until: at + 1, every: 1 }
    }

    /// Each ms from `from` to `until`.
    pub(super) const fn between(from: u64, until: u64) -> Self {
        Self { from, until, every: MS }
    }

    /// Whether there was one after `since` (if there was a time before), and by `now`.
    fn happened(self, since: Option<u64>, now: u64) -> bool {
        if self.from >= self.until || now < self.from {
            return false;
        }
        let last = self.from + (now.min(self.until - 1) - self.from) / self.every * self.every;
        since.is_none_or(|since| last > since)
    }
}

#[derive(Clone, Copy, Debug)]
struct Page {
    node: Node,
    looked: Option<u64>,
}

/// Pages of the same use, one behind the other.
#[derive(Debug)]
struct Run {
    start: u32,
    access: Access,
    /// How many pages of 4 KiB each is.
    large: u32,
    pages: Vec<Page>,
}

#[derive(Debug, Default)]
struct Space {
    areas: Vec<Area>,
    runs: Vec<Run>,
    is_busy: bool,
}

/// The ground.
#[derive(Debug)]
pub(super) struct World {
    now: Cell<u64>,
    spaces: RefCell<BTreeMap<SpaceId, Space>>,
    /// Bytes that each node may still take.
    room: RefCell<Vec<u64>>,
    threads: RefCell<Vec<u32>>,
    /// Pages that stay where they are, and pages that are not there any more.
    pinned: RefCell<BTreeSet<u32>>,
    gone: RefCell<BTreeSet<u32>>,
    /// What was looked at, …
    looked: RefCell<Vec<(SpaceId, PageRange)>>,
    looked_pages: Cell<u64>,
    marked: RefCell<Vec<PageRange>>,
    /// … and moved.
    promoted: RefCell<Vec<(Vpn, Node)>>,
    flushes: Cell<u32>,
}

impl World {
    /// What a look at a page costs, and one at a range, whatever is in it; ns.
    pub(super) const LOOK: u64 = 50;
    pub(super) const RANGE: u64 = 500;
    const MARK: u64 = 100;
    const PROMOTE: u64 = 2000;

    /// Two fast nodes and one slow one, without any address space; all have room.
    pub(super) fn new() -> Self {
        Self {
            now: Cell::new(0),
            spaces: RefCell::default(),
            room: RefCell::new(vec![1 << 40; 3]),
            threads: RefCell::new(vec![1, 1, 0]),
            pinned: RefCell::default(),
            gone: RefCell::default(),
            looked: RefCell::default(),
            looked_pages: Cell::new(0),
            marked: RefCell::default(),
            promoted: RefCell::default(),
            flushes: Cell::new(0),
        }
    }

    fn change<T>(&self, space: u32, change: impl FnOnce(&mut Space) -> T) -> T {
        change(self.spaces.borrow_mut().entry(SpaceId(space)).or_default())
    }

    /// An area of `space` from `start` to `end`, above all that it has.
    pub(super) fn area(&self, space: u32, start: u32, end: u32) {
        let area = Area { range: pages(start, end), is_scanned: true };
        self.change(space, |space| space.areas.push(area));
    }

    /// The same, of pages that are not to be scanned.
    pub(super) fn unscanned(&self, space: u32, start: u32, end: u32) {
        let area = Area { range: pages(start, end), is_scanned: false };
        self.change(space, |space| space.areas.push(area));
    }

    /// So many areas of a size, one behind the other, from `start` on.
    pub(super) fn areas(&self, space: u32, start: u32, count: u32, size: u32) {
        (0..count).for_each(|at| self.area(space, start + at * size, start + (at + 1) * size));
    }

    /// These areas in place of all before.
    pub(super) fn set_areas(&self, space: u32, areas: Vec<Area>) {
        self.change(space, |space| space.areas = areas);
    }

    /// Pages from `start` on, where `space` has none.
    pub(super) fn map(&self, space: u32, start: u32, count: u32, node: Node, access: Access) {
        self.map_large(space, start, count, 1, node, access);
    }

    /// The same, of pages that are `large` pages of 4 KiB each.
    pub(super) fn map_large(
        &self,
        space: u32,
        start: u32,
        count: u32,
        large: u32,
        node: Node,
        access: Access,
    ) {
        let pages = vec![Page { node, looked: None }; count as usize];
        self.change(space, |space| space.runs.push(Run { start, access, large, pages }));
    }

    pub(super) fn end(&self, space: u32) {
        self.spaces.borrow_mut().remove(&SpaceId(space));
    }

    /// Whether the map of `space` is locked by somebody.
    pub(super) fn set_busy(&self, space: u32, is_busy: bool) {
        self.change(space, |space| space.is_busy = is_busy);
    }

    pub(super) fn set_room(&self, node: Node, bytes: u64) {
        self.room.borrow_mut()[usize::from(node.0)] = bytes;
    }

    pub(super) fn set_threads(&self, threads: [u32; 3]) {
        *self.threads.borrow_mut() = threads.into();
    }

    pub(super) fn pin(&self, page: u32) {
        self.pinned.borrow_mut().insert(page);
    }

    /// The page is unmapped.
    pub(super) fn unmap(&self, page: u32) {
        self.gone.borrow_mut().insert(page);
    }

    pub(super) fn sleep(&self, time: Nanos) {
        self.spend(time.0);
    }

    /// The clock goes on to `at`, if it is not later already.
    pub(super) fn sleep_until(&self, at: Nanos) {
        self.now.set(self.now.get().max(at.0));
    }

    /// Ranges looked at since the last call.
    pub(super) fn looked(&self) -> Vec<(SpaceId, PageRange)> {
        self.looked.take()
    }

    /// Pages looked at so far.
    pub(super) fn looked_pages(&self) -> u64 {
        self.looked_pages.get()
    }

    /// Ranges that were to be marked since the last call.
    pub(super) fn marked(&self) -> Vec<PageRange> {
        self.marked.take()
    }

    /// What moved since the last call.
    pub(super) fn promoted(&self) -> Vec<(Vpn, Node)> {
        self.promoted.take()
    }

    pub(super) fn flushes(&self) -> u32 {
        self.flushes.get()
    }

    /// Where the page is, if it is mapped.
    pub(super) fn node_of(&self, space: SpaceId, page: Vpn) -> Option<Node> {
        if self.gone.borrow().contains(&page.0) {
            return None;
        }
        self.spaces.borrow_mut().get_mut(&space)?.page(page.0).map(|page| page.node)
    }

    /// Whether the page was accessed at all by now.
    pub(super) fn was_accessed(&self, space: SpaceId, page: Vpn) -> bool {
        let spaces = self.spaces.borrow();
        let runs = spaces.get(&space).into_iter().flat_map(|space| &space.runs);
        runs.filter(|run| run.part(pages(page.0, page.0 + 1)).is_some())
            .any(|run| run.access.happened(None, self.now.get()))
    }

    fn spend(&self, time: u64) {
        self.now.set(self.now.get() + time);
    }
}

impl Run {
    /// The indices of the pages that begin within `range`.
    fn part(&self, range: PageRange) -> Option<std::ops::Range<usize>> {
        let index = |vpn: u32| vpn.saturating_sub(self.start).div_ceil(self.large) as usize;
        let part = index(range.start.0)..index(range.end.0).min(self.pages.len());
        (!part.is_empty()).then_some(part)
    }

    fn vpn(&self, index: usize) -> Vpn {
        Vpn(self.start + index as u32 * self.large)
    }
}

impl Space {
    fn page(&mut self, page: u32) -> Option<&mut Page> {
        self.runs.iter_mut().find_map(|run| {
            let part = run.part(pages(page, page + 1))?;
            Some(&mut run.pages[part.start])
        })
    }
}

impl HintGround for World {
    fn now(&self) -> Nanos {
        Nanos(self.now.get())
    }

    fn area(&self, space: SpaceId, from: Vpn) -> Option<Area> {
        let spaces = self.spaces.borrow();
        spaces.get(&space)?.areas.iter().find(|area| area.range.end > from).copied()
    }

    fn mark(&self, space: SpaceId, range: PageRange, marks: impl Fn(Node) -> bool) -> u32 {
        self.marked.borrow_mut().push(range);
        let spaces = self.spaces.borrow();
        let runs = spaces.get(&space).into_iter().flat_map(|space| &space.runs);
        let all = runs.flat_map(|run| run.part(range).into_iter().flatten().map(move |index| (run, index)));
        let marked = all.filter(|(run, index)| marks(run.pages[*index].node));
        let marked = marked.map(|(run, _)| run.large).sum();
        self.spend(Self::MARK * u64::from(marked));
        marked
    }

    fn is_fast(&self, node: Node) -> bool {
        node < SLOW
    }

    fn room(&self, node: Node) -> u64 {
        self.room.borrow()[usize::from(node.0)]
    }

    fn size(&self, _: Node) -> u64 {
        64 << 30
    }
}

impl Ground for World {
    fn is_alive(&self, space: SpaceId) -> bool {
        self.spaces.borrow().contains_key(&space)
    }

    fn may_look(&self, space: SpaceId) -> bool {
        self.spaces.borrow().get(&space).is_some_and(|space| !space.is_busy)
    }

    fn look(&self, space: SpaceId, range: PageRange, mut seen: impl FnMut(Seen)) {
        self.looked.borrow_mut().push((space, range));
        self.spend(Self::RANGE);
        let now = self.now.get();
        let mut spaces = self.spaces.borrow_mut();
        let Some(space) = spaces.get_mut(&space) else { return };
        for run in &mut space.runs {
            for index in run.part(range).into_iter().flatten() {
                let (vpn, pages, page) = (run.vpn(index), run.large, &mut run.pages[index]);
                if self.gone.borrow().contains(&vpn.0) {
                    continue;
                }
                let accessed = run.access.happened(page.looked.replace(now), now);
                let node = page.node;
                self.spend(Self::LOOK);
                self.looked_pages.set(self.looked_pages.get() + 1);
                seen(Seen { vpn, pages, node, accessed });
            }
        }
    }

    fn promote(&self, space: SpaceId, vpn: Vpn, node: Node) -> Result<u32, Stayed> {
        self.spend(Self::PROMOTE);
        let mut spaces = self.spaces.borrow_mut();
        let space = spaces.get_mut(&space).ok_or(Stayed::Gone)?;
        if self.gone.borrow().contains(&vpn.0) {
            return Err(Stayed::Gone);
        }
        let page = space.page(vpn.0).filter(|page| !self.is_fast(page.node)).ok_or(Stayed::Gone)?;
        if self.pinned.borrow().contains(&vpn.0) {
            return Err(Stayed::Busy);
        }
        let room = &mut self.room.borrow_mut()[usize::from(node.0)];
        *room = room.checked_sub(PAGE_SIZE).ok_or(Stayed::NoRoom)?;
        page.node = node;
        self.promoted.borrow_mut().push((vpn, node));
        Ok(1)
    }

    fn flush(&self, _: SpaceId) {
        self.flushes.set(self.flushes.get() + 1);
    }

    fn nodes(&self) -> u16 {
        3
    }

    fn threads_on(&self, _: SpaceId, node: Node) -> u32 {
        self.threads.borrow()[usize::from(node.0)]
    }
}
