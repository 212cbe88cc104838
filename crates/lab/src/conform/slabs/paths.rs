//! The six counters of a slab trace to which those outside of it add.
//!
//! Who reads the cache's files may begin a process for each, and those use the cache too, before the trace and after it.
//! Their objects come from the CPUs' slabs and go back there, so that they show in six counters only. Of these mm must
//! have no more than the kernel. Where nobody read the files that way (a shell's own `read` begins no process) all that
//! was allocated and freed is in the trace, and each of the six must be equal.
//!
//! Two things a trace does not say. Whether the free objects of a CPU's first slab were on its own list or, freed by
//! others, on the slab's: in the second case the CPU's first allocation is one by the slow path, with one refill. And how
//! many objects the readers freed between the reading of `free_frozen` and that of `free_slowpath`: those count in the
//! second alone.

use std::collections::BTreeMap;

use mm::slab::SlabEvent;

use crate::conform::outcome::FileOutcome;
use crate::conform::read::attributes::FileOrder;

/// The counters in which objects that a CPU allocates from its slab, and frees to some CPU's slab, show.
const PATHS: [SlabEvent; 6] = [
    SlabEvent::AllocFastpath,
    SlabEvent::AllocSlowpath,
    SlabEvent::AllocRefill,
    SlabEvent::FreeFastpath,
    SlabEvent::FreeSlowpath,
    SlabEvent::FreeFrozen,
];

/// How often something happened, in all there and in the trace here.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct PathCount {
    /// What the kernel's counter grew by.
    pub(super) kernel: u64,
    /// What mm's did.
    pub(super) freehold: u64,
}

impl PathCount {
    fn outside(self) -> u64 {
        self.kernel.saturating_sub(self.freehold)
    }

    fn plus(self, other: Self) -> Self {
        Self { kernel: self.kernel + other.kernel, freehold: self.freehold + other.freehold }
    }
}

/// The six counters of each CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    counts: BTreeMap<(SlabEvent, usize), PathCount>,
    cpus: usize,
}

impl Paths {
    /// Keeps a count, if `event` is one of the six; whether it is.
    pub(super) fn keep(&mut self, event: SlabEvent, cpu: usize, count: PathCount) -> bool {
        let is_path = PATHS.contains(&event);
        if is_path {
            self.cpus = self.cpus.max(cpu + 1);
            self.counts.insert((event, cpu), count);
        }
        is_path
    }

    /// Compares them.
    pub(super) fn compare(&self, order: FileOrder, outcome: &mut FileOutcome) {
        let readers = self.readers();
        for &(event, cpu) in self.counts.keys() {
            self.compare_one(event, cpu, readers, outcome);
        }
        let freed_between = order.between_frees * readers.div_ceil(2 * order.files.max(1));
        for cpu in 0..self.cpus {
            self.compare_unfrozen(cpu, freed_between, outcome);
        }
        for event in PATHS {
            let count = self.sum(event);
            if count.kernel > 0 {
                outcome.notes.push(format!(
                    "{}: kernel {}, freehold {} in the trace; {} are of those who read the counters",
                    event.name(),
                    count.kernel,
                    count.freehold,
                    count.outside(),
                ));
            }
        }
    }

    fn get(&self, event: SlabEvent, cpu: usize) -> Option<PathCount> {
        self.counts.get(&(event, cpu)).copied()
    }

    /// Of all CPUs.
    fn sum(&self, event: SlabEvent) -> PathCount {
        (0..self.cpus).filter_map(|cpu| self.get(event, cpu)).fold(PathCount::default(), PathCount::plus)
    }

    /// Objects that were freed outside of the trace.
    fn readers(&self) -> u64 {
        self.sum(SlabEvent::FreeFastpath).plus(self.sum(SlabEvent::FreeSlowpath)).outside()
    }

    /// Whether the first allocation of `cpu` was by the slow path, as far as its other counters tell.
    fn hidden_refill(&self, cpu: usize) -> u64 {
        let refills = self.get(SlabEvent::AllocRefill, cpu).unwrap_or_default();
        refills.outside().min(1)
    }

