//! The ground that tasks of every kind stand on: the memory manager on a simulated machine, its daemons, where tasks are
//! placed, and what they have done so far. A replay plays a recording on it, a scene a workload of an experiment.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::{Cpu, Daemon, Knob, Knobs, Machine, Mm, Nanos, Node, NodeMask, Policy};
use sim::profile::Place;
use sim::{Profile, Sim, SimMachine, TaskSpec};

use crate::disk::Disk;
use crate::measurements::Moved;
use crate::placement::spread;
use crate::{flusher, kcompactd, khugepaged};

/// The memory manager and what all tasks share.
pub struct Stage {
    /// The memory manager.
    pub mm: Mm<SimMachine>,
    /// The nodes that tasks may take memory from.
    pub allowed: NodeMask,
    /// The CPUs that tasks are placed on, in turn.
    pub cpus: Vec<Cpu>,
    /// Where every CPU of the machine is, by number.
    pub places: Vec<Place>,
    /// Where files are.
    pub disk: Disk,
    /// What tasks have done.
    pub tally: Tally,
    /// From when on tasks are to come to an end.
    pub end: Cell<Nanos>,
    /// Tasks of the workload, where it says so; 0 otherwise.
    pub tasks: Cell<u32>,
    /// Expedited grace periods so far, each of which interrupts every CPU.
    pub expedited: Cell<u64>,
    /// When the first round of freehold's promotion was over, until the second begins.
    pub first_round: Cell<Option<Nanos>>,
    /// The numbers that say when each CPU's vmstat tick first comes.
    tick_numbers: RefCell<Vec<u64>>,
}

impl Stage {
    /// Sets the memory manager up on `sim`, which was made from `profile`. `cpus` may be empty: the profile's own.
    ///
    /// # Errors
    /// A knob out of its range, an impossible machine.
    pub fn new(
        sim: &Sim,
        profile: &Profile,
        policy: &Policy,
        knobs: &[(Knob, u64)],
        cpus: &[Cpu],
    ) -> Result<Self, String> {
        let values = Knobs::default();
        for &(knob, value) in knobs {
            values.set(knob, value).map_err(|error| error.to_string())?;
        }
        Ok(Self {
            mm: Mm::new(sim.machine(), profile.topology(), policy.clone(), values)?,
            allowed: allowed_nodes(profile),
            cpus: spread(profile, cpus),
            places: profile.shape().places(),
            disk: Disk::default(),
            tally: Tally::default(),
            end: Cell::new(Nanos(u64::MAX)),
            tasks: Cell::new(0),
            expedited: Cell::new(0),
            first_round: Cell::new(None),
            tick_numbers: RefCell::default(),
        })
    }

    /// The run is over: says what knobs did that decide when something first comes, or comes again. Runs may be shorter.
    pub fn note_waits(&self) {
        self.note_ticks();
        if let Some(round) = self.first_round.get() {
            let by = (Knob::PromotePeriod, self.machine().now().0 - round.0);
            let is_due = |period: u64| by.1 >= period;
            self.mm.knobs().decide_by(self.machine(), by, |ms| ms * 1_000_000, is_due);
        }
    }

    fn note_ticks(&self) {
        let numbers = self.tick_numbers.borrow();
        let first = |seconds: u64| {
            let first = numbers.iter().map(|number| number % (seconds * 1_000_000_000));
            first.min().unwrap_or(u64::MAX)
        };
        let now = self.machine().now().0;
        self.mm.knobs().decide_by(self.machine(), (Knob::StatInterval, now), first, |first| now >= first);
    }

    /// The machine.
    pub fn machine(&self) -> &SimMachine {
        self.mm.machine()
    }

    /// Whether tasks are to come to an end.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.machine().now() >= self.end.get()
    }

    /// The CPU of the task `number`.
    pub fn cpu(&self, number: u32) -> Cpu {
        self.cpus[number as usize % self.cpus.len()]
    }

    /// Starts the vmstat tick of every CPU, a kswapd for every node, and what only some workloads need: the flusher,
    /// khugepaged, and a kcompactd for every node.
    pub fn spawn_daemons(self: &Rc<Self>, sim: &Sim) {
        self.spawn_working(sim);
        // Where no file is written to, no huge fault fails and nothing is in pieces, these never start.
        self.spawn_when_woken(sim, Daemon::Flusher, "flusher", |stage| flusher::run(stage));
        self.spawn_when_woken(sim, Daemon::Khugepaged, "khugepaged", |stage| khugepaged::run(stage));
        for node in 0..self.mm.topology().nodes.len() {
            let (node, name) = (Node(node as u16), format!("kcompactd{node}"));
            let run = move |stage: &Self| kcompactd::run(stage, node);
            self.spawn_when_woken(sim, Daemon::Kcompactd(node), &name, run);
        }
    }

    /// `daemon` starts when it is first woken.
    fn spawn_when_woken(
        self: &Rc<Self>,
        sim: &Sim,
        daemon: Daemon,
        name: &str,
        run: impl FnOnce(&Self) + 'static,
    ) {
        // What never starts must not keep the stage, which keeps the machine, which keeps it.
        let stage = Rc::downgrade(self);
        let body = move || {
            if let Some(stage) = stage.upgrade() {
                run(&stage);
            }
        };
        sim.spawn_daemon(daemon, TaskSpec::new(name).at(Nanos(u64::MAX)), body);
    }

    fn spawn_working(self: &Rc<Self>, sim: &Sim) {
        let (asked, ticking) = (Rc::clone(self), Rc::clone(self));
        let interval = move || Nanos(asked.mm.pages().stat_interval_ns());
        let numbers = sim.every(interval, "vmstat", move || {
            ticking.mm.vmstat_tick(ticking.machine().cpu());
        });
        self.tick_numbers.replace(numbers);
        for node in 0..self.mm.topology().nodes.len() {
            let node = Node(node as u16);
            let stage = Rc::clone(self);
            let body = move || {
                loop {
                    stage.machine().block(Nanos(u64::MAX));
                    stage.mm.kswapd(node);
                }
            };
            sim.spawn_daemon(Daemon::Kswapd(node), TaskSpec::new(format!("kswapd{}", node.0)), body);
        }
    }
}

