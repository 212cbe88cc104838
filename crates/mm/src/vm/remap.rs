//! Regions that grow, shrink and move (`mremap`). What moves keeps its pages: whole tables go over as they are where both
//! places are aligned alike, huge pages in one piece with them, else entry by entry (`move_page_tables`).

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::entry::Entry;
use super::region::{Backing, Region};
use super::space::{AddressSpace, MapError};
use super::{SpacesDoor, SpacesGround, Table, TablesDoor, Vpn};
use crate::ground::ids::PAGEBLOCK_PAGES;
use crate::ground::machine::{Chore, Machine};
use crate::pages::request::AllocError;

/// Pages that move to `to`.
#[derive(Clone, Copy)]
struct Move {
    from: Vpn,
    to: Vpn,
    pages: u32,
}

impl Move {
    /// Where `vpn`, which is one of them, comes to be.
    fn target(self, vpn: Vpn) -> Vpn {
        self.to.add(vpn.0 - self.from.0)
    }

    /// Those of them that are in the table that begins at `first`.
    fn in_table(self, first: Vpn) -> Self {
        let (start, end) = (self.from.max(first), self.from.add(self.pages).min(first.add(PAGEBLOCK_PAGES)));
        Self { from: start, to: self.target(start), pages: end.0 - start.0 }
    }

    /// Whether these are all of a table, and come to be all of another.
    fn is_whole(self) -> bool {
        self.pages == PAGEBLOCK_PAGES
            && self.from == self.from.table_start()
            && self.to == self.to.table_start()
    }
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Makes the `old_pages` from `from` on of `space` `new_pages` from `to` on: they move, if that is somewhere else, and
    /// what lay there goes first; the first of them stay if they become fewer, and what they go on with is mapped if they
    /// become more. No old pages mean a second mapping of what is shared.
    ///
    /// # Errors
    /// If not all of the old pages are mapped, the two places overlap, there is no room to grow, or too much is promised;
    /// then what is at `from` stays, but for a tail that was to go.
    pub fn mremap(
        self,
        space: &Arc<AddressSpace<M>>,
        from: Vpn,
        old_pages: u32,
        to: Vpn,
        new_pages: u32,
    ) -> Result<(), MapError> {
        self.machine().spend(Chore::Syscall, 1);
        self.machine().spend(Chore::Regions, 1);
        let end = |start: Vpn, pages: u32| start.0.checked_add(pages).map(Vpn).ok_or(MapError::Size);
        let (old_end, new_end) = (end(from, old_pages)?, end(to, new_pages)?);
        if new_pages == 0 {
            return Err(MapError::Size);
        }
        let _changes = space.changes.lock_local(self.machine());
        if old_pages == 0 {
            return self.map_again(space, from, (to, new_end));
        }
        if space.regions.lock_local(self.machine()).mapped_up_to(from, old_end) < old_end {
            return Err(MapError::NotMapped);
        }
        let stays = from == to;
        if !stays && from < new_end && to < old_end {
            return Err(MapError::Overlap);
        }
        if !stays {
            self.unmap_range(space, to, new_end);
        }
        if new_pages < old_pages {
            self.unmap_range(space, from.add(new_pages), old_end);
        }
        let kept = new_pages.min(old_pages);
        let grown = self.promise_growth(space, old_end, new_pages - kept, (to.add(kept), new_end))?;
        let moved = if stays { Ok(()) } else { self.move_regions(space, Move { from, to, pages: kept }) };
        if moved.is_err() {
            self.uncommit(grown.as_ref().map_or(0, Region::committed));
        } else if let Some(region) = grown {
            self.note_place(space, &region);
            space.regions.lock_local(self.machine()).insert_merged(region);
        }
        moved
    }

    /// What comes behind the region that ends at `end`, of which it is more, at `place`; it is promised already.
    fn promise_growth(
        self,
        space: &AddressSpace<M>,
        end: Vpn,
        pages: u32,
        place: (Vpn, Vpn),
    ) -> Result<Option<Region<M>>, MapError> {
        if pages == 0 {
            return Ok(None);
        }
        let regions = space.regions.lock_local(self.machine());
        if place.0 == end && regions.has_any(place.0, place.1) {
            return Err(MapError::NoRoom);
        }
        let last = regions.find(Vpn(end.0 - 1)).ok_or(MapError::NotMapped)?;
        let more = last.continued(end, pages).moved(place.0);
        drop(regions);
        if !more.backing.has(pages) {
            return Err(MapError::Size);
        }
        self.commit(more.committed())?;
        Ok(Some(more))
    }

    /// Maps the shared pages at `from` at `range` too.
    fn map_again(self, space: &Arc<AddressSpace<M>>, from: Vpn, range: (Vpn, Vpn)) -> Result<(), MapError> {
        let region = space.region_of(self.machine(), from).map(|(region, _)| region);
        let shared = region.filter(|region| matches!(region.backing, Backing::Shared { .. }));
        let pages = range.1.0 - range.0.0;
        let region = shared.ok_or(MapError::NotMapped)?.continued(from, pages).moved(range.0);
        if !region.backing.has(pages) {
            return Err(MapError::Size);
        }
        self.unmap_range(space, range.0, range.1);
        self.note_mapper(space, &region);
        space.regions.lock_local(self.machine()).insert_merged(region);
        Ok(())
    }

