//! From a tracepoint's bytes to an event, by the fields that its `format` file names.

use mm::{MigrateType, Order, Pfn};

use super::flags::GfpTable;
use super::format::{Field, Format};
use crate::event::{EventKind, NameId, SwitchState};

/// Decoders for a set of tracepoints, by their numbers.
#[derive(Debug, Default)]
pub struct Schema {
    points: Vec<Option<Point>>,
    gfp: Option<GfpTable>,
}

/// What a tracepoint's bytes say. Tasks and caches are named as the kernel does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded<'a> {
    /// An event, complete.
    Event(EventKind),
    /// A slab event but for its cache, which has this name.
    Slab(EventKind, &'a [u8]),
    /// A switch to this task.
    Switch {
        /// Its number.
        next_tid: u32,
        /// Its name.
        next_name: &'a [u8],
        /// The name of the task that leaves.
        prev_name: &'a [u8],
        /// How that one stays behind.
        state: SwitchState,
    },
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
    what: What,
    /// The fields that `what` asks for, in its order; `None` where an optional one is missing.
    fields: Vec<Option<Field>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    PageAlloc,
    PageFree,
    PageFreeBatched,
    ZoneLocked,
    PcpuDrain,
    Switch,
    Fault,
    SlabAlloc,
    SlabFree,
    LockBegin,
    LockEnd,
}

/// For each tracepoint: its name, what it is, the fields needed and those that may be missing.
const KNOWN: [(&str, What, &[&str], &[&str]); 15] = [
    ("mm_page_alloc", What::PageAlloc, &["pfn", "order", "migratetype", "gfp_flags"], &[]),
    ("mm_page_free", What::PageFree, &["pfn", "order"], &[]),
    ("mm_page_free_batched", What::PageFreeBatched, &["pfn"], &[]),
    ("mm_page_alloc_zone_locked", What::ZoneLocked, &["pfn", "order", "migratetype"], &["percpu_refill"]),
    ("mm_page_pcpu_drain", What::PcpuDrain, &["pfn", "order", "migratetype"], &[]),
    ("sched_switch", What::Switch, &["next_pid", "prev_state", "next_comm", "prev_comm"], &[]),
    ("page_fault_user", What::Fault, &["address", "ip", "error_code"], &[]),
    ("kmem_cache_alloc", What::SlabAlloc, SLAB, &["node", "name"]),
    ("kmem_cache_alloc_node", What::SlabAlloc, SLAB, &["node", "name"]),
    ("kmalloc", What::SlabAlloc, SLAB, &["node", "name"]),
    ("kmalloc_node", What::SlabAlloc, SLAB, &["node", "name"]),
    ("kmem_cache_free", What::SlabFree, &["ptr"], &["name"]),
    ("kfree", What::SlabFree, &["ptr"], &["name"]),
    ("contention_begin", What::LockBegin, &["lock_addr", "flags"], &[]),
    ("contention_end", What::LockEnd, &["lock_addr", "ret"], &[]),
];
const SLAB: &[&str] = &["ptr", "bytes_req", "bytes_alloc", "gfp_flags"];

impl Schema {
    /// Adds a tracepoint. False if it is none that a recording has events for.
    ///
    /// # Errors
    /// Says which field is missing.
    pub fn add(&mut self, format: &Format) -> Result<bool, String> {
        let Some(&(_, what, needed, optional)) = KNOWN.iter().find(|known| known.0 == format.name) else {
            return Ok(false);
        };
        if let Some(missing) = needed.iter().find(|name| format.field(name).is_none()) {
            return Err(format!("the tracepoint {} has no field {missing}", format.name));
        }
        let fields = needed.iter().chain(optional).map(|name| format.field(name).cloned()).collect();
        if needed.contains(&"gfp_flags") && !self.gfp.as_ref().is_some_and(GfpTable::is_plausible) {
            self.gfp = Some(GfpTable::parse(&format.print));
        }
        let id = usize::from(format.id);
        if id >= self.points.len() {
            self.points.resize_with(id + 1, || None);
        }
        self.points[id] = Some(Point { what, fields });
        Ok(true)
    }

    /// Whether the flags of allocations will be told apart, or there are none to tell.
    pub fn knows_gfp(&self) -> bool {
        self.gfp.as_ref().is_none_or(GfpTable::is_plausible)
    }

