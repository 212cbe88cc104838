//! A CPU's caches in the model: the number of lines that the CPU has brought in since tells in which level a line is now.
//!
//! A line is in the first level if fewer lines than that level holds were brought in since, and so on. The first two
//! levels are shared evenly by the threads of the core that are running something, the last by all CPUs under it that
//! are. Lines are counted one by one; frame lines store the count in units of 256 lines.

use crate::costs::Costs;
use crate::measure::Level;
use crate::profile::{Closeness, CpuPosition};
use crate::time::Ticks;

/// log2 of the lines to a unit of age.
pub(super) const UNIT_SHIFT: u32 = 8;

/// Pages of lines that a prefetcher follows at a time, and log2 of the lines to a page: stream prefetchers go by pages
/// of 4 KiB.
const STREAMS: usize = 16;
const STREAM_SHIFT: u32 = 6;

/// A page of lines in which this CPU misses.
#[derive(Clone, Copy, Debug)]
struct Stream {
    page: u32,
    /// Misses in it so far; stays at the largest value.
    run: u8,
}

impl Stream {
    /// One that no line continues.
    const NONE: Self = Self { page: u32::MAX, run: 0 };
}

/// Misses that the CPU waits for at the same time: it looks ahead by some instructions.
#[derive(Clone, Copy, Debug, Default)]
struct Outstanding {
    /// A miss before this moment is one of them.
    until: Ticks,
    /// The longest of their latencies.
    longest: Ticks,
}

/// CPUs that run something, of those near one, itself among them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusyNear {
    /// Threads of its core.
    pub(crate) core: u16,
    /// CPUs under its last-level cache.
    pub(crate) llc: u16,
}

/// One CPU's.
#[derive(Clone, Debug)]
pub(super) struct CpuCache {
    /// Lines brought into the first level so far.
    pub(super) lines: u64,
    /// Lines that the first level, and both first levels together, hold for this CPU.
    l1: u64,
    l2: u64,
    pub(super) place: CpuPosition,
    streams: [Stream; STREAMS],
    /// Misses in a page before the prefetcher is ahead.
    train: u8,
    outstanding: Outstanding,
    /// How far the CPU looks ahead.
    window: Ticks,
    next_stream: u8,
}

impl CpuCache {
    /// Notes a miss of `line`; whether there were enough before it in the same page for the prefetcher to be ahead.
    pub(super) fn prefetched(&mut self, line: u32) -> bool {
        let page = line >> STREAM_SHIFT;
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.page == page) {
            let ahead = stream.run >= self.train;
            stream.run = stream.run.saturating_add(1);
            return ahead;
        }
        self.streams[self.next_stream as usize] = Stream { page, run: 1 };
        self.next_stream = (self.next_stream + 1) % STREAMS as u8;
        false
    }

    /// What a miss of `latency` at `now` costs: only what it takes longer than those that are under way.
    #[inline]
    fn waited(&mut self, now: Ticks, latency: Ticks) -> Ticks {
        let under_way = &mut self.outstanding;
        if now < under_way.until {
            let more = latency.saturating_sub(under_way.longest);
            under_way.longest = under_way.longest.max(latency);
            // Instructions count against the window, waiting does not.
            under_way.until += more;
            return more;
        }
        *under_way = Outstanding { until: now + latency + self.window, longest: latency };
        latency
    }

    /// `cost` of a touch that finds its line at `level`, less what of it passes while other misses are under way.
    #[inline]
    pub(super) fn overlapped(&mut self, level: Level, cost: Ticks, now: Ticks, costs: &Costs) -> Ticks {
        if level < Level::L3 { cost } else { costs.touch + self.waited(now, cost - costs.touch) }
    }

    /// `cost` of a touch that neither begins before what came before it is done, nor lets what follows begin.
    #[inline]
    pub(super) fn alone(&mut self, cost: Ticks) -> Ticks {
        self.outstanding = Outstanding::default();
        cost
    }

    /// The CPU works through memory of its own: its prefetcher follows that, and forgets what it followed before.
    pub(super) fn forget_streams(&mut self) {
        self.streams = [Stream::NONE; STREAMS];
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
    pub(super) fn new(costs: &Costs, places: &[CpuPosition]) -> Self {
        let groups = |key: fn(&CpuPosition) -> u16| {
            places.iter().map(key).max().map_or(0, |last| usize::from(last) + 1)
        };
        let mut siblings = vec![vec![]; groups(|place| place.core)];
        (0..).zip(places).for_each(|(cpu, place)| siblings[usize::from(place.core)].push(cpu));
        let llcs = groups(|place| place.llc);
        let cpu = |place: &CpuPosition| CpuCache {
            // Far enough on that a stamp of 0 is old.
            lines: 1 << 40,
            l1: costs.l1_lines,
            l2: costs.l1_lines + costs.l2_lines,
            place: *place,
            streams: [Stream::NONE; STREAMS],
            train: costs.train,
            outstanding: Outstanding::default(),
            window: costs.window,
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

    pub(super) fn has(&self, cpu: u16) -> bool {
        usize::from(cpu) < self.cpus.len()
    }

    /// Lines that the first level, the first two and all three together have for `cpu`.
    pub(super) fn reach(&self, cpu: u16) -> [u64; 3] {
        let cache = self.cpu(cpu);
        [cache.l1, cache.l2, cache.l2 + self.llc_share[usize::from(cache.place.llc)]]
    }

    /// The memory node of `cpu`; 0 if there is no such CPU.
    pub(super) fn node_of(&self, cpu: u16) -> u16 {
        self.cpus.get(usize::from(cpu)).map_or(0, |cache| cache.place.node)
    }

    /// Where `me` finds a line that `owner` touched last, `age` of the owner's lines ago; `None` if only in memory.
    #[inline]
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

    pub(super) fn busy_near(&self, cpu: u16) -> BusyNear {
        let place = self.cpu(cpu).place;
        let (core, llc) = (usize::from(place.core), usize::from(place.llc));
        BusyNear { core: self.core_busy[core], llc: self.llc_busy[llc] }
    }
}
