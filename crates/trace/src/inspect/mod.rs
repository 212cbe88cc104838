//! What is in a recording: counts, tasks, mixes, and the refills and drains of per-CPU lists that it shows.
//!
//! Pure data; `report` prints it. `runs` finds refills and drains in the stream, `held` follows which pages are out,
//! `objects` which slab objects.

mod held;
mod objects;
mod runs;

use std::io::{Read, Seek};

use mm::MigrateType;
use serde::Serialize;

use crate::error::ReadError;
use crate::event::{Event, EventKind};
use crate::format::{Damage, Reader};
use crate::meta::Keep;
use crate::slabs::slab_pages;
use held::PagesOut;
use objects::Objects;
use runs::BlockRuns;

/// What is in a recording.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Inspection {
    /// What made it.
    pub source: String,
    /// The kernel's release.
    pub kernel: String,
    /// The CPU's model.
    pub cpu_model: String,
    /// CPUs of the host.
    pub cpus: u32,
    /// The command, empty if there was none or it is masked.
    pub command: Vec<String>,
    /// Which events were kept.
    pub keep: Keep,
    /// Whether addresses and names are hidden.
    pub masked: bool,
    /// What is wrong with the file.
    pub damage: Option<Damage>,
    /// Whether the recording's end is missing.
    pub truncated: bool,
    /// Whether the recording was stopped from outside.
    pub interrupted: bool,
    /// The command's exit status, if it ended.
    pub exit_status: Option<i32>,
    /// Chunks of events that can be read.
    pub chunks: usize,
    /// Bytes of the file.
    pub bytes: u64,
    /// Events in it.
    pub events: u64,
    /// Bytes per event, everything in the file counted.
    pub bytes_per_event: f64,
    /// ns from the start to the first event.
    pub first_ns: u64,
    /// ns from the start to the last event.
    pub last_ns: u64,
    /// ns that recording adds to a task per event, as measured before the start.
    pub cost_ns_per_event: Option<f64>,
    /// Events by kind, in the order of [`EventKind::NAMES`], those that occur.
    pub kinds: Vec<KindCount>,
    /// The tasks, those with most allocations first.
    pub tasks: Vec<TaskActivity>,
    /// Allocations by order and type, most frequent first.
    pub allocations: Vec<MixRow>,
    /// Refills of per-CPU lists: runs of pages taken under the zone lock.
    pub refills: Vec<RunRow>,
    /// Drains of per-CPU lists: runs of pages given back.
    pub drains: Vec<RunRow>,
    /// What became of pages.
    pub pages: PageBalance,
    /// The slab caches, those with most events first.
    pub caches: Vec<CacheActivity>,
    /// What became of slab objects.
    pub objects: ObjectBalance,
    /// Page events that are the kernel's slab allocator's: [`crate::slabs`].
    pub slab_pages: SlabPageEvents,
    /// Losses.
    pub losses: Losses,
}

/// How often a kind of event occurs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct KindCount {
    /// The kind's name.
    pub kind: &'static str,
    /// Events.
    pub count: u64,
}

/// What a task did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TaskActivity {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Whether it belongs to the workload.
    pub in_workload: bool,
    /// Blocks handed out on its time.
    pub allocs: u64,
    /// Pages in them.
    pub alloc_pages: u64,
    /// Blocks freed on its time.
    pub frees: u64,
    /// Pages in them.
    pub free_pages: u64,
    /// Page faults.
    pub faults: u64,
    /// Times that it came to run.
    pub runs: u64,
    /// ns that it ran, from one switch to the next; 0 without switches.
    pub run_ns: u64,
}

/// Allocations of one order and type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MixRow {
    /// Order of the blocks.
    pub order: u8,
    /// The type's name.
    pub migratetype: &'static str,
    /// Blocks.
    pub count: u64,
}

/// Runs of one order and type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunRow {
    /// Order of the blocks; `None` for drains, which mix them.
    pub order: Option<u8>,
    /// The type's name; `None` for drains.
    pub migratetype: Option<&'static str>,
    /// Runs.
    pub count: u64,
    /// Blocks in all of them.
    pub blocks: u64,
    /// How many runs had so many blocks: size and count, the smallest first.
    pub sizes: Vec<(u64, u64)>,
}

