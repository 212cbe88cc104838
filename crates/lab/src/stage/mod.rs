//! The ground that tasks of every kind stand on: the memory manager on a simulated machine, where tasks are placed, the
//! disk, and what they have done so far. A replay plays a recording on it, a scene a workload of an experiment.

mod disk;
mod groups;
mod killer;
pub(crate) mod placement;
mod random;
mod spaces;
mod swap;
mod tally;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use mm::vm::AddressSpace;
use mm::{Cpu, Knob, Knobs, Machine, Mm, Nanos, Node, NodeMask, Policy};
use sim::profile::CpuPosition;
use sim::{Profile, Sim, SimMachine};

pub(crate) use disk::DEFAULT_MB_PER_SECOND;
pub use disk::Disk;
pub(crate) use disk::Place;
pub use groups::GroupSetting;
pub(crate) use groups::GroupSetup;
use groups::Groups;
use killer::Killer;
pub(crate) use random::Random;
use spaces::Spaces;
pub(crate) use swap::AT_START;
use swap::Swap;
pub use tally::Tally;

use self::placement::spread;

/// A machine, and what it is given before anything runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    /// The machine.
    pub(crate) profile: &'a Profile,
    pub(crate) policy: &'a Policy,
    /// Knobs that differ from their defaults from the start.
    pub(crate) knobs: &'a [(Knob, u64)],
    /// Knobs that the recorded machine's kernel was built with otherwise than distributions build it.
    pub(crate) built: &'a [(Knob, u64)],
    /// Limits of single cgroups.
    pub(crate) groups: GroupSetup<'a>,
    /// CPUs that tasks are placed on; empty: the profile's.
    pub(crate) cpus: &'a [Cpu],
    /// Seed of all random choices.
    pub(crate) seed: u64,
}

/// The memory manager and what all tasks share.
pub struct Stage {
    /// The memory manager.
    pub mm: Mm<SimMachine>,
    /// The nodes that tasks may take memory from.
    pub allowed: NodeMask,
    /// The CPUs that tasks are placed on, in turn.
    pub cpus: Vec<Cpu>,
    /// Where every CPU of the machine is, by number.
    pub places: Vec<CpuPosition>,
    /// Where files are.
    pub disk: Disk,
    /// What tasks have done.
    pub tally: Tally,
    /// From when on tasks are to come to an end.
    pub end: Cell<Nanos>,
    /// When the workload's first task starts, where it says so; 0 otherwise.
    pub start: Cell<Nanos>,
    /// What had been counted when the workload began, where something was brought about before.
    counted_before: RefCell<BTreeMap<String, u64>>,
    /// Tasks of the workload, where it says so; 0 otherwise.
    pub tasks: Cell<u32>,
    /// Expedited grace periods so far, each of which interrupts every CPU.
    pub expedited: Cell<u64>,
    /// When the first round of freehold's promotion was over, until the second begins.
    pub first_round: Cell<Option<Nanos>>,
    /// The numbers that say when each CPU's vmstat tick first comes.
    tick_numbers: RefCell<Vec<u64>>,
    groups: Groups,
    swap: Option<Swap>,
    killer: Killer,
    /// Address spaces of recorded programs.
    spaces: RefCell<Spaces>,
}

impl Stage {
    /// Sets the memory manager up on `sim`, which was made from the setup's profile.
    ///
    /// # Errors
    /// A knob out of its range, an impossible machine.
    pub(crate) fn new(sim: &Sim, setup: &Setup<'_>) -> Result<Self, String> {
        let Setup { profile, policy, knobs, built, groups, cpus, .. } = *setup;
        let mut values = Knobs::of(policy);
        for &(knob, value) in built {
            values.stands_at(knob, value).map_err(|error| error.to_string())?;
        }
        for &(knob, value) in knobs {
            values.set(knob, value).map_err(|error| error.to_string())?;
        }
        let swap = Swap::of(&values, profile)?;
        let mm = Mm::new(sim.machine(), profile.topology(), policy.clone(), values)?;
        if let Some(swap) = swap {
            mm.spaces().set_swap_on(swap.device, swap.pages);
            sim.machine().set_swap_times(swap.times);
            mm.swap().set_zswap_ratio(swap.zswap.ratio_percent);
            sim.machine().set_zswap_times(swap.zswap.times);
        }
        Ok(Self {
            mm,
            allowed: allowed_nodes(profile),
            cpus: spread(profile, cpus),
            places: profile.shape().places(),
            disk: Disk::default(),
            tally: Tally::default(),
            end: Cell::new(Nanos(u64::MAX)),
            start: Cell::new(Nanos(0)),
            counted_before: RefCell::default(),
            tasks: Cell::new(0),
            expedited: Cell::new(0),
            first_round: Cell::new(None),
            tick_numbers: RefCell::default(),
            groups: Groups::new(knobs, groups, setup.seed),
            swap,
            killer: Killer::default(),
            spaces: RefCell::default(),
        })
    }

