//! A node's memory bandwidth: recent demand decides how long the next access takes.
//!
//! Time is cut into buckets. What a bucket asks for sets the latency and the stretch of the next one: below the peak,
//! latency rises along two straight lines; above it, transfers are stretched until what gets through is the peak. CPUs
//! that have run ahead by less than a bucket do no harm. On top of that comes steady demand ([`super::flows`]).

use crate::costs::{Costs, ONE};
use crate::time::Ticks;

/// log2 of a bucket's length in ticks: 64 µs.
const BUCKET_SHIFT: u32 = 26;

#[derive(Clone, Debug)]
pub(super) struct Bandwidth {
    bucket: u64,
    lines: u64,
    /// What transfers and latencies are multiplied by, in units of 1/[`ONE`].
    stretch: u64,
    latency: u64,
    /// Time that a line takes at the peak.
    line: Ticks,
    /// What the last bucket asked for, and what is asked for steadily, in units of 1/[`ONE`] of the peak; the stretch has
    /// one such factor in them already.
    booked: u64,
    flow: u64,
}

impl Bandwidth {
    /// Memory of which a line takes `line` at the peak.
    pub(super) const fn new(line: Ticks) -> Self {
        Self { bucket: 0, lines: 0, stretch: ONE, latency: ONE, line, booked: 0, flow: 0 }
    }

    /// Books `lines` at time `now`.
    #[inline]
    pub(super) fn book(&mut self, now: Ticks, lines: u64, costs: &Costs) {
        let bucket = now >> BUCKET_SHIFT;
        if bucket > self.bucket {
            self.turn(bucket, costs);
        }
        self.lines += lines;
    }

    #[cold]
    fn turn(&mut self, bucket: u64, costs: &Costs) {
        let span = (bucket - self.bucket) << BUCKET_SHIFT;
        let asked = u128::from(self.lines) * u128::from(self.line) * u128::from(self.stretch);
        self.booked = u64::try_from(asked / u128::from(span)).unwrap_or(u64::MAX).min(64 * ONE);
        self.bucket = bucket;
        self.lines = 0;
        self.weigh(costs);
    }

    /// What is asked for steadily is from now on `flow`, in units of 1/[`ONE`] of the peak.
    pub(super) fn set_flow(&mut self, flow: u64, costs: &Costs) {
        if flow != self.flow {
            self.flow = flow;
            self.weigh(costs);
        }
    }

    fn weigh(&mut self, costs: &Costs) {
        let load = self.booked + self.flow;
        self.stretch = load.max(ONE);
        self.latency = latency(load.min(ONE), costs.loaded);
    }

    /// What moving data takes longer than it would alone, in units of 1/[`ONE`].
    pub(super) fn stretch(&self) -> u64 {
        self.stretch
    }

    /// `time` of moving data, as long as it takes under the present load.
    pub(super) fn stretched(&self, time: Ticks) -> Ticks {
        time * self.stretch / ONE
    }

    /// The latency `time` under the present load.
    pub(super) fn loaded(&self, time: Ticks) -> Ticks {
        time * self.latency / ONE
    }
}

/// Latency over idle latency at `load`: straight from 1 at none to `half` at a half to `full` at the peak.
fn latency(load: u64, [half, full]: [u64; 2]) -> u64 {
    let middle = ONE / 2;
    if load <= middle {
        ONE + (half - ONE) * load / middle
    } else {
        half + (full - half) * (load - middle) / middle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    #[test]
    fn overload_stretches_to_the_peak_and_passes() {
        let costs = Costs::new(&Profile::load("xeon-8260").unwrap());
        let line = costs.nodes.line[0];
        let mut node = Bandwidth::new(line);
        let capacity = (1 << BUCKET_SHIFT) / line;
        node.book(0, 2 * capacity, &costs);
        node.book(1 << BUCKET_SHIFT, capacity, &costs);
        let doubled = node.stretched(1000);
        assert!((1990..=2010).contains(&doubled), "{doubled}");
        assert_eq!(node.loaded(1000), 1000 * costs.loaded[1] / ONE);
        // The stretched demand, now exactly what the node can do, keeps the stretch where it is.
        node.book(2 << BUCKET_SHIFT, 0, &costs);
        assert!((1980..=2010).contains(&node.stretched(1000)), "{}", node.stretched(1000));
        node.book(9 << BUCKET_SHIFT, 0, &costs);
        assert_eq!((node.stretched(1000), node.loaded(1000)), (1000, 1000));
    }

    #[test]
    fn steady_demand_counts_with_the_rest() {
        let costs = Costs::new(&Profile::load("xeon-8260").unwrap());
        let mut node = Bandwidth::new(costs.nodes.line[0]);
        node.set_flow(ONE / 2, &costs);
        assert_eq!((node.stretch(), node.loaded(1000)), (ONE, 1000 * costs.loaded[0] / ONE));
        node.book(0, (1 << BUCKET_SHIFT) / costs.nodes.line[0], &costs);
        node.book(1 << BUCKET_SHIFT, 0, &costs);
        let both = node.stretched(1000);
        assert!((1490..=1500).contains(&both), "{both}");
        node.set_flow(0, &costs);
        assert_eq!((node.stretched(1000), node.stretch()), (1000, ONE));
    }
}
