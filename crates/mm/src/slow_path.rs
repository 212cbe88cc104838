//! What a request goes through when no zone has a block above its mark (the kernel's `__alloc_pages_slowpath`,
//! facts/ALGORITHMS.md 2.6).
//!
//! There is nothing to reclaim yet: it wakes kswapd, goes down to the min mark, empties all pagesets, gives up the
//! highatomic reserve, and then fails.

use crate::alloc_path::{Mark, Search};
use crate::boot::Mm;
use crate::ids::{Node, Order, Pfn, ZoneId};
use crate::machine::{Daemon, Machine};
use crate::request::{AllocError, Urgency};
use crate::stat::SlowEvents;
use crate::zone::AllocFlags;

impl<M: Machine> Mm<M> {
    #[cold]
    pub(crate) fn alloc_slow(&self, search: Search<'_>) -> Result<(Pfn, ZoneId), AllocError> {
        let request = search.request;
        let first = self.candidates(request, search.node).next().ok_or(AllocError::NoZone)?;
        if search.flags.has(AllocFlags::KSWAPD) {
            for zone in self.candidates(request, search.node) {
                self.wake_kswapd(zone.node);
            }
        }
        let urgent = match request.urgency {
            Urgency::Waits | Urgency::NoWait | Urgency::Never => AllocFlags::NONE,
            Urgency::Atomic if request.order > Order::ZERO => {
                AllocFlags::MIN_RESERVE.with(AllocFlags::NON_BLOCK).with(AllocFlags::HIGHATOMIC)
            }
            Urgency::Atomic => AllocFlags::MIN_RESERVE.with(AllocFlags::NON_BLOCK),
        };
        let search = Search { mark: Mark::Min, flags: search.flags.with(urgent), ..search };
        if let Some(block) = self.search(search) {
            return Ok(block);
        }
        if request.urgency != Urgency::Waits {
            SlowEvents::bump(&first.stat.slow.failed);
            return Err(AllocError::WouldWait);
        }
        SlowEvents::bump(&first.stat.slow.allocstall);
        self.drain_all();
        if let Some(block) = self.search(search) {
            return Ok(block);
        }
        if self.give_up_stocks() {
            if let Some(block) = self.search(search) {
                return Ok(block);
            }
        }
        if self.unreserve_highatomic() {
            if let Some(block) = self.search(search) {
                return Ok(block);
            }
        }
        SlowEvents::bump(&first.stat.slow.failed);
        Err(AllocError::OutOfMemory)
    }

    pub(crate) fn wake_kswapd(&self, node: Node) {
        if let Some(zone) = self.zones.iter().find(|zone| zone.node == node) {
            SlowEvents::bump(&zone.stat.slow.kswapd_wakes);
        }
        self.machine.wake(Daemon::Kswapd(node));
    }
}
