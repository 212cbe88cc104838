//! What only some frames need: who refers to a page, what it belongs to, where it stands for reclaim. A table beside
//! the descriptors, 20 bytes a frame, that exists from the first address space or file on; the links of the LRU lists are
//! those of the descriptor, which a free list does not need meanwhile.
//!
//! A page of an address space or of a file is counted by its references: one for each entry of a page table that maps
//! it, one for its file, one for each that works with it or pins it. Who gives the last one back frees it
//! (`LruDoor::put_page`). Only the head of a huge page has a line here.

use alloc::boxed::Box;

use crate::ground::{AcqRel, Acquire, AtomicU32, Pfn, Relaxed, Release, Zeroable, zeroed};
use crate::memcg::GroupId;
use crate::pages::{NodeMask, Placement};

/// What a page belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Mapping {
    /// Nothing: it is not a page of an address space or a file.
    None,
    /// Anonymous memory of a family of address spaces (a process and those that it forked); the index is the page's
    /// number in them, which fork keeps.
    Anon(u32),
    /// A file; the index is the page's number in it.
    File(u32),
    /// A slot of swap, for whoever comes to it first; the index is the slot.
    Slot,
}

impl Mapping {
    const ANON: u32 = 1 << 31;
    const SLOT: u32 = u32::MAX;

    const fn pack(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Anon(family) => Self::ANON | (family + 1),
            Self::File(file) => file + 1,
            Self::Slot => Self::SLOT,
        }
    }

    const fn unpack(word: u32) -> Self {
        match word {
            0 => Self::None,
            Self::SLOT => Self::Slot,
            word if word & Self::ANON != 0 => Self::Anon((word & !Self::ANON) - 1),
            word => Self::File(word - 1),
        }
    }
}

/// A flag of a page; the names are the kernel's `PG_…`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum PageFlag {
    /// On an LRU list. Set and cleared under the list's lock.
    Lru = 1,
    /// On an active list, or to be put on one.
    Active = 1 << 1,
    /// Used once since reclaim last looked (without a page table's accessed bit: read and write calls).
    Referenced = 1 << 2,
    /// Differs from what its file holds.
    Dirty = 1 << 3,
    /// Being written to its file.
    Writeback = 1 << 4,
    /// Somebody changes what it belongs to.
    Locked = 1 << 5,
    /// Anonymous or shared memory: it can only go to swap.
    SwapBacked = 1 << 6,
    /// Met by reclaim while under writeback: to be freed first thing when that ends.
    Reclaim = 1 << 7,
    /// It may be on some nodes only, as who has it said.
    Placed = 1 << 8,
    /// Read ahead, and who comes to it wants the next window (`PG_readahead`).
    ReadAhead = 1 << 9,
    /// Locked into memory by who maps it (`PG_mlocked`).
    Mlocked = 1 << 10,
    /// It was active before (`PG_workingset`).
    Workingset = 1 << 11,
    /// It was read from a slot of swap, and is not its owner's alone yet, or keeps the slot (`PG_swapcache`); beyond what is said below.
    SwapCache = 1 << 19,
    /// On the list of pages that cannot go, or taken off it (`PG_unevictable`).
    Unevictable = 1 << 20,
}

/// Above the flags: the generation that the page belongs to (its place among four and one; 0: none), the one on whose list it is
/// still, and how often it was used by calls after the first two times (where pages are kept by generations), then the group
/// that it is charged to, two flags before it.
const GENERATION_SHIFT: u32 = 12;
const LISTED_SHIFT: u32 = 15;
const USES_SHIFT: u32 = 17;
const GROUP_SHIFT: u32 = 21;
const GENERATION: u32 = 7 << GENERATION_SHIFT;
const LISTED: u32 = 3 << LISTED_SHIFT;
const USES: u32 = 3 << USES_SHIFT;
const FLAGS: u32 = (1 << GROUP_SHIFT) - 1;

/// The line of a page in the table.
#[derive(Debug, Default)]
pub(crate) struct Page {
    flags: AtomicU32,
    refs: AtomicU32,
    mapped: AtomicU32,
    mapping: AtomicU32,
    index: AtomicU32,
}

impl Page {
    /// The page was allocated by `placement`.
    pub(crate) fn note_placement(&self, placement: Placement) {
        if placement.allowed != NodeMask::ALL {
            self.set(PageFlag::Placed);
        }
    }

