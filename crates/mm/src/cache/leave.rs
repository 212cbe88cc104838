//! Pages leave a file though memory is not short: they are not wanted, cut off, or the file ends.

use alloc::vec::Vec;
use core::ops::Range;

use super::file::FileState;
use super::{File, FilesDoor, FilesGround};
use crate::ground::{Chore, Machine, Pfn};

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// Drops those folios of `file` from memory that lie within `pages`, are clean and nobody's that maps them or works with them
    /// (`POSIX_FADV_DONTNEED`), and what pages that were evicted there left (`clear_shadow_entries`). Says how many pages went.
    pub fn forget_pages(self, file: &File<M, G::Space>, pages: Range<u32>) -> u32 {
        let folios = {
            let mut state = file.state.lock_local(self.machine());
            self.forget_shadows(file, &mut state, pages.clone());
            state.folios_within(pages)
        };
        folios.into_iter().map(|(first, _)| self.forget_folio(file, first)).sum()
    }

    /// What evicted pages left is forgotten.
    fn forget_shadows(self, file: &File<M, G::Space>, state: &mut FileState, pages: Range<u32>) {
        let nodes: Vec<u32> = state.shadows.nodes().collect();
        state.shadows.truncate(pages.start, pages.end);
        for node in nodes.into_iter().filter(|&node| !state.shadows.has_node(node)) {
            self.node_has_pages(file.id.0, node);
        }
    }

    /// The pages of the folio that went.
    fn forget_folio(self, file: &File<M, G::Space>, first: u32) -> u32 {
        let Some(part) = self.find_page(file, first) else { return 0 };
        let head = part.head();
        let alone = self.lru().page(head).mapped() == 0 && self.remove_from(file, head, None);
        if alone {
            self.lru().free_page(head);
            part.order.pages()
        } else {
            self.lru().put_page(head);
            0
        }
    }

    /// The `pages` from `first` on of `file` go, dirty ones too (truncation); those that somebody maps stay, and so do those of a folio
    /// that is cut in two while somebody works with it. Says how many went.
    pub fn truncate_pages(self, file: &File<M, G::Space>, first: u32, pages: u32) -> u32 {
        let end = first.saturating_add(pages);
        self.split_folio_at(file, first);
        self.split_folio_at(file, end);
        let (gone, swapped) = {
            let mut state = file.state.lock_local(self.machine());
            let there = state.folios_within(first..end).into_iter().map(|(_, part)| part.head());
            let free: Vec<Pfn> = there.filter(|&head| self.lru().page(head).mapped() == 0).collect();
            self.forget_shadows(file, &mut state, first..end);
            for &head in &free {
                state.remove(self.folio_pages(head));
            }
            for &head in &free {
                state.take_dirty(&self.folio_pages(head));
                self.note_lost_pages(file, &state, head);
            }
            (free, state.take_swapped(first..end))
        };
        self.swapped().free_swapped(swapped);
        self.give_back(&gone)
    }

    /// Ends `file`, which nobody maps any more: its pages go, dirty ones too (truncation of a file that was deleted).
    pub fn drop_file(self, file: &File<M, G::Space>) {
        self.own().files.lock_local(self.machine()).remove(&file.id.0);
        let (heads, swapped): (Vec<Pfn>, _) = {
            let mut state = file.state.lock_local(self.machine());
            state.dirty.clear();
            for node in core::mem::take(&mut state.shadows).nodes() {
                self.node_has_pages(file.id.0, node);
            }
            let folios = state.folios_within(0..u32::MAX);
            state.pages.clear();
            state.in_nodes.clear();
            let heads = folios.into_iter().map(|(_, part)| part.head()).collect();
            (heads, core::mem::take(&mut state.swapped))
        };
        self.swapped().free_swapped(swapped.into_values());
        self.give_back(&heads);
    }

    /// Folios that their file has no more; gives their pages.
    fn give_back(self, heads: &[Pfn]) -> u32 {
        let mut all = 0;
        for chunk in heads.chunks(15) {
            self.machine().spend(Chore::Truncate, chunk.len() as u32);
            for &head in chunk {
                let pages = self.pages().order_of(head).pages();
                self.forget_dirty(head);
                self.count_file(head, -i64::from(pages));
                all += pages;
            }
            self.lru().put_pages(chunk);
        }
        all
    }
}
