//! What encoding and decoding of events share: which columns there are, how a tag byte is made, what a CPU's context is.
//!
//! Events go into columns, one per field. A tag byte holds the kind and says which fields differ from what is expected:
//! the CPU of the event before, the task that this CPU ran last, the attributes (order, type, flags …) that this kind
//! last had on this CPU.

use crate::event::field::Frames;

/// The bits of a tag that hold the kind: [`crate::EventKind::index`].
pub(super) const TAG_KIND: u8 = 0x1f;
/// The attributes are not the kind's last ones on this CPU; they follow in [`Column::Attr`].
pub(super) const TAG_ATTR: u8 = 0x20;
/// The task is not this CPU's last one; it follows in [`Column::Task`].
pub(super) const TAG_TASK: u8 = 0x40;
/// The CPU is not the last event's; it follows in [`Column::Cpu`].
pub(super) const TAG_CPU: u8 = 0x80;

/// The columns of a chunk of events, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(super) enum Column {
    /// One byte per event.
    Tag,
    /// Signed difference to the event before, in ns.
    Time,
    /// CPU numbers.
    Cpu,
    /// Task numbers.
    Task,
    /// Attributes.
    Attr,
    /// Pages handed out: signed difference to this CPU's last in this column. So are the next four.
    Alloc,
    /// Pages freed.
    Free,
    /// Pages freed in batches.
    Batched,
    /// Pages taken from the buddy lists.
    Locked,
    /// Pages given back to the buddy lists.
    Drained,
    /// The next task of a switch, the child of a fork, the text of a mark.
    Other,
    /// Addresses: signed difference to this CPU's last in this column.
    Address,
    /// Instruction pointers: signed difference to this CPU's last in this column.
    Ip,
}

impl Column {
    /// How many columns there are.
    pub(super) const COUNT: usize = 13;
    /// How many hold frames.
    pub(super) const PFN_COUNT: usize = 5;

    /// The column of these frames.
    #[inline]
    pub(super) const fn of_frames(of: Frames) -> Self {
        match of {
            Frames::Allocated => Self::Alloc,
            Frames::Freed => Self::Free,
            Frames::Batched => Self::Batched,
            Frames::Locked => Self::Locked,
            Frames::Drained => Self::Drained,
        }
    }
}
