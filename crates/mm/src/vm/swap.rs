//! Swap slots: how many there are and who refers to each. What is swapped out is counted and nothing more; its contents
//! are gone, so only a machine whose memory has no contents may have any (the simulated one). What writing and reading a page
//! costs is the machine's to say ([`Machine::swap_io`]).
//!
//! On zram, pages that are swapped out stay in memory, compressed: [`SwapDoor`] takes frames for them and gives them back, all filled
//! to the last byte (zsmalloc loses some). These frames are charged to nobody, as in the kernel.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::slots::Slots;
use super::swap_cluster::Reads;
use super::swap_queue::Queue;
use super::zswap_pool::{Stored, ZswapPool};
use super::{SpacesDoor, SpacesGround, SwapDoor};
use crate::cache::{InSlot, SlotOf, SlotsAround};
use crate::ground::ids::{Order, Pfn};
use crate::ground::machine::{LockClass, Machine, SwapIo};
use crate::ground::sync::{AtomicU32, Guard, Locked, Relaxed};
use crate::lru::page::PageFlag;
use crate::lru::{Came, Shadow, VecEvent};
use crate::memcg::{GroupEvent, GroupId};
use crate::pages::request::{Request, Urgency};
use crate::pages::stat::SlowEvents;
use crate::rules::knobs::Knob;
use crate::rules::policy::{SharedSwapInRule, SwapZeroRule, SynchronousSwapInRule};

/// What swap is on, as far as memory goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SwapDevice {
    /// Something that takes no memory, and has no queue to wait in, as an NVDIMM (`SWP_SYNCHRONOUS_IO`).
    #[default]
    Synchronous,
    /// A disk.
    Disk {
        /// So many requests to write may be on their way before who writes waits: 16 as a disk comes to the kernel (`wbt`), up to three quarters
        /// of its queue later.
        writes: u32,
    },
    /// Compressed memory.
    Zram {
        /// So many hundredths of a page become one: 270 is 2.7, from 100.
        ratio_percent: u32,
    },
}

impl SwapDevice {
    /// A disk that keeps up, with the 256 requests in its queue that it has by default. (A virtio disk in use took 31 at once:
    /// measured on 6.18.)
    pub const DISK: Self = Self::Disk { writes: 192 };
    /// A disk as it comes to its kernel (traced: 6.12 to 7.2 in QEMU), and as one stays that takes longer for a read than `wbt` wants.
    pub const NEW_DISK: Self = Self::Disk { writes: 16 };

    /// Frames that so many swapped pages take.
    const fn frames(self, pages: u32) -> u32 {
        match self {
            Self::Synchronous | Self::Disk { .. } => 0,
            Self::Zram { ratio_percent } => (pages as u64 * 100).div_ceil(ratio_percent as u64) as u32,
        }
    }

    pub(super) const fn is_disk(self) -> bool {
        matches!(self, Self::Disk { .. })
    }

    /// Requests to write that may be on their way.
    pub(super) const fn writes(self) -> u32 {
        match self {
            Self::Disk { writes } => writes,
            Self::Synchronous | Self::Zram { .. } => u32::MAX,
        }
    }
}

/// The slots.
#[derive(Debug)]
pub(crate) struct Swap<M: Machine> {
    size: AtomicU32,
    /// 1 where it is on a disk.
    pub(super) on_disk: AtomicU32,
    /// 1 while a disk does not have all that it is to have.
    pub(super) waiting: AtomicU32,
    slots: Locked<M, Used>,
}

#[derive(Debug, Default)]
pub(super) struct Used {
    /// The slots in use.
    pub(super) taken: BTreeMap<u32, Slot>,
    /// By page, the slots that mapped pages keep.
    pub(super) kept: BTreeMap<u32, u32>,
    /// What a disk is asked.
    pub(super) queue: Queue,
    free: Slots,
    pub(super) device: SwapDevice,
    reads: Reads,
    /// Frames that hold what is compressed.
    pool: Vec<Pfn>,
    /// Slots in use whose pages are zeros.
    zeros: u32,
    /// Other slots in use whose contents are not on the device.
    pub(super) away: u32,
    pub(super) zswap: ZswapPool,
}

