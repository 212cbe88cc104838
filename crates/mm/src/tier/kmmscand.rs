//! kmmscand, the daemon of docs/published.md#raghavendra-2024: scans address spaces in turn, whole areas from where the
//! last scan ended, and wants the pages of slow nodes that it finds hot. What a scan is worth decides when the next one
//! comes and how far it goes ([`Slot`]).
//!
//! Because a scan's size is looked at only behind an area, one large area makes it inert; and where a scan of V0 has found
//! more than 100 useful pages when it has its size, it goes on to the end of the address space. Both are the post's.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::feedback::Feedback;
use super::ground::{Area, Ground, Seen};
use super::list::WantedPage;
use super::slot::Slot;
use crate::ground::{Nanos, Node, SpaceId, Vpn};
use crate::rules::knobs::{Knob, KnobUse};
use crate::rules::revision::{Revision, TargetRule};

/// The scanning half of the daemon.
#[derive(Debug)]
pub struct Kmmscand {
    revision: Revision,
    slots: VecDeque<Slot>,
    /// Knobs that are watched, with the revision as it is with their defaults.
    watched: Vec<(Knob, Revision)>,
}

impl Kmmscand {
    /// The daemon of `revision`, without any address space.
    pub fn new(revision: Revision) -> Self {
        Self::watching(revision, Vec::new())
    }

    /// The same; tells the ground whether each of the knobs decided otherwise than its default, with which the daemon would
    /// be of the revision beside it.
    pub fn watching(revision: Revision, watched: Vec<(Knob, Revision)>) -> Self {
        Self { revision, slots: VecDeque::new(), watched }
    }

    /// What it is.
    pub fn revision(&self) -> &Revision {
        &self.revision
    }

    /// `space` is born.
    pub fn enter(&mut self, space: SpaceId, ground: &impl Ground) {
        let new = |revision: &Revision| Slot::new(space, revision, ground.now(), ground.nodes());
        let by_default = self.watched.iter().map(|(_, revision)| new(revision)).collect();
        self.slots.push_back(Slot { by_default, ..new(&self.revision) });
    }

    /// What it keeps of `space`.
    pub fn slot(&mut self, space: SpaceId) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.space == space)
    }

    /// A cycle over the address spaces whose time has come: what is hot is told to `want`. Gives the pause until the next.
    pub fn cycle(
        &mut self,
        ground: &impl Ground,
        feedback: impl Fn() -> Feedback,
        want: &mut impl FnMut(WantedPage),
    ) -> Nanos {
        for _ in 0..self.slots.len().min(self.revision.spaces_max) {
            let Some(mut slot) = self.slots.pop_front() else { break };
            if !ground.is_alive(slot.space) {
                continue;
            }
            let is_due = slot.scalar > 0 && ground.now() >= slot.next;
            self.watch(&slot, ground, |slot| slot.scalar > 0 && ground.now() >= slot.next);
            if is_due && ground.may_look(slot.space) {
                let useful = self.scan(&mut slot, ground, want);
                let (now, feedback) = (ground.now(), feedback());
                slot.scanned(useful, now, &self.revision, &feedback);
                for (other, (_, revision)) in slot.by_default.iter_mut().zip(&self.watched) {
                    other.scanned(useful, now, revision, &feedback);
                }
            }
            self.slots.push_back(slot);
        }
        self.revision.pause
    }

    /// Tells the ground what each watched knob's default would have decided.
    fn watch<D: PartialEq>(&self, slot: &Slot, ground: &impl Ground, decision: impl Fn(&Slot) -> D) {
        for (other, (knob, _)) in slot.by_default.iter().zip(&self.watched) {
            ground.knob_used(*knob, KnobUse::of(&decision(slot), &decision(other)));
        }
    }

    /// Scans as much of an address space as its slot says; gives the useful pages: those of slow nodes that were accessed.
    fn scan(&self, slot: &mut Slot, ground: &impl Ground, want: &mut impl FnMut(WantedPage)) -> u64 {
        let (mut scanned, mut useful) = (0, 0);
        slot.accessed.fill(0);
        loop {
            let Some(area) = ground.area(slot.space, slot.address) else {
                slot.address = Vpn(0);
                break;
            };
            useful += self.look(slot, area, ground, want);
            slot.address = area.range.end;
            scanned += area.range.bytes();
            // What V0 does there is to raise the size for this scan, and to ask the same again behind the next area.
            let goes_on = self.revision.goes_on_above.is_some_and(|above| useful > above);
            if scanned >= slot.size && !goes_on {
                break;
            }
        }
        // A scan that one of two sizes ended would have been another with the other.
        let size = slot.size;
        self.watch(slot, ground, |other| other.size != size && scanned >= other.size.min(size));
        slot.note_target(ground);
        useful
    }

    fn look(
        &self,
        slot: &mut Slot,
        area: Area,
        ground: &impl Ground,
        want: &mut impl FnMut(WantedPage),
    ) -> u64 {
        if !area.is_scanned {
            return 0;
        }
        let target = self.target(slot, ground);
        let mut useful = 0;
        ground.look(slot.space, area.range, |seen: Seen| {
            if ground.is_fast(seen.node) {
                slot.accessed[usize::from(seen.node.0)] += u64::from(seen.accessed);
                return;
            }
            useful += u64::from(seen.accessed) * u64::from(seen.pages);
            if slot.hot.is_hot(seen) {
                want(WantedPage { space: slot.space, vpn: seen.vpn, node: target });
            }
        });
        useful
    }

    /// Where this scan's hot pages go.
    fn target(&self, slot: &Slot, ground: &impl Ground) -> Node {
        let preferred = match self.revision.target {
            TargetRule::NodeZero => return Node(0),
            TargetRule::MostAccessed | TargetRule::WithFallback => {
                slot.target.or_else(|| fast(ground).next()).unwrap_or(Node(0))
            }
        };
        if self.revision.target == TargetRule::MostAccessed || ground.has_room(preferred, 1) {
            return preferred;
        }
        fast(ground).find(|&node| ground.has_room(node, 1)).unwrap_or(preferred)
    }
}

/// The nodes of the fast tier.
pub(super) fn fast(ground: &impl Ground) -> impl Iterator<Item = Node> {
    (0..ground.nodes()).map(Node).filter(|&node| ground.is_fast(node))
}