    /// What was brought about so far, outside of time, is not the workload's: neither measured nor counted.
    pub(crate) fn count_from_here(&self) {
        self.machine().reset_measurements();
        self.counted_before.replace(self.mm.views().counters().0);
    }

    /// vmstat's counters as they stand, those of events without what had happened before the workload began.
    pub(crate) fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = self.mm.views().counters().0;
        for (name, before) in self.counted_before.borrow().iter().filter(|(name, _)| !is_level(name)) {
            counters.entry(name.clone()).and_modify(|count| *count -= before);
        }
        counters
    }

    /// Events that were counted since the machine was there.
    pub(crate) fn events(&self) -> u64 {
        let counters = self.mm.views().counters().0;
        counters.iter().filter(|(name, _)| !is_level(name)).map(|(_, count)| count).sum()
    }

    /// Whether pages of programs may have to go: a limit is set, or there is swap.
    pub(crate) fn is_short_of_memory(&self) -> bool {
        self.is_grouped() || self.swap.is_some()
    }

    /// What was assumed of swap, where there is any.
    pub(crate) fn assumed_of_swap(&self) -> Option<String> {
        self.swap.and_then(Swap::assumed)
    }

    /// A recorded program has a new address space.
    pub(crate) fn has_space(&self, space: &Arc<AddressSpace<SimMachine>>) {
        self.spaces.borrow_mut().add(space);
    }

    /// A task of it that is called `name` began in `space`.
    pub(crate) fn begins_in(&self, space: &Arc<AddressSpace<SimMachine>>, name: &str) {
        self.spaces.borrow_mut().name(space, name);
    }

    /// Resident pages of all address spaces of recorded programs, shared ones in each, and of those by each of
    /// [`Self::names`]; nothing is charged for it.
    pub(crate) fn resident_pages(&self) -> (u64, Vec<u64>) {
        self.spaces.borrow().resident_pages()
    }

    /// The names of tasks by which address spaces are told apart.
    pub(crate) fn names(&self) -> Vec<String> {
        self.spaces.borrow().names().to_vec()
    }

    /// Free pages by node; nothing is charged for it.
    pub(crate) fn free_pages(&self) -> Vec<u64> {
        let mut free = vec![0; self.mm.topology().nodes.len()];
        for zone in self.mm.zones() {
            free[usize::from(zone.node().0)] += zone.free_pages_exact();
        }
        free
    }

    /// The run is over: says what knobs did that decide when something first comes, or comes again. Runs may be shorter.
    pub fn note_waits(&self) {
        self.note_ticks();
        if self.swap.is_some() {
            swap::note_uses(self);
        }
        if let Some(round) = self.first_round.get() {
            let by = (Knob::PromotePeriod, self.machine().now().0 - round.0);
            let is_due = |period: u64| by.1 >= period;
            self.mm.knobs().decide_by(self.machine(), by, |ms| ms * 1_000_000, is_due);
        }
    }

    /// The numbers that say when each CPU's vmstat tick first comes.
    pub(crate) fn note_first_ticks(&self, numbers: Vec<u64>) {
        self.tick_numbers.replace(numbers);
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
}

/// Whether a counter says how much there is, and not how often something happened.
fn is_level(name: &str) -> bool {
    name.starts_with("nr_")
}

/// The nodes that the profile lets its tasks take memory from.
fn allowed_nodes(profile: &Profile) -> NodeMask {
    match &profile.shape().cpuset_nodes {
        None => NodeMask::ALL,
        Some(nodes) => nodes.iter().map(|&node| Node(node as u16)).collect(),
    }
}
