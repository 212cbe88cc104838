//! Putting a huge page in the place of the small ones that shared memory has of 2 MiB (`collapse_file`), whoever maps them.
//!
//! What counts is the file, not who maps it: whether pages were used of late, or by how many, is not asked. While they are copied each is
//! locked and frozen, so who looks for one waits or looks again; page tables that mapped them lose their frames, and the next touch maps the
//! huge page.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::collapse::{Asker, Collapse};
use super::entry::Entry;
use super::region::HugePages;
use super::space::AddressSpace;
use super::{CollapseDoor, File, SpacesGround, Vpn};
use crate::ground::ids::{Node, Order, PAGEBLOCK_PAGES};
use crate::ground::machine::{Chore, Machine};
use crate::lru::page::PageFlag;
use crate::pages::request::Placement;
use crate::pages::stat::SlowEvents;
use crate::rules::knobs::Knob;
use crate::vm::rmap::Leave;

/// Where a huge page may be put.
struct Place<M: Machine> {
    file: Arc<File<M>>,
    /// The first of the file's pages.
    index: u32,
    placement: Placement,
}

impl<M: Machine, G: SpacesGround<M>> CollapseDoor<'_, M, G> {
    /// Puts a huge page in the place of what the table that begins at `start` is to map of shared memory. Pages in swap are not read back for
    /// it, as Linux does with up to 64.
    pub(super) fn collapse_shared(self, space: &AddressSpace<M>, start: Vpn, asker: Asker) -> Collapse {
        let Some(place) = self.shared_place(space, start, asker) else { return Collapse::Stays };
        let Some(node) = self.worth_gathering(&place, asker) else { return Collapse::Stays };
        let Some(huge) = self.alloc_collapsed(node, place.placement) else { return Collapse::NoMemory };
        let pages = place.index..place.index + PAGEBLOCK_PAGES;
        let small = self.shared().gather(&place.file, pages.clone());
        let locked: Vec<_> =
            small.heads().take_while(|&head| self.lru().page(head).set(PageFlag::Locked)).collect();
        let is_ours = locked.len() == small.heads().count();
        let unmapped = is_ours && small.heads().all(|head| self.rmap().try_to_unmap(head, Leave::Nothing));
        let done = unmapped && self.shared().put_huge(&place.file, (&small, huge), place.placement);
        if !done {
            for head in locked {
                self.lru().page(head).clear(PageFlag::Locked);
            }
            self.shared().scatter(&small);
            self.lru().uncharge(huge);
            self.pages()
                .free(huge, Order::PAGEBLOCK)
                .expect("the block was allocated above, and shown to nobody");
            return Collapse::Stays;
        }
        self.retract_tables(&place.file, pages.start);
        Collapse::Done
    }

    /// What of shared memory is at `start` of `space`, if it may be huge.
    fn shared_place(self, space: &AddressSpace<M>, start: Vpn, asker: Asker) -> Option<Place<M>> {
        let (region, _) = space.region_of(self.machine(), start)?;
        let asked = asker == Asker::Program && region.huge != HugePages::Never && region.has_whole(start);
        if !asked && !self.faults().may_be_huge_shared(&region, start) {
            return None;
        }
        let (file, first) = region.shared_file()?;
        let index = first + (start.0 - region.start.0);
        Some(Place { file: Arc::clone(file), index, placement: region.placement })
    }

    /// The node that most of the pages are on, if a huge page may take their place (`hpage_collapse_scan_file`).
    fn worth_gathering(self, place: &Place<M>, asker: Asker) -> Option<Node> {
        let pages = place.index..place.index + PAGEBLOCK_PAGES;
        let small = self.shared().small_pages(&place.file, pages)?;
        let mut on_nodes = alloc::vec![0_u32; self.topology().nodes.len()];
        for part in &small {
            self.machine().spend(Chore::MigrateScan, 1);
            let page = self.lru().page(part.head());
            let of_file = 1;
            if page.refs() != page.mapped() + of_file {
                return None;
            }
            on_nodes[usize::from(self.pages().node_of_page(part.head()).0)] += 1;
        }
        let empty = PAGEBLOCK_PAGES - small.len() as u32;
        let by = (Knob::KhugepagedMaxPtesNone, u64::from(empty));
        let is_sparse =
            self.knobs().decide_by(self.machine(), by, |most| most, |most| u64::from(empty) > most);
        if asker == Asker::Daemon && is_sparse {
            SlowEvents::bump(&self.own().events.thp_scan_exceed_none_pte);
            return None;
        }
        // The first of those with the most.
        let most = on_nodes.iter().enumerate().rev().max_by_key(|(_, pages)| **pages);
        most.map(|(node, _)| Node(node as u16))
    }

    /// Takes the frames of tables that can map the huge page with which page `index` of `file` begins, and have no entries left
    /// (`retract_page_tables`).
    fn retract_tables(self, file: &File<M>, index: u32) {
        let mappers = file.mappers(self.machine());
        let frames: Vec<_> = mappers
            .iter()
            .filter_map(|mapper| {
                let (start, pages) = mapper.places(&(index..index + PAGEBLOCK_PAGES))?;
                let is_whole = pages == PAGEBLOCK_PAGES && start == start.table_start();
                let table = mapper.space.table(start).filter(|_| is_whole)?;
                let mut held = table.lock(self.machine());
                let is_empty = held.state.used == 0 && held.huge() == Entry::NONE;
                let frame = if is_empty { held.state.frame.take() } else { None };
                frame.inspect(|_| mapper.space.stat.count_tables(-1))
            })
            .collect();
        drop(mappers);
        for frame in frames {
            self.tables().give_back(frame);
        }
    }
}