/// What became of the pages of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PageBalance {
    /// Pages handed out.
    pub allocated: u64,
    /// Pages freed.
    pub freed: u64,
    /// Most pages that were out at a time.
    pub peak: u64,
    /// Pages that were handed out and are not back at the end.
    pub held: u64,
    /// Blocks freed of which no page was seen handed out.
    pub unmatched_frees: u64,
    /// Pages handed out that were out already: their frees were lost or left out.
    pub allocated_twice: u64,
}

/// What happened to a slab cache.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CacheActivity {
    /// Its name; a class of `kmalloc` by the size and flags of the requests.
    pub cache: String,
    /// Bytes that an object takes; 0 for `kmalloc` of whole pages.
    pub object_bytes: u32,
    /// Objects handed out.
    pub allocs: u64,
    /// Of these, objects freed.
    pub frees: u64,
    /// Most objects that were out at a time.
    pub peak: u64,
    /// Objects that were handed out and are not back at the end.
    pub held: u64,
    /// Objects handed out again without a free between.
    pub allocated_twice: u64,
}

/// What became of the slab objects of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ObjectBalance {
    /// Objects handed out.
    pub allocated: u64,
    /// Of these, objects freed.
    pub freed: u64,
    /// Most objects that were out at a time.
    pub peak: u64,
    /// Objects that were handed out and are not back at the end.
    pub held: u64,
    /// Frees of objects that were not seen handed out.
    pub unmatched_frees: u64,
    /// Objects handed out that were out already: their frees have no event (`kfree_rcu` into a sheaf), were lost or left
    /// out.
    pub allocated_twice: u64,
}

/// Page events of the kernel's slab allocator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SlabPageEvents {
    /// Blocks handed out to slabs.
    pub allocations: u64,
    /// Blocks that slabs gave back.
    pub frees: u64,
}

/// What is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Losses {
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// Times that this happened.
    pub occasions: u64,
    /// Events that could not be expressed.
    pub unreadable: u64,
    /// Events of others that were left out on purpose.
    pub left_out: u64,
}

/// Reads a whole recording: once, and where slab events were recorded twice more, to tell slabs' pages.
///
/// # Errors
/// An event is written wrongly; see [`Reader::events`]. What is damaged is left out and said.
pub fn inspect<R: Read + Seek>(reader: &mut Reader<R>) -> Result<Inspection, ReadError> {
    let slab_pages = slab_pages(reader)?;
    let mut tally = InspectionTally::new(reader);
    tally.slab_pages = SlabPageEvents { allocations: slab_pages.allocations, frees: slab_pages.frees };
    for event in reader.events()? {
        tally.add(&event?);
    }
    Ok(tally.finish(reader))
}

/// What is counted while reading.
#[derive(Default)]
struct InspectionTally {
    kinds: [u64; EventKind::COUNT],
    mix: [[u64; MigrateType::COUNT]; 11],
    tasks: Vec<TaskActivity>,
    running: Vec<Option<(u32, u64)>>,
    refills: BlockRuns,
    drains: BlockRuns,
    held: PagesOut,
    objects: Objects,
    slab_pages: SlabPageEvents,
    losses: Losses,
    times: Option<(u64, u64)>,
}

impl InspectionTally {
    fn new<R: Read + Seek>(reader: &Reader<R>) -> Self {
        let tasks = reader.tasks().iter().map(|task| TaskActivity {
            name: task.name.clone(),
            pid: task.pid,
            tid: task.tid,
            in_workload: task.in_workload,
            ..TaskActivity::default()
        });
        let cpus = reader.meta().cpus as usize;
        Self {
            tasks: tasks.collect(),
            running: vec![None; cpus],
            refills: BlockRuns::new(cpus),
            drains: BlockRuns::new(cpus),
            ..Self::default()
        }
    }

