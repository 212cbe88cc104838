//! The cost of modelled accesses: how many hit the caches, what the others take on each node, and how much bandwidth they
//! use meanwhile. A long stretch is priced piece by piece, for the load changes.

use super::flows::{DEMAND_SHIFT, LimitedWay};
use super::{Lines, Toucher};
use crate::accesses::{AccessMix, Pattern};
use crate::costs::{Costs, LINE_BYTES, ONE, Traffic};
use crate::measure::Level;
use crate::time::Ticks;

/// Prices are in ticks times `1 << PRICE_SHIFT`.
const PRICE_SHIFT: u32 = 16;
/// Shares are in units of 1/`1 << SHARE_SHIFT`.
const SHARE_SHIFT: u32 = 20;
/// The first piece of a stretch, and the longest: 16 and 256 µs.
const PIECE_MIN: Ticks = 16_000 << 10;
const PIECE_MAX: Ticks = 256_000 << 10;
const PAGE_LINES: u64 = mm::ids::PAGE_SIZE / LINE_BYTES;
/// Page table entries in a line.
const ENTRIES_PER_LINE: u64 = LINE_BYTES / 8;

/// A stretch of accesses that a task is in the middle of.
#[derive(Debug)]
pub(crate) struct Stretch<'a> {
    mix: AccessMix<'a>,
    /// What is left to do.
    reads: u64,
    writes: u64,
    /// Lines by which the caches have aged so far: those of the working set once at most.
    aged: u64,
    piece: Ticks,
    longest: Ticks,
    /// The CPU whose demand the last piece was.
    cpu: Option<u16>,
    /// By way, for the present piece.
    demands: Vec<u64>,
}

/// Where accesses find their lines, in shares.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// L1, L2, L3.
    caches: [u64; 3],
    memory: u64,
}

/// A part of a stretch.
#[derive(Clone, Copy, Debug)]
struct Piece {
    reads: u64,
    writes: u64,
    found: Found,
    time: Ticks,
}

/// What an access costs.
#[derive(Clone, Copy, Default, Debug)]
struct Price {
    read: u64,
    write: u64,
}

/// A node with memory of the working set.
#[derive(Clone, Copy, Debug)]
struct NodeShare {
    node: usize,
    share: u64,
}

impl<'a> Stretch<'a> {
    pub(crate) fn new(mix: AccessMix<'a>) -> Self {
        let (reads, writes) = (mix.reads, mix.writes);
        Self { mix, reads, writes, aged: 0, piece: PIECE_MIN, longest: PIECE_MAX, cpu: None, demands: vec![] }
    }

    /// The same in pieces of `longest` from the first on: loads are known to change no faster.
    pub(crate) fn coarse(mix: AccessMix<'a>, longest: Ticks) -> Self {
        Self { piece: longest, longest, ..Self::new(mix) }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.reads == 0 && self.writes == 0
    }

    /// Lines of the working set, at least one.
    fn lines(&self) -> u64 {
        self.mix.working_set.div_ceil(LINE_BYTES).max(1)
    }

    /// How many reads and writes of what is left come to about a piece at `price`; one at least.
    fn next(&self, price: Price) -> [u64; 2] {
        let whole = u128::from(self.reads) * u128::from(price.read)
            + u128::from(self.writes) * u128::from(price.write);
        let most = u128::from(self.piece) << PRICE_SHIFT;
        if whole <= most {
            return [self.reads, self.writes];
        }
        let part = |left: u64| (u128::from(left) * most / whole) as u64;
        match [part(self.reads), part(self.writes)] {
            [0, 0] if self.reads > 0 => [1, 0],
            [0, 0] => [0, 1],
            some => some,
        }
    }
}

impl Lines {
    /// Carries out the next piece of a stretch that is not over: how long it takes. Ends with [`Self::end_stretch`].
    pub(crate) fn go_on(&mut self, stretch: &mut Stretch<'_>, who: Toucher, costs: &Costs) -> Ticks {
        self.flows.expire(who.now);
        for memory in &mut self.bandwidth {
            memory.book(who.now, 0, costs);
        }
        if stretch.cpu != Some(who.cpu) {
            self.end_stretch(stretch, costs);
            stretch.cpu = Some(who.cpu);
            // Its own demand is part of what it is priced by.
            self.price_piece(stretch, who, costs);
        }
        let Piece { reads, writes, found, time } = self.price_piece(stretch, who, costs);
        self.count(stretch, reads + writes, found, who);
        stretch.reads -= reads;
        stretch.writes -= writes;
        stretch.piece = (stretch.piece * 2).min(stretch.longest);
        time
    }

    /// A stretch is over, or goes on elsewhere.
    pub(crate) fn end_stretch(&mut self, stretch: &Stretch<'_>, costs: &Costs) {
        if let Some(cpu) = stretch.cpu {
            self.flows.end(cpu);
            self.tell_memory(costs);
        }
    }

