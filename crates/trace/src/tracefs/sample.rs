//! A tracepoint's bytes with the fields that were asked for, as numbers, texts and what the memory manager calls them.

use mm::{MigrateType, Order, Pfn};

use super::flags::GfpTable;
use super::format::Field;
use crate::gfp::Gfp;

/// What a tracepoint wrote. Fields go by their place among those that were asked for.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'s, 'a> {
    /// The fields; `None` where the kernel does not have one that may be missing.
    pub(crate) fields: &'s [Option<Field>],
    /// The bytes, as they follow a sample's size.
    pub(crate) raw: &'a [u8],
    /// How this kernel numbers flags; `None` where no event has any.
    pub(crate) flags: Option<&'s GfpTable>,
}

impl<'a> Sample<'_, 'a> {
    /// The field as a number.
    #[inline]
    pub fn number(&self, index: usize) -> Option<u64> {
        self.fields.get(index)?.as_ref()?.read(self.raw)
    }

    /// The field as text.
    pub fn text(&self, index: usize) -> Option<&'a [u8]> {
        self.fields.get(index)?.as_ref()?.read_text(self.raw)
    }

    /// The field as a number of 32 bits.
    pub fn short(&self, index: usize) -> Option<u32> {
        u32::try_from(self.number(index)?).ok()
    }

    /// The field as a frame.
    #[inline]
    pub fn pfn(&self, index: usize) -> Option<Pfn> {
        self.short(index).map(Pfn)
    }

    /// The field as an order.
    #[inline]
    pub fn order(&self, index: usize) -> Option<Order> {
        Order::new(u8::try_from(self.number(index)?).ok()?)
    }

    /// The field as a type.
    #[inline]
    pub fn migratetype(&self, index: usize) -> Option<MigrateType> {
        MigrateType::from_index(u8::try_from(self.number(index)?).ok()?)
    }

    /// The field as flags of a request.
    #[inline]
    pub fn gfp(&self, index: usize) -> Option<Gfp> {
        Some(self.flags?.decode(self.number(index)?))
    }
}
