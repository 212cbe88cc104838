//! Slots of swap as files know them: what the room above, which has them, is asked, and what stands in the place of a page.

use alloc::vec::Vec;

use super::Asker;
use crate::ground::{Cpu, FileId, Order, Pfn, SwapIo};
use crate::lru::{Came, Shadow};
use crate::memcg::GroupId;

/// What the room that has swap knows of slots that hold pages of files.
pub trait FileSlots {
    /// Whether pages of `group` may go to swap: what is active of it then counts for refaults.
    fn has_swap_for(&self, group: GroupId) -> bool;

    /// Whose page is in `slot`, and when it left.
    fn in_slot(&self, slot: u32) -> Option<InSlot>;

    /// Whether what went in one piece comes back so.
    fn brings_folios(&self) -> bool;

    /// What to read where `slot` is wanted.
    fn slots_around(&self, slot: u32) -> SlotsAround;

    /// The caller gathers what it asks of a disk, if swap is on one, until [`FileSlots::finish_plug`], which takes what this gave.
    fn start_plug(&self) -> Option<Cpu>;

    /// It has no more.
    fn finish_plug(&self, plug: Option<Cpu>);

    /// What `slot` holds of private memory is read, for whoever wants it next.
    fn read_private(&self, slot: u32, from: Asker);

    /// What is in `slot` is brought to memory, by `io` if it is on a device.
    fn bring(&self, slot: u32, io: SwapIo);

    /// What was read from `slot` to the page at `pfn` goes again: if it is nowhere else, it is in the slot again.
    fn send_again(&self, slot: u32, pfn: Pfn);

    /// What is in `slot` was read to the page at `pfn`.
    fn slot_read(&self, slot: u32, pfn: Pfn);

    /// A page that was read with another is wanted.
    fn ahead_was_wanted(&self);

    /// The page that was read from `slot` has gone again, and left `shadow`.
    fn left_again(&self, slot: u32, shadow: Shadow);

    /// A file has no reference to `slot` any more.
    fn free_slot(&self, slot: u32);
}

/// Whose a page in swap is, and when it left.
#[derive(Clone, Copy, Debug)]
pub struct InSlot {
    pub(crate) group: GroupId,
    pub(crate) came: Came,
}

/// A slot, and the page of which file is in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotOf {
    pub(crate) slot: u32,
    pub(crate) file: FileId,
    pub(crate) index: u32,
}

/// What to read where a slot is wanted.
#[derive(Debug)]
pub struct SlotsAround {
    /// Those in use, in their order, that one among them, with what of which file they hold; nothing: private memory.
    pub(crate) slots: Vec<(u32, Option<SlotOf>)>,
    /// So many slots, or pages of a region, were gone through for it, from 1.
    pub(crate) window: u32,
}

/// What a file has in the place of a page that is in swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Swapped {
    pub(super) slot: u32,
    /// Where it is in memory too: it was read, and nobody has wanted it yet.
    pub(super) ahead: Option<Pfn>,
    /// It went with the other pages of a folio of this order, and may come back with them.
    pub(super) order: Order,
}
