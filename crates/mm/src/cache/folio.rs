//! Folios: pages of a file that lie in one block of memory, and come, grow old and go together. The first page's number in the file is a
//! multiple of their number, as its frame's is. The file knows each page by itself; what is known of them besides is known of the
//! first frame, the head.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

use super::file::FileState;
use super::shadows::{SLOTS, node_of};
use super::{File, FilesDoor, FilesGround};
use crate::ground::{Machine, Order, Pfn, Relaxed};
use crate::lru::page::{Mapping, Page, PageFlag};

/// A page of a file: its frame, and the order of its folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) pfn: Pfn,
    pub(crate) order: Order,
}

/// Pages of a file that are in memory, by their number.
pub(super) type Pages = BTreeMap<u32, Part>;

impl Part {
    /// The folio's first frame, of which everything is known.
    pub(crate) const fn head(self) -> Pfn {
        Pfn(self.pfn.0 >> self.order.get() << self.order.get())
    }

    /// The pages of the folio that has page `index` of the file here.
    pub(crate) const fn folio(self, index: u32) -> Range<u32> {
        let first = index >> self.order.get() << self.order.get();
        first..first + self.order.pages()
    }
}

/// The largest folio that may begin at `index` and is of no more than `pages`, `largest` at most.
pub(super) fn order_at(index: u32, pages: u32, largest: u32) -> Order {
    let order = largest.min(index.trailing_zeros()).min(pages.max(1).ilog2());
    Order::new(order as u8).unwrap_or(Order::ZERO)
}

/// The nodes of a file's tree that have `pages`.
pub(super) fn nodes(pages: &Range<u32>) -> impl Iterator<Item = u32> + use<> {
    node_of(pages.start)..=node_of(pages.end - 1)
}

impl FileState {
    /// The pages of the folio whose first is `first`, at `head`, are there.
    pub(super) fn insert(&mut self, pages: Range<u32>, head: Pfn, order: Order) {
        for node in nodes(&pages) {
            let within = pages.start.max(node * SLOTS)..pages.end.min((node + 1).saturating_mul(SLOTS));
            let part = |index: u32| Part { pfn: head.add(index - pages.start), order };
            let is_new = |index: &u32| self.pages.insert(*index, part(*index)).is_none();
            let new = within.filter(is_new).count() as u32;
            *self.in_nodes.entry(node).or_default() += new;
        }
    }

    /// They are not.
    pub(super) fn remove(&mut self, pages: Range<u32>) {
        for index in pages {
            if self.pages.remove(&index).is_some() {
                self.leaves_node(node_of(index));
            }
        }
    }

    fn leaves_node(&mut self, node: u32) {
        let left = self.in_nodes.get(&node).map_or(0, |pages| pages - 1);
        if left == 0 {
            self.in_nodes.remove(&node);
        } else {
            self.in_nodes.insert(node, left);
        }
    }

    /// Whether any of `pages` is there.
    pub(super) fn has_any(&self, pages: Range<u32>) -> bool {
        self.pages.range(pages).next().is_some()
    }

    /// The folios that lie wholly in `pages`: their first page, and where they are.
    pub(super) fn folios_within(&self, pages: Range<u32>) -> Vec<(u32, Part)> {
        let all = self.pages.range(pages.clone()).map(|(&index, &part)| (index, part));
        let firsts = all.filter(|&(index, part)| part.folio(index).start == index);
        firsts.filter(|&(index, part)| part.folio(index).end <= pages.end).collect()
    }

    /// Takes what is dirty of `pages` off the list of what is; says how many pages that was.
    pub(super) fn take_dirty(&mut self, pages: &Range<u32>) -> u32 {
        let dirty: Vec<u32> = self.dirty.range(pages.clone()).copied().collect();
        for index in &dirty {
            self.dirty.remove(index);
        }
        dirty.len() as u32
    }
}

impl<M: Machine, S> File<M, S> {
    /// Its folios have up to 2^`largest` pages (a property of its file system; under kernels before 6.16 one page, if nobody says).
    pub fn set_largest_folio(&self, largest: Order) {
        self.largest_folio.store(largest.get().into(), Relaxed);
    }

    pub(super) fn largest_folio(&self) -> u32 {
        self.largest_folio.load(Relaxed)
    }
}

