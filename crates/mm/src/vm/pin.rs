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
    kept: Kept,
}

/// What keeps a pinned page in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kept {
    /// A reference to the page with this head.
    Page(Pfn),
    /// Nothing: it is the page of zeros, which nobody takes away.
    Zeros,
    /// One more user of the huge page of zeros. (Linux refers to the page: a pinned one may be forgotten and another be allocated.)
    HugeZeros,
}

impl Pinned {
    /// The frame that is mapped.
    pub fn frame(&self) -> Pfn {
        self.frame
    }

    /// The head of its page; `None` of pages of zeros.
    pub(in crate::vm) fn head(&self) -> Option<Pfn> {
        match self.kept {
            Kept::Page(head) => Some(head),
            Kept::Zeros | Kept::HugeZeros => None,
        }
    }
}

impl<M: Machine, G: SpacesGround<M>> RmapDoor<'_, M, G> {
    /// Brings `vpn` of `space` in as [`crate::SpacesDoor::touch_page`] does, but for the exception, and keeps its page in its frame. A write
    /// through the frame of a page that is forked meanwhile may be seen on both sides, as in Linux.
    ///
    /// # Errors
    /// As [`crate::SpacesDoor::fault`].
    pub fn pin_page(self, space: &AddressSpace<M>, vpn: Vpn, touch: Touch) -> Result<Pinned, FaultError> {
        loop {
            self.spaces().bring_page(space, vpn, touch)?;
            if let Some(pinned) = self.pin_mapped(space, vpn, touch) {
                return Ok(pinned);
            }
        }
    }

    /// Pins what is mapped at `vpn` and may be touched so, if anything is.
    pub(crate) fn pin_mapped(self, space: &AddressSpace<M>, vpn: Vpn, touch: Touch) -> Option<Pinned> {
        let held = space.table(vpn)?.lock(self.machine());
        let (entry, is_huge) = (held.entry(vpn), held.huge() != Entry::NONE);
        if !entry.allows(touch) {
            return None;
        }
        let kept = match (entry.is_present(), is_huge) {
            (true, _) => Kept::Page(entry.head()),
            (false, true) => Kept::HugeZeros,
            (false, false) => Kept::Zeros,
        };
        if let Kept::Page(head) = kept {
            // The entry's own reference is there as long as its table's lock is held.
            self.lru().page(head).get();
        }
        drop(held);
        if kept == Kept::HugeZeros {
            // `space` is a user of it until it ends.
            self.spaces().own().zeros.keep_huge(self.machine());
        }
        let within = if is_huge { vpn.slot() as u32 } else { 0 };
        Some(Pinned { frame: entry.pfn().add(within), kept })
    }

    /// The page of `pinned` may go its ways again.
    #[allow(clippy::needless_pass_by_value, reason = "a pin that was given back must not be used again")]
    pub fn unpin_page(self, pinned: Pinned) {
        match pinned.kept {
            Kept::Page(head) => self.lru().put_page(head),
            Kept::Zeros => {}
            Kept::HugeZeros => self.spaces().own().zeros.drop_huge(self.machine()),
        }
    }
}
