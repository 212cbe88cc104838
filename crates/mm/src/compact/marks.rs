//! What is remembered of pageblocks from one compaction to the next: marks of those that are to be passed over, and where the scanners
//! go on.

use super::control::{By, Control};
use super::{CompactGround, MarksDoor, Mode, ZoneCompact, block_of};
use crate::ground::{Machine, MigrateType, PAGEBLOCK_PAGES, Pfn, Relaxed};
use crate::pages::Zone;
use crate::rules::policy::{MarkRule, PcpDrainRule, PositionRule};

impl<M: Machine, G: CompactGround<M>> MarksDoor<'_, M, G> {
    /// Clears all that is remembered of the zone's blocks and positions (`__reset_isolation_suitable`).
    pub(super) fn forget_skipped(self, zone: &Zone<M>) {
        self.own().of(zone.id()).flush_skip.store(0, Relaxed);
        self.blocks().clear_skipped(self.machine(), zone.managed_span());
        self.own().of(zone.id()).reset_positions(zone.managed_span());
        self.own().of(zone.id()).first_free.store(super::last_block(&zone.managed_span()).0, Relaxed);
    }

    /// The page at `pfn` is about to be isolated in a scan from `from` on. If it is the scan's first, the pageblock is this compaction's from
    /// now on (`test_and_set_skip`). `false`: it is somebody else's already.
    pub(super) fn claim(self, control: &mut Control, from: Pfn, pfn: Pfn) -> bool {
        let is_first = !core::mem::replace(&mut control.met_pages, true);
        let begins = match self.rules().compact.mark {
            MarkRule::InVain => false,
            MarkRule::FirstClaimed => pfn == block_of(pfn).0,
            MarkRule::Claimed | MarkRule::ClaimedBelow => from == block_of(from).0,
        };
        if !is_first || !begins || control.ignores_skip() {
            return true;
        }
        if self.blocks().is_skipped(self.machine(), from) {
            return control.finish_block;
        }
        self.blocks().set_skipped(self.machine(), from);
        true
    }

    /// A stretch of a pageblock was looked at.
    pub(super) fn note_scanned(self, zone: &Zone<M>, control: &mut Control, (from, to): (Pfn, Pfn)) {
        if self.rules().compact.mark == MarkRule::InVain {
            return self.note_scanned_in_vain(zone, control, (from, to));
        }
        let (start, end) = block_of(from);
        if to == end && (control.isolated.is_empty() || control.finish_block) {
            if from == start && !control.met_pages {
                self.blocks().set_skipped(self.machine(), start);
            }
            self.own().of(zone.id()).go_on_behind(control.goal.mode, to);
        }
    }

    /// A pageblock was passed by.
    pub(super) fn note_passed(self, zone: &Zone<M>, control: &mut Control, (start, end): (Pfn, Pfn)) {
        if self.rules().compact.mark == MarkRule::InVain {
            self.note_passed_in_vain(zone, control, (start, end));
        } else if control.ignores_skip() || !self.blocks().is_skipped(self.machine(), start) {
            self.own().of(zone.id()).go_on_behind(control.goal.mode, end);
        }
    }

    /// The free scanner looked at all of the pageblock at `start`.
    pub(super) fn note_looked_at(self, zone: &Zone<M>, start: Pfn, found: bool) {
        let rules = &self.rules().compact;
        match rules.mark {
            MarkRule::InVain if found => return,
            MarkRule::InVain => {}
            MarkRule::FirstClaimed | MarkRule::Claimed => self.own().of(zone.id()).fill_up_to(start),
            MarkRule::ClaimedBelow => {
                self.own().of(zone.id()).fill_up_to(Pfn(start.0.saturating_sub(PAGEBLOCK_PAGES)));
            }
        }
        self.blocks().set_skipped(self.machine(), start);
    }

    /// A compaction is over, and its frames are back.
    pub(super) fn note_end(self, zone: &Zone<M>, control: &Control) {
        if self.rules().compact.mark != MarkRule::InVain || control.have_met() {
            return;
        }
        let back = control.free_pfn.0.min(super::last_block(&zone.managed_span()).0);
        self.own().of(zone.id()).free.store(back, Relaxed);
    }

    /// A stretch of a pageblock was looked at: where nothing was found in all of it, it is skipped from now on; the
    /// remembered position follows.
    fn note_scanned_in_vain(self, zone: &Zone<M>, control: &mut Control, (from, to): (Pfn, Pfn)) {
        let rules = &self.rules().compact;
        let (start, end) = block_of(from);
        let nothing = control.isolated.is_empty();
        let done_with = from == start && nothing || control.finish_block;
        if to == end && done_with && control.goal.by != By::Hand {
            self.blocks().set_skipped(self.machine(), start);
        }
        let follows = match rules.pcp_drain {
            PcpDrainRule::EachBlock => to == end,
            // Only as long as there was nothing to move.
            PcpDrainRule::AtEnd => {
                control.positions_fixed |= !nothing;
                to == end && !control.positions_fixed
            }
        };
        if !follows {
            return;
        }
        let sets: &[usize] = match (rules.position, control.goal.mode) {
            (PositionRule::PerMode, Mode::Async) => &[0],
            _ => &[0, 1],
        };
        for &mode in sets {
            self.own().of(zone.id()).migrate[mode].fetch_max(to.0, Relaxed);
        }
    }

    /// A pageblock was passed by. Before 3.19 the remembered position follows where that was for its skip bit; where it was for
    /// its type, which other modes may not mind, only that of asynchronous compaction does, if it has one of its own.
    fn note_passed_in_vain(self, zone: &Zone<M>, control: &mut Control, (start, end): (Pfn, Pfn)) {
        let rules = &self.rules().compact;
        if rules.pcp_drain == PcpDrainRule::EachBlock || control.positions_fixed {
            return;
        }
        let own = rules.position == PositionRule::PerMode && control.goal.mode == Mode::Async;
        if own {
            self.own().of(zone.id()).migrate[Mode::Async as usize].fetch_max(end.0, Relaxed);
        } else if self.blocks().is_skipped(self.machine(), start)
            || self.blocks().get(start) == MigrateType::Movable
        {
            self.own()
                .of(zone.id())
                .migrate
                .iter()
                .for_each(|position| _ = position.fetch_max(end.0, Relaxed));
        } else {
            control.positions_fixed = true;
        }
    }
}