impl Used {
    /// Frames that are missing for what is in use.
    pub(super) fn missing(&self) -> u32 {
        self.needed().saturating_sub(self.pool.len() as u32)
    }

    /// Frames that what is in use takes; zeros take none (`zram_fill_page`).
    fn needed(&self) -> u32 {
        self.device.frames(self.taken.len() as u32 - self.zeros - self.away)
    }

    /// A frame that is not needed any more.
    pub(super) fn spare(&mut self) -> Option<Pfn> {
        let is_spare = self.pool.len() as u32 > self.needed();
        if is_spare { self.pool.pop() } else { None }
    }
}

/// A slot in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// Entries, and places in files, that refer to it.
    pub(super) refs: u32,
    /// Those who work with it meanwhile, as reclaim that is about to make such entries.
    pub(super) held: u32,
    /// The page that keeps it.
    pub(super) kept: Option<Pfn>,
    /// Whose it is: what its page was charged to.
    pub(super) group: GroupId,
    /// When its page was evicted.
    shadow: Option<Shadow>,
    /// Where in which file it belongs, if it is a file's.
    pub(super) place: Option<SlotOf>,
    /// Where it is in memory too, if private memory of it was read, or is wanted by others, and nobody maps that.
    pub(super) beside: Option<Pfn>,
    /// Whether its page is all zeros.
    pub(super) zeros: bool,
    /// Where its contents are.
    pub(super) stored: Stored,
    /// Whether that is all that is known of it (`zeromap`): nothing was written.
    unwritten: bool,
}

/// What the device has of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OnDevice {
    /// What it holds.
    Written,
    /// Nothing, for it is all zeros.
    Zeros,
    /// Nothing, for it is in zswap.
    Zswap,
}

/// What becomes of a large page that goes to swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LargeSwap {
    /// It goes in one piece (`swpout`).
    Whole,
    /// There are not as many slots in a row: it is split (`swpout_fallback`).
    Split,
}

/// What is known of a slot besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Swapped {
    pub(super) group: GroupId,
    pub(super) came: Came,
    pub(super) device: OnDevice,
    pub(super) read: SlotRead,
}

/// How a fault gets at what is in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotRead {
    /// It reads that alone, and has it for itself.
    Alone,
    /// It reads that alone, and others who have the slot find it.
    ForAll,
    /// It reads more with it.
    WithOthers,
    /// It is in memory already, and nobody has come to it yet.
    Beside,
    /// It is in memory already, and mapped by others.
    Kept,
}

impl Slot {
    /// How a fault gets at what is in it, on `device` (`do_swap_page`).
    fn read(&self, device: SwapDevice, rule: SynchronousSwapInRule) -> SlotRead {
        match rule {
            _ if self.kept.is_some() => SlotRead::Kept,
            _ if self.beside.is_some() => SlotRead::Beside,
            _ if device.is_disk() => SlotRead::WithOthers,
            SynchronousSwapInRule::AsFromDisk => SlotRead::WithOthers,
            _ if self.refs == 1 => SlotRead::Alone,
            SynchronousSwapInRule::AloneForOne => SlotRead::WithOthers,
            SynchronousSwapInRule::Alone => SlotRead::ForAll,
        }
    }
}

impl<M: Machine> Swap<M> {
    pub(super) fn new(machine: &M) -> Self {
        let slots = Locked::new(machine, LockClass::Other, 3, Used::default());
        Self { size: AtomicU32::new(0), on_disk: AtomicU32::new(0), waiting: AtomicU32::new(0), slots }
    }

    /// Slots in all.
    pub(crate) fn size(&self) -> u32 {
        self.size.load(Relaxed)
    }

    /// Slots in use.
    pub(crate) fn used(&self, machine: &M) -> u32 {
        self.slots.lock_local(machine).taken.len() as u32
    }
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// From now on there are `pages` of swap (`swapon`). Fewer than are in use means that no more are given out.
    pub fn set_swap(self, pages: u32) {
        self.own().swap.size.store(pages, Relaxed);
    }