    fn tell_memory(&mut self, costs: &Costs) {
        for (node, memory) in self.bandwidth.iter_mut().enumerate() {
            memory.set_flow(self.flows.on_bus(node), costs);
        }
    }

    /// The next piece at present loads. Its demand becomes the CPU's.
    fn price_piece(&mut self, stretch: &mut Stretch<'_>, who: Toucher, costs: &Costs) -> Piece {
        let found = self.found(stretch, who.cpu);
        let price = self.price(stretch, found, who.cpu, costs);
        let [reads, writes] = stretch.next(price);
        let cost = u128::from(reads) * u128::from(price.read) + u128::from(writes) * u128::from(price.write);
        let time = (cost >> PRICE_SHIFT) as Ticks;
        self.demand(
            stretch,
            [reads, writes].map(|lines| lines.saturating_mul(found.memory)),
            (who, time),
            costs,
        );
        self.flows.set(who.cpu, &stretch.demands, who.now + time);
        self.tell_memory(costs);
        Piece { reads, writes, found, time }
    }

    /// Of what is spread evenly, each level has as much as it holds. What is gone through in order again and again is
    /// found in the first level that holds all of it.
    fn found(&self, stretch: &Stretch<'_>, cpu: u16) -> Found {
        let lines = stretch.lines();
        let mut holds = self.caches.reach(cpu);
        if stretch.mix.pattern.is_sequential() {
            holds = holds.map(|level| if level >= lines { lines } else { 0 });
        }
        let share = |level: u64| ((u128::from(level.min(lines)) << SHARE_SHIFT) / u128::from(lines)) as u64;
        let [l1, l2, l3] = holds.map(share);
        Found { caches: [l1, l2 - l1, l3 - l2], memory: (1 << SHARE_SHIFT) - l3 }
    }

    fn price(&self, stretch: &Stretch<'_>, found: Found, cpu: u16, costs: &Costs) -> Price {
        let mut price = Price::default();
        let mut add = |share: u64, each: Price| {
            price.read += part_of(each.read, share);
            price.write += part_of(each.write, share);
        };
        for (level, share) in found.caches.into_iter().enumerate() {
            let latency = (costs.levels[level] - costs.touch) << PRICE_SHIFT;
            add(share, overlapped(stretch.mix.pattern, latency, costs));
        }
        for NodeShare { node, share } in self.parts(stretch, cpu) {
            let share = part_of(found.memory, share);
            add(share, self.memory_price(stretch.mix.pattern, node, cpu, costs));
        }
        if !stretch.mix.pattern.is_sequential() {
            let walk = self.walk(stretch, cpu, costs);
            add(1 << SHARE_SHIFT, Price { read: walk, write: walk });
        }
        // Nothing is for free, so that every piece has an end.
        Price { read: price.read.max(1), write: price.write.max(1) }
    }

    /// What the way to a page's entry costs. Each access brings a line of data and needs one of eight entries: both kinds
    /// compete for the last level, which so has this share of the entries.
    fn walk(&self, stretch: &Stretch<'_>, cpu: u16, costs: &Costs) -> u64 {
        let entries = stretch.lines() / (PAGE_LINES * ENTRIES_PER_LINE);
        let [.., last] = self.caches.reach(cpu);
        times(costs.walk << PRICE_SHIFT, entries, (entries + last).max(1))
    }

    /// The nodes that the working set lies on, with their shares of it.
    fn parts<'a>(&self, stretch: &'a Stretch<'_>, cpu: u16) -> impl Iterator<Item = NodeShare> + use<'a> {
        let nodes = self.bandwidth.len();
        let known = move |part: &&(mm::Node, u64)| usize::from(part.0.0) < nodes && part.1 > 0;
        let given = stretch.mix.nodes;
        let whole: u128 = given.iter().filter(known).map(|part| u128::from(part.1)).sum();
        let own = NodeShare { node: usize::from(self.caches.node_of(cpu)), share: 1 << SHARE_SHIFT };
        let part = move |part: &(mm::Node, u64)| NodeShare {
            node: usize::from(part.0.0),
            share: ((u128::from(part.1) << SHARE_SHIFT) / whole) as u64,
        };
        given.iter().filter(known).map(part).chain((whole == 0).then_some(own))
    }

    /// A line of `node`'s memory for a CPU, under present loads.
    fn memory_price(&self, pattern: Pattern, node: usize, cpu: u16, costs: &Costs) -> Price {
        let from = usize::from(self.caches.node_of(cpu));
        let latency = costs.nodes.latency[from][node];
        let [for_reads, for_writes] = self.stretches(pattern, from, node, costs);
        let memory = &self.bandwidth[node];
        if pattern.is_sequential() {
            // As many lines are under way as at home, so that speed falls as latency rises.
            let own = costs.nodes.latency[from][from];
            let line = |traffic: Traffic, stretch: u64| {
                let at_home = (costs.page[traffic as usize] << PRICE_SHIFT) / PAGE_LINES;
                times(times(at_home, latency, own), stretch, ONE)
            };
            return Price { read: line(Traffic::Read, for_reads), write: line(Traffic::Write, for_writes) };
        }
        let each = overlapped(pattern, memory.loaded(latency) << PRICE_SHIFT, costs);
        Price { read: times(each.read, for_reads, ONE), write: times(each.write, for_writes, ONE) }
    }