    fn add(&mut self, event: &Event) {
        let time = event.time.0;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        self.kinds[event.kind.index()] += 1;
        self.add_runs(event);
        let task = &mut self.tasks[event.task.0 as usize];
        match event.kind {
            EventKind::PageAlloc { pfn, order, migratetype, .. } => {
                self.mix[order.index()][migratetype.index()] += 1;
                task.allocs += 1;
                task.alloc_pages += u64::from(order.pages());
                self.held.allocate(pfn, order);
            }
            EventKind::PageFree { pfn, order } => {
                task.frees += 1;
                task.free_pages += u64::from(order.pages());
                self.held.free(pfn, order);
            }
            EventKind::Fault { .. } => task.faults += 1,
            EventKind::SlabAlloc { .. } | EventKind::SlabFree { .. } => self.objects.add(&event.kind),
            EventKind::Switch { next, .. } => self.switch(event, next.0),
            EventKind::Lost { count } => {
                self.losses.lost = self.losses.lost.saturating_add(count);
                self.losses.occasions += 1;
            }
            _ => {}
        }
    }

    /// A run is of neighbours on one CPU: anything else there ends it, be it only the allocation that the refill was for.
    fn add_runs(&mut self, event: &Event) {
        let cpu = usize::from(event.cpu.0);
        match event.kind {
            EventKind::ZoneLocked { order, migratetype, percpu_refill: true, .. } => {
                self.refills.extend(cpu, Some((order, migratetype)));
                self.drains.end(cpu);
            }
            EventKind::PcpuDrain { .. } => {
                self.drains.extend(cpu, None);
                self.refills.end(cpu);
            }
            _ => {
                self.refills.end(cpu);
                self.drains.end(cpu);
            }
        }
    }

    fn switch(&mut self, event: &Event, next: u32) {
        let running = &mut self.running[usize::from(event.cpu.0)];
        if let Some((task, since)) = running.take().filter(|(task, _)| *task == event.task.0) {
            let ran = event.time.0.saturating_sub(since);
            let total = &mut self.tasks[task as usize].run_ns;
            *total = total.saturating_add(ran);
        }
        *running = Some((next, event.time.0));
        self.tasks[next as usize].runs += 1;
    }

    fn finish<R: Read + Seek>(mut self, reader: &Reader<R>) -> Inspection {
        let (meta, outcome) = (reader.meta(), reader.outcome());
        let events: u64 = self.kinds.iter().sum();
        let (first, last) = self.times.unwrap_or((meta.start_ns, meta.start_ns));
        self.losses.unreadable = outcome.map_or(0, |outcome| outcome.unreadable);
        self.losses.left_out = outcome.map_or(0, |outcome| outcome.left_out);
        self.tasks.sort_by_key(|task| std::cmp::Reverse((task.allocs, task.frees, task.runs)));
        let names = EventKind::NAMES.iter().zip(self.kinds);
        let (caches, objects) = self.objects.finish(reader.names());
        Inspection {
            source: meta.source.clone(),
            kernel: meta.kernel.clone(),
            cpu_model: meta.cpu_model.clone(),
            cpus: meta.cpus,
            command: meta.command.clone(),
            keep: meta.keep,
            masked: meta.masked,
            damage: reader.damage().copied(),
            truncated: reader.truncated(),
            interrupted: outcome.is_some_and(|outcome| outcome.interrupted),
            exit_status: outcome.and_then(|outcome| outcome.exit_status),
            chunks: reader.chunk_count(),
            bytes: reader.bytes(),
            events,
            bytes_per_event: if events == 0 { 0.0 } else { reader.bytes() as f64 / events as f64 },
            first_ns: first.saturating_sub(meta.start_ns),
            last_ns: last.saturating_sub(meta.start_ns),
            cost_ns_per_event: meta.cost.map(|cost| cost.ns_per_event),
            kinds: names.filter(|(_, n)| *n > 0).map(|(kind, count)| KindCount { kind, count }).collect(),
            tasks: self.tasks,
            allocations: mix_rows(&self.mix),
            refills: self.refills.finish(),
            drains: self.drains.finish(),
            pages: self.held.balance(),
            caches,
            objects,
            slab_pages: self.slab_pages,
            losses: self.losses,
        }
    }
}

fn mix_rows(mix: &[[u64; MigrateType::COUNT]; 11]) -> Vec<MixRow> {
    let mut rows: Vec<MixRow> = vec![];
    for (order, types) in mix.iter().enumerate() {
        for (migratetype, &count) in MigrateType::ALL.iter().zip(types) {
            if count > 0 {
                rows.push(MixRow { order: order as u8, migratetype: migratetype.name(), count });
            }
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}
