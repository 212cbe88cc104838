//! What the vmstat tick does to a pageset once a second: `high` falls towards `high_min`, and pages of remote zones that
//! were left alone go back (facts/ALGORITHMS.md 1.6).

use super::Pcp;
use crate::ids::Node;
use crate::policy::{HighRule, HoldRule, ScaleRule};
use crate::zone::Cx;

impl Pcp {
    /// Lowers `high` by an eighth at most; gives the pages that are now too many (the kernel's `decay_pcp_high`).
    pub(crate) fn decay<M: crate::Machine>(&mut self, cx: Cx<'_, M>) -> u32 {
        if cx.rules.high != HighRule::AutoTuned {
            return 0;
        }
        if self.high > self.high_min {
            let step = match cx.rules.scale {
                ScaleRule::Mainline => cx.scaled(self.batch),
                ScaleRule::Series => self.batch,
            };
            let floor = self.count.saturating_sub(step);
            self.high = floor.max(self.high - self.high / 8).max(self.high_min);
        }
        self.count.saturating_sub(self.high)
    }

    /// Counts down the ticks after which a pageset of a remote zone is emptied batch by batch; `local` is the CPU's
    /// node. Gives the pages to free now.
    pub(crate) fn expire(&mut self, zone_node: Node, local: Node) -> u32 {
        if self.expire == 0 || self.count == 0 {
            return 0;
        }
        if zone_node == local {
            self.expire = 0;
            return 0;
        }
        self.expire -= 1;
        if self.expire > 0 { 0 } else { self.count.min(self.batch) }
    }

    /// Pages of one hold of the zone lock, of `left` that are to go back.
    pub(crate) fn hold_size(&self, rule: HoldRule, left: u32) -> u32 {
        match rule {
            HoldRule::Whole => left,
            HoldRule::Batch => left.min(self.batch),
        }
    }
}