    /// How much longer a read and a write take than they would if there were bandwidth enough: what is scarcest on their
    /// way decides.
    fn stretches(&self, pattern: Pattern, from: usize, node: usize, costs: &Costs) -> [u64; 2] {
        let bus = self.bandwidth[node].stretch();
        if !costs.nodes.crosses(from, node) {
            return [bus; 2];
        }
        let out = bus.max(self.flows.link_stretch(LimitedWay::Out, node));
        let written = bus.max(self.flows.link_stretch(LimitedWay::In, node));
        [out, if pattern == Pattern::Streaming { written } else { out.max(written) }]
    }

    /// Sets [`Stretch::demands`] to what a piece of `time` draws that has so many reads and writes of memory, in shares.
    fn demand(
        &self,
        stretch: &mut Stretch<'_>,
        [reads, writes]: [u64; 2],
        (who, time): (Toucher, Ticks),
        costs: &Costs,
    ) {
        let from = usize::from(self.caches.node_of(who.cpu));
        let mut demands = std::mem::take(&mut stretch.demands);
        demands.clear();
        demands.resize(LimitedWay::In.of(self.bandwidth.len()), 0);
        // A write through the caches brings the line in before, and back later.
        let brought = if stretch.mix.pattern == Pattern::Streaming { reads } else { reads + writes };
        for NodeShare { node, share } in self.parts(stretch, who.cpu) {
            let part = |lines: u64, line: Ticks, stretch: u64| {
                let lines = u128::from(part_of(lines, share));
                let stretched = lines * u128::from(line) * u128::from(stretch) / u128::from(ONE);
                ((stretched << DEMAND_SHIFT >> SHARE_SHIFT) / u128::from(time.max(1))) as u64
            };
            let memory = &self.bandwidth[node];
            demands[LimitedWay::Bus.of(node)] +=
                part(brought + writes, costs.nodes.line[node], memory.stretch());
            if costs.nodes.crosses(from, node) {
                let link =
                    |lines, way| part(lines, costs.nodes.link_line, self.flows.link_stretch(way, node));
                demands[LimitedWay::Out.of(node)] += link(brought, LimitedWay::Out);
                demands[LimitedWay::In.of(node)] += link(writes, LimitedWay::In);
            }
        }
        stretch.demands = demands;
    }

    /// Notes where `accesses` found their lines; the CPU's caches age by those that came in.
    fn count(&mut self, stretch: &mut Stretch<'_>, accesses: u64, found: Found, who: Toucher) {
        for (level, share) in found.caches.into_iter().enumerate() {
            self.accessed[level] += u128::from(accesses) * u128::from(share);
        }
        let near = usize::from(self.caches.node_of(who.cpu));
        for NodeShare { node, share } in self.parts(stretch, who.cpu) {
            let level = if node == near { Level::LocalDram } else { Level::RemoteDram };
            let share = part_of(found.memory, share);
            self.accessed[level as usize] += u128::from(accesses) * u128::from(share);
        }
        let brought = part_of(accesses, (1 << SHARE_SHIFT) - found.caches[0]);
        let aged = brought.min(stretch.lines() - stretch.aged);
        stretch.aged += aged;
        let cache = self.caches.cpu_mut(who.cpu);
        cache.lines += aged;
        cache.forget_streams();
    }

    /// How many modelled accesses found their line where, by [`Level`].
    pub(crate) fn accessed(&self) -> [u64; Level::COUNT] {
        self.accessed.map(|shares| (shares >> SHARE_SHIFT) as u64)
    }
}

/// What is left of `latency` for a read and for a write.
fn overlapped(pattern: Pattern, latency: u64, costs: &Costs) -> Price {
    match pattern {
        Pattern::Dependent => Price { read: latency, write: times(latency, costs.store, ONE) },
        Pattern::Random => {
            Price { read: times(latency, costs.random_overlap, ONE), write: times(latency, costs.store, ONE) }
        }
        Pattern::Sequential | Pattern::Streaming => {
            let left = times(latency, costs.overlap, ONE);
            Price { read: left, write: left }
        }
    }
}

fn part_of(number: u64, share: u64) -> u64 {
    ((u128::from(number) * u128::from(share)) >> SHARE_SHIFT) as u64
}

fn times(number: u64, by: u64, of: u64) -> u64 {
    (u128::from(number) * u128::from(by) / u128::from(of)) as u64
}
