//! The page of zeros: who reads anonymous memory that was never written maps one frame that all share, or a huge one where
//! huge pages may be, and gets a page with the first write.
//!
//! The small one is a frame that the kernel has from boot on: the first that is not the allocator's. A machine that lends all
//! of its frames to the allocator has none; there, reading gets a page as writing does. The huge one is allocated with its
//! first use, and goes when memory is short and no address space that used it is left (`shrink_huge_zero_page_scan`).

use super::entry::Entry;
use super::fault::{Attempt, Contents, FaultKind, Faulted, Site, done};
use super::space::AddressSpace;
use super::table::EntrySize;
use super::{FaultDoor, SpacesDoor, SpacesGround, Touch};
use crate::ground::ids::{MigrateType, Order, Pfn};
use crate::ground::machine::{Chore, LockClass, Machine};
use crate::ground::once::Once;
use crate::ground::sync::{AtomicU32, Locked, Relaxed};
use crate::pages::Pages;
use crate::pages::request::{Request, Urgency};
use crate::pages::stat::SlowEvents;
use crate::pages::zone::Zone;
use crate::rules::knobs::Knob;
use crate::rules::policy::HugeZeroRule;

/// Pages of zeros.
#[derive(Debug)]
pub(super) struct Zeros<M: Machine> {
    small: Once<Option<Pfn>>,
    huge: Locked<M, HugeZero>,
    /// 1 while there is a huge one: reclaim looks at this first.
    has_huge: AtomicU32,
}

#[derive(Debug, Default)]
struct HugeZero {
    page: Option<Pfn>,
    /// Address spaces that have used it and have not ended, and those who have pinned it.
    users: u32,
}

impl<M: Machine> Zeros<M> {
    pub(super) fn new(machine: &M) -> Self {
        let huge = Locked::new(machine, LockClass::Other, 4, HugeZero::default());
        Self { small: Once::default(), huge, has_huge: AtomicU32::new(0) }
    }

    /// The frame that reads as zeros, if the machine has one.
    pub(super) fn frame(&self, pages: &Pages<M>) -> Option<Pfn> {
        *self.small.get_or(|| {
            let own = pages.zones().iter().find_map(Zone::first_unmanaged);
            if let Some(frame) = own {
                pages.machine().clear(frame, Order::ZERO);
            }
            own
        })
    }

    /// Somebody has pinned the huge one, which a space that has not ended uses.
    pub(super) fn keep_huge(&self, machine: &M) {
        self.huge.lock_local(machine).users += 1;
    }

    /// The huge one has one user less.
    pub(super) fn drop_huge(&self, machine: &M) {
        self.huge.lock_local(machine).users -= 1;
    }
}

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// Maps zeros by way of `frame`, if nothing has come in the meantime.
    pub(super) fn install_zeros(machine: &M, site: &Site<'_, M>, frame: Pfn) -> Option<Faulted> {
        let mut held = site.lock(machine, Entry::NONE)?;
        held.set(site.vpn, Entry::zeros(frame));
        Some(Faulted { pfn: frame, kind: FaultKind::ZeroPage, reads: 0 })
    }

    /// Zeros are mapped, and perhaps written to.
    pub(super) fn fault_zeros(self, site: &Site<'_, M>, entry: Entry, size: EntrySize) -> Attempt {
        if site.touch == Touch::Read {
            // As of a page that was barred: the region allows it by now.
            let within = if size == EntrySize::Huge { site.vpn.slot() as u32 } else { 0 };
            let Some(mut held) = site.lock(self.machine(), entry) else { return Ok(None) };
            held.clear_bits(site.vpn, super::bit::BARRED);
            return done(entry.pfn().add(within), FaultKind::Spurious);
        }
        self.machine().spend(Chore::Fault, 1);
        if size == EntrySize::Huge {
            return Ok(self.fault_huge_zeros(site, entry));
        }
        let pfn = self.alloc_page(site, Contents::Zeros)?;
        let copied = self.install_new(site, entry, pfn, FaultKind::Copied)?;
        if copied.is_some() {
            site.space.stat.count_copied();
        }
        Ok(copied)
    }

    /// The huge page of zeros is written to: a huge page comes in its place where the kernel tries that, or its entry is
    /// split, so that the fault is to be looked at again.
    fn fault_huge_zeros(self, site: &Site<'_, M>, entry: Entry) -> Option<Faulted> {
        let whole = self.rules().reclaim.huge_zero == HugeZeroRule::Huge;
        if whole && self.spaces().may_be_huge(&site.region) {
            if let Some(done) = self.install_huge(site, entry) {
                return Some(done);
            }
        }
        let mut held = site.lock(self.machine(), entry)?;
        self.tables().split_table(site.space, site.vpn, &mut held);
        None
    }

    /// Maps the huge page of zeros, if there is one or memory for it. `None`: a small one it is to be.
    pub(super) fn map_huge_zeros(self, site: &Site<'_, M>) -> Option<Faulted> {
        let Some(head) = self.spaces().use_huge_zero(site.space) else {
            self.count_huge_fallback(site.space);
            return None;
        };
        let mut held = site.lock(self.machine(), Entry::NONE).filter(|held| held.state.used == 0)?;
        held.set_huge(Entry::zeros(head));
        Some(Faulted { pfn: head.add(site.vpn.slot() as u32), kind: FaultKind::HugeZeroPage, reads: 0 })
    }
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Whether reads may map the huge page of zeros.
    pub(super) fn uses_huge_zero(self) -> bool {
        let has_small = self.own().zeros.frame(self.pages()).is_some();
        has_small && self.knobs().decide(self.machine(), Knob::UseZeroPage, |setting| setting != 0)
    }

    /// The huge page of zeros, which is there as long as `space` is; it is allocated if there is none.
    pub(super) fn use_huge_zero(self, space: &AddressSpace<M>) -> Option<Pfn> {
        let mut huge = self.own().zeros.huge.lock_local(self.machine());
        if huge.page.is_none() {
            drop(huge);
            let request =
                Request { migratetype: MigrateType::Unmovable, urgency: Urgency::TriesHard, ..Request::THP };
            let Ok(new) = self.alloc(request) else {
                SlowEvents::bump(&self.own().events.thp_zero_page_alloc_failed);
                return None;
            };
            SlowEvents::bump(&self.own().events.thp_zero_page_alloc);
            huge = self.own().zeros.huge.lock_local(self.machine());
            if huge.page.is_some() {
                self.pages().free(new, Order::PAGEBLOCK).expect("it was allocated above and shown to nobody");
            } else {
                huge.page = Some(new);
                self.own().zeros.has_huge.store(1, Relaxed);
            }
        }
        if space.huge_zero.swap(1, Relaxed) == 0 {
            huge.users += 1;
        }
        huge.page
    }

    /// `space` has ended, and uses the huge page of zeros no more.
    pub(super) fn leave_huge_zero(self, space: &AddressSpace<M>) {
        if space.huge_zero.swap(0, Relaxed) != 0 {
            self.own().zeros.drop_huge(self.machine());
        }
    }

    /// Memory is short: the huge page of zeros goes, if nobody may map it any more.
    pub fn free_huge_zero(self) {
        if self.own().zeros.has_huge.load(Relaxed) == 0 {
            return;
        }
        let page = {
            let mut huge = self.own().zeros.huge.lock_local(self.machine());
            if huge.users > 0 { None } else { huge.page.take() }
        };
        if let Some(page) = page {
            self.own().zeros.has_huge.store(0, Relaxed);
            self.pages().free(page, Order::PAGEBLOCK).expect("it was allocated with its first use");
        }
    }
}
