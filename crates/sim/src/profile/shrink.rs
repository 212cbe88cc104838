//! A scale model of a machine: the same CPUs and latencies, with memory and the larger caches divided by one number.
//!
//! What a workload with much memory does to free lists and caches takes many rounds to settle, and a round's cost grows
//! with its memory. If the workload's memory, the nodes, and the second- and last-level caches shrink alike, the
//! proportions stay the same: how much of a pageset's list fits in a cache, how many pages a CPU may keep, how full nodes
//! are. The first-level cache keeps its size, for its lines were touched an instant before. A batch does not shrink: a
//! pageset still takes and gives back as many pages at a time.

use super::{Profile, ProfileError};

/// Figures that shrink with memory.
const SIZES: [&str; 2] = ["cache.l2_bytes", "cache.l3_bytes"];

impl Profile {
    /// The machine with memory and caches divided by `by`, from 1. Everything else, what firmware and kernel derive from
    /// cache sizes included, stays.
    ///
    /// # Errors
    /// If nothing would be left of a node or a cache.
    pub fn shrunk(&self, by: u32) -> Result<Self, ProfileError> {
        let mut shrunk = self.clone();
        if by <= 1 {
            return Ok(shrunk);
        }
        let refuse = |problem: String| ProfileError::new(&self.name, problem);
        for node in &mut shrunk.shape.nodes {
            node.memory_mib /= u64::from(by);
        }
        shrunk.topology = shrunk.shape.topology(self.figures["cache.l3_bytes"].value).map_err(refuse)?;
        for key in SIZES {
            let figure = shrunk.figures.get_mut(key).expect("a profile has all figures");
            figure.value = (figure.value / f64::from(by)).round();
            figure.source = format!("1/{by} of: {}", figure.source);
            let least = self.value("cache.l1_bytes");
            if figure.value < least {
                return Err(refuse(format!("1/{by} of {key} is less than cache.l1_bytes")));
            }
        }
        Ok(shrunk)
    }
}
