//! A CPU's caches, as far as the model has them: how much it has touched since, and so how far down a line has sunk.
//!
//! A line is in the first level if fewer lines than that level holds were brought in since, and so on. The first two
//! levels are shared evenly by the threads of the core that are running something, the last by all CPUs under it that
//! are. Lines are counted one by one; frame lines store the count in units of 256 lines.

use crate::costs::Costs;
use crate::measure::Level;
use crate::profile::{Closeness, Place};

/// log2 of the lines to a unit of age.
pub(super) const UNIT_SHIFT: u32 = 8;

/// Streams of touches in sequence that are followed at a time, and how many lines the next touch of one may be off:
/// splitting a block touches descriptors two and four further on before those between.
const STREAMS: usize = 4;
const STREAM_REACH: u32 = 4;

/// One CPU's.
#[derive(Clone, Debug)]
pub(super) struct CpuCache {
    /// Lines brought into the first level so far.
    pub(super) lines: u64,
    /// Lines that the first level, and both first levels together, hold for this CPU.
    l1: u64,
    l2: u64,
    pub(super) place: Place,
    streams: [u32; STREAMS],
    next_stream: u8,
}

impl CpuCache {
    /// Whether a line near `line` was the last of a recent stream of touches. `line` then is its last.
    pub(super) fn in_sequence(&mut self, line: u32) -> bool {
        for last in &mut self.streams {
            if line.abs_diff(*last) <= STREAM_REACH {
                *last = line;
                return true;
            }
        }
        self.streams[self.next_stream as usize] = line;
        self.next_stream = (self.next_stream + 1) % STREAMS as u8;
        false
    }

    /// Whether a line is in the first level after `age` more lines.
    #[inline]
    pub(super) fn in_l1(&self, age: u64) -> bool {
        age < self.l1
    }
}

/// All CPUs' caches, and who shares them.
#[derive(Debug)]
pub(super) struct Caches {
    cpus: Vec<CpuCache>,
    /// CPUs of a core, by core.
    siblings: Vec<Vec<u16>>,
    /// How many CPUs run something, by core and by last-level cache.
    core_busy: Vec<u16>,
    llc_busy: Vec<u16>,
    /// Lines of a last-level cache for each CPU that runs something, by cache.
    llc_share: Vec<u64>,
    capacity: [u64; 3],
}

impl Caches {
    pub(super) fn new(costs: &Costs, places: &[Place]) -> Self {
        let groups =
            |key: fn(&Place) -> u16| places.iter().map(key).max().map_or(0, |last| usize::from(last) + 1);
        let mut siblings = vec![vec![]; groups(|place| place.core)];
        (0..).zip(places).for_each(|(cpu, place)| siblings[usize::from(place.core)].push(cpu));
        let llcs = groups(|place| place.llc);
        let cpu = |place: &Place| CpuCache {
            // Far enough on that a stamp of 0 is old.
            lines: 1 << 40,
            l1: costs.l1_lines,
            l2: costs.l1_lines + costs.l2_lines,
            place: *place,
            streams: [u32::MAX - STREAM_REACH; STREAMS],
            next_stream: 0,
        };
        Self {
            cpus: places.iter().map(cpu).collect(),
            core_busy: vec![0; siblings.len()],
            siblings,
            llc_busy: vec![0; llcs],
            llc_share: vec![costs.l3_lines; llcs],
            capacity: [costs.l1_lines, costs.l2_lines, costs.l3_lines],
        }
    }

    #[inline]
    pub(super) fn cpu(&self, cpu: u16) -> &CpuCache {
        &self.cpus[usize::from(cpu)]
    }

    #[inline]
    pub(super) fn cpu_mut(&mut self, cpu: u16) -> &mut CpuCache {
        &mut self.cpus[usize::from(cpu)]
    }

    /// The memory node of `cpu`; 0 if there is no such CPU.
    pub(super) fn node_of(&self, cpu: u16) -> u16 {
        self.cpus.get(usize::from(cpu)).map_or(0, |cache| cache.place.node)
    }

    /// Where `me` finds a line that `owner` touched last, `age` of the owner's lines ago; `None` if only in memory.
    pub(super) fn find(&self, me: u16, owner: u16, age: u64) -> Option<Level> {
        let cache = self.cpu(owner);
        let place = cache.place;
        let reach = cache.l2 + self.llc_share[usize::from(place.llc)];
        if age >= reach {
            return None;
        }
        let closeness = if me == owner { Closeness::Same } else { self.cpu(me).place.closeness(&place) };
        let private = age < cache.l2;
        Some(match closeness {
            Closeness::Same if age < cache.l1 => Level::L1,
            Closeness::Same if private => Level::L2,
            Closeness::Smt if private => Level::Smt,
            Closeness::SameLlc if private => Level::SameLlc,
            Closeness::Same | Closeness::Smt | Closeness::SameLlc => Level::L3,
            Closeness::SameSocket => Level::SameSocket,
            Closeness::CrossSocket => Level::CrossSocket,
        })
    }

    /// `cpu` begins (1) or ceases (-1) to run something.
    pub(super) fn change_busy(&mut self, cpu: u16, change: i16) {
        let place = self.cpu(cpu).place;
        let (core, llc) = (usize::from(place.core), usize::from(place.llc));
        self.core_busy[core] = self.core_busy[core].saturating_add_signed(change);
        self.llc_busy[llc] = self.llc_busy[llc].saturating_add_signed(change);
        self.llc_share[llc] = self.capacity[2] / u64::from(self.llc_busy[llc].max(1));
        let threads = u64::from(self.core_busy[core].max(1));
        for &sibling in &self.siblings[core] {
            let cache = &mut self.cpus[usize::from(sibling)];
            cache.l1 = self.capacity[0] / threads;
            cache.l2 = cache.l1 + self.capacity[1] / threads;
        }
    }

    /// CPUs that run something, of `cpu`'s core and of its last-level cache.
    pub(super) fn busy_near(&self, cpu: u16) -> (u16, u16) {
        let place = self.cpu(cpu).place;
        (self.core_busy[usize::from(place.core)], self.llc_busy[usize::from(place.llc)])
    }
}