impl ZoneCompact {
    /// The migrate scanner is through with a block that ends at `to`: it goes on behind the next one (since 5.1: the kernel takes `to`
    /// for a page of the block that is done with).
    fn go_on_behind(&self, mode: Mode, to: Pfn) {
        let next = block_of(to).1;
        let positions = if mode == Mode::Async { &self.migrate[..1] } else { &self.migrate[..] };
        for position in positions {
            position.fetch_max(next.0, Relaxed);
        }
    }

    /// The free scanner goes on at `pfn`, or where it would anyhow if that is below.
    fn fill_up_to(&self, pfn: Pfn) {
        self.free.fetch_min(pfn.0, Relaxed);
    }

    /// A search of free lists saw no piece above the pageblock `highest`.
    pub(super) fn stay_below(&self, highest: Pfn) {
        if highest > Pfn(0) && highest.0 >= self.free.load(Relaxed) {
            self.free.store(highest.0.saturating_sub(PAGEBLOCK_PAGES), Relaxed);
        }
    }

    /// Frames that were not needed came back, the highest of them in the pageblock at `start`: the free scanner goes on there, if that is
    /// above where it would.
    pub(super) fn come_back_to(&self, start: Pfn) {
        self.free.fetch_max(start.0, Relaxed);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::compact::control::{CompactGoal, Effort};
    use crate::ground::Order;
    use crate::mm::Mm;
    use crate::pages::Level;
    use crate::{Bare, Knobs, NodeSize, Policy, Topology, ZoneKind};

    /// What is left when a scan of a pageblock from its beginning has isolated the page `offset` pages on.
    fn is_marked(policy: &str, offset: u32) -> bool {
        let nodes = [NodeSize { bytes: 256 << 20, cpus: 1 }];
        let topology = Topology::x86(&nodes, 1 << 20, alloc::vec![alloc::vec![10]]).unwrap();
        let mm =
            Mm::new(Bare::default(), topology, Policy::parse(policy).unwrap(), Knobs::default()).unwrap();
        let zone = &mm.zones()[1];
        let start = block_of(Pfn(zone.managed_span().start + PAGEBLOCK_PAGES)).0;
        let goal = CompactGoal {
            by: By::Direct,
            mode: Mode::Async,
            effort: Effort::Usual,
            order: Some(Order::PAGEBLOCK),
            migratetype: MigrateType::Movable,
            highest: ZoneKind::Dma32,
            mark: Level::default(),
        };
        let mut control = Control::new(goal, zone.id(), (start, start));
        let marks = mm.compaction().marks();
        assert!(marks.claim(&mut control, start, start.add(offset)), "it is nobody's");
        let marked = marks.blocks().is_skipped(marks.machine(), start);
        assert!(marks.claim(&mut control, start, start.add(offset + 1)), "it is ours");
        control.met_pages = false;
        assert_eq!(
            marks.claim(&mut control, start, start.add(offset)),
            !marked,
            "{policy}: it is somebody's"
        );
        marked
    }

    #[test]
    fn a_block_is_claimed_by_its_first_page_and_later_by_any() {
        let marked = |policy: &str| [0, 1].map(|offset| is_marked(policy, offset));
        assert_eq!(marked("linux-5.0"), [false, false]);
        assert_eq!(marked("linux-5.1"), [true, false]);
        assert_eq!(marked("linux-6.4"), [true, false]);
        assert_eq!(marked("linux-6.5"), [true, true]);
        assert_eq!(marked("linux-6.18"), [true, true]);
    }
}
