//! Anonymous pages of several frames that entries map one by one, of 16 to 1,024 KiB (mTHP, since 6.8): who may have which, the fault that
//! maps one (`alloc_anon_folio`), and what is counted by size (docs/rules/huge-pages.md#sizes).
//!
//! Such a page is a huge one that was mapped in parts from the beginning: its entries are parts ([`Entry::part_of`]), each a reference to
//! the first frame's, and whatever splits, moves, shares or unmaps those serves these too.

use super::counters::PageKind;
use super::entry::{Entry, bit};
use super::fault::{FaultKind, Faulted, Site, VmEvents};
use super::region::Region;
use super::swap::LargeSwap;
use super::table::Held;
use super::{Backing, FaultDoor, SpacesDoor, SpacesGround, Touch, Vpn};
use crate::ground::ids::{Order, Pfn};
use crate::ground::machine::{Access, Line, LineKind, Machine};
use crate::ground::sync::{AtomicU64, Relaxed};
use crate::lru::page::{Mapping, PageFlag};
use crate::pages::stat::{Counters, SlowEvents};
use crate::rules::knobs::Knob;
use crate::vm::region::HugePages;

/// Values of `transparent_hugepage.enabled` and of the files of each size.
const ALWAYS: u64 = 1;
const MADVISE: u64 = 2;
/// Of a size's file: as `transparent_hugepage.enabled` says.
const INHERIT: u64 = 3;

/// A size: its order, the knob that says who may have it, and what is counted of it.
pub(super) struct Size {
    order: u8,
    knob: Knob,
    counters: [&'static str; EVENTS],
}

impl Size {
    pub(super) const fn order(&self) -> Order {
        Order::new(self.order).expect("it is smaller than a block")
    }
}

/// Events of a size, under the names of its `stats`.
#[derive(Clone, Copy)]
pub(super) enum SizeEvent {
    FaultAlloc,
    FaultFallback,
    Split,
    SplitDeferred,
    SwapOut,
    SwapOutFallback,
    SwapIn,
    SwapInFallback,
}

const EVENTS: usize = SizeEvent::SwapInFallback as usize + 1;

macro_rules! size {
    ($order:literal, $knob:ident, $name:literal) => {
        Size {
            order: $order,
            knob: Knob::$knob,
            counters: [
                concat!("hugepages-", $name, ".anon_fault_alloc"),
                concat!("hugepages-", $name, ".anon_fault_fallback"),
                concat!("hugepages-", $name, ".split"),
                concat!("hugepages-", $name, ".split_deferred"),
                concat!("hugepages-", $name, ".swpout"),
                concat!("hugepages-", $name, ".swpout_fallback"),
                concat!("hugepages-", $name, ".swpin"),
                concat!("hugepages-", $name, ".swpin_fallback"),
            ],
        }
    };
}

/// The largest first, as a fault tries them.
const SIZES: [Size; 7] = [
    size!(8, Hugepages1024kB, "1024kB"),
    size!(7, Hugepages512kB, "512kB"),
    size!(6, Hugepages256kB, "256kB"),
    size!(5, Hugepages128kB, "128kB"),
    size!(4, Hugepages64kB, "64kB"),
    size!(3, Hugepages32kB, "32kB"),
    size!(2, Hugepages16kB, "16kB"),
];

/// What happened to pages of each size.
#[derive(Debug, Default)]
pub(super) struct SizeEvents([[AtomicU64; EVENTS]; SIZES.len()]);

impl SizeEvents {
    fn bump(&self, order: Order, event: SizeEvent) {
        if let Some(place) = SIZES.iter().position(|size| size.order == order.get()) {
            SlowEvents::bump(&self.0[place][event as usize]);
        }
    }

    /// Adds what was counted to `counters`.
    pub(super) fn report(&self, counters: &mut Counters) {
        for (size, counts) in SIZES.iter().zip(&self.0) {
            for (name, count) in size.counters.iter().zip(counts) {
                let count = count.load(Relaxed);
                if count > 0 {
                    counters.add(name, count);
                }
            }
        }
    }
}

impl VmEvents {
    /// A page of `order` was split.
    pub(super) fn split(&self, order: Order) {
        match order {
            Order::PAGEBLOCK => SlowEvents::bump(&self.thp_split_page),
            _ => self.sizes.bump(order, SizeEvent::Split),
        }
    }

    /// A page of `order` was swapped out.
    pub(super) fn swapped_large(&self, order: Order, what: LargeSwap) {
        let (huge, of_size) = match what {
            LargeSwap::Whole => (&self.thp_swpout, SizeEvent::SwapOut),
            LargeSwap::Split => (&self.thp_swpout_fallback, SizeEvent::SwapOutFallback),
        };
        match order {
            Order::ZERO => {}
            Order::PAGEBLOCK => SlowEvents::bump(huge),
            _ => self.sizes.bump(order, of_size),
        }
    }

