//! From a tracepoint's bytes to an event, by the fields that its `format` file names.

use crate::event::{Decoded, Tracepoint, tracepoints};
use crate::tracefs::flags::GfpTable;
use crate::tracefs::format::{Field, Format};
use crate::tracefs::sample::Sample;

/// Decoders for a set of tracepoints, by their numbers.
#[derive(Debug, Default)]
pub struct Schema {
    points: Vec<Option<Point>>,
    gfp: Option<GfpTable>,
}

/// Why bytes are no event of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotDecoded {
    /// A tracepoint that was not asked for.
    Unknown,
    /// One that was, with a value that cannot be expressed.
    Unreadable,
}

#[derive(Debug)]
struct Point {
    of: &'static Tracepoint,
    /// The fields that it asks for, in its order; `None` where an optional one is missing.
    fields: Vec<Option<Field>>,
}

impl Schema {
    /// Adds a tracepoint. False if it is none that a recording has events for.
    ///
    /// # Errors
    /// Says which field is missing.
    pub fn add(&mut self, format: &Format) -> Result<bool, String> {
        let Some(of) = tracepoints().find(|of| of.short_name() == format.name) else { return Ok(false) };
        let Tracepoint { needed, optional, .. } = of;
        if let Some(missing) = needed.iter().find(|name| format.field(name).is_none()) {
            return Err(format!("the tracepoint {} has no field {missing}", format.name));
        }
        let fields = needed.iter().chain(*optional).map(|name| format.field(name).cloned()).collect();
        if needed.contains(&"gfp_flags") && !self.gfp.as_ref().is_some_and(GfpTable::is_plausible) {
            self.gfp = Some(GfpTable::parse(&format.print));
        }
        let id = usize::from(format.id);
        if id >= self.points.len() {
            self.points.resize_with(id + 1, || None);
        }
        self.points[id] = Some(Point { of, fields });
        Ok(true)
    }

    /// Whether it has the tracepoint of this name, its system's left out.
    pub(crate) fn has(&self, short_name: &str) -> bool {
        self.points.iter().flatten().any(|point| point.of.short_name() == short_name)
    }

    /// Whether the flags of allocations will be told apart, or there are none to tell.
    pub fn knows_gfp(&self) -> bool {
        self.gfp.as_ref().is_none_or(GfpTable::is_plausible)
    }

    /// How this kernel numbers the flags of allocations; `None` where no event has any.
    pub(crate) const fn gfp(&self) -> Option<&GfpTable> {
        self.gfp.as_ref()
    }

    /// Reads an event's bytes, as they follow a sample's size.
    ///
    /// # Errors
    /// Why they are not an event of ours.
    pub fn decode<'a>(&self, raw: &'a [u8]) -> Result<Decoded<'a>, NotDecoded> {
        let &[low, high, ..] = raw else { return Err(NotDecoded::Unreadable) };
        let id = usize::from(u16::from_le_bytes([low, high]));
        let point = self.points.get(id).and_then(Option::as_ref).ok_or(NotDecoded::Unknown)?;
        let sample = Sample { fields: &point.fields, raw, flags: self.gfp.as_ref() };
        (point.of.read)(&sample).ok_or(NotDecoded::Unreadable)
    }
}
