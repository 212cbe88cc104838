//! Which page events of a recording come from the kernel's own slab allocator. It takes its pages from the page allocator
//! and gives them back there. A replay of objects must leave these page events out, for the replay's slab allocator makes
//! its own.
//!
//! An object's address is its page's in the kernel's direct map: `base + pfn × 4096 + offset`. The base is a multiple of
//! 1 GiB (also where the kernel randomizes it), so a page that is handed out just before an object in it reveals the base.
//! With the base known, a block is a slab's if an object is handed out in it before it is freed. Objects by `kmalloc` of
//! more than two pages are whole blocks of pages and no slab's: their page events stay.
//!
//! A masked recording has no such addresses. There a block is taken for a slab's if it was asked for as slabs are (may
//! fail, without a warning, not movable) and the same task's next event, refills apart, is that it gets an object.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Seek};

use mm::ids::{PAGE_SHIFT, PAGE_SIZE};
use mm::slab::kmalloc::{self, KmallocClass, KmallocKind};
use mm::{MigrateType, Order, Pfn, TaskId};

use crate::error::ReadError;
use crate::event::{Event, EventKind, NameId};
use crate::format::Reader;
use crate::gfp::Gfp;

/// The direct map begins at a multiple of this, bytes.
const BASE_ALIGN: u64 = 1 << 30;
/// A base that so many pairs of a block and an object in it agree on is taken.
const VOTES_ENOUGH: u32 = 64;
/// Bases that are followed at a time: a damaged recording may name any number.
const CANDIDATES_MAX: usize = 1024;

/// The page events that are the slab allocator's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlabPages {
    /// Their numbers among all events, from 0, ascending.
    events: Vec<u64>,
    /// Blocks handed out to slabs.
    pub allocations: u64,
    /// Blocks that slabs gave back.
    pub frees: u64,
    /// Caches whose slabs are of reclaimable pages.
    pub reclaimable: BTreeSet<NameId>,
}

impl SlabPages {
    /// Whether the event numbered `event`, from 0, is a page event of a slab's.
    pub fn contains(&self, event: u64) -> bool {
        self.events.binary_search(&event).is_ok()
    }

    /// Finds them in `events`, which can be gone through twice.
    pub fn of_events(events: &[Event]) -> Self {
        let mut votes = Votes::default();
        for event in events {
            votes.add(event);
        }
        Self::found(events, Finder::new(votes.winner()))
    }

    /// The same of a masked recording, whose addresses say nothing.
    pub fn of_masked_events(events: &[Event]) -> Self {
        Self::found(events, Finder::new(None))
    }

    fn found(events: &[Event], mut finder: Finder) -> Self {
        for event in events {
            finder.add(event);
        }
        finder.finish()
    }
}

/// Whether an object of `allocated` bytes from `cache` is a block of pages and in no slab.
pub fn is_large(cache: NameId, allocated: u32) -> bool {
    cache == NameId::NONE && allocated > kmalloc::SIZES[kmalloc::SIZES.len() - 1]
}

/// The class of `kmalloc` that an object of `allocated` bytes is from: it has no cache's name, and its size is that of a
/// class. The row is the one that kernels with memory cgroups take it from.
pub fn kmalloc_class(cache: NameId, allocated: u32, gfp: Gfp) -> Option<KmallocClass> {
    if cache != NameId::NONE || !kmalloc::SIZES.contains(&allocated) {
        return None;
    }
    let row = if gfp.contains(Gfp::DMA) {
        KmallocKind::Dma
    } else if gfp.contains(Gfp::RECLAIMABLE) {
        KmallocKind::Reclaimable
    } else if gfp.contains(Gfp::ACCOUNT) {
        KmallocKind::Accounted
    } else {
        KmallocKind::Normal
    };
    KmallocClass::of(row, allocated)
}

/// Finds the page events of slabs in a recording; none where no event of a slab was recorded. Reads it twice.
///
/// # Errors
/// It is damaged; see [`Reader::events`].
pub fn slab_pages<R: Read + Seek>(reader: &mut Reader<R>) -> Result<SlabPages, ReadError> {
    if !reader.meta().tracepoints.iter().any(|name| name.starts_with("kmem:k")) {
        return Ok(SlabPages::default());
    }
    let base = if reader.meta().masked { None } else { base(reader)? };
    let mut finder = Finder::new(base);
    for event in reader.events()? {
        finder.add(&event?);
    }
    Ok(finder.finish())
}

/// Where the direct map begins.
fn base<R: Read + Seek>(reader: &mut Reader<R>) -> Result<Option<u64>, ReadError> {
    let mut votes = Votes::default();
    for event in reader.events()? {
        votes.add(&event?);
        if votes.most >= VOTES_ENOUGH {
            break;
        }
    }
    Ok(votes.winner())
}

