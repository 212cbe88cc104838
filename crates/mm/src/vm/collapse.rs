//! Putting a huge page in the place of the small ones of a table (`collapse_huge_page`).
//!
//! While the pages are copied, marks of migration stand in the place of their entries, and each page is locked: who touches
//! one waits, and nobody moves or reclaims it; who holds one already keeps the table as it is. Pages that another address
//! space maps too are copied as well, and stay with that one. The lock under which regions change is held all the while, so
//! nothing is unmapped or forked meanwhile; a page that comes to an empty entry undoes it all.

use alloc::vec::Vec;

use super::Vpn;
use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::region::{Backing, HugePages, Region};
use super::space::AddressSpace;
use super::table::{Held, Table};
use super::{CollapseDoor, SpacesGround};
use crate::ground::ids::{Node, Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Access, Chore, Line, LineKind, Machine};
use crate::lru::page::{Mapping, PageFlag};
use crate::pages::request::{Placement, Request, Urgency};
use crate::pages::stat::SlowEvents;
use crate::rules::knobs::Knob;

/// What became of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Collapse {
    /// A huge page is in its place.
    Done,
    /// It stays: too little is there, or somebody has to do with a page of it.
    Stays,
    /// There was no huge page to be had.
    NoMemory,
}

/// Whether nothing but zeros is there: it counts as empty.
fn is_empty(entry: Entry) -> bool {
    entry == Entry::NONE || entry.is_zeros()
}

/// For whom a table is collapsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asker {
    /// khugepaged: its settings hold, and a page was used of late.
    Daemon,
    /// A program (`MADV_COLLAPSE`): anything that is there will do.
    Program,
}

/// Who maps a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sharing {
    /// The table that is looked at.
    Alone,
    /// Others as well: a child, or a parent (`folio_maybe_mapped_shared`).
    WithOthers,
}

/// How many entries of a table map parts of a huge page; the last answer is kept, for parts stand side by side.
#[derive(Clone, Copy, Debug, Default)]
struct PartsHere {
    last: Option<(Pfn, u32)>,
}

impl PartsHere {
    fn of<M: Machine>(&mut self, head: Pfn, held: &Held<'_, M>, start: Vpn) -> u32 {
        if let Some((_, here)) = self.last.filter(|(of, _)| *of == head) {
            return here;
        }
        let is_part = |slot: &u32| {
            let entry = held.entry(start.add(*slot));
            entry.is_present() && entry.head() == head
        };
        let here = (0..PAGEBLOCK_PAGES).filter(is_part).count() as u32;
        self.last = Some((head, here));
        here
    }
}

/// What a table mapped, which is to be in one huge page.
#[derive(Debug, Default)]
struct Taken {
    /// The first entries, as they were.
    entries: Vec<Entry>,
    /// The pages that are locked for it, huge ones by their heads.
    locked: Vec<Pfn>,
}

