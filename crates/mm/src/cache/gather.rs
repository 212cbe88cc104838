//! A huge page in the place of the small ones that a file in memory has of 2 MiB: they are found and held, and then, if nobody else refers to
//! one, replaced all at once (`collapse_file`).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::file::FileState;
use super::folio::Part;
use super::{File, FilesGround, SharedDoor};
use crate::ground::{Chore, Machine, Order, Pfn};
use crate::lru::page::PageFlag;
use crate::pages::Placement;

/// Pages of a file that are held, and the folios that they are in, each with as many references as it has pages there.
#[derive(Debug)]
pub(crate) struct Gathered {
    pages: Range<u32>,
    parts: Vec<(u32, Part)>,
    folios: BTreeMap<Pfn, u32>,
}

impl Gathered {
    /// The folios' heads.
    pub(crate) fn heads(&self) -> impl Iterator<Item = Pfn> {
        self.folios.keys().copied()
    }
}

impl<M: Machine, G: FilesGround<M>> SharedDoor<'_, M, G> {
    /// Those of `pages` of `file` that are in memory; `None` if one is in swap or part of a huge page already.
    pub(crate) fn small_pages(self, file: &File<M, G::Space>, pages: Range<u32>) -> Option<Vec<Part>> {
        let state = file.state.lock_local(self.machine());
        let parts: Vec<Part> = state.pages.range(pages.clone()).map(|(_, part)| *part).collect();
        let is_huge = parts.iter().any(|part| part.order == Order::PAGEBLOCK);
        let in_swap = state.swapped.range(pages).next().is_some();
        (!is_huge && !in_swap).then_some(parts)
    }

    /// Holds those of `pages` of `file` that are in memory.
    pub(crate) fn gather(self, file: &File<M, G::Space>, pages: Range<u32>) -> Gathered {
        let state = file.state.lock_local(self.machine());
        let parts: Vec<(u32, Part)> =
            state.pages.range(pages.clone()).map(|(&index, &part)| (index, part)).collect();
        let mut folios = BTreeMap::new();
        for (_, part) in &parts {
            self.lru().page(part.head()).get();
            *folios.entry(part.head()).or_default() += 1;
        }
        Gathered { pages, parts, folios }
    }

    /// They are held no more.
    pub(crate) fn scatter(self, small: &Gathered) {
        for (&head, &references) in &small.folios {
            (0..references).for_each(|_| self.lru().put_page(head));
        }
    }

    /// Puts the huge page at `huge`, which was just allocated and charged, in the place of `small` in `file`: what they hold is copied, and
    /// zeros come where there was nothing. Says whether it did; not if another page came meanwhile, or somebody refers to one of them.
    pub(crate) fn put_huge(
        self,
        file: &File<M, G::Space>,
        (small, huge): (&Gathered, Pfn),
        placement: Placement,
    ) -> bool {
        let mut state = file.state.lock_local(self.machine());
        if !is_as_gathered(&state, small) || !self.freeze_all(small) {
            return false;
        }
        let (first, mut parts) = (small.pages.start, small.parts.iter().peekable());
        for index in small.pages.clone() {
            let to = huge.add(index - first);
            if let Some((_, part)) = parts.next_if(|(at, _)| *at == index) {
                self.machine().spend(Chore::Migrate, 1);
                self.machine().copy(part.pfn, to, Order::ZERO);
            } else {
                self.machine().clear(to, Order::ZERO);
            }
        }
        self.files().init_page(file, (first, huge), placement);
        self.lru().page(huge).set(PageFlag::Dirty);
        state.insert(small.pages.clone(), huge, Order::PAGEBLOCK);
        drop(state);
        self.files().count_file(huge, Order::PAGEBLOCK.pages().into());
        for head in small.heads() {
            self.files().count_file(head, -i64::from(self.pages().order_of(head).pages()));
            self.lru().page(head).clear(PageFlag::Locked);
            self.lru().free_page(head);
        }
        self.lru().lru_add(huge);
        self.lru().put_page(huge);
        true
    }

    /// Takes all references to the folios of `small`, if only their file and the caller have some.
    fn freeze_all(self, small: &Gathered) -> bool {
        let with_file = |references: u32| references + 1;
        let is_frozen = |(&head, &references): (&Pfn, &u32)| {
            self.lru().page(head).freeze(with_file(references)).then_some((head, references))
        };
        let frozen: Vec<(Pfn, u32)> = small.folios.iter().map_while(is_frozen).collect();
        if frozen.len() < small.folios.len() {
            for (head, references) in frozen {
                self.lru().page(head).unfreeze(with_file(references));
            }
            return false;
        }
        true
    }
}

/// Whether the file has of these pages what was found, no more and no less, and their folios wholly.
fn is_as_gathered(state: &FileState, small: &Gathered) -> bool {
    let now = state.pages.range(small.pages.clone()).map(|(&index, &part)| (index, part));
    let are_whole = small.folios.values().sum::<u32>() == small.parts.len() as u32
        && small.parts.iter().all(|(index, part)| {
            let folio = part.folio(*index);
            small.pages.start <= folio.start && folio.end <= small.pages.end
        });
    are_whole
        && now.eq(small.parts.iter().copied())
        && state.swapped.range(small.pages.clone()).next().is_none()
}
