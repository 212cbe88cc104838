//! Copies on write: a page that is mapped only to be read is written to. Its one owner goes on with it, anybody else gets
//! a copy; of a huge page, a small one, once its entry is split into 512 (since 5.8, whatever the policy). The huge page
//! itself stays in one piece: others have it, and none of its parts has gone.

use super::entry::{Entry, bit};
use super::fault::{Attempt, Contents, FaultKind, Site, done};
use super::region::Backing;
use super::table::{EntrySize, Held};
use super::{FaultDoor, SpacesGround, Touch, Vpn};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Chore, Machine};
use crate::lru::page::{Mapping, Page, PageFlag};
use crate::pages::stat::SlowEvents;
use crate::rules::policy::PartReuseRule;

/// Whether the anonymous page, which the caller's table maps, is mapped by no other. While somebody moves it or takes
/// it out of page tables, others have it still though they do not map it; then the answer is no.
fn is_ours(page: &Page) -> bool {
    if !matches!(page.mapping(), Mapping::Anon(_)) || !page.set(PageFlag::Locked) {
        return false;
    }
    let alone = page.is_mapped_once();
    page.clear(PageFlag::Locked);
    alone
}

/// Whether all that maps parts of the huge page at `head` is in the table of `vpn`, which is held: one address space alone
/// has it. One that was moved so that it lies in two tables is not found to be so.
fn is_ours_in_parts<M: Machine>(page: &Page, head: Pfn, (vpn, held): (Vpn, &Held<'_, M>)) -> bool {
    if !matches!(page.mapping(), Mapping::Anon(_)) || !page.set(PageFlag::Locked) {
        return false;
    }
    let is_part = |entry: Entry| entry.is_present() && entry.head() == head;
    let start = vpn.table_start();
    let here = (0..PAGEBLOCK_PAGES).filter(|&part| is_part(held.entry(start.add(part)))).count() as u32;
    let alone = here > 1 && here == page.mapped() && here == page.refs();
    page.clear(PageFlag::Locked);
    alone
}

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// A page is mapped, but perhaps not to be written to.
    pub(super) fn fault_present(self, site: &Site<'_, M>, entry: Entry, size: EntrySize) -> Attempt {
        let huge = size == EntrySize::Huge;
        let pfn = if huge { entry.pfn().add(site.vpn.slot() as u32) } else { entry.pfn() };
        if entry.has(bit::BARRED) {
            // The region allows it by now; who changes its protection comes to this entry later.
            let Some(mut held) = site.lock(self.machine(), entry) else { return Ok(None) };
            held.clear_bits(site.vpn, bit::BARRED);
            return Ok(None);
        }
        if entry.has(bit::HINTED) {
            let Some(mut held) = site.lock(self.machine(), entry) else { return Ok(None) };
            held.clear_bits(site.vpn, bit::HINTED);
            self.machine().spend(Chore::HintFault, 1);
            return done(pfn, FaultKind::Hint);
        }
        if site.touch == Touch::Read || entry.has(bit::WRITE) {
            return done(pfn, FaultKind::Spurious);
        }
        self.machine().spend(Chore::Fault, 1);
        let Some(mut held) = site.lock(self.machine(), entry) else { return Ok(None) };
        let head = entry.head();
        let page = self.lru().page(head);
        let shared_file = matches!(site.region.backing, Backing::Shared { .. });
        let is_whole_ours = || is_ours(page) && !self.swap().has_others(head);
        let is_alone = || match self.rules().reclaim.part_reuse {
            PartReuseRule::Copies if entry.has(bit::PART) => entry.has(bit::EXCLUSIVE),
            PartReuseRule::Reuses if entry.has(bit::PART) => {
                is_whole_ours() || is_ours_in_parts(page, head, (site.vpn, &held))
            }
            _ => is_whole_ours(),
        };
        if shared_file || is_alone() {
            let own = if shared_file { 0 } else { bit::EXCLUSIVE };
            if own != 0 && !entry.has(bit::EXCLUSIVE) {
                self.swap().let_go(head);
            }
            let now = held.entry(site.vpn).with(bit::WRITE | bit::DIRTY | bit::ACCESSED | own);
            if huge {
                held.set_huge(now);
            } else {
                held.set(site.vpn, now);
                SlowEvents::bump(&self.own().events.pgreuse);
            }
            if shared_file {
                self.files().mark_dirty(head);
            }
            return done(pfn, FaultKind::Reused);
        }
        if huge {
            self.tables().split_entry(site.space, site.vpn, &mut held);
            return Ok(None);
        }
        page.get();
        drop(held);
        let copied = self.copy_page(site, entry, entry.pfn());
        self.lru().put_page(head);
        copied
    }

    /// Puts a copy of `from` in the place of `entry`.
    pub(super) fn copy_page(self, site: &Site<'_, M>, entry: Entry, from: Pfn) -> Attempt {
        let pfn = self.alloc_page(site, Contents::Any)?;
        self.machine().copy(from, pfn, Order::ZERO);
        let copied = self.install_new(site, entry, pfn, FaultKind::Copied)?;
        if copied.is_some() {
            site.space.stat.count_copied();
        }
        if copied.is_some() && entry.is_present() {
            // Another CPU may still read the page that it had.
            self.machine().flush_tlb(site.space.id);
            let old = entry.head();
            if self.lru().page(old).sub_mapped() {
                self.swap().unmapped(old);
            }
            if entry.has(bit::PART) {
                self.deferred().part_gone(old, Some(entry.pfn()));
            }
            self.lru().put_page(old);
        }
        Ok(copied)
    }
}
