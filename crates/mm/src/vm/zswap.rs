//! zswap: what goes to swap is compressed and stays in memory as long as there is room in its pool, and nothing is written (mm/zswap.c).
//! What does not fit goes to the device behind it, and so does, one by one, what has been there for longest.
//!
//! ```text
//!   reclaim ─▶ store ──full──▶ the device ◀── write_back ◀── shrink: the group's oldest that was not spared once
//!                │                                             ▲
//!                └─▶ by group, in the order in which they came ┘──▶ load: out of the pool; to be stored again when it goes
//! ```
//!
//! All pages become as much smaller as is said; of its frames the pool uses all bytes (zsmalloc loses some). Lists are of groups here, in
//! kernels of groups and nodes, and up to 6.7 one for all. A page that is written back is in memory meanwhile, and here takes no frame.

use alloc::format;
use alloc::string::String;

use super::swap::{OnDevice, Used};
use super::zswap_pool::{Part, Stored};
use super::{SpacesGround, SwapDoor};
use crate::ground::ids::Order;
use crate::ground::machine::{Chore, Daemon, Machine, SwapIo};
use crate::ground::sync::Guard;
use crate::lru::{VecEvent, VecId};
use crate::memcg::GroupId;
use crate::pages::request::{Request, Urgency};
use crate::rules::knobs::Knob;
use crate::rules::policy::{SwapZeroRule, ZswapChargeRule, ZswapLargeRule, ZswapLoadRule, ZswapSpareRule};

/// What came of coming to a group's oldest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shrunk {
    /// There is none.
    Empty,
    /// It went to the device.
    Written,
    /// It stays.
    Left,
}

/// So many failures end a run (`MAX_RECLAIM_RETRIES`).
const FAILURES_MAX: u32 = 16;

impl Used {
    /// What is in `slot` is where `stored` says from now on; gives its group, and what that is charged more.
    fn set_stored(&mut self, slot: u32, stored: Stored) -> Option<(GroupId, i64)> {
        let this = self.taken.get_mut(&slot).filter(|slot| slot.stored != stored)?;
        let before = core::mem::replace(&mut this.stored, stored);
        let part = Part { slot, group: this.group, pages: u32::from(!this.zeros) };
        let is_away = |stored: Stored| if stored == Stored::Device { 0 } else { part.pages };
        self.away = self.away - is_away(before) + is_away(stored);
        Some((part.group, self.zswap.change(part, (before, stored))))
    }

    /// What zswap has is what its slots say.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn check_zswap(&self) -> Result<(), String> {
        let (mut away, mut pages, mut listed) = (0, 0, 0);
        for (&slot, this) in &self.taken {
            let takes_room = u32::from(!this.zeros);
            away += if this.stored == Stored::Device { 0 } else { takes_room };
            let Stored::Zswap { turn, .. } = this.stored else { continue };
            (pages, listed) = (pages + takes_room, listed + 1);
            if self.zswap.slot_at(this.group, turn) != Some(slot) {
                return Err(format!("slot {slot} is in zswap, and not on the list of its group"));
            }
        }
        if self.away != away {
            return Err(format!("{} slots are counted as not on the device, but {away} are not", self.away));
        }
        self.zswap.check(pages, listed)
    }
}

