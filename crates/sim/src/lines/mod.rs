//! The cost of touching a line. It depends on where the line is, and that follows from which CPU touched it before.
//!
//! A line that this CPU touched last is as far down its caches as it has brought in other lines since. One that another
//! CPU touched last comes from that CPU's cache, by closeness, or from memory if it has sunk through that cache. A write
//! makes it this CPU's alone; a read leaves a copy with both. Misses of frame lines that lie next to one another
//! overlap, for hardware prefetches such runs.

mod bandwidth;
mod cache;
mod flows;
mod frames;
mod named;
mod objects;
mod price;

use bandwidth::Bandwidth;
use cache::{BusyNear, Caches, UNIT_SHIFT};
use flows::Flows;
use frames::{CopyState, Frames, LineEntry};
use mm::{Access, Addr, Line, LineKind, Order, Pfn, Span, Topology};
use named::{LineTable, Named, TABLES, table_of};
use objects::Objects;
pub(crate) use price::Stretch;

use crate::costs::{Costs, LINE_BYTES, Traffic};
use crate::measure::{Level, TimedCount};
use crate::profile::CpuPosition;
use crate::time::{Ticks, to_nanos};

/// Spans, and one more for time outside of any.
pub(crate) const SPANS: usize = Span::COUNT + 1;

/// Who touches, in which span, when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Toucher {
    pub(crate) cpu: u16,
    /// Index of the span, [`Span::COUNT`] for none.
    pub(crate) span: usize,
    pub(crate) now: Ticks,
}

/// Every line's state, every CPU's caches, and what touches have cost.
#[derive(Debug)]
pub(crate) struct Lines {
    frames: Frames,
    objects: Objects,
    named: [LineTable; TABLES],
    caches: Caches,
    bandwidth: Vec<Bandwidth>,
    flows: Flows,
    /// Where runs of one node's frames begin, ascending, and which node.
    node_starts: Vec<(u32, u16)>,
    /// The run that was looked up last: first pfn, last pfn, node.
    last_run: (u32, u32, u16),
    /// By zone index, in the memory manager's order.
    zone_nodes: Vec<u16>,
    /// Touches of what was in the first-level cache anyway, by span.
    hits: [u64; SPANS],
    /// Count and ticks of all others, by span and level.
    spent: [[(u64, Ticks); Level::COUNT]; SPANS],
    /// Modelled accesses by the level that they found their lines in, in shares ([`price`]).
    accessed: [u128; Level::COUNT],
}

impl Lines {
    /// `descriptor_shift` is log2 of the descriptors that share a line.
    pub(crate) fn new(
        costs: &Costs,
        topology: &Topology,
        places: &[CpuPosition],
        descriptor_shift: u32,
    ) -> Self {
        let mut node_starts = vec![];
        let mut zone_nodes = vec![];
        let mut end = 0;
        for (number, node) in (0..).zip(&topology.nodes) {
            for zone in &node.zones {
                node_starts.push((zone.start.0, number));
                zone_nodes.push(number);
                end = end.max(u64::from(zone.start.0) + u64::from(zone.spanned));
            }
        }
        node_starts.sort_unstable();
        Self {
            frames: Frames::new(end, descriptor_shift),
            objects: Objects::default(),
            named: std::array::from_fn(|_| LineTable::new(places.len())),
            caches: Caches::new(costs, places),
            bandwidth: costs.nodes.line.iter().map(|&line| Bandwidth::new(line)).collect(),
            flows: Flows::new(places.len(), topology.nodes.len()),
            node_starts,
            last_run: (1, 0, 0),
            zone_nodes,
            hits: [0; SPANS],
            spent: Default::default(),
            accessed: [0; Level::COUNT],
        }
    }

    /// Touches `line`: what it costs, the state changed.
    #[inline]
    pub(crate) fn touch(&mut self, line: Line, access: Access, who: Toucher, costs: &Costs) -> Ticks {
        let hit = match line.kind {
            LineKind::Frame => self.frame_hits(line.index, access, who.cpu),
            kind => self.named_hits(table_of(kind), line.index, access, who.cpu),
        };
        if hit {
            self.hits[who.span] += 1;
            return costs.levels[0];
        }
        self.touch_slowly(line, access, who, costs)
    }