    /// Reads an event's bytes, as they follow a sample's size.
    ///
    /// # Errors
    /// Why they are not an event of ours.
    pub fn decode<'a>(&self, raw: &'a [u8]) -> Result<Decoded<'a>, NotDecoded> {
        let &[low, high, ..] = raw else { return Err(NotDecoded::Unreadable) };
        let id = usize::from(u16::from_le_bytes([low, high]));
        let point = self.points.get(id).and_then(Option::as_ref).ok_or(NotDecoded::Unknown)?;
        self.decode_as(point, raw).ok_or(NotDecoded::Unreadable)
    }

    fn decode_as<'a>(&self, point: &Point, raw: &'a [u8]) -> Option<Decoded<'a>> {
        let read = |index: usize| point.read(index, raw);
        Some(Decoded::Event(match point.what {
            What::PageAlloc => return self.page_alloc(point, raw),
            What::PageFree => EventKind::PageFree { pfn: pfn(read(0)?)?, order: order(read(1)?)? },
            What::PageFreeBatched => EventKind::PageFreeBatched { pfn: pfn(read(0)?)? },
            What::ZoneLocked => {
                let order = order(read(1)?)?;
                let percpu_refill = read(3).map_or(order == Order::ZERO, |refill| refill != 0);
                let migratetype = migratetype(read(2)?)?;
                EventKind::ZoneLocked { pfn: pfn(read(0)?)?, order, migratetype, percpu_refill }
            }
            What::PcpuDrain => EventKind::PcpuDrain {
                pfn: pfn(read(0)?)?,
                order: order(read(1)?)?,
                migratetype: migratetype(read(2)?)?,
            },
            What::Switch => return point.switch(raw),
            What::Fault => EventKind::Fault { address: read(0)?, ip: read(1)?, error_code: read(2)? as u32 },
            What::SlabAlloc | What::SlabFree => return self.slab(point, raw),
            What::LockBegin => EventKind::ContentionBegin { lock: read(0)?, flags: read(1)? as u32 },
            What::LockEnd => EventKind::ContentionEnd { lock: read(0)?, result: read(1)? as i32 },
        }))
    }

    fn page_alloc<'a>(&self, point: &Point, raw: &[u8]) -> Option<Decoded<'a>> {
        let order = order(point.read(1, raw)?)?;
        let migratetype = migratetype(point.read(2, raw)?)?;
        let gfp = self.gfp.as_ref()?.decode(point.read(3, raw)?);
        Some(Decoded::Event(match point.read(0, raw)? {
            u64::MAX => EventKind::PageAllocFailed { order, migratetype, gfp },
            page => EventKind::PageAlloc { pfn: pfn(page)?, order, migratetype, gfp },
        }))
    }

    fn slab<'a>(&self, point: &Point, raw: &'a [u8]) -> Option<Decoded<'a>> {
        let (object, cache) = (point.read(0, raw)?, NameId::NONE);
        let (kind, name) = if point.what == What::SlabFree {
            (EventKind::SlabFree { object, cache }, point.text(1, raw))
        } else {
            let requested = u32::try_from(point.read(1, raw)?).ok()?;
            let allocated = u32::try_from(point.read(2, raw)?).ok()?;
            let gfp = self.gfp.as_ref()?.decode(point.read(3, raw)?);
            let node = point.read(4, raw).map_or(-1, |node| node as i16);
            (EventKind::SlabAlloc { object, cache, requested, allocated, gfp, node }, point.text(5, raw))
        };
        Some(name.map_or(Decoded::Event(kind), |name| Decoded::Slab(kind, name)))
    }
}

impl Point {
    #[inline]
    fn read(&self, index: usize, raw: &[u8]) -> Option<u64> {
        self.fields.get(index)?.as_ref()?.read(raw)
    }

    fn text<'a>(&self, index: usize, raw: &'a [u8]) -> Option<&'a [u8]> {
        self.fields.get(index)?.as_ref()?.read_text(raw)
    }

    fn switch<'a>(&self, raw: &'a [u8]) -> Option<Decoded<'a>> {
        Some(Decoded::Switch {
            next_tid: u32::try_from(self.read(0, raw)?).ok()?,
            state: SwitchState::from_prev_state(self.read(1, raw)?),
            next_name: self.text(2, raw)?,
            prev_name: self.text(3, raw)?,
        })
    }
}

fn pfn(value: u64) -> Option<Pfn> {
    u32::try_from(value).ok().map(Pfn)
}

fn order(value: u64) -> Option<Order> {
    Order::new(u8::try_from(value).ok()?)
}

fn migratetype(value: u64) -> Option<MigrateType> {
    MigrateType::from_index(u8::try_from(value).ok()?)
}
