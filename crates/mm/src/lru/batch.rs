//! What a CPU keeps back so that the list's lock is taken once for many pages: those that are new, those to become
//! active, those to go next. A page in a batch is held there by a reference.
//!
//! A batch is of 14 pages, 15 since 4.16 and 31 since 6.10 (the first two from memory, the third as
//! docs/rules/page-lists.md#frees has it); a huge page sends the batch that it came into on its way at once.

use super::{By, End, LruDoor, LruGround, VecEvent, VecId};
use crate::ground::{Chore, Cpu, Machine, Order, Pfn};
use crate::lru::ReclaimEvent;
use crate::lru::page::{Mapping, Page, PageFlag};
use crate::rules::policy::AnonRule;

use super::isolate::Cluster;

/// What a batch's pages wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Move {
    /// To come to a list for the first time.
    Add,
    /// To go from the inactive to the active list.
    Activate,
    /// To go to the inactive list's tail: they can be freed now.
    Rotate,
    /// To go from the active to the inactive list (`MADV_COLD`).
    Deactivate,
    /// To go to the inactive list of files: their contents are not wanted any more (`MADV_FREE`).
    GiveAway,
    /// To leave the lists: they are locked into memory.
    Lock,
    /// To come back to them.
    Unlock,
}

impl Move {
    const ALL: [Self; 7] =
        [Self::Add, Self::Activate, Self::Rotate, Self::Deactivate, Self::GiveAway, Self::Lock, Self::Unlock];

    /// Whether it is for pages of lists that reclaim looks through alone.
    const fn is_of_evictable(self) -> bool {
        !matches!(self, Self::Add | Self::Lock | Self::Unlock)
    }
}

/// A CPU's batches.
#[derive(Debug, Default)]
pub(super) struct CpuBatches([Cluster; Move::ALL.len()]);