    /// One is to be, some time.
    pub(super) fn split_deferred(&self, order: Order) {
        match order {
            Order::PAGEBLOCK => SlowEvents::bump(&self.thp_deferred_split_page),
            _ => self.sizes.bump(order, SizeEvent::SplitDeferred),
        }
    }
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// Whether pages of `region` may be huge.
    pub(super) fn may_be_huge(self, region: &Region<M>) -> bool {
        matches!(region.backing, Backing::Anonymous) && self.faults().may_be_of(region, Knob::Hugepages2048kB)
    }
}

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// Whether anonymous pages of `region` may be of the size that `knob` is about.
    fn may_be_of(self, region: &Region<M>, knob: Knob) -> bool {
        let allows = |of_size: u64, of_all: u64| match (
            if of_size == INHERIT { of_all } else { of_size },
            region.huge,
        ) {
            (ALWAYS, HugePages::AsConfigured) | (ALWAYS | MADVISE, HugePages::Advised) => true,
            (_, HugePages::AsConfigured | HugePages::Advised | HugePages::Never) => false,
        };
        let [of_size, of_all] = [knob, Knob::TransparentHugepage].map(|knob| self.knobs().get(knob));
        let all = Knob::TransparentHugepage;
        if of_size == INHERIT {
            self.knobs().decide(self.machine(), all, |of_all| allows(of_size, of_all));
        }
        self.knobs().decide(self.machine(), knob, |of_size| allows(of_size, of_all))
    }

    /// The sizes that anonymous pages of `region` may have, the largest first.
    pub(super) fn sizes_of(self, region: &Region<M>) -> impl Iterator<Item = &'static Size> {
        SIZES.iter().filter(move |size| self.may_be_of(region, size.knob))
    }

    /// Maps the largest page that the region may have at `site` and whose place is empty, if there is one. `None`: a single page
    /// it is to be.
    pub(super) fn fault_large(self, site: &Site<'_, M>) -> Option<Faulted> {
        self.sizes_of(&site.region).find_map(|size| self.install_large(site, size.order()))
    }

    fn install_large(self, site: &Site<'_, M>, order: Order) -> Option<Faulted> {
        let place = LargePlace::around(site, order)?;
        if !place.is_empty(&site.table.lock(self.machine())) {
            return None;
        }
        let Ok(pfn) = self.alloc_huge(site, order) else {
            self.count_size(order, SizeEvent::FaultFallback);
            return None;
        };
        self.make_large(site, pfn, place);
        let held = site.lock(self.machine(), Entry::NONE).filter(|held| place.is_empty(held));
        let Some(mut held) = held else {
            self.lru().put_page(pfn);
            return None;
        };
        self.map_parts(site, &mut held, (pfn, place));
        self.count_size(order, SizeEvent::FaultAlloc);
        if site.region.locked {
            self.unevictable().mlock_new(pfn);
        }
        // The lock is held to the end, as for a single page.
        self.lru().lru_add_by(pfn, site.by());
        Some(Faulted { pfn: place.part(site, pfn), kind: FaultKind::Minor, reads: 0 })
    }

    /// The block at `pfn` becomes a page of `site`'s own at `place`, that nothing is known of.
    pub(super) fn make_large(self, site: &Site<'_, M>, pfn: Pfn, place: LargePlace) {
        let (page, index) = (self.lru().page(pfn), site.region.anon_index(place.first));
        page.init(Mapping::Anon(site.space.family), index, &[PageFlag::SwapBacked]);
        page.note_placement(site.region.placement);
    }

    /// Maps the page at `pfn`, to which the caller has one reference, at `place`.
    pub(super) fn map_parts(
        self,
        site: &Site<'_, M>,
        held: &mut Held<'_, M>,
        (pfn, place): (Pfn, LargePlace),
    ) {
        let page = self.lru().page(pfn);
        let write = if site.region.protection.allows(Touch::Write) { bit::WRITE } else { 0 };
        let bits = write | bit::ACCESSED | bit::DIRTY | bit::EXCLUSIVE;
        for part in 0..place.order.pages() {
            if part > 0 {
                page.get();
                // Each frame's descriptor says that it is the process's own.
                self.machine().touch(Line { kind: LineKind::Frame, index: pfn.0 + part }, Access::Write);
            }
            page.add_mapped();
            held.set(place.first.add(part), Entry::of(pfn.add(part), bits).part_of(place.order));
        }
        let node = self.pages().node_of_page(pfn);
        site.space.stat.count_pages(PageKind::Anon, node, i64::from(place.order.pages()));
    }

    pub(super) fn count_size(self, order: Order, event: SizeEvent) {
        self.own().events.sizes.bump(order, event);
    }
}

/// Where a large page lies in an address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LargePlace {
    pub(super) first: Vpn,
    pub(super) order: Order,
}

impl LargePlace {
    /// Where one of `order` with the page of `site` in it would lie, if that is within its region.
    pub(super) fn around<M: Machine>(site: &Site<'_, M>, order: Order) -> Option<Self> {
        let first = Vpn(site.vpn.0 >> order.get() << order.get());
        let is_within = site.region.start <= first && first.add(order.pages()) <= site.region.end;
        is_within.then_some(Self { first, order })
    }

    /// Whether the table, which is held, has nothing there.
    fn is_empty<M: Machine>(self, held: &Held<'_, M>) -> bool {
        let is_empty = |part: u32| held.entry(self.first.add(part)) == Entry::NONE;
        held.huge() == Entry::NONE && (0..self.order.pages()).all(is_empty)
    }

    /// The frame that `site` is about, of the page here at `pfn`.
    pub(super) fn part<M: Machine>(self, site: &Site<'_, M>, pfn: Pfn) -> Pfn {
        pfn.add(site.vpn.0 - self.first.0)
    }
}