    /// The page begins its life: one reference, its maker's, and no flag but those of `flags`; whom it is
    /// charged to is said before.
    pub(crate) fn init(&self, mapping: Mapping, index: u32, flags: &[PageFlag]) {
        let group = self.flags.load(Relaxed) & !FLAGS;
        self.flags.store(flags.iter().fold(group, |bits, &flag| bits | flag as u32), Relaxed);
        self.mapped.store(0, Relaxed);
        self.mapping.store(mapping.pack(), Relaxed);
        self.index.store(index, Relaxed);
        // Pairs with the acquire of `try_get`: who gets a reference sees what the page is.
        self.refs.store(1, Release);
    }

    #[inline]
    pub(crate) fn has(&self, flag: PageFlag) -> bool {
        self.flags.load(Relaxed) & flag as u32 != 0
    }

    /// Sets `flag`; says whether it was clear.
    pub(crate) fn set(&self, flag: PageFlag) -> bool {
        self.flags.fetch_or(flag as u32, AcqRel) & flag as u32 == 0
    }

    /// Clears `flag`; says whether it was set.
    pub(crate) fn clear(&self, flag: PageFlag) -> bool {
        self.flags.fetch_and(!(flag as u32), AcqRel) & flag as u32 != 0
    }

    /// The place of the generation that it belongs to; `None`: it is on no list of one.
    #[inline]
    pub(crate) fn generation(&self) -> Option<usize> {
        ((self.flags.load(Relaxed) & GENERATION) >> GENERATION_SHIFT)
            .checked_sub(1)
            .map(|place| place as usize)
    }

    /// The place of the generation on whose list it is; walks change the other alone, and reclaim brings it there.
    pub(crate) fn listed(&self) -> usize {
        ((self.flags.load(Relaxed) & LISTED) >> LISTED_SHIFT) as usize
    }

    /// It belongs to the generation at `place` from now on, and is on its list. The lists' lock is held.
    pub(crate) fn enter_generation(&self, place: usize) {
        let bits = (place as u32 + 1) << GENERATION_SHIFT | (place as u32) << LISTED_SHIFT;
        self.change(GENERATION | LISTED, bits);
    }

    /// It belongs to the generation at `place` from now on, and stays on the list where it is. As above.
    pub(crate) fn join_generation(&self, place: usize) {
        self.change(GENERATION, (place as u32 + 1) << GENERATION_SHIFT);
    }

    /// It is on no list of a generation any more. As above.
    pub(crate) fn leave_generation(&self) {
        self.change(GENERATION | LISTED, 0);
    }

    /// How often it was used by calls beyond what flags say: 0 to [`Self::MOST_USES`].
    pub(crate) fn uses(&self) -> u32 {
        (self.flags.load(Relaxed) & USES) >> USES_SHIFT
    }

    /// The most that is counted.
    pub(crate) const MOST_USES: u32 = USES >> USES_SHIFT;

    /// It was used so often.
    pub(crate) fn set_uses(&self, uses: u32) {
        self.change(USES, uses.min(Self::MOST_USES) << USES_SHIFT);
    }

    /// Puts `bits` in the place of what `mask` covers.
    fn change(&self, mask: u32, bits: u32) {
        let changed = |flags: u32| Some(flags & !mask | bits);
        let _ = self.flags.fetch_update(AcqRel, Relaxed, changed);
    }

    /// The group that it is charged to; the root for what is charged to nobody.
    #[inline]
    pub(crate) fn group(&self) -> GroupId {
        GroupId((self.flags.load(Relaxed) >> GROUP_SHIFT) as u16)
    }

    /// It is charged to `group` from now on. Whoever calls has the page for itself.
    pub(crate) fn set_group(&self, group: GroupId) {
        let flags = self.flags.load(Relaxed) & FLAGS;
        self.flags.store(flags | u32::from(group.0) << GROUP_SHIFT, Relaxed);
    }

    /// References at this moment.
    #[inline]
    pub(crate) fn refs(&self) -> u32 {
        self.refs.load(Relaxed)
    }

    /// One more reference, by somebody who has one or a lock that keeps one in place.
    #[inline]
    pub(crate) fn get(&self) {
        self.refs.fetch_add(1, Relaxed);
    }

    /// A reference, unless the page is on its way out.
    pub(crate) fn try_get(&self) -> bool {
        let more = |refs: u32| (refs > 0).then(|| refs + 1);
        self.refs.fetch_update(Acquire, Relaxed, more).is_ok()
    }