    fn compare_one(&self, event: SlabEvent, cpu: usize, readers: u64, outcome: &mut FileOutcome) {
        let Some(count) = self.get(event, cpu) else { return };
        let hidden = self.hidden_refill(cpu);
        let mm = match event {
            SlabEvent::AllocFastpath => count.freehold.saturating_sub(hidden),
            SlabEvent::AllocSlowpath | SlabEvent::AllocRefill => count.freehold + hidden,
            _ => count.freehold,
        };
        if mm == count.kernel || (readers > 0 && mm < count.kernel) {
            outcome.agree();
        } else {
            outcome.differ(format!("{} of CPU {cpu}", event.name()), count.kernel, count.freehold);
        }
    }

    /// All frees of the readers that were not to the CPU's own slab were to another CPU's, for any other would show in the
    /// lists of partial slabs, and those are equal; so both counters grew by as much, but for `freed_between`.
    fn compare_unfrozen(&self, cpu: usize, freed_between: u64, outcome: &mut FileOutcome) {
        let frees = (self.get(SlabEvent::FreeSlowpath, cpu), self.get(SlabEvent::FreeFrozen, cpu));
        let (Some(slow), Some(frozen)) = frees else { return };
        let kernel = slow.kernel.saturating_sub(frozen.kernel);
        let freehold = slow.freehold.saturating_sub(frozen.freehold);
        let what = format!("free_slowpath less free_frozen of CPU {cpu}");
        if kernel.abs_diff(freehold) > freed_between {
            outcome.differ(what, kernel, freehold);
            return;
        }
        outcome.agree();
        if kernel != freehold {
            outcome.notes.push(format!(
                "{what}: kernel {kernel}, freehold {freehold}; the readers freed up to {freed_between} between the two files"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: FileOrder = FileOrder { files: 40, between_frees: 3 };

    /// Differences of one CPU's counters, in the order of [`PATHS`].
    fn differences(kernel: [u64; 6], freehold: [u64; 6]) -> Vec<String> {
        let mut paths = Paths::default();
        for ((event, kernel), freehold) in PATHS.into_iter().zip(kernel).zip(freehold) {
            assert!(paths.keep(event, 0, PathCount { kernel, freehold }));
        }
        let mut outcome = FileOutcome::new(crate::conform::outcome::FileKind::SlabTrace);
        paths.compare(ORDER, &mut outcome);
        outcome.differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn without_readers_all_are_equal_but_for_the_first_refill() {
        assert!(differences([99, 7, 3, 5, 90, 4], [99, 7, 3, 5, 90, 4]).is_empty());
        assert!(differences([98, 8, 4, 5, 90, 4], [99, 7, 3, 5, 90, 4]).is_empty());
        for wrong in [[98, 7, 3, 5, 90, 4], [97, 9, 4, 5, 90, 4], [99, 7, 3, 4, 91, 4], [99, 7, 3, 5, 90, 5]]
        {
            assert!(!differences(wrong, [99, 7, 3, 5, 90, 4]).is_empty(), "{wrong:?}");
        }
    }

    #[test]
    fn readers_free_between_two_files() {
        // 800 frees by 80 readers: up to 30 by the three that read from the one file to the other.
        let freehold = [1000, 40, 10, 50, 900, 60];
        assert!(differences([1760, 80, 50, 450, 1300, 459], freehold).is_empty());
        assert!(differences([1760, 80, 50, 450, 1300, 430], freehold).is_empty());
        assert!(!differences([1760, 80, 50, 450, 1300, 429], freehold).is_empty());
        assert!(!differences([998, 80, 50, 450, 1300, 460], freehold).is_empty());
    }

    #[test]
    fn other_counters_are_not_kept() {
        assert!(!Paths::default().keep(SlabEvent::AllocSlab, 0, PathCount::default()));
    }
}
