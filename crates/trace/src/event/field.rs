//! Where a recording keeps a field of an event, and what a mask makes of it. The table of kinds names a place for each field.
//! The encoder, the decoder and the mask implement the three traits that places use.

use mm::{MigrateType, Order, Pfn, TaskId};

use super::space::{MapFlags, PresentKind};
use super::{NameId, SwitchState};
use crate::gfp::Gfp;

/// The fields of an event that repeat: up to five numbers, whose meaning depends on the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Attr {
    /// Order + 16 × migratetype + 256 × (gfp, or 1 for a refill) of page events; the state of a switch; the error code of
    /// a fault; the flags or the result of lock events; the count of a loss; the cache of slab events.
    pub(crate) first: u64,
    /// Bytes requested, bytes allocated, gfp and node of a slab allocation; otherwise zero and not stored.
    pub(crate) rest: [u32; 4],
}

/// Which kind of page event a frame belongs to: each has a column of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frames {
    Allocated,
    Freed,
    Batched,
    Locked,
    Drained,
}

/// Takes the fields that do not repeat.
pub(crate) trait FieldSink {
    /// The frame of a page event.
    fn frame(&mut self, of: Frames, pfn: Pfn);
    /// A number of a task or a name.
    fn number(&mut self, value: u32);
    /// The task that the CPU runs from here on.
    fn next_task(&mut self, task: TaskId);
    /// An address.
    fn address(&mut self, address: u64);
    /// An instruction pointer.
    fn instruction(&mut self, ip: u64);
}

/// Gives them back, in the same order; `None` where one is missing or cannot be.
pub(crate) trait FieldSource {
    /// The frame of a page event.
    fn frame(&mut self, of: Frames) -> Option<Pfn>;
    /// A task.
    fn task(&mut self) -> Option<TaskId>;
    /// The task that the CPU runs from here on.
    fn next_task(&mut self) -> Option<TaskId>;
    /// A name.
    fn name(&mut self) -> Option<NameId>;
    /// A name with this number.
    fn name_of(&self, number: u64) -> Option<NameId>;
    /// An address.
    fn address(&mut self) -> Option<u64>;
    /// An instruction pointer.
    fn instruction(&mut self) -> Option<u64>;
}

/// Renames what says whose recording it is.
pub(crate) trait Hide {
    /// Another frame.
    fn frame(&mut self, pfn: Pfn) -> Pfn;
    /// Another address.
    fn address(&self, address: u64) -> u64;
    /// Another address that a program touched, in the same page as those of the same page.
    fn touched(&self, address: u64) -> u64;
}

/// Where a field of type `T` is kept: in the attributes, or by itself.
pub(crate) trait FieldPlace<T: Copy> {
    /// Whether it is in the attributes' second part.
    const IN_REST: bool = false;
    /// Puts it into the attributes.
    fn attr(_value: T, _attr: &mut Attr) {}
    /// Puts it into what is stored by itself.
    fn put(_value: T, _into: &mut impl FieldSink) {}
    /// Gets it from either.
    fn take(attr: &Attr, from: &mut impl FieldSource) -> Option<T>;
    /// What a mask makes of it.
    fn hide(_value: &mut T, _mask: &mut impl Hide) {}
}

/// A frame, in the column of the kind numbered so in [`Frames`].
pub(super) struct Frame<const OF: u8>;
pub(super) const ALLOCATED: u8 = 0;
pub(super) const FREED: u8 = 1;
pub(super) const BATCHED: u8 = 2;
pub(super) const LOCKED: u8 = 3;
pub(super) const DRAINED: u8 = 4;

impl<const OF: u8> Frame<OF> {
    const FRAMES: Frames = match OF {
        ALLOCATED => Frames::Allocated,
        FREED => Frames::Freed,
        BATCHED => Frames::Batched,
        LOCKED => Frames::Locked,
        _ => Frames::Drained,
    };
}

impl<const OF: u8> FieldPlace<Pfn> for Frame<OF> {
    #[inline]
    fn put(value: Pfn, into: &mut impl FieldSink) {
        into.frame(Self::FRAMES, value);
    }
    #[inline]
    fn take(_attr: &Attr, from: &mut impl FieldSource) -> Option<Pfn> {
        from.frame(Self::FRAMES)
    }
    fn hide(value: &mut Pfn, mask: &mut impl Hide) {
        *value = mask.frame(*value);
    }
}

/// The order, type and flags of a page event: parts of the first attribute.
pub(super) struct Packed;

impl FieldPlace<Order> for Packed {
    #[inline]
    fn attr(value: Order, attr: &mut Attr) {
        attr.first |= u64::from(value.get());
    }
    #[inline]
    fn take(attr: &Attr, _from: &mut impl FieldSource) -> Option<Order> {
        Order::new(attr.first as u8 & 15)
    }
}

impl FieldPlace<MigrateType> for Packed {
    #[inline]
    fn attr(value: MigrateType, attr: &mut Attr) {
        attr.first |= (value as u64) << 4;
    }
    #[inline]
    fn take(attr: &Attr, _from: &mut impl FieldSource) -> Option<MigrateType> {
        MigrateType::from_index(attr.first as u8 >> 4)
    }
}

impl FieldPlace<Gfp> for Packed {
    #[inline]
    fn attr(value: Gfp, attr: &mut Attr) {
        attr.first |= u64::from(value.0) << 8;
    }
    #[inline]
    fn take(attr: &Attr, _from: &mut impl FieldSource) -> Option<Gfp> {
        Some(Gfp((attr.first >> 8) as u32))
    }
}

