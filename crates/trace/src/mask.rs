//! Hides whose recording it is: addresses, task names and numbers, the command line.
//!
//! Frames are renamed so that allocations and frees still match, blocks stay blocks and zones stay zones: units of the
//! largest block (1024 pages) change places within their zone; offsets within them stay. A unit that lies only partly in a
//! zone stays where it is. The kernel's addresses become keyed hashes; a program's all move by one distance, in whole GiB, so that
//! ranges stay ranges. The key is drawn at random and kept nowhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek, Write};

use mm::{Pfn, TaskId};

use crate::error::{ReadError, RecordError};
use crate::event::field::Hide;
use crate::event::{Event, FileKey, Task};
use crate::format::{Reader, Writer, Written};
use crate::meta::{Meta, RecordingEnd, ZoneSpan};

/// Pages in a unit: the largest block of the buddy allocator.
const UNIT_PAGES: u32 = 1 << mm::ids::MAX_PAGE_ORDER;

/// No machine has more zones; a damaged description may. Nor do zones overlap.
const ZONES_MAX: usize = 4096;

/// Programs' addresses move by a multiple of this, so that page tables have their places at all levels that matter.
const MOVE_UNIT: u64 = 1 << 30;
/// By less than this many: what fits 47 bits stays within 48.
const MOVES: u64 = 1 << 17;
/// Programs have no addresses from here on.
const USER_END: u64 = 1 << 56;
/// Settings that name things of the machine's owner.
const PRIVATE_SETTINGS: [&str; 2] = ["/proc/cmdline", "/proc/swaps"];
const CGROUPS: &str = "/sys/fs/cgroup/";
/// Folders that cgroups have of the kernel.
const CGROUP_ROOTS: [&str; 3] = ["memory", "cpuset", "unified"];

/// A way to rename, the same for a whole recording.
#[derive(Clone, Debug)]
pub struct Mask {
    key: [u64; 2],
    zones: Vec<Shuffled>,
    /// Units outside of all zones, in the order in which they were seen.
    others: BTreeMap<u32, u32>,
    /// Numbers of tasks and processes, in the order in which they were seen.
    numbers: BTreeMap<u32, u32>,
    /// Files, in the order in which they were seen.
    files: BTreeMap<FileKey, usize>,
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
        let mut mask = Self {
            key,
            zones: vec![],
            others: BTreeMap::new(),
            numbers: BTreeMap::new(),
            files: BTreeMap::new(),
        };
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

    /// A task under the mask: `task-1` and so on. Processes and threads are numbered anew, and belong together as before.
    /// The idle task stays what it is.
    #[must_use]
    pub fn task(&mut self, id: TaskId, task: &Task) -> Task {
        if task.tid == 0 {
            return task.clone();
        }
        let [pid, tid] = [task.pid, task.tid].map(|number| self.number(number));
        Task { pid, tid, name: format!("task-{}", id.0 + 1), in_workload: task.in_workload }
    }

    /// A number of a task or a process; 0 is none.
    fn number(&mut self, number: u32) -> u32 {
        if number == 0 {
            return 0;
        }
        let next = self.numbers.len() as u32 + 1;
        *self.numbers.entry(number).or_insert(next)
    }

    /// A name under the mask: a file becomes `file-1` and so on, the same for all names of it. Names of slab caches and marks,
    /// and what the kernel maps (`[vdso]`), stay.
    #[must_use]
    pub fn name(&mut self, name: &str) -> String {
        FileKey::of_name(name).map_or_else(|| name.to_owned(), |key| self.file(key))
    }

    /// A file's name.
    pub(crate) fn file(&mut self, key: FileKey) -> String {
        let next = self.files.len() + 1;
        format!("file-{}", self.files.entry(key).or_insert(next))
    }

    /// A description under the mask: without the command line, cgroups' names, and what else names things of the machine's
    /// owner. What it says of the machine stays.
    #[must_use]
    pub fn meta(meta: &Meta) -> Meta {
        let mut cgroups = BTreeMap::new();
        let settings = meta.settings.iter().filter(|(path, _)| !PRIVATE_SETTINGS.contains(&path.as_str()));
        let settings = settings.map(|(path, text)| (hidden_path(&mut cgroups, path), text.clone())).collect();
        Meta { command: vec![], masked: true, settings, ..meta.clone() }
    }
}

/// A setting's path, the names of cgroups in it replaced by `cgroup-1` and so on.
fn hidden_path<'a>(seen: &mut BTreeMap<&'a str, usize>, path: &'a str) -> String {
    let Some((folders, file)) = path.strip_prefix(CGROUPS).and_then(|rest| rest.rsplit_once('/')) else {
        return path.to_owned();
    };
    let mut hidden = CGROUPS.to_owned();
    for (depth, name) in folders.split('/').enumerate() {
        if depth == 0 && CGROUP_ROOTS.contains(&name) {
            hidden += name;
        } else {
            let next = seen.len() + 1;
            let _ = write!(hidden, "cgroup-{}", seen.entry(name).or_insert(next));
        }
        hidden.push('/');
    }
    hidden + file
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

    /// All of a program's addresses move by the same distance. Zero, which stands for all that is mapped, stays.
    fn touched(&self, address: u64) -> u64 {
        if (1..USER_END).contains(&address) {
            return address + (self.hash(2, 0) % (MOVES - 1) + 1) * MOVE_UNIT;
        }
        self.address(address >> mm::ids::PAGE_SHIFT) << mm::ids::PAGE_SHIFT
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
        writer.name(&mask.name(name)).map_err(failed)?;
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