    /// The same, and what it is on. Only while nothing is in swap.
    pub fn set_swap_on(self, device: SwapDevice, pages: u32) {
        let mut slots = self.swap().slots();
        debug_assert!(slots.taken.is_empty(), "what is swapped out would be elsewhere");
        slots.device = device;
        drop(slots);
        self.own().swap.on_disk.store(u32::from(device.is_disk()), Relaxed);
        self.set_swap(pages);
    }

    /// Frames that hold what is in compressed swap.
    pub fn swap_frames(self) -> u32 {
        self.swap().slots().pool.len() as u32
    }

    /// Pages of swap in use and in all.
    pub fn swap_pages(self) -> (u32, u32) {
        (self.own().swap.used(self.machine()), self.own().swap.size())
    }
}

impl<'a, M: Machine, G: SpacesGround<M>> SwapDoor<'a, M, G> {
    /// The slots, which are the caller's meanwhile.
    pub(super) fn slots(self) -> Guard<'a, M, Used> {
        self.own().swap.slots.lock_local(self.machine())
    }

    /// Free slots in a row for a page of `order` and `group`, each held by the caller; gives the first. `None`: there are none,
    /// there is no memory to compress into, or `group` may have no more.
    pub(crate) fn swap_slots(self, group: GroupId, order: Order) -> Option<u32> {
        let (mut slots, pages) = (self.slots(), order.pages());
        let (used, size) = (slots.taken.len() as u32, self.own().swap.size());
        let first = if used + pages <= size { slots.free.take(order, size) } else { None };
        let Some(first) = first else {
            let may_have_one = order == Order::ZERO && !slots.kept.is_empty();
            drop(slots);
            if may_have_one && self.take_one_back() {
                return self.swap_slots(group, order);
            }
            // A larger page is tried again in parts.
            if group != GroupId::ROOT && order == Order::ZERO {
                self.memcg().count(group, GroupEvent::SwapFail);
            }
            return None;
        };
        if group != GroupId::ROOT && !self.memcg().charge_swap(group, pages) {
            (first..first + pages).for_each(|slot| slots.free.give_back(slot));
            return None;
        }
        let slot = Slot {
            refs: 0,
            held: 1,
            kept: None,
            group,
            shadow: None,
            place: None,
            beside: None,
            zeros: false,
            stored: Stored::Device,
            unwritten: false,
        };
        slots.taken.extend((first..first + pages).map(|at| (at, slot)));
        let missing = slots.missing();
        drop(slots);
        if (0..missing).any(|_| !self.grow_pool()) {
            self.release_slots(first, order);
            return None;
        }
        Some(first)
    }

    /// The caller holds the slots from `first` on, that a page of `order` has, no more.
    pub(crate) fn release_slots(self, first: u32, order: Order) {
        (first..first + order.pages()).for_each(|slot| self.drop_slot(slot, |this| this.held -= 1));
    }

    /// Takes a frame to compress into; says whether there was one. Who reclaims may have the last page (`PF_MEMALLOC`) and never waits.
    pub(super) fn grow_pool(self) -> bool {
        let request = Request { urgency: Urgency::Reclaims, ..Request::HIGHUSER };
        let Ok(pfn) = self.alloc(request) else { return false };
        self.slots().pool.push(pfn);
        true
    }

    /// A page of `order` goes to the slots from `first` on, to zswap or else to the device: it was unmapped for that. Gives what each of its pages
    /// is counted as for its group.
    pub(crate) fn write_out(self, first: u32, order: Order) -> VecEvent {
        let at_once = self.store(first, order).or_else(|| self.leave_zeros(first, order));
        at_once.unwrap_or_else(|| self.write_now(order))
    }

    /// A page of `order` goes to the slots from `first` on if nothing need be written for that, because all of it is zeros. Gives what it is counted as
    /// then.
    pub(crate) fn leave_zeros(self, first: u32, order: Order) -> Option<VecEvent> {
        let all = first..first + order.pages();
        let is_noted = self.rules().reclaim.swap.zero == SwapZeroRule::Noted;
        let are_zeros = is_noted && {
            let mut slots = self.slots();
            let zeros = all.clone().all(|slot| slots.taken.get(&slot).is_some_and(|slot| slot.zeros));
            slots.taken.range_mut(all.clone()).for_each(|(_, slot)| slot.unwritten = zeros);
            zeros
        };
        are_zeros.then(|| {
            all.for_each(|_| SlowEvents::bump(&self.own().events.swpout_zero));
            self.count_large(order, LargeSwap::Whole);
            VecEvent::SwapOutZero
        })
    }

    /// A page of `order` is written.
    pub(crate) fn count_written(self, order: Order) -> VecEvent {
        (0..order.pages()).for_each(|_| SlowEvents::bump(&self.own().events.pswpout));
        self.count_large(order, LargeSwap::Whole);
        VecEvent::SwapOut
    }

    /// What is in `slot` is brought to memory, as `io` says of a device, which says when it is there.
    pub(crate) fn bring(self, slot: u32, io: SwapIo) {
        match self.swapped(slot).map(|slot| slot.device) {
            Some(OnDevice::Written) => {
                self.gather_read(slot);
                self.machine().swap_io(io);
            }
            Some(OnDevice::Zswap) => {
                self.machine().swap_io(SwapIo::Decompress);
            }
            Some(OnDevice::Zeros) | None => {}
        }
    }

    /// Whether swap is on a disk.
    pub(super) fn is_on_disk(self) -> bool {
        self.slots().device.is_disk()
    }

    /// A page of `order`, if that is a large one, went to swap, or finds no room there as it is.
    pub(crate) fn count_large(self, order: Order, what: LargeSwap) {
        self.own().events.swapped_large(order, what);
    }

    /// A page of `order` was split.
    pub(crate) fn count_large_split(self, order: Order) {
        self.own().events.split(order);
    }

    /// The page of `slot` is all zeros.
    pub(super) fn note_zeros(self, slot: u32) {
        let mut slots = self.slots();
        let written = slots.taken.get_mut(&slot).filter(|slot| slot.stored == Stored::Device && !slot.zeros);
        let Some(this) = written else { return };
        this.zeros = true;
        slots.zeros += 1;
        let spare = slots.spare();
        drop(slots);
        self.give_back(spare);
    }

    pub(super) fn give_back(self, spare: Option<Pfn>) {
        if let Some(pfn) = spare {
            self.pages().free(pfn, Order::ZERO).expect("it was taken for what is compressed");
        }
    }

    /// The page of `order` that is in the slots from `first` on left `shadow`.
    pub(crate) fn leave_shadow(self, first: u32, order: Order, shadow: Shadow) {
        let mut slots = self.slots();
        slots.taken.range_mut(first..first + order.pages()).for_each(|(_, slot)| slot.shadow = Some(shadow));
    }

    /// What is known of `slot`.
    pub(super) fn swapped(self, slot: u32) -> Option<Swapped> {
        let slots = self.slots();
        let this @ Slot { group, shadow, unwritten, stored, .. } = *slots.taken.get(&slot)?;
        let device = match stored {
            _ if unwritten => OnDevice::Zeros,
            Stored::Zswap { .. } => OnDevice::Zswap,
            Stored::Device | Stored::Nowhere => OnDevice::Written,
        };
        let read = this.read(slots.device, self.rules().reclaim.swap.synchronous_in);
        Some(Swapped { group, came: shadow.map_or(Came::New, Came::Back), device, read })
    }

    /// The same, of a page of a file in memory.
    pub(crate) fn of_file(self, slot: u32) -> Option<InSlot> {
        self.swapped(slot).map(|Swapped { group, came, .. }| InSlot { group, came })
    }

    /// Whether folios of shared memory come back in one piece: from a device without a queue, where nothing ever was in zswap.
    pub(crate) fn brings_folios(self) -> bool {
        self.rules().reclaim.swap.shared_in == SharedSwapInRule::Alone
            && !self.is_on_disk()
            && self.knobs().get(Knob::ZswapEnabled) == 0
    }

    /// What to read where `slot`, which a page of a file is in, is wanted.
    pub(crate) fn slots_around_shared(self, slot: u32) -> SlotsAround {
        if self.rules().reclaim.swap.shared_in == SharedSwapInRule::Cluster || self.is_on_disk() {
            return self.slots_around(slot);
        }
        let used = self.slots();
        let slots = used.taken.get(&slot).map(|this| (slot, this.place)).into_iter().collect();
        SlotsAround { slots, window: 1 }
    }

    /// The same of any slot.
    pub(super) fn slots_around(self, slot: u32) -> SlotsAround {
        let size = self.own().swap.size();
        let mut used = self.slots();
        let reads = used.reads;
        let pages =
            self.knobs().decide(self.machine(), Knob::PageCluster, |order| reads.pages_at(slot, order));
        let around = used.reads.cluster(slot, size + 1, pages);
        // What keeps a slot is in memory.
        let away = used.taken.range(around).filter(|(_, this)| this.kept.is_none());
        SlotsAround { slots: away.map(|(&slot, this)| (slot, this.place)).collect(), window: pages }
    }

    /// The page that goes to the slot is a file's.
    pub(crate) fn note_place(self, place: SlotOf) {
        if let Some(slot) = self.slots().taken.get_mut(&place.slot) {
            slot.place = Some(place);
        }
    }

    /// A page that was read ahead is wanted (`swap_ra_hit`).
    pub(crate) fn count_hit(self) {
        SlowEvents::bump(&self.own().events.swap_ra_hit);
    }

    /// The same, and it was read with the slots around.
    pub(crate) fn note_hit(self) {
        self.slots().reads.note_hit();
        self.count_hit();
    }

    /// What was in `slot` is at `pfn`: nobody who had it there refers to the slot any more.
    pub(crate) fn came_back(self, slot: u32, pfn: Pfn) {
        self.count_read(slot, pfn);
        self.swap_free(slot);
    }

    /// What is in `slot` was read to the page at `pfn`.
    pub(crate) fn count_read(self, slot: u32, pfn: Pfn) {
        let Some(Swapped { device, .. }) = self.swapped(slot) else { return };
        let of_group = match device {
            OnDevice::Written => VecEvent::SwapIn,
            OnDevice::Zeros => VecEvent::SwapInZero,
            OnDevice::Zswap => VecEvent::ZswapIn,
        };
        match device {
            OnDevice::Written => SlowEvents::bump(&self.own().events.pswpin),
            OnDevice::Zeros => SlowEvents::bump(&self.own().events.swpin_zero),
            // Counted by group alone.
            OnDevice::Zswap => {}
        }
        if self.lru().page(pfn).has(PageFlag::ReadAhead) {
            SlowEvents::bump(&self.own().events.swap_ra);
        }
        self.lru().count_of(pfn, of_group, 1);
        self.load(slot);
    }

    /// One more entry refers to `slot`.
    pub(crate) fn swap_get(self, slot: u32) {
        if let Some(slot) = self.slots().taken.get_mut(&slot) {
            slot.refs += 1;
        }
    }

    /// One reference to `slot` fewer; without any it is free.
    pub(crate) fn swap_free(self, slot: u32) {
        self.drop_slot(slot, |this| this.refs -= 1);
    }

    /// `change` takes something from `slot`; without anything it is free.
    fn drop_slot(self, slot: u32, change: fn(&mut Slot)) {
        let mut slots = self.slots();
        let Some(this) = slots.taken.get_mut(&slot) else { return };
        change(this);
        if this.refs > 0 || this.held > 0 || this.kept.is_some() {
            return;
        }
        if this.stored != Stored::Device {
            drop(slots);
            self.leave_zswap(slot);
            return self.drop_slot(slot, |_| {});
        }
        let Slot { group, zeros, beside, .. } = *this;
        slots.taken.remove(&slot);
        slots.zeros -= u32::from(zeros);
        slots.free.give_back(slot);
        let spare = slots.spare();
        drop(slots);
        self.give_back(spare);
        if let Some(pfn) = beside {
            self.lru().put_page(pfn);
        }
        if group != GroupId::ROOT {
            self.memcg().uncharge_swap(group);
        }
    }

    /// Whether `group` may have a slot more.
    pub(crate) fn has_swap(self, group: GroupId) -> bool {
        let (used, size) = self.spaces().swap_pages();
        used < size && self.memcg().has_swap_left(group, 1)
    }
}
