//! Gives mm the allocations and frees of a slab trace, CPU by CPU, and compares: which slab each object is of, what the
//! SLUB_STATS counters came to, and what /sys/kernel/slab says in the end.
//!
//! The counters are of a longer time than the trace, which shows in six of them ([`Paths`]); of all others every count must
//! be equal. Of the six, what the trace's own objects did is compared object by object, for it follows from the slabs that
//! they are of.

use std::collections::HashMap;

use mm::slab::{CacheFlags, CacheId, CacheSpec, SlabEvent};
use mm::{Addr, Bare, Cpu, Knobs, Mm, Node, Policy};

use crate::conform::outcome::{FileKind, FileOutcome};
use crate::conform::read::attributes::Attributes;
use crate::conform::read::capture::kernel_version;
use crate::conform::read::sections::FormatError;
use crate::conform::read::slab_nodes::SlabNodes;
use crate::conform::read::slab_trace::{self, SlabBeside, SlabTraceEvent, SlabTraceKind};
use crate::conform::slabs::dice::{ASKS, DECLINES, SlabDice};
use crate::conform::slabs::paths::{PathCount, Paths};
use crate::conform::slabs::start::{SlabNumbers, StartSlabs};

/// Files of a cache that must be the same to the letter in the end.
const FILES: [&str; 14] = [
    "align",
    "object_size",
    "slab_size",
    "order",
    "objs_per_slab",
    "cpu_partial",
    "min_partial",
    "slabs",
    "cpu_slabs",
    "partial",
    "slabs_cpu_partial",
    "total_objects",
    "objects",
    "objects_partial",
];

/// More objects no slab has.
const OBJECTS_MAX: u32 = 32_767;

/// Disagreements about slabs that are shown; those after them have the same cause.
const SHOWN: u64 = 10;

/// Holds mm against a slab trace, given the text beside it.
pub(in crate::conform) fn conform(trace: &str, beside: &str) -> Result<FileOutcome, FormatError> {
    let beside = SlabBeside::parse(beside)
        .map_err(|cause| FormatError::new(0, format!("the text beside it: {cause}")))?;
    let events = slab_trace::events(trace)?;
    let numbers = SlabNumbers {
        shift: 12 + beside.before.need("order")?.min(10),
        objects: beside.before.need("objs_per_slab")?,
    };
    if !(1..=OBJECTS_MAX).contains(&numbers.objects) {
        let what =
            format!("the text beside it: objs_per_slab is {}, not 1 to {OBJECTS_MAX}", numbers.objects);
        return Err(FormatError::new(0, what));
    }
    let start = StartSlabs::infer(&events, numbers)?;
    let mut run = Follower::new(&beside, &events, numbers)?;
    run.set_up(&start, &beside)?;
    let before = run.counters();
    let mut outcome = FileOutcome::new(FileKind::SlabTrace);
    outcome.policy = run.mm.policy().name().to_string();
    run.feed(&events, &mut outcome)?;
    run.compare_counters(&beside, &before, &mut outcome)?;
    run.compare_files(&beside, &mut outcome)?;
    Ok(outcome)
}

/// mm, and which of its objects and slabs are which of the kernel's.
struct Follower {
    machine: Bare,
    mm: Mm<Bare>,
    cache: CacheId,
    nodes: SlabNodes,
    numbers: SlabNumbers,
    dice: SlabDice,
    objects: HashMap<u64, Addr>,
    pairs: Pairs,
}

/// Slabs of the kernel's and mm's that are the same, as long as an object in them is in use.
#[derive(Default)]
struct Pairs {
    /// By the kernel's slab: mm's, and objects in use.
    kernel: HashMap<u64, (u64, u32)>,
    /// By mm's slab: objects in use.
    freehold: HashMap<u64, u32>,
}

impl Pairs {
    /// Notes an object that was allocated from `kernel` there and from `freehold` here; whether these are the same slab.
    fn alloc(&mut self, kernel: u64, freehold: u64) -> bool {
        let in_use = self.freehold.entry(freehold).or_default();
        let (paired, count) = self.kernel.entry(kernel).or_insert((freehold, 0));
        let same = *paired == freehold || (*count == 0 && *in_use == 0);
        *paired = freehold;
        *count += 1;
        *in_use += 1;
        same
    }

