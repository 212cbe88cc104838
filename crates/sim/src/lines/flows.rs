//! Steady demand on memory, by CPU: what a task that is in the middle of a long stretch of modelled accesses draws from
//! each node's memory and from the links between sockets.
//!
//! A demand is a part of a resource's peak, multiplied by the stretch under which it was priced: the sum over all CPUs
//! is then the stretch that brings what gets through to the peak, and it stays where it is once all were priced under
//! it. A CPU has one demand at a time. That of a task which was taken off its CPU in mid-stretch ends by itself.

use crate::costs::ONE;
use crate::time::Ticks;

/// Demands are in units of 1/`1 << DEMAND_SHIFT` of the peak.
pub(super) const DEMAND_SHIFT: u32 = 20;
/// log2 of the time between two looks for demands that nobody ended, 64 µs: more than CPUs run ahead of each other.
const LOOK_SHIFT: u32 = 26;
/// No stretch is larger: 4096 times the peak is asked for.
const STRETCH_MAX: u64 = 4096 * ONE;

/// What there is a limit to, for each node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LimitedWay {
    /// Its memory.
    Bus,
    /// The way of what other sockets read.
    Out,
    /// The way of what other sockets write.
    In,
}

impl LimitedWay {
    const COUNT: usize = 3;

    /// Where it is among all ways of all nodes.
    pub(super) const fn of(self, node: usize) -> usize {
        node * Self::COUNT + self as usize
    }
}

/// All CPUs' demands.
#[derive(Debug)]
pub(super) struct Flows {
    ways: usize,
    /// By CPU, then by way.
    demands: Vec<u64>,
    /// When each CPU's is over at the latest; 0 for those without one.
    until: Vec<Ticks>,
    sums: Vec<u64>,
    looked: Ticks,
    /// No demand is over before.
    first: Ticks,
}

impl Flows {
    pub(super) fn new(cpus: usize, nodes: usize) -> Self {
        let ways = nodes * LimitedWay::COUNT;
        let (demands, sums) = (vec![0; cpus * ways], vec![0; ways]);
        Self { ways, demands, until: vec![0; cpus], sums, looked: 0, first: Ticks::MAX }
    }

    /// The demand of `cpu` is from now on `demands`, by way, for a stretch that is planned to end at `until`.
    pub(super) fn set(&mut self, cpu: u16, demands: &[u64], until: Ticks) {
        let first = usize::from(cpu) * self.ways;
        let own = &mut self.demands[first..first + self.ways];
        for ((own, sum), new) in own.iter_mut().zip(&mut self.sums).zip(demands) {
            *sum = *sum - *own + new;
            *own = *new;
        }
        self.until[usize::from(cpu)] = until;
        self.first = self.first.min(until);
    }

    /// `cpu` has none any more.
    pub(super) fn end(&mut self, cpu: u16) {
        let first = usize::from(cpu) * self.ways;
        let own = &mut self.demands[first..first + self.ways];
        own.iter_mut().zip(&mut self.sums).for_each(|(own, sum)| *sum -= std::mem::take(own));
        self.until[usize::from(cpu)] = 0;
    }

    /// Ends what should have ended by `now`.
    pub(super) fn expire(&mut self, now: Ticks) {
        if now >> LOOK_SHIFT <= self.looked >> LOOK_SHIFT {
            return;
        }
        self.looked = now;
        let is_over = |until: Ticks| until.saturating_add(1 << LOOK_SHIFT) < now;
        if !is_over(self.first) {
            return;
        }
        self.first = Ticks::MAX;
        for cpu in 0..self.until.len() {
            match self.until[cpu] {
                0 => {}
                until if is_over(until) => self.end(cpu as u16),
                until => self.first = self.first.min(until),
            }
        }
    }

    /// The demand on a node's memory, in units of 1/[`ONE`] of its peak.
    pub(super) fn on_bus(&self, node: usize) -> u64 {
        (self.sums[LimitedWay::Bus.of(node)] >> (DEMAND_SHIFT - 10)).min(STRETCH_MAX)
    }

    /// How much longer data takes by one of a node's links than at one CPU's speed, in units of 1/[`ONE`].
    pub(super) fn link_stretch(&self, way: LimitedWay, node: usize) -> u64 {
        (self.sums[way.of(node)] >> (DEMAND_SHIFT - 10)).clamp(ONE, STRETCH_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAK: u64 = 1 << DEMAND_SHIFT;

    #[test]
    fn demands_add_up_and_go() {
        let mut flows = Flows::new(3, 1);
        flows.set(0, &[PEAK, PEAK / 2, 0], 10);
        flows.set(2, &[PEAK, PEAK, PEAK / 4], 10);
        assert_eq!((flows.on_bus(0), flows.link_stretch(LimitedWay::Out, 0)), (2 * ONE, ONE + ONE / 2));
        assert_eq!(flows.link_stretch(LimitedWay::In, 0), ONE, "less than the peak");
        flows.set(0, &[0, 0, 0], 10);
        assert_eq!((flows.on_bus(0), flows.link_stretch(LimitedWay::Out, 0)), (ONE, ONE));
        flows.end(2);
        assert_eq!(flows.on_bus(0), 0);
    }

    #[test]
    fn what_nobody_ends_expires() {
        let mut flows = Flows::new(1, 1);
        let step = 1 << LOOK_SHIFT;
        flows.set(0, &[PEAK, 0, 0], step);
        flows.expire(2 * step);
        assert_eq!(flows.on_bus(0), ONE, "its task may only be late");
        flows.expire(3 * step);
        assert_eq!(flows.on_bus(0), 0);
    }
}