    /// Moves regions with all that is in them. Nobody can fault at either place meanwhile: there is no region.
    fn move_regions(self, space: &Arc<AddressSpace<M>>, moving: Move) -> Result<(), MapError> {
        let (from, end) = (moving.from, moving.from.add(moving.pages));
        let (regions, neighbours) = {
            let mut regions = space.regions.lock_local(self.machine());
            let taken = regions.take(from, end);
            space.next_generation();
            (taken, regions.neighbours(from, end))
        };
        let part = |region: &Region<M>| Move {
            from: region.start,
            to: moving.target(region.start),
            pages: region.pages(),
        };
        let room = regions.iter().try_for_each(|region| self.tables().make_room(space, part(region)));
        if let Err(error) = room {
            let mut now = space.regions.lock_local(self.machine());
            for region in regions {
                now.insert_merged(region);
            }
            let new_neighbours = now.neighbours(moving.to, moving.target(end));
            drop(now);
            self.tables().free_tables(space, (moving.to, moving.target(end)), new_neighbours);
            return Err(MapError::Alloc(error));
        }
        for region in regions {
            let moved = region.moved(moving.target(region.start));
            // Who looks for a page's entries finds both places, as long as it may be at either.
            self.note_place(space, &moved);
            self.move_entries(space, &region, part(&region));
            space.regions.lock_local(self.machine()).insert_merged(moved);
            if let Backing::Shared { file, .. } | Backing::Private { file, .. } = &region.backing {
                file.forget_mapper(self.machine(), space.id, region.start, region.end);
            }
        }
        self.machine().flush_tlb(space.id);
        self.forget_moved(space, from, end);
        self.tables().free_tables(space, (from, end), neighbours);
        Ok(())
    }

    /// Who looks for entries of a page is to look where `region` is.
    fn note_place(self, space: &Arc<AddressSpace<M>>, region: &Region<M>) {
        self.note_mapper(space, region);
        if !matches!(region.backing, Backing::Shared { .. }) {
            self.note_moved(space, region.anon, (region.start, region.pages()));
        }
    }

    /// Moves the entries of `region`, table by table, each under the locks that who looks for entries takes.
    fn move_entries(self, space: &AddressSpace<M>, region: &Region<M>, moving: Move) {
        let family = self.family(space.family);
        let tables: Vec<_> = space.tables.within(region.start, region.end).collect();
        for (first, table) in tables {
            let _anon = family.as_ref().map(|family| family.members.lock_local(self.machine()));
            let _file = match &region.backing {
                Backing::Anonymous => None,
                Backing::Shared { file, .. } | Backing::Private { file, .. } => {
                    Some(file.mappers(self.machine()))
                }
            };
            self.tables().move_table(space, table, moving.in_table(first));
        }
    }
}

impl<M: Machine, G: SpacesGround<M>> TablesDoor<'_, M, G> {
    /// Sees to it that what moves has tables to come to.
    fn make_room(self, space: &AddressSpace<M>, moving: Move) -> Result<(), AllocError> {
        let end = moving.from.add(moving.pages);
        let tables: Vec<_> = space.tables.within(moving.from, end).collect();
        for (first, table) in tables {
            let part = moving.in_table(first);
            if table.lock(self.machine()).state.used == 0 {
                continue;
            }
            // Nobody else makes tables here: there is no region yet.
            if part.is_whole() {
                self.give_upper(space, part.to, &|| true)?;
                continue;
            }
            let last = part.to.add(part.pages - 1);
            self.give_table(space, part.to, || true)?;
            self.give_table(space, last, || true)?;
        }
        Ok(())
    }

    /// Moves `part`, which is in `table`, to where it is to be.
    fn move_table(self, space: &AddressSpace<M>, table: &Table<M>, part: Move) {
        let mut held = table.lock(self.machine());
        if held.state.used == 0 {
            return;
        }
        if part.is_whole() {
            self.machine().spend(Chore::MoveEntry, 1);
            let target = space.tables.get_or_make(self.machine(), part.to);
            let mut to = target.lock(self.machine());
            let spare = to.state.frame.take();
            to.state.frame = held.state.frame.take();
            if held.huge() == Entry::NONE {
                (0..part.pages).for_each(|page| {
                    let entry = held.set(part.from.add(page), Entry::NONE);
                    to.set(part.to.add(page), entry);
                });
                held.state.is_small = false;
            } else {
                to.set_huge(held.set_huge(Entry::NONE));
            }
            drop((held, to));
            if let Some(frame) = spare {
                space.stat.count_tables(-1);
                self.give_back(frame);
            }
            return;
        }
        self.open_table(space, part.from, &mut held);
        // Both may be one table. Who looks for entries waits for the family's and the file's locks.
        let pages = (0..part.pages).filter(|&page| held.entry(part.from.add(page)) != Entry::NONE);
        let pages: Vec<u32> = pages.collect();
        let taken = pages.into_iter().map(|page| (page, held.set(part.from.add(page), Entry::NONE)));
        let taken: Vec<(u32, Entry)> = taken.collect();
        drop(held);
        self.machine().spend(Chore::MoveEntry, taken.len() as u32);
        for (page, entry) in taken {
            let at = part.to.add(page);
            space.tables.get_or_make(self.machine(), at).lock(self.machine()).set(at, entry);
        }
    }
}
