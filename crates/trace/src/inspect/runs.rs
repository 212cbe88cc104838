//! Runs of events on one CPU: a refill shows as one page after another taken under the zone lock, a drain as one after
//! another given back.

use std::collections::BTreeMap;

use mm::{MigrateType, Order};

use super::RunRow;

/// What all blocks of a run have in common; `None` where they may differ.
type RunShape = Option<(Order, MigrateType)>;

/// The runs of one kind.
#[derive(Default)]
pub(super) struct BlockRuns {
    /// Each CPU's run that goes on: its shape and blocks.
    open: Vec<Option<(RunShape, u64)>>,
    /// How many runs of a shape had so many blocks.
    sizes: BTreeMap<RunShape, BTreeMap<u64, u64>>,
}

impl BlockRuns {
    /// For so many CPUs.
    pub(super) fn new(cpus: usize) -> Self {
        Self { open: vec![None; cpus], sizes: BTreeMap::new() }
    }

    /// A block more; of another shape than the last, it begins a new run.
    pub(super) fn extend(&mut self, cpu: usize, shape: RunShape) {
        match &mut self.open[cpu] {
            Some((open, blocks)) if *open == shape => *blocks += 1,
            _ => {
                self.end(cpu);
                self.open[cpu] = Some((shape, 1));
            }
        }
    }

    /// Something else happened on the CPU.
    #[inline]
    pub(super) fn end(&mut self, cpu: usize) {
        if let Some((shape, blocks)) = self.open[cpu].take() {
            *self.sizes.entry(shape).or_default().entry(blocks).or_default() += 1;
        }
    }

    /// All runs, by order and type.
    pub(super) fn finish(mut self) -> Vec<RunRow> {
        (0..self.open.len()).for_each(|cpu| self.end(cpu));
        let rows = self.sizes.into_iter().map(|(shape, sizes)| RunRow {
            order: shape.map(|(order, _)| order.get()),
            migratetype: shape.map(|(_, migratetype)| migratetype.name()),
            count: sizes.values().sum(),
            blocks: sizes.iter().map(|(size, count)| size * count).sum(),
            sizes: sizes.into_iter().collect(),
        });
        rows.collect()
    }
}