/// A folio of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Folio {
    /// Its first page in the file.
    pub first: u32,
    /// log2 of its pages.
    pub order: Order,
    /// Who comes to it has the next window read.
    pub has_mark: bool,
}

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// The folios of `file` that are in memory, in order.
    pub fn folios(self, file: &File<M, G::Space>) -> Vec<Folio> {
        let state = file.state.lock_local(self.machine());
        let has_mark = |part: Part| self.lru().page(part.head()).has(PageFlag::ReadAhead);
        let folios = state.folios_within(0..u32::MAX).into_iter();
        folios.map(|(first, part)| Folio { first, order: part.order, has_mark: has_mark(part) }).collect()
    }

    /// The pages of the folio at `head`.
    pub(super) fn folio_pages(self, head: Pfn) -> Range<u32> {
        let first = self.lru().page(head).index();
        first..first + self.pages().order_of(head).pages()
    }

    /// Makes single pages of the folio that has pages on both sides of page `at` of `file`, which part of it is to leave, unless somebody
    /// else refers to it (`split_folio`).
    pub(super) fn split_folio_at(self, file: &File<M, G::Space>, at: u32) {
        let part = file.state.lock_local(self.machine()).pages.get(&at).copied();
        if let Some(part) = part.filter(|part| part.folio(at).start != at) {
            if self.split_folio(file, part.head(), Keeper::File) {
                self.put_parts(part.head(), 0..part.order.pages());
            }
        }
    }

    /// Makes single pages of the folio at `head` of `file`, if nobody maps it and only `keeper` refers to it. Each has a reference for the
    /// caller then, and is on no list yet. Says whether it did.
    pub(super) fn split_folio(self, file: &File<M, G::Space>, head: Pfn, keeper: Keeper) -> bool {
        let mut state = file.state.lock_local(self.machine());
        let page = self.lru().page(head);
        let Some(part) = state.part_at(page.index(), head) else { return false };
        let pages = part.folio(page.index());
        if page.mapped() > 0 || page.has(PageFlag::Writeback) || !page.freeze(keeper.references()) {
            return false;
        }
        let was = Split::of(page, (&state, pages.clone()));
        self.lru().lru_forget(head);
        self.pages().split(head, part.order).expect("a folio is an allocated block");
        for index in pages.clone() {
            let pfn = head.add(index - pages.start);
            let page = self.lru().page(pfn);
            page.set_group(was.group);
            page.init(Mapping::File(file.id.0), index, &was.flags_of(index));
            page.get();
            state.pages.insert(index, Part { pfn, order: Order::ZERO });
        }
        drop(state);
        if let Dirty::Parts(dirty) = &was.dirty {
            self.count_clean_parts(head, i64::from(part.order.pages()) - dirty.len() as i64);
        }
        true
    }

    /// Puts those of the `parts` of what was a folio at `head` on lists, and gives the caller's references to them back.
    pub(super) fn put_parts(self, head: Pfn, parts: Range<u32>) {
        for pfn in parts.map(|index| head.add(index)) {
            self.lru().lru_add(pfn);
            self.lru().put_page(pfn);
        }
    }
}

/// Who has a folio that is to be split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keeper {
    /// Its file alone.
    File,
    /// The caller as well.
    FileAndCaller,
}

impl Keeper {
    const fn references(self) -> u32 {
        match self {
            Self::File => 1,
            Self::FileAndCaller => 2,
        }
    }
}

/// What a folio was that is split.
struct Split {
    group: crate::memcg::GroupId,
    flags: Vec<PageFlag>,
    dirty: Dirty,
}

/// What of a folio is dirty.
enum Dirty {
    Nothing,
    /// Those of its pages that are to be written.
    Parts(BTreeSet<u32>),
    /// All of it: only swap can hold it.
    All,
}

impl Split {
    fn of(page: &Page, (state, pages): (&FileState, Range<u32>)) -> Self {
        const KEPT: [PageFlag; 5] = [
            PageFlag::Referenced,
            PageFlag::Workingset,
            PageFlag::Placed,
            PageFlag::Active,
            PageFlag::SwapBacked,
        ];
        let dirty = match (page.has(PageFlag::Dirty), page.has(PageFlag::SwapBacked)) {
            (false, _) => Dirty::Nothing,
            (true, false) => Dirty::Parts(state.dirty.range(pages).copied().collect()),
            (true, true) => Dirty::All,
        };
        Self { group: page.group(), flags: KEPT.into_iter().filter(|&flag| page.has(flag)).collect(), dirty }
    }

    fn flags_of(&self, index: u32) -> Vec<PageFlag> {
        let is_dirty = match &self.dirty {
            Dirty::Nothing => false,
            Dirty::Parts(parts) => parts.contains(&index),
            Dirty::All => true,
        };
        self.flags.iter().copied().chain(is_dirty.then_some(PageFlag::Dirty)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folio_begins_at_a_multiple_of_its_size_and_ends_with_what_is_wanted() {
        let order = |index, pages, largest| order_at(index, pages, largest).get();
        assert_eq!([33, 34, 36, 64].map(|index| order(index, 32, 2)), [0, 1, 2, 2]);
        assert_eq!([1, 2, 3, 4, 31].map(|pages| order(64, pages, 9)), [0, 1, 1, 2, 4]);
        assert_eq!(order(0, 1 << 20, 9), 9);
    }

    #[test]
    fn a_part_knows_its_folio() {
        let part = Part { pfn: Pfn(0x1236), order: Order::new(3).unwrap() };
        assert_eq!((part.head(), part.folio(22)), (Pfn(0x1230), 16..24));
        let single = Part { pfn: Pfn(7), order: Order::ZERO };
        assert_eq!((single.head(), single.folio(22)), (Pfn(7), 22..23));
    }
}
