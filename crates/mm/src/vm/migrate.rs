//! Moving a page to another frame (`migrate_pages`): entries are replaced by marks that who touches the page waits for, the
//! contents are copied, and the entries map the new frame. What somebody else refers to (a pin, a walk) stays.

use super::{RmapDoor, SpacesGround};
use crate::ground::ids::{Node, Order, Pfn};
use crate::ground::machine::Machine;
use crate::lru::MigrateError;
use crate::lru::page::{Mapping, PageFlag};
use crate::pages::request::{Request, Urgency};
use crate::pages::stat::SlowEvents;
use crate::vm::rmap::Leave;
use crate::vm::{AddressSpace, Touch, Vpn};

impl<M: Machine, G: SpacesGround<M>> RmapDoor<'_, M, G> {
    /// Moves the page that is mapped at `vpn` of `space`, a huge one as a whole, to a frame of `node` (`move_pages`). One
    /// that a CPU still keeps back from the LRU lists is busy; [`crate::LruDoor::lru_drain_all`] sends it there.
    ///
    /// # Errors
    /// Why it stayed where it was.
    pub fn move_page(self, space: &AddressSpace<M>, vpn: Vpn, node: Node) -> Result<(), MigrateError> {
        let request =
            Request { node: Some(node), this_node: true, urgency: Urgency::NoWait, ..Request::USER };
        self.move_page_by(space, vpn, request)
    }

    /// The same, to a frame that `request` is given.
    ///
    /// # Errors
    /// Why it stayed where it was.
    pub(super) fn move_page_by(
        self,
        space: &AddressSpace<M>,
        vpn: Vpn,
        request: Request,
    ) -> Result<(), MigrateError> {
        let pinned = self.pin_mapped(space, vpn, Touch::Read).ok_or(MigrateError::Absent)?;
        let from = pinned.head();
        let isolated = from.and_then(|from| self.lru().isolate_page(from));
        // The isolator's reference is the one that migration allows.
        self.unpin_page(pinned);
        // Zeros stay where they are.
        let from = from.ok_or(MigrateError::Absent)?;
        let isolated = isolated.ok_or(MigrateError::Busy)?;
        let moved = self.migrate_to(from, request);
        match moved {
            Ok(()) => self.lru().end_isolation_of(isolated),
            Err(_) => self.lru().put_back_page(from, isolated),
        }
        moved
    }

    /// Moves an isolated page to a frame that `request`, of the page's order, is given; the caller ends its isolation. If
    /// the page stays, the caller puts it back on its list.
    pub(crate) fn migrate_to(self, from: Pfn, request: Request) -> Result<(), MigrateError> {
        let order = self.pages().order_of(from);
        let to = self.alloc(request.of_order(order)).map_err(|_| MigrateError::NoMemory)?;
        let moved = self.migrate_page(from, to);
        if moved.is_err() {
            self.pages().free(to, order).expect("the frame was allocated above and shown to nobody");
        }
        moved
    }

    /// Moves the page at `from`, to which the caller has a reference and which is on no LRU list, to the frame `to` of the
    /// same order, which the caller allocated. Then `from` is free and `to` on an LRU list. If the page stays, the caller
    /// keeps both, and puts `from` back on its list.
    ///
    /// # Errors
    /// Why it stayed.
    pub(crate) fn migrate_page(self, from: Pfn, to: Pfn) -> Result<(), MigrateError> {
        self.migrate_and(from, to, || self.lru().free_page(from))
    }

    /// The same, but `from` is not freed: it is the caller's frame then, to which nobody refers.
    ///
    /// # Errors
    /// Why it stayed.
    pub(crate) fn migrate_away(self, from: Pfn, to: Pfn) -> Result<(), MigrateError> {
        let forget = || {
            self.lru().forget_page(from);
        };
        self.migrate_and(from, to, forget)
    }

    /// What is done with the frame at `from` once the page has left it is the caller's to say.
    fn migrate_and(self, from: Pfn, to: Pfn, after: impl FnOnce()) -> Result<(), MigrateError> {
        let page = self.lru().page(from);
        if page.mapping() == Mapping::None {
            return Err(MigrateError::Unmovable);
        }
        if page.has(PageFlag::Writeback) || !page.set(PageFlag::Locked) {
            return Err(MigrateError::Busy);
        }
        self.try_to_unmap(from, Leave::Migration);
        let moved = self.replace(from, to);
        let (left, error) = if moved { (to, Ok(())) } else { (from, Err(MigrateError::Pinned)) };
        self.remap(from, left);
        page.clear(PageFlag::Locked);
        if moved {
            if self.pages().order_of(to) == Order::PAGEBLOCK {
                SlowEvents::bump(&self.own().events.thp_migration_success);
            }
            after();
            self.lru().lru_add(to);
            self.lru().put_page(to);
        }
        error
    }

    /// Makes `to` what `from` is, unless somebody refers to that.
    fn replace(self, from: Pfn, to: Pfn) -> bool {
        match self.lru().page(from).mapping() {
            Mapping::None => false,
            Mapping::Anon(_) => {
                let alone = self.lru().page(from).freeze(1);
                if alone {
                    self.lru().carry_over(from, to);
                    self.own().deferred.moved(self.machine(), from, to);
                    if self.lru().page(to).has(PageFlag::SwapCache) {
                        self.swap().move_kept(from, to);
                    }
                }
                alone
            }
            Mapping::File(id) => self.files().file(id).is_some_and(|file| {
                self.files().replace_in(&file, from, to) || self.swapped().replace_ahead(&file, from, to)
            }),
            Mapping::Slot => self.swap_ahead().replace(from, to),
        }
    }
}
