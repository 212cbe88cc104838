//! Pages that go because a program says so, though they are mapped. To swap or their file now (`MADV_PAGEOUT`, `reclaim_pages`), which is no
//! scan: nothing is counted as looked at or stolen, and nothing goes to slower memory instead. Or off their file (truncation, holes).

use alloc::vec::Vec;

use super::{PageOutDoor, ReclaimGround, Reclaimer, Scan};
use crate::ground::{Chore, Machine, Order, Pfn, Vpn, ZoneKind};
use crate::lru::{Alone, Cluster, SWAP_CLUSTER_MAX};
use crate::vm::rmap::Leave;
use crate::vm::{AddressSpace, AdviceError, File};

impl<M: Machine, G: ReclaimGround<M>> PageOutDoor<'_, M, G> {
    /// Pages from `start` on of `space`, up to `pages` of them, that nobody else maps go out at once, used or not. One that cannot
    /// stays: it is locked, or there is no swap for it.
    ///
    /// # Errors
    /// If not all of them are mapped; what is was looked at.
    pub fn page_out(self, space: &AddressSpace<M>, start: Vpn, pages: u32) -> Result<(), AdviceError> {
        self.machine().spend(Chore::Syscall, 1);
        // What this CPU holds back is on no list yet.
        self.lru().lru_drain_cpu(self.machine().cpu());
        let end = Vpn(start.0.saturating_add(pages));
        let heads = self.rmap().give_out(space, (start, end));
        // Parts of huge pages that were split for it came to its batch.
        self.lru().lru_drain_cpu(self.machine().cpu());
        let plug = self.swap().start_plug();
        for heads in heads.chunks(SWAP_CLUSTER_MAX) {
            let parts = page_out_some(self, heads);
            parts.chunks(SWAP_CLUSTER_MAX).for_each(|parts| drop(page_out_some(self, parts)));
        }
        self.swap().finish_plug(plug);
        if self.rmap().is_mapped(space, (start, end)) { Ok(()) } else { Err(AdviceError::NotMapped) }
    }

    /// The `pages` from `first` on of `file` go, dirty ones too, wherever they are mapped (`unmap_mapping_pages`, `truncate_inode_pages`).
    /// Who touches one afterwards has what the file holds there then. Copies that private mappings have of their own stay. Says how many
    /// went.
    pub fn cut_off(self, file: &File<M>, first: u32, pages: u32) -> u32 {
        for (_, part) in self.files().find_pages(file, first, first.saturating_add(pages)) {
            self.rmap().try_to_unmap(part.head(), Leave::Nothing);
            self.lru().put_page(part.head());
        }
        self.files().truncate_pages(file, first, pages)
    }
}

/// The same, of pages that the caller has references to, which are given back. Gives parts of large ones that were split for it, each with a
/// reference.
fn page_out_some<M: Machine, G: ReclaimGround<M>>(door: PageOutDoor<'_, M, G>, heads: &[Pfn]) -> Vec<Pfn> {
    let mut scan = Scan::new(Reclaimer::Direct, Order::ZERO, ZoneKind::Movable);
    scan.asked = true;
    let mut cluster = Cluster::default();
    let mut isolated = [None::<Alone>; SWAP_CLUSTER_MAX];
    for &head in heads {
        let alone = door.lru().isolate_page(head);
        // The isolator has one of its own.
        door.lru().put_page(head);
        if alone.is_some() {
            isolated[cluster.len()] = alone;
            cluster.push(head);
        }
    }
    let mut outcome = door.reclaim().shrink_pages(&cluster, &scan);
    let mut parts = core::mem::take(&mut outcome.parts);
    parts.retain(|&part| door.lru().page(part).try_get());
    door.lru().lru_drain_cpu(door.machine().cpu());
    let stays = |head: &Pfn| outcome.active.pages().contains(head) || outcome.inactive.pages().contains(head);
    for (&head, alone) in cluster.pages().iter().zip(isolated.into_iter().flatten()) {
        if stays(&head) {
            door.lru().put_back_page(head, alone);
        } else {
            door.lru().end_isolation_of(alone);
        }
    }
    parts
}
