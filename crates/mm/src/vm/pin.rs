//! Keeping a page where it is while somebody works with its bytes (`get_user_pages`): what is touched may be unmapped,
//! reclaimed or moved at any time, what is pinned stays the same frame until it is given back.

use super::space::AddressSpace;
use super::{Entry, FaultError, Touch, Vpn};
use super::{RmapDoor, SpacesGround};
use crate::ground::ids::Pfn;
use crate::ground::machine::Machine;

/// A page that stays where it is. It is given back by [`RmapDoor::unpin_page`]; one that is dropped stays for good.
#[derive(Debug)]
#[must_use = "a page that is not unpinned is never freed"]
pub struct Pinned {
    frame: Pfn,
    /// The head of its page; of the page of zeros, which nobody takes away, none.
    pub(in crate::vm) head: Option<Pfn>,
}

impl Pinned {
    /// The frame that is mapped.
    pub fn frame(&self) -> Pfn {
        self.frame
    }
}

impl<M: Machine, G: SpacesGround<M>> RmapDoor<'_, M, G> {
    /// Touches `vpn` of `space` as [`crate::SpacesDoor::touch_page`] does and keeps its page in its frame. A write through the frame of a
    /// page that is forked meanwhile may be seen on both sides, as in Linux.
    ///
    /// # Errors
    /// As [`crate::SpacesDoor::fault`].
    pub fn pin_page(self, space: &AddressSpace<M>, vpn: Vpn, touch: Touch) -> Result<Pinned, FaultError> {
        loop {
            self.spaces().touch_page(space, vpn, touch)?;
            if let Some(pinned) = self.pin_mapped(space, vpn, touch) {
                return Ok(pinned);
            }
        }
    }

    /// Pins what is mapped at `vpn` and may be touched so, if anything is.
    pub(crate) fn pin_mapped(self, space: &AddressSpace<M>, vpn: Vpn, touch: Touch) -> Option<Pinned> {
        let held = space.table(vpn)?.lock(self.machine());
        let entry = held.entry(vpn);
        let within = if held.huge() == Entry::NONE { 0 } else { vpn.slot() as u32 };
        let head = entry.is_present().then(|| entry.head());
        entry.allows(touch).then(|| {
            if let Some(head) = head {
                // The entry's own reference is there as long as its table's lock is held.
                self.lru().page(head).get();
            }
            Pinned { frame: entry.pfn().add(within), head }
        })
    }

    /// The page of `pinned` may go its ways again.
    #[allow(clippy::needless_pass_by_value, reason = "a pin that was given back must not be used again")]
    pub fn unpin_page(self, pinned: Pinned) {
        if let Some(head) = pinned.head {
            self.lru().put_page(head);
        }
    }
}
