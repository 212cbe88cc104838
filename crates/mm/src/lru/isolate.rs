//! Taking pages off a list to work with them, and bringing them back. An isolated page has a reference of its isolator's
//! and is on no list; it stays what it is to everybody else.

use super::{End, Lists, LruDoor, LruGround, LruList, VecEvent, VecId};
use crate::ground::{Guard, Machine, Pfn, Relaxed, ZoneKind};
use crate::lru::ReclaimEvent;
use crate::lru::page::PageFlag;
use crate::pages::List;

/// Blocks that reclaim works on together.
pub(crate) const SWAP_CLUSTER_MAX: usize = 32;

/// How many pages of zones that are too high are passed over in one hold of the lock. (The kernel bounds it likewise
/// since 6.13, to 1024 times as many as it isolates; unchecked.)
const MOST_SKIPPED: u32 = 32 * 1024;

/// Up to [`SWAP_CLUSTER_MAX`] blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    pages: [Pfn; SWAP_CLUSTER_MAX],
    len: u8,
}

impl Default for Cluster {
    fn default() -> Self {
        Self { pages: [Pfn(0); SWAP_CLUSTER_MAX], len: 0 }
    }
}

impl Cluster {
    /// Of at most [`SWAP_CLUSTER_MAX`] pages.
    pub(crate) fn of(pages: &[Pfn]) -> Self {
        let mut cluster = Self::default();
        for &pfn in pages {
            cluster.push(pfn);
        }
        cluster
    }

    /// The blocks' first frames.
    pub(crate) fn pages(&self) -> &[Pfn] {
        &self.pages[..self.len()]
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == SWAP_CLUSTER_MAX
    }

    /// Adds a block to a cluster that is not full.
    pub(crate) fn push(&mut self, pfn: Pfn) {
        self.pages[self.len()] = pfn;
        self.len += 1;
    }

    /// Leaves an empty cluster.
    pub(crate) fn take(&mut self) -> Self {
        core::mem::take(self)
    }
}

/// Which of the two lists of its kind a page goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Generation {
    Inactive,
    Active,
}

/// What came off a list's tail.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Isolated {
    pub(crate) cluster: Cluster,
    /// Base pages of them.
    pub(crate) taken: u32,
    /// Base pages that were looked at and of a zone that is wanted.
    pub(crate) scanned: u32,
    /// Base pages that were passed over: of zones that are too high.
    pub(crate) skipped: u32,
}

impl<M: Machine, G: LruGround<M>> LruDoor<'_, M, G> {
    /// Takes blocks off the tail of a list until `most` base pages have been looked at or the cluster is full; blocks of
    /// zones above `highest` are passed over and go back to the head, and are counted as looked at all the same. `event` is what that is for
    /// the whole machine; reclaim in a group is none.
    pub(crate) fn isolate(
        self,
        vec: VecId,
        list: LruList,
        (most, highest): (u32, ZoneKind),
        event: Option<ReclaimEvent>,
    ) -> Isolated {
        let mut isolated = Isolated::default();
        {
            let mut lists = self.vec(vec).lists.lock(self.machine());
            let mut left = lists.two[list.index()].len();
            while left > 0
                && isolated.scanned < most
                && !isolated.cluster.is_full()
                && isolated.skipped < MOST_SKIPPED
            {
                left -= 1;
                let Some(pfn) = lists.two[list.index()].last() else { break };
                let state = self.map().frame(pfn).state();
                if let Some(event) = event {
                    self.own().count(self.map(), pfn, event);
                }
                if self.zones()[usize::from(state.zone.0)].kind() > highest {
                    isolated.skipped += state.order.pages();
                    self.own().count(self.map(), pfn, ReclaimEvent::Skip);
                    self.to_head(&mut lists, list, pfn);
                    continue;
                }
                isolated.scanned += state.order.pages();
                if self.page(pfn).try_get() {
                    self.unlist_page(&mut lists, pfn);
                    isolated.cluster.push(pfn);
                    isolated.taken += state.order.pages();
                } else {
                    // On its way out: whoever frees it waits for this lock.
                    self.to_head(&mut lists, list, pfn);
                }
            }
        }
        self.vec(vec).isolated[usize::from(list.is_file())].fetch_add(isolated.taken, Relaxed);
        let looked_at = if list.is_active() { VecEvent::Refill } else { VecEvent::ScanFile.of_kind(list) };
        self.count_in(vec, looked_at, isolated.scanned + isolated.skipped);
        isolated
    }

    fn to_head(self, lists: &mut Lists, list: LruList, pfn: Pfn) {
        let mem = self.pages().cx().mem();
        let list: &mut List = &mut lists.two[list.index()];
        list.remove(mem, pfn);
        list.push_front(mem, pfn);
    }

    /// Brings isolated blocks of `vec` back to the head of an active or an inactive list, and gives their references
    /// back.
    pub(crate) fn put_back(self, vec: VecId, cluster: &Cluster, to: Generation) {
        if cluster.len() == 0 {
            return;
        }
        {
            let mut moved = None;
            let mut lists = self.vec(vec).lists.lock(self.machine());
            for &pfn in cluster.pages() {
                let page = self.page(pfn);
                if page.has(PageFlag::Lru) {
                    continue;
                }
                let changed = match to {
                    Generation::Active if page.set(PageFlag::Active) => {
                        Some((ReclaimEvent::Activate, VecEvent::Activate))
                    }
                    Generation::Inactive if page.clear(PageFlag::Active) => {
                        page.set(PageFlag::Workingset);
                        Some((ReclaimEvent::Deactivate, VecEvent::Deactivate))
                    }
                    _ => None,
                };
                if let Some((event, in_group)) = changed {
                    self.own().count(self.map(), pfn, event);
                    moved = Some((
                        in_group,
                        moved.map_or(0, |(_, pages)| pages) + self.pages().order_of(pfn).pages(),
                    ));
                }
                self.list_page(&mut lists, pfn, End::Head);
            }
            if let Some((event, pages)) = moved {
                self.count_in(vec, event, pages);
            }
        }
        self.put_pages(cluster.pages());
    }

    /// So many isolated base pages are back or gone.
    pub(crate) fn end_isolation(self, vec: VecId, list: LruList, isolated: &Isolated) {
        self.vec(vec).isolated[usize::from(list.is_file())].fetch_sub(isolated.taken, Relaxed);
    }
}