    fn free(&mut self, kernel: u64, freehold: u64) {
        if let Some((_, count)) = self.kernel.get_mut(&kernel) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.freehold.get_mut(&freehold) {
            *count = count.saturating_sub(1);
        }
    }
}

impl Follower {
    fn new(
        beside: &SlabBeside,
        events: &[SlabTraceEvent],
        numbers: SlabNumbers,
    ) -> Result<Self, FormatError> {
        let broken = |what: String| FormatError::new(0, what);
        let in_trace = events.iter().map(|event| usize::from(event.cpu) + 1).max().unwrap_or(1);
        let nodes = beside.nodes.clone().with_cpus(in_trace);
        let topology = nodes.topology()?;
        let policy = Policy::linux(kernel_version(&beside.release)?);
        let machine = Bare::default();
        let mm = Mm::new(machine.clone(), topology, policy, Knobs::default()).map_err(broken)?;
        let spec = CacheSpec {
            slab_size: Some(beside.before.need("slab_size")?),
            ..CacheSpec::new("traced", beside.before.need("object_size")?)
                .aligned(beside.before.need("align")?)
                .with(CacheFlags::NO_MERGE)
        };
        let cache = mm.slabs().create_cache(spec).map_err(|error| broken(error.to_string()))?;
        let (objects, pairs, dice) = (HashMap::new(), Pairs::default(), SlabDice::default());
        Ok(Self { machine, mm, cache, nodes, numbers, dice, objects, pairs })
    }

    fn alloc(&mut self, cpu: u16) -> Result<Addr, FormatError> {
        self.machine.set_cpu(Cpu(cpu));
        self.mm.slabs().kmem_cache_alloc(self.cache).map_err(|error| FormatError::new(0, error.to_string()))
    }

    fn free(&mut self, cpu: u16, object: Addr) -> Result<(), FormatError> {
        self.machine.set_cpu(Cpu(cpu));
        self.mm
            .slabs()
            .kmem_cache_free(self.cache, object)
            .map_err(|error| FormatError::new(0, error.to_string()))
    }

    /// Gives each CPU the slab that it had: what was in it where the trace tells, for others any.
    fn set_up(&mut self, start: &StartSlabs, beside: &SlabBeside) -> Result<(), FormatError> {
        self.machine.fix_random(DECLINES);
        for (&cpu, slab) in &start.of_cpu {
            let local = self.nodes.node_of(cpu);
            self.dice.home(slab.slab, local);
            let freed_later = slab.freed_later.iter().copied().map(Some);
            let in_use = freed_later.chain((0..slab.kept).map(|_| None));
            for address in in_use {
                let object = self.alloc(cpu)?;
                self.pairs.alloc(slab.slab, self.numbers.of(object.0));
                if let Some(address) = address {
                    self.objects.insert(address, object);
                }
            }
            if slab.freed_later.is_empty() && slab.kept == 0 {
                self.touch(cpu)?;
            }
        }
        for cpu in start.idle(&self.nodes, beside)? {
            self.touch(cpu)?;
        }
        self.machine.take_drawn();
        Ok(())
    }

    /// Gives a CPU a slab of which nothing is in use.
    fn touch(&mut self, cpu: u16) -> Result<(), FormatError> {
        let object = self.alloc(cpu)?;
        self.free(cpu, object)
    }

    fn feed(&mut self, events: &[SlabTraceEvent], outcome: &mut FileOutcome) -> Result<(), FormatError> {
        let mut elsewhere = 0;
        for event in events {
            match event.kind {
                SlabTraceKind::Alloc => {
                    let (same, freehold) = self.alloc_traced(event)?;
                    if same {
                        outcome.agree();
                        continue;
                    }
                    elsewhere += 1;
                    if elsewhere <= SHOWN {
                        let kernel = self.numbers.of(event.object);
                        let what = format!("line {}: the slab of an object", event.line);
                        outcome.differ(what, format!("{kernel:x}"), format!("{freehold:x}"));
                    }
                }
                SlabTraceKind::Free => self.free_traced(event)?,
            }
        }
        if elsewhere > SHOWN {
            outcome.notes.push(format!("{elsewhere} objects in all are of another slab than the kernel's"));
        }
        Ok(())
    }