/// The nodes that the profile lets its tasks take memory from.
fn allowed_nodes(profile: &Profile) -> NodeMask {
    match &profile.shape().cpuset_nodes {
        None => NodeMask::ALL,
        Some(nodes) => nodes.iter().map(|&node| Node(node as u16)).collect(),
    }
}

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

    /// What could not be done, by name; kinds that did not happen are left out.
    pub fn omissions(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = [
            ("failed_allocations", self.failed.get()),
            ("frees_of_failed_allocations", self.frees_of_failed.get()),
        ];
        counts.into_iter().filter(|(_, count)| *count > 0)
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

#[cfg(test)]
mod tests {
    use mm::Request;
    use mm::vm::{DirtyPages, FileKind, Placement};
    use sim::{Measurements, SimOptions};

    use super::*;

    fn stage(knobs: &[(Knob, u64)]) -> (Sim, Rc<Stage>) {
        let profile = Profile::load("kvm-genoa-2c").unwrap();
        let sim = Sim::new(&profile, SimOptions::default());
        let policy = Policy::parse("linux-6.18").unwrap();
        let stage = Stage::new(&sim, &profile, &policy, knobs, &[]).unwrap();
        (sim, Rc::new(stage))
    }

    /// Two tasks that take pages and give them back; with and without whoever else `spawn` starts.
    fn measured(spawn: fn(&Rc<Stage>, &Sim)) -> (Measurements, Nanos) {
        let (mut sim, stage) = stage(&[]);
        spawn(&stage, &sim);
        for number in 0..2 {
            let stage = Rc::clone(&stage);
            sim.spawn(TaskSpec::new(format!("task/{number}")), move || {
                for _ in 0..2000 {
                    let pages: Vec<_> = (0..50)
                        .map(|_| stage.mm.alloc(Request::USER).expect("memory for 100 pages"))
                        .collect();
                    for page in pages {
                        stage.mm.free(page, mm::Order::ZERO).expect("it was allocated above");
                    }
                    stage.machine().sleep(Nanos(1_000_000));
                }
            });
        }
        let end = sim.run(None).unwrap().now;
        (sim.measurements(), end)
    }

    #[test]
    fn who_writes_to_no_file_and_needs_no_huge_page_does_not_notice_daemons_for_that() {
        let without = measured(Stage::spawn_working);
        assert_eq!(measured(Stage::spawn_daemons), without);
        assert!(without.1 > Nanos(2_000_000_000), "{:?}", without.1);
    }

    /// When what a task wrote was no longer dirty and on the disk, in ms.
    fn clean_after(knobs: &[(Knob, u64)], pages: u32) -> u64 {
        let (mut sim, stage) = stage(knobs);
        stage.spawn_daemons(&sim);
        stage.disk.set_speed(100);
        let (seen, machine) = (Rc::clone(&stage), sim.machine());
        let clean = Rc::new(Cell::new(0));
        let at = Rc::clone(&clean);
        sim.spawn(TaskSpec::new("writer"), move || {
            let file = seen.mm.new_file(FileKind::Disk);
            for page in 0..pages {
                seen.mm.write_file(&file, page, Placement::default()).expect("memory");
            }
            assert_ne!(seen.mm.dirty_pages(), DirtyPages::default());
            while seen.mm.dirty_pages() != DirtyPages::default() {
                machine.sleep(Nanos(1_000_000));
            }
            at.set(machine.now().0 / 1_000_000);
            seen.mm.drop_file(&file);
        });
        sim.run(None).unwrap();
        stage.mm.check().unwrap();
        clean.get()
    }

    #[test]
    fn what_is_dirty_for_half_a_minute_is_written() {
        // 2000 pages take 82 ms; the flusher looks every 5 s.
        let ms = clean_after(&[], 2000);
        assert!((30_000..35_100).contains(&ms), "{ms} ms");
    }

    #[test]
    fn what_is_too_much_is_written_at_once() {
        // Nothing may be dirty: writers wait for the disk.
        let ms = clean_after(&[(Knob::DirtyBackgroundRatio, 0)], 2000);
        assert!((82..1000).contains(&ms), "{ms} ms");
    }
}