/// One page that was taken off its list, wherever on it the page was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    vec: VecId,
    list: LruList,
    pages: u32,
}

/// Takes pages off their lists one after the other, and keeps the lists' lock between them.
pub(crate) struct Isolator<'a, M: Machine, G> {
    lru: LruDoor<'a, M, G>,
    held: Option<(VecId, Guard<'a, M, Lists>)>,
}

impl<'a, M: Machine, G: LruGround<M>> Isolator<'a, M, G> {
    /// Holds no lock yet.
    pub(crate) fn new(lru: LruDoor<'a, M, G>) -> Self {
        Self { lru, held: None }
    }

    /// Takes the page at `pfn` off its list, with a reference for the caller; `None` if it is on none or on its way out.
    pub(crate) fn isolate(&mut self, pfn: Pfn) -> Option<Alone> {
        let lru = self.lru;
        let page = lru.page(pfn);
        if !page.has(PageFlag::Lru) || !page.try_get() {
            return None;
        }
        // Whose frame it is does not change while there is a reference.
        let vec = lru.vec_of(pfn);
        let lists = self.lists(vec);
        if !page.has(PageFlag::Lru) {
            // That may be the last reference, and whoever frees the page may want the lock.
            self.let_go();
            lru.put_page(pfn);
            return None;
        }
        lru.unlist_page(lists, pfn);
        let alone = Alone { vec, list: LruList::of(page), pages: lru.map().frame(pfn).state().order.pages() };
        lru.vec(vec).isolated[usize::from(alone.list.is_file())].fetch_add(alone.pages, Relaxed);
        Some(alone)
    }

    fn lists(&mut self, vec: VecId) -> &mut Lists {
        let lru = self.lru;
        if self.held.as_ref().is_some_and(|(held, _)| *held != vec) {
            self.let_go();
        }
        let lock = || (vec, lru.vec(vec).lists.lock(lru.machine()));
        &mut self.held.get_or_insert_with(lock).1
    }

    /// Whether somebody waits for the lock that is held.
    pub(crate) fn is_contended(&self) -> bool {
        self.held.as_ref().is_some_and(|(_, lists)| lists.is_contended())
    }

    /// Whether a lock is held.
    pub(crate) fn holds_lock(&self) -> bool {
        self.held.is_some()
    }

    /// Gives the lock back, if it is held.
    pub(crate) fn let_go(&mut self) {
        self.held = None;
    }
}

impl<M: Machine, G: LruGround<M>> LruDoor<'_, M, G> {
    /// Takes the page at `pfn` off its list, with a reference for the caller; `None` if it is on none or on its way out.
    pub(crate) fn isolate_page(self, pfn: Pfn) -> Option<Alone> {
        Isolator::new(self).isolate(pfn)
    }

    /// The page at `pfn` goes back to the list that it came from, and its reference is given back.
    pub(crate) fn put_back_page(self, pfn: Pfn, alone: Alone) {
        let mut cluster = Cluster::default();
        cluster.push(pfn);
        let generation = if alone.list.is_active() { Generation::Active } else { Generation::Inactive };
        self.put_back(alone.vec, &cluster, generation);
        self.end_isolation_of(alone);
    }

    /// The isolated page is back or gone.
    pub(crate) fn end_isolation_of(self, alone: Alone) {
        let isolated = &self.vec(alone.vec).isolated[usize::from(alone.list.is_file())];
        isolated.fetch_sub(alone.pages, Relaxed);
    }
}
