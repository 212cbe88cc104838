//! Hides whose recording it is: addresses, task names and numbers, the command line.
//!
//! Frames are renamed so that allocations and frees still match, blocks stay blocks and zones stay zones: units of the
//! largest block (1024 pages) change places within their zone; offsets within them stay. A unit that lies only partly in a
//! zone stays where it is. Addresses become keyed hashes. The key is drawn at random and kept nowhere.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek, Write};

use mm::{Pfn, TaskId};

use crate::error::{ReadError, RecordError};
use crate::event::field::Hide;
use crate::event::{Event, Task};
use crate::format::{Reader, Writer, Written};
use crate::meta::{Meta, RecordingEnd, ZoneSpan};

/// Pages in a unit: the largest block of the buddy allocator.
const UNIT_PAGES: u32 = 1 << mm::ids::MAX_PAGE_ORDER;

/// No machine has more zones; a damaged description may. Nor do zones overlap.
const ZONES_MAX: usize = 4096;

/// A way to rename, the same for a whole recording.
#[derive(Clone, Debug)]
pub struct Mask {
    key: [u64; 2],
    zones: Vec<Shuffled>,
    /// Units outside of all zones, in the order in which they were seen.
    others: BTreeMap<u32, u32>,
}

/// The whole units of a zone and where they went.
#[derive(Clone, Debug)]
struct Shuffled {
    first: u32,
    places: Vec<u32>,
}

impl Shuffled {
    fn end(&self) -> u64 {
        u64::from(self.first) + self.places.len() as u64
    }
}

impl Mask {
    /// A mask for frames of `zones`, of the system's random numbers.
    ///
    /// # Errors
    /// There are none to be had.
    pub fn random(zones: &[ZoneSpan]) -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let (low, high) = (u128::from_le_bytes(bytes) as u64, (u128::from_le_bytes(bytes) >> 64) as u64);
        Ok(Self::with_key(zones, [low, high]))
    }

    /// A mask that this key alone determines. Who has the key can undo it.
    pub fn with_key(zones: &[ZoneSpan], key: [u64; 2]) -> Self {
        let mut mask = Self { key, zones: vec![], others: BTreeMap::new() };
        for zone in zones.iter().take(ZONES_MAX) {
            let first = zone.start_pfn.div_ceil(u64::from(UNIT_PAGES));
            let end = zone.start_pfn.saturating_add(zone.spanned) / u64::from(UNIT_PAGES);
            let units = u64::from(u32::MAX / UNIT_PAGES);
            let is_free = |other: &Shuffled| other.end() <= first || u64::from(other.first) >= end;
            if first < end && end <= units && mask.zones.iter().all(is_free) {
                mask.zones.push(mask.shuffled(first as u32, end as u32));
            }
        }
        mask
    }

    /// Fisher and Yates' shuffle of the units from `first` to before `end`.
    fn shuffled(&self, first: u32, end: u32) -> Shuffled {
        let mut places: Vec<u32> = (first..end).collect();
        for index in (1..places.len()).rev() {
            let other = self.hash(0, u64::from(first) << 32 | index as u64) % (index as u64 + 1);
            places.swap(index, other as usize);
        }
        Shuffled { first, places }
    }

    /// SipHash under the key. `DefaultHasher` may change with Rust's version, which harms nothing: a mask is never
    /// computed twice.
    fn hash(&self, domain: u8, value: u64) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (self.key, domain, value).hash(&mut hasher);
        hasher.finish()
    }

    /// `event` under the mask.
    #[must_use]
    pub fn event(&mut self, mut event: Event) -> Event {
        event.kind.hide(self);
        event
    }

    /// A task under the mask: `task-1` and so on, its numbers those of the recording. The idle task stays what it is.
    #[must_use]
    pub fn task(&self, id: TaskId, task: &Task) -> Task {
        if task.tid == 0 {
            return task.clone();
        }
        let number = id.0 + 1;
        Task { pid: number, tid: number, name: format!("task-{number}"), in_workload: task.in_workload }
    }

    /// A description under the mask: without the command line. What it says of the machine stays.
    #[must_use]
    pub fn meta(meta: &Meta) -> Meta {
        Meta { command: vec![], masked: true, ..meta.clone() }
    }
}

impl Hide for Mask {
    fn frame(&mut self, pfn: Pfn) -> Pfn {
        let (unit, offset) = (pfn.0 / UNIT_PAGES, pfn.0 % UNIT_PAGES);
        for zone in &self.zones {
            if let Some(place) =
                unit.checked_sub(zone.first).and_then(|index| zone.places.get(index as usize))
            {
                return Pfn(place * UNIT_PAGES + offset);
            }
        }
        if !self.zones.is_empty() {
            return pfn;
        }
        let next = self.others.len() as u32;
        Pfn(*self.others.entry(unit).or_insert(next) * UNIT_PAGES + offset)
    }

    /// What a user's address or the kernel's becomes. Zero stays zero.
    fn address(&self, address: u64) -> u64 {
        if address == 0 { 0 } else { self.hash(1, address) }
    }

    /// The page's identity stays, the offset within it goes.
    fn touched(&self, address: u64) -> u64 {
        self.hash(2, address >> mm::ids::PAGE_SHIFT) << mm::ids::PAGE_SHIFT
    }
}

/// Writes the recording that `input` holds to `output` under a random mask. Marks stay: they name knobs.
///
/// # Errors
/// `input` is damaged, or `output` cannot be written.
pub fn mask<R: Read + Seek, W: Write>(input: &mut Reader<R>, output: W) -> Result<(W, Written), RecordError> {
    let mut mask = Mask::random(&input.meta().zones).map_err(ReadError::Io)?;
    let failed = |error| RecordError::Output { error, kept_bytes: 0, kept_events: 0 };
    let mut writer = Writer::new(output, &Mask::meta(input.meta())).map_err(failed)?;
    for (index, task) in input.tasks().iter().enumerate() {
        let id = TaskId(index as u32);
        writer.task(id, &mask.task(id, task)).map_err(failed)?;
    }
    for name in input.names().iter().skip(1) {
        writer.name(name).map_err(failed)?;
    }
    let mut outcome =
        input.outcome().cloned().unwrap_or(RecordingEnd { interrupted: true, ..RecordingEnd::default() });
    // The copy is whole, so that nothing else would tell that its original was not.
    if let Some(damage) = input.damage().filter(|damage| damage.loses_events()) {
        outcome.unreadable += damage.events.unwrap_or(1).max(1);
    }
    for event in input.events()? {
        let event = event?;
        outcome.end_ns = outcome.end_ns.max(event.time.0);
        writer.push(&mask.event(event)).map_err(failed)?;
    }
    writer.finish(outcome).map_err(failed)
}
