//! What the tasks of a run have done so far.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use mm::Nanos;
use mm::vm::SpaceCounters;

use crate::measurements::{ForkUse, Forks, Moved, ProgramUse, RecordingCounts, RecordingUse};

/// What became of the operations of all tasks.
#[derive(Debug, Default)]
pub struct Tally {
    /// Allocations and frees carried out.
    operations: Cell<u64>,
    /// Requests that the machine could not serve.
    failed: Cell<u64>,
    /// Frees of blocks that could not be had.
    frees_of_failed: Cell<u64>,
    /// Pages held now.
    held: Cell<u64>,
    /// The most held at once.
    peak: Cell<u64>,
    /// Bytes moved by parts of the workload that it times, by name.
    moved: RefCell<BTreeMap<&'static str, Moved>>,
    /// What parts of the workload that are alike came to, by what they did.
    samples: RefCell<BTreeMap<String, Vec<f64>>>,
    /// What the workload counts besides, by name.
    notes: RefCell<BTreeMap<&'static str, u64>>,
    /// What was left out, by name.
    left_out: RefCell<BTreeMap<&'static str, u64>>,
    /// What the address spaces of a recorded program came to.
    program: Cell<Option<ProgramUse>>,
    /// What each recording of a replay came to, with the start of its first copy.
    recordings: RefCell<Vec<(Nanos, RecordingUse)>>,
    /// Its forks.
    forks: RefCell<Forks>,
}

impl Tally {
    /// A block of `pages` was got.
    #[inline]
    pub fn got(&self, pages: u32) {
        self.operations.set(self.operations.get() + 1);
        self.held.set(self.held.get() + u64::from(pages));
        self.peak.set(self.peak.get().max(self.held.get()));
    }

    /// A block of `pages` was given back.
    #[inline]
    pub fn gave(&self, pages: u32) {
        self.operations.set(self.operations.get() + 1);
        self.held.set(self.held.get() - u64::from(pages));
    }

    /// So many single pages were given back.
    #[inline]
    pub fn gave_singles(&self, pages: u32) {
        self.operations.set(self.operations.get() + u64::from(pages));
        self.held.set(self.held.get() - u64::from(pages));
    }

    /// A block of `pages` was given back on nobody's behalf: no operation of the workload's.
    pub fn dropped(&self, pages: u32) {
        self.held.set(self.held.get() - u64::from(pages));
    }

    /// The workload did so many of what it counts.
    #[inline]
    pub fn did(&self, operations: u64) {
        self.operations.set(self.operations.get() + operations);
    }

    /// A part of the workload called `name` moved `bytes` in `time`.
    pub fn moved(&self, name: &'static str, bytes: u64, time: Nanos) {
        let mut all = self.moved.borrow_mut();
        let moved = all.entry(name).or_default();
        moved.bytes += bytes;
        moved.time_ns += time.0;
    }

    /// One of the parts of the workload that did `name` came to `value`.
    pub fn sampled(&self, name: &str, value: f64) {
        self.samples.borrow_mut().entry(name.to_owned()).or_default().push(value);
    }

    /// So much time went into what is called `name`: all of it together is one sample.
    pub fn spent(&self, name: &str, time: Nanos) {
        let mut samples = self.samples.borrow_mut();
        if !samples.contains_key(name) {
            samples.insert(name.to_owned(), vec![0.0]);
        }
        // It is there, and its list has one element.
        samples.get_mut(name).into_iter().flatten().for_each(|sum| *sum += time.0 as f64);
    }

    /// What parts of the workload came to, by what they did, in the order in which they told.
    pub fn samples(&self) -> BTreeMap<String, Vec<f64>> {
        self.samples.borrow().clone()
    }

    /// An address space of a recorded program is about to go.
    pub(crate) fn space_counted(&self, counted: &SpaceCounters) {
        let mut sums = self.program.get().unwrap_or_default();
        sums.minor_faults += counted.minor;
        sums.major_faults += counted.major;
        sums.huge_faults += counted.huge;
        sums.copies += counted.copied;
        sums.reuses += counted.reused;
        sums.populated += counted.populated;
        sums.populated_writes += counted.populated_writes;
        sums.table_pages += counted.tables_taken;
        sums.peak_rss_pages = sums.peak_rss_pages.max(counted.peak);
        self.program.set(Some(sums));
    }

    /// A task of a recorded program is through: its walks of page tables, its own time and how much of that has known walks.
    pub(crate) fn task_walked(&self, task: &ProgramUse) {
        let mut sums = self.program.get().unwrap_or_default();
        sums.walk_ns += task.walk_ns;
        sums.own_ns += task.own_ns;
        sums.walk_known_ns += task.walk_known_ns;
        self.program.set(Some(sums));
    }