    #[inline(never)]
    fn touch_slowly(&mut self, line: Line, access: Access, who: Toucher, costs: &Costs) -> Ticks {
        match line.kind {
            LineKind::Frame => self.touch_frame(self.frames.line_of(line.index), access, who, costs),
            _ => self.touch_named(line, access, who, costs),
        }
    }

    /// Whether frame descriptor `pfn` is in the first-level cache of `cpu` by what it touched most recently, in a state
    /// that `access` does not change.
    #[inline]
    fn frame_hits(&self, pfn: u32, access: Access, cpu: u16) -> bool {
        self.frames.get(self.frames.line_of(pfn)).is_hit(cpu, self.unit(cpu), access)
    }

    /// The same of a named line.
    #[inline]
    fn named_hits(&self, table: usize, index: u32, access: Access, cpu: u16) -> bool {
        let named = self.named[table].get(index);
        let cache = self.caches.cpu(cpu);
        named.owner == cpu && named.state.allows(access) && cache.in_l1(cache.lines.wrapping_sub(named.stamp))
    }

    #[inline]
    fn unit(&self, cpu: u16) -> u32 {
        (self.caches.cpu(cpu).lines >> UNIT_SHIFT) as u32
    }

    #[inline]
    fn spend(&mut self, level: Level, cost: Ticks, who: Toucher) -> Ticks {
        let spent = &mut self.spent[who.span][level as usize];
        spent.0 += 1;
        spent.1 += cost;
        cost
    }

    fn touch_frame(&mut self, index: u32, access: Access, who: Toucher, costs: &Costs) -> Ticks {
        let entry = self.frames.get(index);
        let (entry, cost) = self.move_line(
            entry,
            LinePlace { frame: self.frames.first_of(index), index },
            access,
            (who, costs),
        );
        self.frames.set(index, entry);
        cost
    }

    /// The word at `at` in a slab's memory, and what reading it costs.
    #[inline]
    pub(crate) fn load(&mut self, at: Addr, who: Toucher, costs: &Costs) -> (u64, Ticks) {
        let (word, entry) = self.objects.look(at);
        // Most words are links, and are followed.
        self.objects.expect(Addr(word));
        (word, self.touch_known(at, entry, Access::Read, (who, costs)))
    }

    /// Stores `word` at `at` in a slab's memory: what that costs.
    #[inline]
    pub(crate) fn store(&mut self, at: Addr, word: u64, who: Toucher, costs: &Costs) -> Ticks {
        let entry = self.objects.put(at, word);
        self.touch_known(at, entry, Access::Store, (who, costs))
    }

    /// The words in slabs' memory, outside of time.
    pub(crate) fn words(&mut self) -> &mut Objects {
        &mut self.objects
    }

    /// Touches the line at `at` in a slab's memory: what it costs, the state changed.
    #[inline]
    pub(crate) fn touch_object(&mut self, at: Addr, access: Access, who: Toucher, costs: &Costs) -> Ticks {
        self.touch_known(at, self.objects.entry(at), access, (who, costs))
    }

    /// The same of a line whose entry has been looked up.
    #[inline]
    fn touch_known(
        &mut self,
        at: Addr,
        entry: LineEntry,
        access: Access,
        (who, costs): (Toucher, &Costs),
    ) -> Ticks {
        if entry.is_hit(who.cpu, self.unit(who.cpu), access) {
            self.hits[who.span] += 1;
            return costs.levels[0];
        }
        self.move_object(at, entry, access, (who, costs))
    }

    #[inline(never)]
    fn move_object(&mut self, at: Addr, entry: LineEntry, access: Access, by: (Toucher, &Costs)) -> Ticks {
        let line = (at.0 / LINE_BYTES) as u32;
        let (entry, cost) = self.move_line(entry, LinePlace { frame: at.pfn().0, index: line }, access, by);
        self.objects.set_entry(at, entry);
        cost
    }

