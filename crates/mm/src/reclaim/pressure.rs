//! Who listens to reclaim is told of it by a worker (`vmpressure`): once 512 pages of a group were looked at, and whenever a request
//! gets as far as priority 3. What is told is not modelled; that the worker has the CPU is (docs/reclaim.md#walks-and-ticks).

use alloc::collections::BTreeMap;

use super::{ReclaimDoor, ReclaimGround, Scan};
use crate::ground::{Daemon, Machine, Relaxed};
use crate::memcg::GroupId;

/// Of so many pages at a time it is told (`vmpressure_win`).
const WINDOW: u32 = 512;

/// From this priority on all is lost, or nearly (`vmpressure_level_critical_prio`).
const CRITICAL: u32 = 3;

/// By group: how many pages were looked at for it since its listeners were last told.
pub(super) type Untold = BTreeMap<GroupId, u32>;

/// A request begins to look through its lists at the scan's priority (`vmpressure_prio`).
pub(super) fn tell_of_priority<M: Machine, G: ReclaimGround<M>>(door: ReclaimDoor<'_, M, G>, scan: &Scan) {
    if scan.priority <= CRITICAL {
        tell(door, scan, WINDOW);
    }
}

/// So many pages were looked at for the scan's target. (Kernels tell nobody of what `memory.reclaim` asks for; here that is not told apart.)
pub(super) fn tell<M: Machine, G: ReclaimGround<M>>(door: ReclaimDoor<'_, M, G>, scan: &Scan, looked: u32) {
    if scan.target == GroupId::ROOT {
        tell_of_all(door, looked);
    }
    if !door.by_generations().are_kept() || !door.generations().workers_run_at_once() {
        return;
    }
    let mut untold = door.own().untold.lock(door.machine());
    let pages = untold.entry(scan.target).or_default();
    *pages = pages.saturating_add(looked);
    if *pages >= WINDOW {
        *pages = 0;
        drop(untold);
        door.generations().worker_ran();
    }
}

/// So many pages were looked at for nobody in particular.
fn tell_of_all<M: Machine, G: ReclaimGround<M>>(door: ReclaimDoor<'_, M, G>, looked: u32) {
    let untold = &door.own().untold_of_all;
    if untold.fetch_add(looked, Relaxed).saturating_add(looked) >= WINDOW {
        untold.store(0, Relaxed);
        door.machine().wake(Daemon::PressureWorker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::{Order, ZoneKind};
    use crate::lru::WalkedTables;
    use crate::mm::Mm;
    use crate::reclaim::Reclaimer;
    use crate::{Bare, Knob, Knobs, Policy, Topology};

    fn machine(policy: &str) -> Mm<Bare> {
        let topology = Topology::one_node(&[ZoneKind::Dma32, ZoneKind::Normal], 4096, 1);
        let knobs = Knobs::default();
        knobs.set(Knob::LruGenEnabled, 7).unwrap();
        Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), knobs).unwrap()
    }

    /// Whether tables of a program that was walked just now are walked again after `what`.
    fn walked_after(policy: &str, what: impl Fn(ReclaimDoor<'_, Bare, Mm<Bare>>, &mut Scan)) -> bool {
        let mm = machine(policy);
        let door = ReclaimDoor::on(&mm);
        let vec = mm.lru().vec_of_zone(&mm.zones()[0]);
        assert_eq!(door.generations().begins_with(vec, &[1]), [Some(WalkedTables::All)]);
        let mut scan = Scan::new(Reclaimer::Direct, Order::ZERO, ZoneKind::Movable);
        what(door, &mut scan);
        door.generations().begins_with(vec, &[1]) == [Some(WalkedTables::Dense)]
    }

    #[test]
    fn a_worker_has_the_cpu_once_a_window_was_looked_at() {
        assert!(!walked_after("linux-6.12", |door, scan| tell(door, scan, WINDOW - 1)));
        let in_two = |door: ReclaimDoor<'_, Bare, Mm<Bare>>, scan: &mut Scan| {
            tell(door, scan, WINDOW - 1);
            tell(door, scan, 1);
        };
        assert!(walked_after("linux-6.12", in_two));
        assert!(!walked_after("linux-6.18", in_two), "it has to wait");
    }

    #[test]
    fn a_worker_is_woken_for_each_window_of_the_machine() {
        let mm = machine("linux-6.18");
        let door = ReclaimDoor::on(&mm);
        let scan = Scan::new(Reclaimer::Kswapd, Order::ZERO, ZoneKind::Movable);
        let woken_after = |looked| {
            tell(door, &scan, looked);
            mm.machine().take_woken()
        };
        assert_eq!(woken_after(WINDOW - 1), []);
        assert_eq!(woken_after(1), [Daemon::PressureWorker]);
        assert_eq!(woken_after(1), []);
    }

    #[test]
    fn a_worker_is_woken_at_each_of_the_last_priorities() {
        let at = |priority| {
            move |door: ReclaimDoor<'_, Bare, Mm<Bare>>, scan: &mut Scan| {
                scan.priority = priority;
                tell_of_priority(door, scan);
            }
        };
        assert!(!walked_after("linux-6.12", at(CRITICAL + 1)));
        assert!(walked_after("linux-6.12", at(CRITICAL)));
    }
}