    /// Whether the object is of the same slab as the kernel's, and mm's slab.
    fn alloc_traced(&mut self, event: &SlabTraceEvent) -> Result<(bool, u64), FormatError> {
        let kernel = self.numbers.of(event.object);
        let local = self.nodes.node_of(event.cpu);
        let elsewhere = self.dice.home(kernel, local) != local;
        self.machine.fix_random(if elsewhere { ASKS } else { DECLINES });
        let object = self.alloc(event.cpu)?;
        if self.machine.take_drawn() > 0 {
            // mm threw dice, which fell as the kernel's.
            if elsewhere {
                self.dice.asked();
            } else {
                self.note_declined(local)?;
            }
        }
        if self.objects.insert(event.object, object).is_some() {
            return Err(FormatError::new(event.line as usize, "it allocates an object that is in use"));
        }
        let freehold = self.numbers.of(object.0);
        Ok((self.pairs.alloc(kernel, freehold), freehold))
    }

    /// Other nodes were not asked, though one of them had slabs to give.
    fn note_declined(&mut self, local: Node) -> Result<(), FormatError> {
        let least = self.mm.slabs().cache(self.cache).map_or(0, |cache| cache.sizing().min_partial);
        let partial = self.files()?.counts_by("partial", 'N', self.nodes.nodes())?.unwrap_or_default();
        let others = (0..).zip(&partial).filter(|(node, _)| Node(*node) != local);
        if others.into_iter().any(|(_, &slabs)| slabs > u64::from(least)) {
            self.dice.declined();
        }
        Ok(())
    }

    /// The cache's files as mm has them.
    fn files(&self) -> Result<Attributes, FormatError> {
        let files = self.mm.slabs().slab_attributes(self.cache);
        let files = files.map_err(|error| FormatError::new(0, error.to_string()))?;
        Ok(files.into_iter().map(|file| (file.name.to_string(), file.value)).collect())
    }

    fn free_traced(&mut self, event: &SlabTraceEvent) -> Result<(), FormatError> {
        let object = self.objects.remove(&event.object);
        let object = object
            .ok_or_else(|| FormatError::new(event.line as usize, "it frees an object that is not in use"))?;
        self.pairs.free(self.numbers.of(event.object), self.numbers.of(object.0));
        self.free(event.cpu, object)
    }

    /// Each counter, of each CPU.
    fn counters(&self) -> Vec<Vec<u64>> {
        SlabEvent::ALL.iter().map(|event| self.mm.slabs().slab_events(self.cache, *event)).collect()
    }

    /// Compares the counters that mm had when the trace began and has now with the kernel's.
    fn compare_counters(
        &self,
        beside: &SlabBeside,
        before: &[Vec<u64>],
        outcome: &mut FileOutcome,
    ) -> Result<(), FormatError> {
        let mut paths = Paths::default();
        for ((event, before), after) in SlabEvent::ALL.iter().zip(before).zip(self.counters()) {
            let name = event.name();
            let kernel = (
                beside.before.counts(name, self.nodes.cpus())?,
                beside.after.counts(name, self.nodes.cpus())?,
            );
            let (Some(kernel_before), Some(kernel_after)) = kernel else { continue };
            for cpu in 0..self.nodes.cpus() {
                let kernel = kernel_after[cpu].saturating_sub(kernel_before[cpu]);
                let freehold = after[cpu] - before[cpu];
                if !paths.keep(*event, cpu, PathCount { kernel, freehold }) {
                    outcome.compare(|| format!("{name} of CPU {cpu}"), kernel, freehold);
                }
            }
        }
        paths.compare(beside.after.order(), outcome);
        self.dice.compare(outcome);
        Ok(())
    }

    fn compare_files(&self, beside: &SlabBeside, outcome: &mut FileOutcome) -> Result<(), FormatError> {
        let files = self.files()?;
        for name in FILES {
            if let (Some(kernel), Some(freehold)) = (beside.after.get(name), files.get(name)) {
                outcome.compare(|| format!("{name} in the end"), kernel, freehold);
            }
        }
        Ok(())
    }
}