impl<M: Machine, G: SpacesGround<M>> CollapseDoor<'_, M, G> {
    /// Puts a huge page in the place of the table that begins at `start` for a program that asks for it now; says whether
    /// one is there.
    pub(super) fn collapse_at_once(self, space: &AddressSpace<M>, start: Vpn) -> bool {
        let there =
            |space: &AddressSpace<M>| space.table(start).is_some_and(|table| table.huge().is_present());
        let region = space.region_of(self.machine(), start);
        let is_shared = region.is_some_and(|(region, _)| region.shared_file().is_some());
        if is_shared && !there(space) {
            self.collapse_shared(space, start, Asker::Program);
            return self.faults().map_collapsed(space, start);
        }
        there(space) || self.collapse(space, start, Asker::Program) == Collapse::Done
    }

    /// Puts a huge page in the place of the pages of the table that begins at `start`, if enough are there, few enough are
    /// shared with others, nothing but page tables refers to them, and one was used of late. Parts of a huge page that is
    /// mapped by small entries are pages like others (both since 5.8, whatever the policy). Pages in swap are not read back
    /// for it, as Linux does with up to 64.
    pub(super) fn collapse(self, space: &AddressSpace<M>, start: Vpn, asker: Asker) -> Collapse {
        let Some(table) = space.table(start) else { return Collapse::Stays };
        let Some(node) = self.worth_collapsing(space, (&table.lock(self.machine()), start), asker) else {
            return Collapse::Stays;
        };
        let Some(placement) = space.region_of(self.machine(), start).map(|(region, _)| region.placement)
        else {
            return Collapse::Stays;
        };
        let Some(huge) = self.alloc_collapsed(node, placement) else { return Collapse::NoMemory };
        if self.put_in_place(space, (start, table), huge, asker) {
            return Collapse::Done;
        }
        self.lru().uncharge(huge);
        self.pages().free(huge, Order::PAGEBLOCK).expect("the block was allocated above and shown to nobody");
        Collapse::Stays
    }

    /// A huge page that is to take the place of small ones, charged, if there is one.
    pub(super) fn alloc_collapsed(self, node: Node, placement: Placement) -> Option<Pfn> {
        let request = Request {
            node: Some(node),
            allowed: placement.allowed,
            urgency: Urgency::TriesHard,
            zero: false,
            ..Request::THP
        };
        let huge = self.alloc(request).ok();
        let charged = huge.filter(|&huge| self.lru().charge(huge).is_ok());
        let events = &self.own().events;
        let event =
            if charged.is_some() { &events.thp_collapse_alloc } else { &events.thp_collapse_alloc_failed };
        SlowEvents::bump(event);
        charged
    }

    /// The node that most of the table's pages are on, if a huge page may take their place.
    fn worth_collapsing(
        self,
        space: &AddressSpace<M>,
        (held, start): (&Held<'_, M>, Vpn),
        asker: Asker,
    ) -> Option<Node> {
        if held.huge() != Entry::NONE || held.state.used == 0 || held.state.frame.is_none() {
            return None;
        }
        let mut on_nodes = alloc::vec![0_u32; self.topology().nodes.len()];
        let (mut empty, mut shared, mut touched) = (0_u32, 0_u32, false);
        let mut parts = PartsHere::default();
        for vpn in (0..PAGEBLOCK_PAGES).map(|slot| start.add(slot)) {
            let entry = held.entry(vpn);
            if is_empty(entry) {
                empty += 1;
                continue;
            }
            // The look that compaction's scanner takes at a page is the like of this one.
            self.machine().spend(Chore::MigrateScan, 1);
            let here = if entry.has(bit::PART) { parts.of(entry.head(), held, start) } else { 1 };
            match self.sharing(space, entry, here)? {
                Sharing::Alone => {}
                Sharing::WithOthers => shared += 1,
            }
            touched |= entry.has(bit::ACCESSED);
            on_nodes[usize::from(self.pages().node_of_page(entry.pfn()).0)] += 1;
        }
        let allows = |knob: Knob, pages: u32| {
            let by = (knob, pages.into());
            !self.knobs().decide_by(self.machine(), by, |most| most, |most| u64::from(pages) > most)
        };
        let khugepaged_may = || {
            touched
                && allows(Knob::KhugepagedMaxPtesNone, empty)
                && allows(Knob::KhugepagedMaxPtesShared, shared)
        };
        // One with nothing in it but zeros may belong to a region without pages of its own, which is not looked at at all.
        let is_sparse =
            empty < PAGEBLOCK_PAGES && u64::from(empty) > self.knobs().get(Knob::KhugepagedMaxPtesNone);
        if asker == Asker::Daemon && is_sparse {
            SlowEvents::bump(&self.own().events.thp_scan_exceed_none_pte);
        }
        if asker == Asker::Daemon && !khugepaged_may() {
            return None;
        }
        // The first of those with the most.
        let most = on_nodes.iter().enumerate().rev().max_by_key(|(_, pages)| **pages);
        most.map(|(node, _)| Node(node as u16))
    }

    /// Who maps the anonymous page of `entry`, to which `here` entries of its table refer; `None` if it is not one, or
    /// something else refers to it, as far as can be seen.
    fn sharing(self, space: &AddressSpace<M>, entry: Entry, here: u32) -> Option<Sharing> {
        if !entry.is_present() {
            return None;
        }
        let head = entry.head();
        self.machine().touch(Line { kind: LineKind::Frame, index: head.0 }, Access::Read);
        let page = self.lru().page(head);
        if page.mapping() != Mapping::Anon(space.family) || page.refs() != page.mapped() {
            return None;
        }
        Some(if page.mapped() == here { Sharing::Alone } else { Sharing::WithOthers })
    }

    /// Whether `region` may have huge pages that are made of small ones: a program need not wait for the setting to allow it,
    /// if it has not said no itself.
    fn may_collapse_in(self, region: &Region<M>, asker: Asker) -> bool {
        let asked = asker == Asker::Program && region.huge != HugePages::Never;
        (asked && matches!(region.backing, Backing::Anonymous)) || self.spaces().may_be_huge(region)
    }

    /// Moves what the table maps to `huge` and maps that; says whether it did. If not, all is as before.
    fn put_in_place(self, space: &AddressSpace<M>, place: (Vpn, &Table<M>), huge: Pfn, asker: Asker) -> bool {
        let (start, table) = place;
        // The kernel's mmap_lock, for writing.
        let _changes = space.changes.lock_local(self.machine());
        let region = space.region_of(self.machine(), start).map(|(region, _)| region);
        let Some(region) =
            region.filter(|region| region.has_table(start) && self.may_collapse_in(region, asker))
        else {
            return false;
        };
        let Some(taken) = self.take_small_pages(space, place, asker) else { return false };
        self.fill(huge, &taken);
        let mut held = table.lock(self.machine());
        let came = |(slot, entry): (usize, &Entry)| {
            is_empty(*entry) && !is_empty(held.entry(start.add(slot as u32)))
        };
        if taken.entries.iter().enumerate().any(came) {
            self.give_small_pages_back(&mut held, start, &taken);
            return false;
        }
        let page = self.lru().page(huge);
        page.init(Mapping::Anon(space.family), region.anon_index(start), &[PageFlag::SwapBacked]);
        page.note_placement(region.placement);
        self.deferred().begin_huge(huge);
        page.add_mapped();
        for (entry, slot) in taken.entries.iter().zip(0..) {
            held.set(start.add(slot), Entry::NONE);
            if !is_empty(*entry) {
                space.stat.count_pages(PageKind::Anon, self.pages().node_of_page(entry.pfn()), -1);
            }
        }
        held.set_huge(Entry::of(huge, bit::WRITE | bit::ACCESSED | bit::DIRTY | bit::EXCLUSIVE));
        let node = self.pages().node_of_page(huge);
        space.stat.count_pages(PageKind::Anon, node, PAGEBLOCK_PAGES.into());
        if region.locked {
            self.unevictable().mlock_new(huge);
        }
        // As in a fault: without the table's lock the page may be unmapped at once.
        self.lru().lru_add(huge);
        drop(held);
        self.free_small_pages(&taken);
        true
    }

    /// Marks all entries of the table as migrating and locks each page. Gives the entries as they were, `None` if somebody
    /// has a page locked or refers to one; then nothing has changed.
    fn take_small_pages(
        self,
        space: &AddressSpace<M>,
        place: (Vpn, &Table<M>),
        asker: Asker,
    ) -> Option<Taken> {
        let (start, table) = place;
        let mut held = table.lock(self.machine());
        self.worth_collapsing(space, (&held, start), asker)?;
        let mut taken = Taken::default();
        for vpn in (0..PAGEBLOCK_PAGES).map(|slot| start.add(slot)) {
            let entry = held.entry(vpn);
            if is_empty(entry) {
                taken.entries.push(entry);
                continue;
            }
            self.machine().spend(Chore::RmapStep, 1);
            if !self.lock_page_of(entry, &mut taken) {
                self.give_small_pages_back(&mut held, start, &taken);
                return None;
            }
            // With the processor's latest bits; from here on it writes no more.
            taken.entries.push(held.set(vpn, entry.migrating()));
        }
        Some(taken)
    }

    /// Locks the page of `entry`, unless that is done already; says whether it is, and nothing but page tables refers to it.
    fn lock_page_of(self, entry: Entry, taken: &mut Taken) -> bool {
        let head = entry.head();
        if entry.has(bit::PART) && taken.locked.contains(&head) {
            return true;
        }
        let page = self.lru().page(head);
        if !page.set(PageFlag::Locked) {
            return false;
        }
        taken.locked.push(head);
        page.refs() == page.mapped()
    }

    /// Undoes [`Self::take_small_pages`] for the first entries of the table.
    fn give_small_pages_back(self, held: &mut Held<'_, M>, start: Vpn, taken: &Taken) {
        for (&entry, slot) in taken.entries.iter().zip(0..).filter(|(entry, _)| !is_empty(**entry)) {
            held.set(start.add(slot), entry);
        }
        self.unlock(taken);
    }

    fn unlock(self, taken: &Taken) {
        for &head in &taken.locked {
            self.lru().page(head).clear(PageFlag::Locked);
        }
    }

    /// Gives `huge` the contents of the pages of `taken`, and zeros where there was none.
    fn fill(self, huge: Pfn, taken: &Taken) {
        for (entry, slot) in taken.entries.iter().zip(0..) {
            if is_empty(*entry) {
                self.machine().clear(huge.add(slot), Order::ZERO);
            } else {
                self.machine().spend(Chore::Migrate, 1);
                self.machine().copy(entry.pfn(), huge.add(slot), Order::ZERO);
            }
        }
    }

    /// The pages of `taken` are mapped here no more: what nobody else maps is free.
    fn free_small_pages(self, taken: &Taken) {
        let entries = taken.entries.iter().filter(|entry| !is_empty(**entry));
        let heads: Vec<Pfn> = entries.map(|entry| entry.head()).collect();
        for &head in &heads {
            let page = self.lru().page(head);
            if page.sub_mapped() {
                self.unevictable().munlock(head);
                self.swap().unmapped(head);
            }
        }
        self.unlock(taken);
        self.lru().put_pages(&heads);
    }
}