impl<M: Machine, G: SpacesGround<M>> SwapDoor<'_, M, G> {
    /// In zswap pages become so many hundredths of one: 270 is 2.7 times smaller, from 100. 300 where nothing is said.
    pub fn set_zswap_ratio(self, ratio_percent: u32) {
        self.slots().zswap.set_ratio(ratio_percent);
    }

    /// Frames of zswap's pool, and pages that are there.
    pub fn zswap_pages(self) -> (u32, u32) {
        let used = self.slots();
        (used.zswap.frames(), used.zswap.slots())
    }

    /// A page of `order`, which was unmapped for that, goes to the slots from `first` on. Gives what it is counted as if zswap takes all of it; if
    /// not, it is for the device.
    pub(crate) fn store(self, first: u32, order: Order) -> Option<VecEvent> {
        let all = first..first + order.pages();
        let wanted = self.knobs().decide(self.machine(), Knob::ZswapEnabled, |is_on| is_on == 1);
        let takes = wanted
            && (order == Order::ZERO || self.rules().reclaim.swap.zswap_large == ZswapLargeRule::InParts);
        if !takes || self.are_noted_zeros(first, order) || self.is_zswap_full() {
            if self.slots().zswap.was_used() {
                self.move_all(all, |_| Stored::Device);
            }
            return None;
        }
        self.move_all(all.clone(), |next| Stored::Zswap { turn: next, spared: true });
        let missing = self.slots().zswap.missing();
        if (0..missing).any(|_| !self.grow_zswap()) {
            self.move_all(all, |_| Stored::Device);
            return None;
        }
        all.for_each(|_| {
            self.machine().swap_io(SwapIo::Compress);
        });
        Some(VecEvent::ZswapOut)
    }

    /// Whether nothing but that they are zeros is kept of the slots from `first` on.
    fn are_noted_zeros(self, first: u32, order: Order) -> bool {
        let used = self.slots();
        let mut all = used.taken.range(first..first + order.pages());
        self.rules().reclaim.swap.zero == SwapZeroRule::Noted && all.all(|(_, slot)| slot.zeros)
    }

    /// Whether the pool takes nothing now (`zswap_check_limits`); then it is to be shrunk.
    fn is_zswap_full(self) -> bool {
        let memory = self.spaces().managed_pages();
        let max = self.knobs().get(Knob::ZswapMaxPoolPercent) * memory / 100;
        let accepts = self.knobs().get(Knob::ZswapAcceptThresholdPercent);
        let mut used = self.slots();
        let (frames, was_full) = (u64::from(used.zswap.frames()), used.zswap.is_full);
        let fills = |max: u64, accepts: u64| frames >= max || was_full && frames > max * accepts / 100;
        let by_percent = |percent: u64| fills(percent * memory / 100, accepts);
        let is_full = self.knobs().decide(self.machine(), Knob::ZswapMaxPoolPercent, by_percent);
        self.knobs().decide(self.machine(), Knob::ZswapAcceptThresholdPercent, |accepts| fills(max, accepts));
        used.zswap.is_full = is_full;
        drop(used);
        if is_full {
            self.machine().wake(Daemon::ZswapShrinker);
        }
        is_full
    }

    /// What is in `slots` is where `to` says of each, of the number of the next in zswap.
    fn move_all(self, slots: core::ops::Range<u32>, to: impl Fn(u64) -> Stored) {
        slots.for_each(|slot| self.move_to(slot, &to));
    }

    fn move_to(self, slot: u32, to: impl Fn(u64) -> Stored) {
        self.move_held(self.slots(), slot, to);
    }

    /// The same by who has the slots already.
    fn move_held(self, mut used: Guard<'_, M, Used>, slot: u32, to: impl Fn(u64) -> Stored) {
        let turn = used.zswap.next_turn();
        let charge = used.set_stored(slot, to(turn));
        let spare = [used.zswap.spare(), used.spare()];
        drop(used);
        for spare in spare {
            self.give_back(spare);
        }
        let is_charged = self.rules().reclaim.swap.zswap_charge == ZswapChargeRule::Charged;
        let Some((group, more)) = charge.filter(|&(group, _)| is_charged && group != GroupId::ROOT) else {
            return;
        };
        match u32::try_from(more) {
            Ok(more) => self.memcg().charge_anyway(group, more),
            Err(_) => self.memcg().uncharge(group, more.unsigned_abs() as u32),
        }
    }

    fn grow_zswap(self) -> bool {
        let request = Request { urgency: Urgency::Reclaims, ..Request::HIGHUSER };
        let Ok(pfn) = self.alloc(request) else { return false };
        self.slots().zswap.add_frame(pfn);
        true
    }

    /// What is in `slot`, if that is in zswap, was read to memory, where it is alone from now on (`zswap_load`).
    pub(super) fn load(self, slot: u32) {
        let is_here = self.swapped(slot).is_some_and(|slot| slot.device == OnDevice::Zswap);
        if is_here && self.rules().reclaim.swap.zswap_load == ZswapLoadRule::Takes {
            self.move_to(slot, |_| Stored::Nowhere);
        }
    }

    /// `slot` is about to be free.
    pub(super) fn leave_zswap(self, slot: u32) {
        let is_device = self.slots().taken.get(&slot).is_none_or(|slot| slot.stored == Stored::Device);
        if !is_device {
            self.move_to(slot, |_| Stored::Device);
        }
    }

    /// Whether what is in `slot` is only in memory.
    pub(crate) fn is_nowhere(self, slot: u32) -> bool {
        self.slots().taken.get(&slot).is_some_and(|slot| slot.stored == Stored::Nowhere)
    }

    /// Writes to the device what has been in zswap for longest, until that accepts more, one page of each group in turn (`shrink_worker`).
    pub fn shrink_zswap(self) {
        let (mut failures, mut tried) = (0, false);
        while self.is_above_threshold() {
            let group = self.slots().zswap.next_group();
            let shrunk = group.map(|group| self.shrink_group(group));
            let fails = match shrunk {
                None => !core::mem::take(&mut tried),
                Some(Shrunk::Empty) => false,
                Some(shrunk) => {
                    tried = true;
                    shrunk == Shrunk::Left
                }
            };
            failures += u32::from(fails);
            if failures == FAILURES_MAX {
                return;
            }
        }
    }

    fn is_above_threshold(self) -> bool {
        let max = self.knobs().get(Knob::ZswapMaxPoolPercent) * self.spaces().managed_pages() / 100;
        let threshold = max * self.knobs().get(Knob::ZswapAcceptThresholdPercent) / 100;
        u64::from(self.slots().zswap.frames()) > threshold
    }

    /// Comes to the oldest of `group`.
    fn shrink_group(self, group: GroupId) -> Shrunk {
        self.machine().spend(Chore::ReclaimPage, 1);
        let used = self.slots();
        let Some(slot) = used.zswap.oldest(group) else { return Shrunk::Empty };
        let Some(this) = used.taken.get(&slot) else { return Shrunk::Empty };
        let is_spared = matches!(this.stored, Stored::Zswap { spared: true, .. })
            && self.rules().reclaim.swap.zswap_spare == ZswapSpareRule::Once;
        let is_in_memory = this.kept.is_some() || this.beside.is_some() || this.held > 0;
        if is_spared || is_in_memory {
            // To the end of the list.
            self.move_held(used, slot, |next| Stored::Zswap { turn: next, spared: false });
            return Shrunk::Left;
        }
        self.move_held(used, slot, |_| Stored::Device);
        self.write_back(group);
        Shrunk::Written
    }

    /// A page of `group` that was in zswap goes to the device.
    fn write_back(self, group: GroupId) {
        self.machine().swap_io(SwapIo::Decompress);
        let missing = self.slots().missing();
        (0..missing).for_each(|_| {
            self.grow_pool();
        });
        self.lru().count_in(VecId { group, place: 0 }, VecEvent::ZswapWritten, 1);
        self.write_now(Order::ZERO);
    }
}