/// What blocks and the objects that follow them say of the direct map's base.
#[derive(Debug, Default)]
struct Votes {
    bases: HashMap<u64, u32>,
    most: u32,
    /// Each task's block that was handed out last.
    last: HashMap<TaskId, (Pfn, Order)>,
}

impl Votes {
    fn add(&mut self, event: &Event) {
        match event.kind {
            EventKind::PageAlloc { pfn, order, gfp, .. } if !is_movable(gfp) => {
                self.last.insert(event.task, (pfn, order));
            }
            EventKind::SlabAlloc { object, cache, allocated, .. } if !is_large(cache, allocated) => {
                let Some((pfn, order)) = self.last.remove(&event.task) else { return };
                let start = object.wrapping_sub(u64::from(pfn.0) << PAGE_SHIFT);
                let is_in_block = start % BASE_ALIGN < u64::from(order.pages()) * PAGE_SIZE;
                if is_in_block && self.bases.len() < CANDIDATES_MAX {
                    let votes = self.bases.entry(start - start % BASE_ALIGN).or_default();
                    *votes += 1;
                    self.most = self.most.max(*votes);
                }
            }
            _ => {}
        }
    }

    /// The base with most votes; none where two have as many.
    fn winner(&self) -> Option<u64> {
        let mut best = self.bases.iter().filter(|(_, votes)| **votes == self.most);
        let (base, _) = best.next()?;
        best.next().is_none().then_some(*base)
    }
}

/// What is known of a frame.
#[derive(Clone, Copy, Debug)]
enum FrameUse {
    /// In a block that event number `event` handed out, of which no object was seen yet.
    Open { event: u64, head: u32, order: Order, migratetype: MigrateType },
    /// In a slab.
    Slab(MigrateType),
}

/// Goes through a recording once the base is known.
#[derive(Debug)]
struct Finder {
    base: Option<u64>,
    frames: HashMap<u32, FrameUse>,
    /// Blocks of each task that were asked for as slabs are, while nothing else happens to it; masked recordings only.
    asked: HashMap<TaskId, Vec<u32>>,
    number: u64,
    found: SlabPages,
}

impl Finder {
    fn new(base: Option<u64>) -> Self {
        Self { base, frames: HashMap::new(), asked: HashMap::new(), number: 0, found: SlabPages::default() }
    }

    fn add(&mut self, event: &Event) {
        match event.kind {
            EventKind::PageAlloc { pfn, order, gfp, migratetype } => {
                let open = FrameUse::Open { event: self.number, head: pfn.0, order, migratetype };
                for page in pages(pfn, order) {
                    self.frames.remove(&page);
                    if !is_movable(gfp) {
                        self.frames.insert(page, open);
                    }
                }
                self.ask(event.task, pfn, gfp);
            }
            EventKind::PageFree { pfn, order } => {
                let was_slab = matches!(self.frames.get(&pfn.0), Some(FrameUse::Slab(_)));
                if was_slab {
                    self.found.events.push(self.number);
                    self.found.frees += 1;
                }
                for page in pages(pfn, order) {
                    self.frames.remove(&page);
                }
                self.asked.remove(&event.task);
            }
            EventKind::SlabAlloc { object, cache, allocated, .. } => {
                if !is_large(cache, allocated) {
                    self.object(event.task, object, cache);
                }
                self.asked.remove(&event.task);
            }
            EventKind::ZoneLocked { .. } | EventKind::PcpuDrain { .. } => {}
            _ => {
                self.asked.remove(&event.task);
            }
        }
        self.number += 1;
    }

    fn ask(&mut self, task: TaskId, pfn: Pfn, gfp: Gfp) {
        if self.base.is_some() {
            return;
        }
        if gfp.contains(Gfp::NOWARN | Gfp::NORETRY) && !is_movable(gfp) {
            self.asked.entry(task).or_default().push(pfn.0);
        } else {
            self.asked.remove(&task);
        }
    }

    /// An object was handed out: its page is a slab's.
    fn object(&mut self, task: TaskId, object: u64, cache: NameId) {
        let Some(base) = self.base else {
            for head in self.asked.remove(&task).unwrap_or_default() {
                self.slab_frame(head, cache);
            }
            return;
        };
        let frame = object.checked_sub(base).and_then(|at| u32::try_from(at >> PAGE_SHIFT).ok());
        if let Some(frame) = frame {
            self.slab_frame(frame, cache);
        }
    }