    /// What the address spaces of a recorded program came to; `None` where there is none.
    pub(crate) fn program(&self) -> Option<ProgramUse> {
        self.program.get()
    }

    /// A copy of the recording numbered so begins.
    pub(crate) fn recording_starts(&self, number: usize, name: &str, start: Nanos) {
        let mut all = self.recordings.borrow_mut();
        if all.len() <= number {
            all.resize_with(number + 1, || (start, RecordingUse::default()));
        }
        let (first, used) = &mut all[number];
        *first = (*first).min(start);
        name.clone_into(&mut used.name);
        used.copies += 1;
    }

    /// An address space of the recording numbered so is about to go.
    pub(crate) fn recording_counted(&self, number: usize, counts: &RecordingCounts) {
        if let Some((_, used)) = self.recordings.borrow_mut().get_mut(number) {
            used.counts.add(counts);
        }
    }

    /// A copy of the recording numbered so has ended; its largest process had so many pages on each node.
    pub(crate) fn recording_placed(&self, number: usize, by_node: &[u64]) {
        if let Some((_, used)) = self.recordings.borrow_mut().get_mut(number) {
            used.pages_by_node.resize(used.pages_by_node.len().max(by_node.len()), 0);
            used.pages_by_node.iter_mut().zip(by_node).for_each(|(all, here)| *all += here);
        }
    }

    /// A task of the recording numbered so has ended.
    pub(crate) fn recording_ran_until(&self, number: usize, now: Nanos) {
        if let Some((start, used)) = self.recordings.borrow_mut().get_mut(number) {
            used.elapsed_ns = used.elapsed_ns.max(now.0.saturating_sub(start.0));
        }
    }

    /// What each recording came to, in their order.
    pub(crate) fn recordings(&self) -> Vec<RecordingUse> {
        self.recordings.borrow().iter().map(|(_, used)| used.clone()).collect()
    }

    /// A forked process of a recorded program shares pages with its parent no more.
    pub(crate) fn forked(&self, fork: ForkUse) {
        self.forks.borrow_mut().add(fork);
    }

    /// Forks of a recorded program.
    pub(crate) fn forks(&self) -> Forks {
        self.forks.borrow().clone()
    }

    /// Something that the workload calls `name` happened so many times: it is among the run's counters, and as those is
    /// counted from the start, also if it never does.
    pub fn note(&self, name: &'static str, times: u64) {
        *self.notes.borrow_mut().entry(name).or_default() += times;
    }

    /// What was noted, by name.
    pub fn notes(&self) -> Vec<(&'static str, u64)> {
        self.notes.borrow().iter().map(|(name, times)| (*name, *times)).collect()
    }

    /// A request was not served.
    pub fn could_not_get(&self) {
        self.operations.set(self.operations.get() + 1);
        self.failed.set(self.failed.get() + 1);
    }

    /// A block that was to be given back had not been got.
    pub fn had_nothing_to_give(&self) {
        self.frees_of_failed.set(self.frees_of_failed.get() + 1);
    }

    /// Allocations and frees carried out.
    pub fn operations(&self) -> u64 {
        self.operations.get()
    }

    /// The most pages held at once since the last [`Self::forget`].
    pub fn peak(&self) -> u64 {
        self.peak.get()
    }

    /// What timed parts of the workload moved, by name.
    pub fn all_moved(&self) -> BTreeMap<String, Moved> {
        self.moved.borrow().iter().map(|(name, moved)| ((*name).to_owned(), *moved)).collect()
    }

    /// Pages held now.
    pub fn held(&self) -> u64 {
        self.held.get()
    }

    /// Something that was recorded was not done, for a reason that has this name.
    pub fn leave_out(&self, name: &'static str) {
        *self.left_out.borrow_mut().entry(name).or_default() += 1;
    }

    /// What could not be done, by name; kinds that did not happen are left out.
    pub fn omissions(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = [
            ("failed_allocations", self.failed.get()),
            ("frees_of_failed_allocations", self.frees_of_failed.get()),
        ];
        let left_out = self.left_out.borrow().clone();
        counts.into_iter().filter(|(_, count)| *count > 0).chain(left_out)
    }

    /// Begins to count anew; what is held stays held.
    pub fn forget(&self) {
        self.operations.set(0);
        self.failed.set(0);
        self.frees_of_failed.set(0);
        self.moved.borrow_mut().clear();
        self.peak.set(self.held.get());
        self.samples.borrow_mut().clear();
    }
}