    /// A line of a frame's node, or of its descriptor, comes to a CPU: its entry from then on, and what that costs.
    fn move_line(
        &mut self,
        entry: LineEntry,
        place: LinePlace,
        access: Access,
        (who, costs): (Toucher, &Costs),
    ) -> (LineEntry, Ticks) {
        let LinePlace { frame, index } = place;
        let owner = entry.cpu();
        let age = u64::from(entry.age(self.unit(owner))) << UNIT_SHIFT;
        let mut level = match entry.state() {
            CopyState::Invalid => None,
            _ => self.caches.find(who.cpu, owner, age),
        };
        if owner == who.cpu && entry.state() == CopyState::Shared && access.is_exclusive() && level.is_some()
        {
            // Others may have copies, which must be called in.
            level = level.max(Some(Level::SameSocket));
        }
        let (level, cost) = if let Some(level) = level {
            (level, costs.levels[level as usize])
        } else {
            let node = self.node_of(frame);
            self.fetch(node, who, costs)
        };
        let cache = self.caches.cpu_mut(who.cpu);
        let ahead = level >= Level::L3 && cache.prefetched(index);
        let cost = match access {
            Access::Store => costs.stored(cost),
            Access::Read | Access::Write if ahead => costs.prefetched(cost),
            Access::Read | Access::Write => cache.overlapped(level, cost, who.now, costs),
            Access::Atomic => cache.alone(cost),
        };
        cache.lines += u64::from(level != Level::L1);
        let unit = (cache.lines >> UNIT_SHIFT) as u32;
        let state = next_state(
            entry.state(),
            access,
            Before::of(owner == who.cpu && level < Level::LocalDram),
            level,
        );
        (LineEntry::new(who.cpu, state, unit), self.spend(level, cost, who))
    }

    fn touch_named(&mut self, line: Line, access: Access, who: Toucher, costs: &Costs) -> Ticks {
        let (table, index) = (table_of(line.kind), line.index);
        let named = self.named[table].get(index);
        let own = named.owner == who.cpu && named.state != CopyState::Invalid;
        let age = self.caches.cpu(named.owner).lines - named.stamp;
        let has_copy = named.state == CopyState::Shared && !own && self.named[table].has_copy(index, who.cpu);
        let found = match (named.state, access) {
            (CopyState::Invalid, _) => None,
            (CopyState::Shared, Access::Read) if has_copy => Some(Level::L2),
            (CopyState::Shared, Access::Write | Access::Store | Access::Atomic) if own || has_copy => {
                Some(Level::SameSocket)
            }
            _ => self.caches.find(who.cpu, named.owner, age),
        };
        let (level, cost) = if let Some(level) = found {
            (level, costs.levels[level as usize])
        } else {
            let node = self.home(line);
            self.fetch(node, who, costs)
        };
        let cache = self.caches.cpu_mut(who.cpu);
        let cost = match access {
            Access::Store => costs.stored(cost),
            Access::Read | Access::Write => cache.overlapped(level, cost, who.now, costs),
            Access::Atomic => cache.alone(cost),
        };
        cache.lines += u64::from(level != Level::L1);
        let stamp = cache.lines;
        self.own_named(table, index, named, access, Claim { cpu: who.cpu, stamp, level });
        self.spend(level, cost, who)
    }

    /// The state of a named line after a touch that was not the owner's first-level hit.
    fn own_named(&mut self, table: usize, index: u32, named: Named, access: Access, claim: Claim) {
        let table = &mut self.named[table];
        let own = named.owner == claim.cpu && named.state != CopyState::Invalid;
        let nobody_has_it = claim.level >= Level::LocalDram;
        if access.is_exclusive() || nobody_has_it || own {
            let state = next_state(named.state, access, Before::of(own && !nobody_has_it), claim.level);
            table.set(index, Named { stamp: claim.stamp, owner: claim.cpu, state });
            if access.is_exclusive() || nobody_has_it {
                table.clear_copies(index);
            }
        } else {
            table.set(index, Named { state: CopyState::Shared, ..named });
            table.add_copy(index, claim.cpu);
        }
    }

    #[inline]
    fn fetch(&mut self, node: u16, who: Toucher, costs: &Costs) -> (Level, Ticks) {
        let own = self.caches.cpu(who.cpu).place.node;
        let level = if own == node { Level::LocalDram } else { Level::RemoteDram };
        let memory = &mut self.bandwidth[usize::from(node)];
        memory.book(who.now, 1, costs);
        let latency = costs.nodes.latency[usize::from(own)][usize::from(node)];
        (level, costs.touch + memory.loaded(latency))
    }

    /// The node whose memory holds frame descriptor `pfn`, which is the frame's own.
    #[inline]
    fn node_of(&mut self, pfn: u32) -> u16 {
        let (first, last, node) = self.last_run;
        if first <= pfn && pfn <= last { node } else { self.find_node(pfn) }
    }