    fn slab_frame(&mut self, frame: u32, cache: NameId) {
        let migratetype = match self.frames.get(&frame) {
            Some(&FrameUse::Open { event, head, order, migratetype }) => {
                for page in pages(Pfn(head), order) {
                    self.frames.insert(page, FrameUse::Slab(migratetype));
                }
                self.found.events.push(event);
                self.found.allocations += 1;
                migratetype
            }
            Some(&FrameUse::Slab(migratetype)) => migratetype,
            // Of a slab that is older than the recording, or that somebody else took the pages for.
            None => {
                self.frames.insert(frame, FrameUse::Slab(MigrateType::Unmovable));
                return;
            }
        };
        if migratetype == MigrateType::Reclaimable {
            self.found.reclaimable.insert(cache);
        }
    }

    fn finish(mut self) -> SlabPages {
        self.found.events.sort_unstable();
        self.found
    }
}

/// Slabs are never of movable pages.
fn is_movable(gfp: Gfp) -> bool {
    gfp.contains(Gfp::MOVABLE) || gfp.contains(Gfp::HIGHMEM)
}

/// The frames of a block, up to the last that there can be.
fn pages(pfn: Pfn, order: Order) -> impl Iterator<Item = u32> {
    pfn.0..=pfn.0.saturating_add(order.pages() - 1)
}

#[cfg(test)]
mod tests {
    use mm::{Cpu, Nanos};

    use super::*;

    const BASE: u64 = 0xffff_8880_0000_0000;

    fn at(task: u32, kind: EventKind) -> Event {
        Event { time: Nanos(0), cpu: Cpu(0), task: TaskId(task), kind }
    }

    fn pages_of_order(pfn: u32, order: u8, migratetype: MigrateType) -> Event {
        let gfp = Gfp::KERNEL | Gfp::COMP | Gfp::NOWARN | Gfp::NORETRY;
        let order = Order::new(order).unwrap();
        at(1, EventKind::PageAlloc { pfn: Pfn(pfn), order, migratetype, gfp })
    }

    fn object(address: u64, cache: u32, allocated: u32) -> Event {
        let cache = NameId(cache);
        let kind = EventKind::SlabAlloc {
            object: address,
            cache,
            requested: allocated,
            allocated,
            gfp: Gfp::KERNEL,
            node: -1,
        };
        at(1, kind)
    }

    fn freed(pfn: u32, order: u8) -> Event {
        at(2, EventKind::PageFree { pfn: Pfn(pfn), order: Order::new(order).unwrap() })
    }

    fn in_page(pfn: u32, offset: u64) -> u64 {
        BASE + u64::from(pfn) * 4096 + offset
    }

    fn story() -> Vec<Event> {
        vec![
            pages_of_order(0x20_0008, 1, MigrateType::Reclaimable),
            object(in_page(0x20_0009, 192), 3, 192),
            pages_of_order(0x20_0010, 0, MigrateType::Unmovable),
            at(1, EventKind::SlabFree { object: 1, cache: NameId(3) }),
            object(in_page(0x20_0008, 0), 3, 192),
            freed(0x20_0010, 0),
            freed(0x20_0008, 1),
            pages_of_order(0x20_0020, 2, MigrateType::Unmovable),
            object(in_page(0x20_0020, 0), 0, 16384),
            freed(0x20_0020, 2),
            object(in_page(0x20_0031, 64), 4, 64),
            freed(0x20_0031, 0),
        ]
    }

    #[test]
    fn a_block_with_objects_in_it_is_a_slabs() {
        let found = SlabPages::of_events(&story());
        let events: Vec<u64> = (0..12).filter(|&event| found.contains(event)).collect();
        assert_eq!(events, [0, 6, 11], "not the page by itself, nor the four of a large kmalloc");
        assert_eq!((found.allocations, found.frees), (1, 2));
        assert_eq!(found.reclaimable, [NameId(3)].into());
    }

    #[test]
    fn in_a_masked_recording_the_next_event_decides() {
        let found = SlabPages::of_masked_events(&story());
        let events: Vec<u64> = (0..12).filter(|&event| found.contains(event)).collect();
        assert_eq!(events, [0, 6]);
    }

    #[test]
    fn a_block_that_is_handed_out_again_is_a_slab_no_more() {
        let user = EventKind::PageAlloc {
            pfn: Pfn(0x20_0008),
            order: Order::ZERO,
            migratetype: MigrateType::Movable,
            gfp: Gfp::HIGHUSER_MOVABLE,
        };
        let mut events = story()[..2].to_vec();
        events.extend([at(1, user), freed(0x20_0008, 0)]);
        let found = SlabPages::of_events(&events);
        assert_eq!((found.allocations, found.frees), (1, 0));
    }

    #[test]
    fn no_address_makes_it_panic() {
        let largest = Order::MAX.get();
        for address in [0, 1, u64::MAX, BASE - 1] {
            let events = [
                pages_of_order(u32::MAX, largest, MigrateType::Unmovable),
                object(address, 1, 8),
                freed(u32::MAX, largest),
            ];
            SlabPages::of_events(&events);
            SlabPages::of_masked_events(&events);
        }
    }
}
