//! Which pages are in use, as accessed bits of page tables say, for those that are kept by generations: a walk over the tables of a
//! group's address spaces (`walk_mm`), and a look at what is mapped around a page that eviction found in use
//! (`lru_gen_look_around`).
//!
//! Tables whose own entry is old are skipped by the kernel where it can; here their entries are looked at, and none is found
//! used. An address space that has not run since the last time is left alone, as is what was found dense for that walk.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::region::{Backing, Region};
use super::table::Held;
use super::{AddressSpace, Entry, FileKind, ReadPattern, RmapDoor, SpacesGround, Vpn, bit};
use crate::ground::ids::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Chore, Machine};
use crate::lru::{Kind, MIN_BATCH, Swappiness, VecId, WalkedTables};
use crate::memcg::GroupId;
use crate::rules::policy::GenAroundRule;

/// In a table that is worth a look next time, one entry in this many was used (`suitable_to_scan`): as many as there are in a
/// line of the processor's cache.
const DENSE: usize = 8;

/// A walk for a set of lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) vec: VecId,
    /// The youngest generation: pages in use come there.
    pub(crate) generation: u64,
    pub(crate) swappiness: Swappiness,
}

/// What becomes of pages that are found in use around one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Around {
    /// They are not looked for.
    Left,
    /// They come to the youngest generation by way of the CPU's batch.
    Activated,
    /// They belong to it at once: who reclaims keeps account of that, as kswapd does.
    Promoted,
}

impl<M: Machine, G: SpacesGround<M>> RmapDoor<'_, M, G> {
    /// Clears accessed bits of all that the walk's group has mapped; pages in use are young from now on. Who walks may hold locks of
    /// an address space himself, as a fork that reclaims does: what is locked is passed over.
    pub(crate) fn walk_tables(self, walk: Walk) {
        let spaces = self.spaces_of(walk.vec.group);
        let ids: Vec<u32> = spaces.iter().map(|space| space.id.0).collect();
        let begun = self.generations().begins_with(walk.vec, &ids);
        if begun.iter().all(Option::is_none) {
            return;
        }
        self.generations().begin_filter(walk.vec, walk.generation + 1);
        for (space, tables) in spaces.iter().zip(begun) {
            if let Some(tables) = tables {
                self.walk_space(space, tables, walk);
            }
        }
    }

    fn walk_space(self, space: &AddressSpace<M>, tables: WalkedTables, walk: Walk) {
        let Some(regions) = space.regions.try_lock_local(self.machine()) else { return };
        let regions: Vec<Region<M>> = regions.iter().cloned().collect();
        for region in regions.iter().filter(|region| is_walked(region, walk.swappiness)) {
            for (first, table) in space.tables.within(region.start, region.end) {
                let id = u64::from(space.id.0) << 32 | u64::from(first.0 >> PAGEBLOCK_ORDER);
                // What a huge entry maps is looked at in any case.
                let is_passed_over = tables == WalkedTables::Dense && table.huge() == Entry::NONE;
                if is_passed_over && !self.generations().is_dense(walk.vec, walk.generation, id) {
                    continue;
                }
                let range = first.max(region.start)..first.add(PAGEBLOCK_PAGES).min(region.end);
                let Some(mut held) = table.try_lock(self.machine()) else { continue };
                if self.walk_table(&mut held, range, walk) {
                    self.generations().note_dense(walk.vec, walk.generation + 1, id);
                }
            }
        }
    }

    /// The address spaces of those who are in `group`.
    fn spaces_of(self, group: GroupId) -> Vec<Arc<AddressSpace<M>>> {
        let families: Vec<_> =
            self.own().families.lock_local(self.machine()).values().map(Arc::clone).collect();
        let members = families.iter().flat_map(|family| {
            let members = family.members.lock_local(self.machine());
            members.iter().map(|member| Arc::clone(&member.space)).collect::<Vec<_>>()
        });
        members.filter(|space| space.group() == group).collect()
    }

    /// Says whether many of the entries were used.
    fn walk_table(self, held: &mut Held<'_, M>, range: Range<Vpn>, walk: Walk) -> bool {
        let is_huge = held.huge() != Entry::NONE;
        let all = if is_huge { 1 } else { range.end.0 - range.start.0 };
        let young = self.take_young(held, (range.start, all), (walk.vec, walk.swappiness));
        self.generations().promote(walk.vec, &young.pages, walk.generation);
        !is_huge && young.entries * DENSE >= all as usize
    }

    /// Clears the accessed bits of the `count` entries from `first` on that map pages of a set; gives these pages.
    fn take_young(
        self,
        held: &mut Held<'_, M>,
        (first, count): (Vpn, u32),
        (vec, swappiness): (VecId, Swappiness),
    ) -> Young {
        let mut young = Young::default();
        for vpn in (0..count).map(|step| first.add(step)) {
            let entry = held.entry(vpn);
            if !entry.is_present() || !entry.has(bit::ACCESSED) {
                continue;
            }
            let head = entry.head();
            if self.lru().vec_of(head) != vec || !swappiness.may_take(Kind::of(self.lru().page(head))) {
                continue;
            }
            if self.generations().leaves_alone(self.lru().page(head)) {
                continue;
            }
            held.clear_bits(vpn, bit::ACCESSED);
            self.machine().spend(Chore::RmapStep, 1);
            young.entries += 1;
            if young.pages.last() != Some(&head) {
                young.pages.push(head);
            }
        }
        young
    }

    /// Eviction found the page at `pfn` in use at `vpn` of `space`, whose table is held: others around it may be, too.
    pub(super) fn look_around(
        self,
        (space, held): (&AddressSpace<M>, &mut Held<'_, M>),
        (pfn, vpn): (Pfn, Vpn),
        around: Around,
    ) {
        if around == Around::Left || held.huge() != Entry::NONE {
            return;
        }
        let Some(region) = space.region_unless_locked(self.machine(), vpn) else { return };
        let table = vpn.table_start();
        let limits = table.max(region.start)..table.add(PAGEBLOCK_PAGES).min(region.end);
        let range = window(&limits, vpn);
        let (vec, count) = (self.lru().vec_of(pfn), range.end.0 - range.start.0);
        // Whoever looks at this page has a reason to: its kind may go.
        let mut young = self.take_young(held, (range.start, count), (vec, Swappiness(1)));
        let generation = self.generations().youngest(vec);
        if (young.entries + 1) * DENSE >= count as usize {
            let id = u64::from(space.id.0) << 32 | u64::from(table.0 >> PAGEBLOCK_ORDER);
            self.generations().note_dense(vec, generation, id);
        }
        if self.rules().reclaim.generations.around == GenAroundRule::WithItself {
            self.generations().promote(vec, &[pfn], generation);
        }
        match around {
            Around::Promoted => self.generations().promote(vec, &young.pages, generation),
            Around::Left | Around::Activated => {
                young.pages.retain(|&other| other != pfn);
                young.pages.iter().for_each(|&other| self.lru().activate_young(other));
            }
        }
    }
}

