//! NUMA hints: pages that are there are made to fault once more, so that the fault says who uses them
//! (`change_prot_numa`, `do_numa_page`). Which address space's turn it is, and what becomes of a page whose user is known,
//! is [`crate::tier`]'s to say; here is what an address space shows of itself, the marks, and which pages get none.

use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::mempolicy::MemPolicy;
use super::region::{Backing, Protection, Region};
use super::space::AddressSpace;
use super::table::Held;
use super::{FileKind, SpacesDoor, SpacesGround, Table, Vpn};
use crate::ground::ids::{Node, PAGEBLOCK_PAGES};
use crate::ground::machine::{Chore, Machine};
use crate::lru::page::PageFlag;

/// A region, as who marks pages sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HintArea {
    /// Its first page.
    pub start: Vpn,
    /// The one behind its last.
    pub end: Vpn,
    /// Whether its pages are marked: not where a policy says where they are to be, not shared memory or files in memory, not a
    /// file that is only read, nor what nobody may touch.
    pub is_scanned: bool,
}

/// What was marked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hinted {
    /// Virtual pages whose next touch is a hint fault; of a huge page, its first.
    pub pages: alloc::vec::Vec<Vpn>,
    /// How many of them are huge.
    pub huge: u32,
}

impl Hinted {
    /// Pages of 4 KiB that were marked (`numa_pte_updates`).
    pub fn updates(&self) -> u32 {
        self.pages.len() as u32 + self.huge * (PAGEBLOCK_PAGES - 1)
    }
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// The lowest region of `space` that ends above `from`.
    pub fn hint_area(self, space: &AddressSpace<M>, from: Vpn) -> Option<HintArea> {
        let regions = space.regions.lock_local(self.machine());
        let region = regions.within(from, Vpn(u32::MAX)).next()?;
        Some(HintArea { start: region.start, end: region.end, is_scanned: is_scanned(region) })
    }

    /// Marks the pages from `start` to before `end` of `space`, which lie in one region, of the nodes that `marks` says yes to: the
    /// next touch of each is a [`super::FaultKind::Hint`]. Passed by are small pages on `home`, where the only task of the process
    /// runs; the page of zeros; private pages that others map too; and written pages of a file on a disk.
    pub fn hint(
        self,
        space: &AddressSpace<M>,
        (start, end): (Vpn, Vpn),
        home: Option<Node>,
        marks: impl Fn(Node) -> bool,
    ) -> Hinted {
        let mut hinted = Hinted::default();
        let found = space.region_of(self.machine(), start).filter(|(region, _)| is_scanned(region));
        let Some((region, _)) = found else { return hinted };
        let shared = matches!(region.backing, Backing::Shared { .. });
        let home = home.filter(|_| !shared);
        for (first, table) in space.tables.within(start, end.min(region.end)) {
            let range = (start.max(first), end.min(region.end).min(first.add(PAGEBLOCK_PAGES)));
            let is_wanted =
                |entry: Entry| self.is_hinted_here(entry, shared, home) && marks(self.node_of(entry));
            let marks_huge =
                |entry: Entry| entry.is_present() && !entry.has(bit::HINTED) && marks(self.node_of(entry));
            self.hint_table(table, range, (&is_wanted, &marks_huge), &mut hinted);
        }
        hinted
    }

    /// Whether the next touch of `vpn` of `space` is a hint fault.
    pub fn is_hinted(self, space: &AddressSpace<M>, vpn: Vpn) -> bool {
        space.table(vpn).is_some_and(|table| table.entry(vpn).has(bit::HINTED))
    }

    fn node_of(self, entry: Entry) -> Node {
        self.pages().node_of_page(entry.head())
    }

    fn hint_table(
        self,
        table: &Table<M>,
        (start, end): (Vpn, Vpn),
        (small, huge): (&dyn Fn(Entry) -> bool, &dyn Fn(Entry) -> bool),
        hinted: &mut Hinted,
    ) {
        let mut held = table.lock(self.machine());
        if held.huge() != Entry::NONE {
            if start == start.table_start() && huge(held.huge()) {
                mark(self.machine(), &mut held, (start, hinted));
                hinted.huge += 1;
            }
            return;
        }
        for vpn in (start.0..end.0).map(Vpn) {
            if small(held.entry(vpn)) {
                mark(self.machine(), &mut held, (vpn, hinted));
            }
        }
    }

    /// Whether a small page's entry is marked, as far as nodes do not say otherwise.
    fn is_hinted_here(self, entry: Entry, shared: bool, home: Option<Node>) -> bool {
        if !entry.is_present() || entry.has(bit::HINTED | bit::BARRED) || Some(self.node_of(entry)) == home {
            return false;
        }
        let page = self.lru().page(entry.head());
        let written = PageKind::of(page) == PageKind::File && page.has(PageFlag::Dirty);
        !written && (shared || PageKind::of(page) == PageKind::Anon && page.is_mapped_once())
    }
}

fn mark<M: Machine>(machine: &M, held: &mut Held<'_, M>, (vpn, hinted): (Vpn, &mut Hinted)) {
    held.set_bits(vpn, bit::HINTED);
    machine.spend(Chore::HintMark, 1);
    hinted.pages.push(vpn);
}

/// Whether pages of `region` are marked at all.
fn is_scanned<M: Machine>(region: &Region<M>) -> bool {
    let may_move = match &region.backing {
        Backing::Anonymous => true,
        // Shared memory and tmpfs have policies of their own, even where nobody set one (`vma_policy_mof`).
        Backing::Private { file, .. } | Backing::Shared { file, .. } => {
            file.kind() != FileKind::Memory && region.protection == Protection::ReadWrite
        }
    };
    may_move && region.policy == MemPolicy::Local && region.protection != Protection::None
}