    #[cold]
    fn find_node(&mut self, pfn: u32) -> u16 {
        let after = self.node_starts.partition_point(|(start, _)| *start <= pfn);
        let (first, node) = self.node_starts[after.saturating_sub(1)];
        let last = self.node_starts.get(after).map_or(u32::MAX, |next| next.0 - 1);
        self.last_run = (first, last, node);
        node
    }

    /// The node whose memory holds `line`.
    fn home(&mut self, line: Line) -> u16 {
        let of_zone = |lines: &Self, zone: u32| lines.zone_nodes.get(zone as usize).copied().unwrap_or(0);
        let of_cpu = |lines: &Self, cpu: u32| lines.caches.node_of((cpu & 1023) as u16);
        match line.kind {
            LineKind::Frame => self.node_of(line.index),
            LineKind::Pageblock => self.node_of(line.index.saturating_mul(128 << Order::PAGEBLOCK.get())),
            LineKind::PageblockSummary => {
                self.node_of(line.index.saturating_mul(16 << Order::PAGEBLOCK.get()))
            }
            LineKind::FreeArea => of_zone(self, line.index / (64 * 64)),
            LineKind::Zone | LineKind::ZoneStat => of_zone(self, line.index),
            LineKind::PagesetList => of_cpu(self, line.index / 8),
            LineKind::Pageset | LineKind::Events | LineKind::CpuSlab => of_cpu(self, line.index),
            LineKind::SlabNode | LineKind::Barn => (line.index as usize % self.bandwidth.len()) as u16,
        }
    }

    /// Works through the pages of a block: what it costs; the CPU's caches age by them.
    pub(crate) fn stream(
        &mut self,
        block: (Pfn, Order),
        traffic: Traffic,
        who: Toucher,
        costs: &Costs,
    ) -> Ticks {
        let (first, order) = block;
        let node = usize::from(self.node_of(first.0));
        let lines = u64::from(order.pages()) * (mm::ids::PAGE_SIZE / LINE_BYTES);
        self.bandwidth[node].book(who.now, lines * traffic.bus_share(), costs);
        let cache = self.caches.cpu_mut(who.cpu);
        cache.lines += lines;
        cache.forget_streams();
        self.bandwidth[node].stretched(costs.block(traffic, order))
    }

    /// Whether the machine has `cpu`.
    pub(crate) fn has_cpu(&self, cpu: u16) -> bool {
        self.caches.has(cpu)
    }

    /// `cpu` begins (1) or ceases (-1) to run something.
    pub(crate) fn change_busy(&mut self, cpu: u16, change: i16) {
        self.caches.change_busy(cpu, change);
    }

    pub(crate) fn busy_near(&self, cpu: u16) -> BusyNear {
        self.caches.busy_near(cpu)
    }

    /// What touches have cost in a span so far.
    pub(crate) fn spent(&self, span: usize, costs: &Costs) -> [TimedCount; Level::COUNT] {
        let mut spent = self.spent[span];
        spent[0].0 += self.hits[span];
        spent[0].1 += self.hits[span] * costs.levels[0];
        spent.map(|(count, ticks)| TimedCount { count, time: to_nanos(ticks) })
    }

    /// Forgets what touches have cost; the lines stay where they are.
    pub(crate) fn reset(&mut self) {
        self.hits = [0; SPANS];
        self.spent = Default::default();
        self.accessed = [0; Level::COUNT];
    }
}

/// A CPU gets a line from a level at a time.
#[derive(Clone, Copy)]
struct Claim {
    cpu: u16,
    stamp: u64,
    level: Level,
}

/// Where a line is that comes to a CPU.
#[derive(Clone, Copy)]
struct LinePlace {
    /// A frame of the node that it lives on.
    frame: u32,
    /// What prefetchers take for its address.
    index: u32,
}

/// Whether the CPU that touches a line had it in its caches before.
#[derive(Clone, Copy)]
enum Before {
    Kept,
    Elsewhere,
}

impl Before {
    const fn of(is_kept: bool) -> Self {
        if is_kept { Self::Kept } else { Self::Elsewhere }
    }
}

/// The state after a touch.
const fn next_state(state: CopyState, access: Access, before: Before, level: Level) -> CopyState {
    match access {
        Access::Write | Access::Store | Access::Atomic => CopyState::Modified,
        Access::Read if matches!(before, Before::Kept) => state,
        Access::Read if matches!(level, Level::LocalDram | Level::RemoteDram) => CopyState::Exclusive,
        Access::Read => CopyState::Shared,
    }
}

#[cfg(test)]
mod tests;