impl<M: Machine, G: LruGround<M>> LruDoor<'_, M, G> {
    /// A new page of an address space or a file comes to the lists, by way of the CPU's batch. The caller has a
    /// reference and keeps it.
    pub(crate) fn lru_add(self, pfn: Pfn) {
        let page = self.page(pfn);
        if matches!(page.mapping(), Mapping::Anon(_)) && self.rules().reclaim.anon == AnonRule::Active {
            page.set(PageFlag::Active);
        }
        page.get();
        self.batch(Move::Add, pfn);
    }

    /// The same, brought by `by`: what a fault brings is to be young, where pages are kept by generations (`folio_add_lru`).
    pub(crate) fn lru_add_by(self, pfn: Pfn, by: By) {
        if by == By::Fault && self.keeps_generations() {
            self.generations().note_fault(self.page(pfn));
        }
        self.lru_add(pfn);
    }

    /// A read or write call used a page of a file: the first time it is Referenced, the second time it is to be active.
    pub(crate) fn mark_accessed(self, pfn: Pfn) {
        let page = self.page(pfn);
        if self.keeps_generations() {
            return self.generations().count_use(pfn);
        }
        if page.set(PageFlag::Referenced) || page.has(PageFlag::Active) || page.has(PageFlag::Unevictable) {
            return;
        }
        page.clear(PageFlag::Referenced);
        self.note_activation(pfn);
        self.activate(pfn);
    }

    /// The page is to be active (`activate_page`).
    pub(crate) fn activate(self, pfn: Pfn) {
        let page = self.page(pfn);
        if page.has(PageFlag::Lru) {
            page.get();
            self.batch(Move::Activate, pfn);
        } else {
            self.activate_in_batch(pfn);
        }
    }

    /// The page was written back, and reclaim waits for it: it is to go next. The caller has a reference.
    pub(crate) fn lru_rotate(self, pfn: Pfn) {
        let page = self.page(pfn);
        if page.has(PageFlag::Lru) && !page.has(PageFlag::Dirty) {
            page.get();
            self.batch(Move::Rotate, pfn);
        }
    }

    /// A program will not need the page soon: it is to be inactive. The caller has a reference.
    pub(crate) fn lru_deactivate(self, pfn: Pfn) {
        let page = self.page(pfn);
        let moves = match page.generation() {
            Some(_) => self.generations().note_cold(pfn),
            None => page.has(PageFlag::Active),
        };
        if page.has(PageFlag::Lru) && moves {
            page.get();
            self.batch(Move::Deactivate, pfn);
        }
    }

    /// A program does not want what its own page holds: it may be freed without going to swap, unless it is written before
    /// that. The caller has a reference.
    pub(crate) fn lru_give_away(self, pfn: Pfn) {
        let page = self.page(pfn);
        if page.has(PageFlag::Lru) && page.has(PageFlag::SwapBacked) {
            page.get();
            self.batch(Move::GiveAway, pfn);
        }
    }

    /// The page was found in use by whoever looked at another (`folio_activate`): it is to be young.
    pub(crate) fn activate_young(self, pfn: Pfn) {
        let page = self.page(pfn);
        if !self.generations().note_young(page) {
            return;
        }
        if page.generation().is_none() {
            // Isolated, or in a batch.
            page.set(PageFlag::Referenced);
            return;
        }
        self.generations().note_promotion(page);
        if !self.generations().is_youngest(pfn) {
            page.get();
            self.batch(Move::Activate, pfn);
        }
    }

    /// A page that this CPU's batch of new ones holds comes to the active list straight away; one in another CPU's
    /// batch stays as it is, as in the kernel.
    fn activate_in_batch(self, pfn: Pfn) {
        let batches = self.own().batches(self.machine().cpu()).lock(self.machine());
        if batches.0[Move::Add as usize].pages().contains(&pfn) {
            self.page(pfn).set(PageFlag::Active);
        }
    }

    pub(super) fn batch(self, movement: Move, pfn: Pfn) {
        let huge = self.map().frame(pfn).state().order > Order::ZERO;
        let full = {
            let mut batches = self.own().batches(self.machine().cpu()).lock(self.machine());
            let batch = &mut batches.0[movement as usize];
            batch.push(pfn);
            let full = huge || batch.len() >= self.rules().reclaim.batch.pages();
            full.then(|| batch.take())
        };
        if let Some(cluster) = full {
            self.carry_out(movement, &cluster);
        }
    }

    /// Sends all that `cpu` keeps back to the lists.
    pub fn lru_drain_cpu(self, cpu: Cpu) {
        for movement in Move::ALL {
            let cluster = self.own().batches(cpu).lock(self.machine()).0[movement as usize].take();
            self.carry_out(movement, &cluster);
        }
    }

    /// Sends all that any CPU keeps back to the lists (the kernel's `lru_add_drain_all`).
    pub fn lru_drain_all(self) {
        for cpu in 0..self.topology().cpus.len() {
            self.lru_drain_cpu(Cpu(cpu as u16));
        }
    }

    /// One hold of a list's lock for each stretch of pages of one set of lists; then the batch's references go.
    fn carry_out(self, movement: Move, cluster: &Cluster) {
        let vec = |pfn: Pfn| self.vec_of(pfn);
        if movement == Move::Add {
            // Whose batch is full pays for all of it: one fault of 31 takes that much longer.
            self.machine().spend(Chore::LruAdd, cluster.pages().len() as u32);
        }
        for stretch in cluster.pages().chunk_by(|&one, &next| vec(one) == vec(next)) {
            self.carry_out_in(vec(stretch[0]), movement, stretch);
        }
        self.put_pages(cluster.pages());
    }

    /// The page is to go soon, though it was used.
    fn forget_use(self, page: &Page) {
        page.clear(PageFlag::Active);
        if self.generations().forgets_in_batches() {
            page.clear(PageFlag::Referenced);
        }
    }

    fn carry_out_in(self, vec: VecId, movement: Move, pages: &[Pfn]) {
        let mut moved = 0;
        let mut lists = self.vec(vec).lists.lock(self.machine());
        for &pfn in pages {
            let page = self.page(pfn);
            if movement.is_of_evictable() && page.has(PageFlag::Unevictable) {
                continue;
            }
            // A page may have been isolated since it came into the batch: then it is for its isolator to put it back.
            match movement {
                Move::Add if !page.has(PageFlag::Lru) => self.list_page(&mut lists, pfn, End::Head),
                Move::Activate if page.has(PageFlag::Lru) && !page.has(PageFlag::Active) => {
                    self.unlist_page(&mut lists, pfn);
                    page.set(PageFlag::Active);
                    self.list_page(&mut lists, pfn, End::Head);
                    self.own().count(self.map(), pfn, ReclaimEvent::Activate);
                    moved += self.pages().order_of(pfn).pages();
                }
                Move::Rotate if page.has(PageFlag::Lru) => {
                    self.unlist_page(&mut lists, pfn);
                    page.clear(PageFlag::Active);
                    self.list_page(&mut lists, pfn, End::Tail);
                    self.own().count(self.map(), pfn, ReclaimEvent::Rotate);
                }
                Move::Deactivate
                    if page.has(PageFlag::Lru)
                        && (page.has(PageFlag::Active) || page.generation().is_some()) =>
                {
                    self.unlist_page(&mut lists, pfn);
                    self.forget_use(page);
                    self.list_page(&mut lists, pfn, End::Head);
                    self.own().count(self.map(), pfn, ReclaimEvent::Deactivate);
                    moved += self.pages().order_of(pfn).pages();
                }
                Move::GiveAway if page.has(PageFlag::Lru) && page.has(PageFlag::SwapBacked) => {
                    self.unlist_page(&mut lists, pfn);
                    self.forget_use(page);
                    page.clear(PageFlag::SwapBacked);
                    self.list_page(&mut lists, pfn, End::Head);
                    self.own().count(self.map(), pfn, ReclaimEvent::GiveAway);
                }
                Move::Lock | Move::Unlock => self.unevictable().move_locked(&mut lists, pfn),
                Move::Add | Move::Activate | Move::Rotate | Move::Deactivate | Move::GiveAway => {}
            }
        }
        match movement {
            Move::Activate => self.count_in(vec, VecEvent::Activate, moved),
            Move::Deactivate => self.count_in(vec, VecEvent::Deactivate, moved),
            Move::Add | Move::Rotate | Move::GiveAway | Move::Lock | Move::Unlock => {}
        }
    }
}
