//! Walking the files: every page knows its place in its file, and what is dirty will be written.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::shadows::node_of;
use super::{File, FilesDoor, FilesGround};
use crate::ground::{Machine, Pfn};
use crate::lru::page::{Mapping, PageFlag};

impl<M: Machine, G: FilesGround<M>> FilesDoor<'_, M, G> {
    /// The pages of all files, each of which is where it says.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(crate) fn cached_pages(self) -> Result<Vec<Pfn>, String> {
        let files: Vec<Arc<File<M, G::Space>>> = {
            let files = self.own().files.lock_local(self.machine());
            files.values().map(Arc::clone).collect()
        };
        let mut pages = Vec::new();
        for file in files {
            self.check_file(&file, &mut pages)?;
        }
        Ok(pages)
    }

    /// The slots of swap that files refer to.
    pub(crate) fn slots_in_use(self) -> Vec<u32> {
        let files = self.own().files.lock_local(self.machine());
        let slots = |file: &Arc<File<M, G::Space>>| {
            let state = file.state.lock_local(self.machine());
            state.swapped.values().map(|swapped| swapped.slot).collect::<Vec<u32>>()
        };
        files.values().flat_map(slots).collect()
    }

    fn check_file(self, file: &File<M, G::Space>, pages: &mut Vec<Pfn>) -> Result<(), String> {
        pages.extend(self.swapped().check_swapped(file)?.iter().filter_map(|swapped| swapped.ahead));
        let state = file.state.lock_local(self.machine());
        for (&index, &part) in &state.pages {
            let (pfn, folio) = (part.head(), part.folio(index));
            let page = self.lru().page(pfn);
            if (page.mapping(), page.index()) != (Mapping::File(file.id.0), folio.start)
                || self.pages().order_of(pfn) != part.order
                || part.pfn != pfn.add(index - folio.start)
            {
                return Err(format!("{pfn} has page {index} of file {}, and does not know it", file.id.0));
            }
            if index > folio.start {
                continue;
            }
            if state.pages.range(folio.clone()).count() as u32 != part.order.pages() {
                return Err(format!("of the folio at {pfn} file {} lacks pages", file.id.0));
            }
            let listed = state.dirty.range(folio).next().is_some() || page.has(PageFlag::SwapBacked);
            if page.has(PageFlag::Dirty) && !listed {
                return Err(format!(
                    "{pfn}, page {index} of file {}, is dirty and will not be written",
                    file.id.0
                ));
            }
            pages.push(pfn);
        }
        let mut in_nodes = BTreeMap::<u32, u32>::new();
        state.pages.keys().for_each(|index| *in_nodes.entry(node_of(*index)).or_default() += 1);
        if in_nodes != state.in_nodes {
            return Err(format!("pages in nodes of file {} are counted wrong", file.id.0));
        }
        for node in state.shadows.nodes() {
            let is_bare = self.own().shadow_nodes.lock_local(self.machine()).has((file.id.0, node));
            if state.has_pages_in(node) == is_bare {
                return Err(format!(
                    "node {node} of file {}: whether it has pages is known wrong",
                    file.id.0
                ));
            }
        }
        Ok(())
    }
}