    /// Gives a reference back; says whether it was the last.
    #[inline]
    pub(crate) fn put(&self) -> bool {
        // What others did with the page before they let go of it comes before its next life.
        self.refs.fetch_sub(1, AcqRel) == 1
    }

    /// Takes all references if there are exactly `expected`: nobody can get one after that.
    pub(crate) fn freeze(&self, expected: u32) -> bool {
        self.refs.compare_exchange(expected, 0, AcqRel, Relaxed).is_ok()
    }

    /// Ends [`Self::freeze`] with `refs` references.
    pub(crate) fn unfreeze(&self, refs: u32) {
        self.refs.store(refs, Release);
    }

    /// Page table entries that map the page.
    #[inline]
    pub(crate) fn mapped(&self) -> u32 {
        self.mapped.load(Relaxed)
    }

    pub(crate) fn add_mapped(&self) {
        self.mapped.fetch_add(1, Relaxed);
    }

    /// Whether one entry alone maps the page, and those that did have read what they wanted of it.
    pub(crate) fn is_mapped_once(&self) -> bool {
        // Pairs with the release in `sub_mapped`.
        self.mapped.load(Acquire) == 1
    }

    /// One entry fewer; says whether it was the last.
    pub(crate) fn sub_mapped(&self) -> bool {
        self.mapped.fetch_sub(1, Release) == 1
    }

    /// What it belongs to; stable while the page is locked or its file's or family's lock is held.
    #[inline]
    pub(crate) fn mapping(&self) -> Mapping {
        Mapping::unpack(self.mapping.load(Relaxed))
    }

    /// It belongs to `mapping` from now on, with another number there. Whoever calls has what keeps others off, for the old and the new.
    pub(crate) fn give_to(&self, mapping: Mapping, index: u32) {
        self.index.store(index, Relaxed);
        self.mapping.store(mapping.pack(), Relaxed);
    }

    /// It belongs to nothing any more.
    pub(crate) fn clear_mapping(&self) {
        self.mapping.store(0, Relaxed);
    }

    /// Its number in what it belongs to.
    #[inline]
    pub(crate) fn index(&self) -> u32 {
        self.index.load(Relaxed)
    }
}

/// The lines of all frames.
#[derive(Debug)]
pub(crate) struct Lines(Box<[Page]>);

impl Lines {
    /// Lines for the frames below `end`.
    pub(crate) fn new(end: Pfn) -> Self {
        Self(zeroed(end.0 as usize))
    }

    /// The line of `pfn`.
    #[inline]
    pub(crate) fn page(&self, pfn: Pfn) -> &Page {
        &self.0[pfn.0 as usize]
    }
}

// SAFETY: a line is five integer atomics, which begin as zeros.
unsafe impl Zeroable for Page {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_belongs_to_survives_packing() {
        for mapping in [
            Mapping::None,
            Mapping::Anon(0),
            Mapping::Anon(77),
            Mapping::File(0),
            Mapping::File(9),
            Mapping::Slot,
        ] {
            assert_eq!(Mapping::unpack(mapping.pack()), mapping);
        }
    }

    #[test]
    fn a_frozen_page_gives_no_references() {
        let page = Page::default();
        assert!(!page.try_get(), "a page that has not begun");
        page.init(Mapping::File(3), 5, &[PageFlag::Dirty]);
        assert!(page.try_get());
        assert!(!page.freeze(1));
        assert!(page.freeze(2));
        assert!(!page.try_get());
        page.unfreeze(2);
        assert!(!page.put());
        assert!(page.put());
        assert!(page.clear(PageFlag::Dirty) && !page.clear(PageFlag::Dirty));
    }

    #[test]
    fn generation_uses_and_group_keep_out_of_each_others_way() {
        let page = Page::default();
        page.set_group(GroupId(63));
        page.init(Mapping::File(3), 5, &[PageFlag::Mlocked, PageFlag::Workingset]);
        assert_eq!((page.generation(), page.uses(), page.group()), (None, 0, GroupId(63)));
        page.enter_generation(3);
        page.set_uses(9);
        page.join_generation(0);
        assert_eq!((page.generation(), page.listed(), page.uses()), (Some(0), 3, 3));
        page.leave_generation();
        assert_eq!((page.generation(), page.uses(), page.group()), (None, 3, GroupId(63)));
        assert!(page.has(PageFlag::Workingset) && page.has(PageFlag::Mlocked) && !page.has(PageFlag::Lru));
    }
}