/// Entries that were used, and their pages.
#[derive(Default)]
struct Young {
    entries: usize,
    pages: Vec<Pfn>,
}

/// Whether pages of `region` may be young: they go by recency, and can go at all.
fn is_walked<M: Machine>(region: &Region<M>, swappiness: Swappiness) -> bool {
    let kind = match &region.backing {
        Backing::Anonymous => Kind::Anon,
        Backing::Shared { file, .. } | Backing::Private { file, .. } if file.kind() == FileKind::Memory => {
            Kind::Anon
        }
        Backing::Shared { .. } | Backing::Private { .. } => Kind::File,
    };
    !region.locked && region.pattern == ReadPattern::Normal && swappiness.may_take(kind)
}

/// 64 pages around `vpn`, within `limits`.
fn window(limits: &Range<Vpn>, vpn: Vpn) -> Range<Vpn> {
    let half = MIN_BATCH / 2;
    if limits.end.0 - limits.start.0 <= MIN_BATCH {
        limits.clone()
    } else if vpn.0 - limits.start.0 < half {
        limits.start..limits.start.add(MIN_BATCH)
    } else if limits.end.0 - vpn.0 < half {
        Vpn(limits.end.0 - MIN_BATCH)..limits.end
    } else {
        Vpn(vpn.0 - half)..vpn.add(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_of_64_pages_within_its_region() {
        let of = |start, end, vpn| {
            let window = window(&(Vpn(start)..Vpn(end)), Vpn(vpn));
            (window.start.0, window.end.0)
        };
        assert_eq!(of(512, 1024, 700), (668, 732));
        assert_eq!(of(512, 1024, 520), (512, 576));
        assert_eq!(of(512, 1024, 1020), (960, 1024));
        assert_eq!(of(512, 540, 520), (512, 540));
    }
}