impl FieldPlace<bool> for Packed {
    #[inline]
    fn attr(value: bool, attr: &mut Attr) {
        attr.first |= u64::from(value) << 8;
    }
    #[inline]
    fn take(attr: &Attr, _from: &mut impl FieldSource) -> Option<bool> {
        Some(attr.first >> 8 != 0)
    }
}

/// The whole of the first attribute.
pub(super) struct Whole;

macro_rules! whole {
    ($($type:ty: |$value:ident| $put:expr, |$first:ident| $take:expr;)*) => {
        $(impl FieldPlace<$type> for Whole {
            fn attr($value: $type, attr: &mut Attr) {
                attr.first = $put;
            }
            fn take(attr: &Attr, _from: &mut impl FieldSource) -> Option<$type> {
                let $first = attr.first;
                $take
            }
        })*
    };
}

whole! {
    u64: |value| value, |first| Some(first);
    u32: |value| u64::from(value), |first| Some(first as u32);
    i32: |value| u64::from(value as u32), |first| Some(first as u32 as i32);
    SwitchState: |value| value as u64, |first| SwitchState::from_index(first);
    MapFlags: |value| u64::from(value.0), |first| Some(MapFlags(first as u32));
    PresentKind: |value| value as u64, |first| PresentKind::ALL.get(first as usize).copied();
}

impl FieldPlace<NameId> for Whole {
    fn attr(value: NameId, attr: &mut Attr) {
        attr.first = u64::from(value.0);
    }
    fn take(attr: &Attr, from: &mut impl FieldSource) -> Option<NameId> {
        from.name_of(attr.first)
    }
}

/// The upper half of the first attribute, beside a [`Whole`] of 32 bits, which readers that do not know it pass over. It is
/// named after that one in the table.
pub(super) struct High;

impl FieldPlace<u32> for High {
    fn attr(value: u32, attr: &mut Attr) {
        attr.first |= u64::from(value) << 32;
    }
    fn take(attr: &Attr, _from: &mut impl FieldSource) -> Option<u32> {
        Some((attr.first >> 32) as u32)
    }
}

/// One of the attributes' second part.
pub(super) struct Rest<const INDEX: usize>;

macro_rules! rest {
    ($($type:ty: |$value:ident| $put:expr, |$stored:ident| $take:expr;)*) => {
        $(impl<const INDEX: usize> FieldPlace<$type> for Rest<INDEX> {
            const IN_REST: bool = true;
            fn attr($value: $type, attr: &mut Attr) {
                attr.rest[INDEX] = $put;
            }
            fn take(attr: &Attr, _from: &mut impl FieldSource) -> Option<$type> {
                let $stored = attr.rest[INDEX];
                Some($take)
            }
        })*
    };
}

rest! {
    u32: |value| value, |stored| stored;
    Gfp: |value| value.0, |stored| Gfp(stored);
    // A node is stored as one more, for -1 is the most frequent.
    i16: |value| u32::from(value.wrapping_add(1) as u16), |stored| (stored as u16).wrapping_sub(1) as i16;
}

/// A number of 64 bits takes two, the lower half first.
impl<const INDEX: usize> FieldPlace<u64> for Rest<INDEX> {
    const IN_REST: bool = true;
    fn attr(value: u64, attr: &mut Attr) {
        (attr.rest[INDEX], attr.rest[INDEX + 1]) = (value as u32, (value >> 32) as u32);
    }
    fn take(attr: &Attr, _from: &mut impl FieldSource) -> Option<u64> {
        Some(u64::from(attr.rest[INDEX]) | u64::from(attr.rest[INDEX + 1]) << 32)
    }
}

/// A number of a task or a name.
pub(super) struct Number;

impl FieldPlace<TaskId> for Number {
    fn put(value: TaskId, into: &mut impl FieldSink) {
        into.number(value.0);
    }
    fn take(_attr: &Attr, from: &mut impl FieldSource) -> Option<TaskId> {
        from.task()
    }
}

impl FieldPlace<NameId> for Number {
    fn put(value: NameId, into: &mut impl FieldSink) {
        into.number(value.0);
    }
    fn take(_attr: &Attr, from: &mut impl FieldSource) -> Option<NameId> {
        from.name()
    }
}

/// The task that the CPU runs from here on.
pub(super) struct NextTask;

impl FieldPlace<TaskId> for NextTask {
    fn put(value: TaskId, into: &mut impl FieldSink) {
        into.next_task(value);
    }
    fn take(_attr: &Attr, from: &mut impl FieldSource) -> Option<TaskId> {
        from.next_task()
    }
}

/// An address of the kernel's.
pub(super) struct Address;

impl FieldPlace<u64> for Address {
    fn put(value: u64, into: &mut impl FieldSink) {
        into.address(value);
    }
    fn take(_attr: &Attr, from: &mut impl FieldSource) -> Option<u64> {
        from.address()
    }
    fn hide(value: &mut u64, mask: &mut impl Hide) {
        *value = mask.address(*value);
    }
}

/// An address that a program touched.
pub(super) struct Touched;

impl FieldPlace<u64> for Touched {
    fn put(value: u64, into: &mut impl FieldSink) {
        into.address(value);
    }
    fn take(_attr: &Attr, from: &mut impl FieldSource) -> Option<u64> {
        from.address()
    }
    fn hide(value: &mut u64, mask: &mut impl Hide) {
        *value = mask.touched(*value);
    }
}

/// An instruction pointer.
pub(super) struct Instruction;

impl FieldPlace<u64> for Instruction {
    fn put(value: u64, into: &mut impl FieldSink) {
        into.instruction(value);
    }
    fn take(_attr: &Attr, from: &mut impl FieldSource) -> Option<u64> {
        from.instruction()
    }
    fn hide(value: &mut u64, mask: &mut impl Hide) {
        *value = mask.address(*value);
    }
}
