//! Zones by price (no kernel has this): node order, in which a low zone keeps as much free as those who have nowhere else
//! to go were seen to take, and in which a guest who could be elsewhere is one that can be asked to leave.
//!
//! A zone is low if some zone of the machine is of a higher kind (Movable, whose pages are anywhere, does not count). A
//! request is *bound* to it if it could be served by none of these. What bound requests take is counted; the reserve is twice
//! the most of any 10 ms, and falls by a 64th a vmstat tick. It stands in the zone's protection, where it exceeds Linux's
//! `lowmem_reserve`, so requests that are not bound leave it as they leave that, at no cost to the
//! fast path. Once there is a demand, guests that cannot be moved out again (requests that may not use Movable: the
//! kernel's own) leave half of the zone.
//!
//! `reclaim::guests` moves guests out when the reserve is short. A request that has found no zone above its low mark goes by
//! Linux's protection alone: the reserve delays nobody, and nobody runs out of memory for it.

use alloc::boxed::Box;

use crate::ground::{
    AtomicU32, AtomicU64, Cpu, Daemon, Machine, Nanos, Node, Relaxed, Topology, ZoneId, ZoneKind,
};
use crate::pages::request::Request;
use crate::pages::stat::Counters;
use crate::pages::watermark::{PROTECTION_COLUMNS, Watermarks};
use crate::pages::zone::{AllocFlags, Zone};
use crate::pages::{Above, Pages};
use crate::rules::policy::ZonePriceRule;

/// How long it may take until kswapd has moved guests out: it is told when half of the reserve is gone, and the other half is
/// for this time. (An estimate: it wakes within 10 µs and moves a page in about 5.)
const WINDOW: Nanos = Nanos(10_000_000);

/// The reserve falls by one in so many pages each tick: to a half in three quarters of a minute where a tick is a second.
const DECAY: u32 = 64;

/// The most that a reserve is: one in so many pages of its zone.
const MOST: u32 = 2;

/// How short of its reserve a zone is, as kswapd is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum Shortage {
    /// It is not, as far as is known.
    None,
    /// Guests are to be moved out.
    Told,
    /// That was tried and nothing came of it: until the next tick nobody asks again.
    Hopeless,
}

/// What bound requests on one CPU took.
#[derive(Debug, Default)]
struct Taken {
    /// When the present window began, in ns.
    since: AtomicU64,
    /// Pages since then.
    now: AtomicU32,
    /// The most of any window since the CPU's tick.
    most: AtomicU32,
}

impl Taken {
    fn count(&self, now: Nanos, pages: u32) {
        if now.0 - self.since.load(Relaxed).min(now.0) >= WINDOW.0 {
            self.since.store(now.0, Relaxed);
            self.now.store(0, Relaxed);
        }
        let taken = self.now.fetch_add(pages, Relaxed) + pages;
        self.most.fetch_max(taken, Relaxed);
    }

    /// A window ends at the tick in any case; gives the most of any.
    fn end(&self) -> u32 {
        self.now.store(0, Relaxed);
        self.most.swap(0, Relaxed)
    }
}

/// What is known of a low zone.
#[derive(Debug)]
pub(crate) struct LowZone {
    /// The next higher kind that the machine has: requests that may use it, or more, are not bound.
    next: ZoneKind,
    /// Linux's protection, in pages.
    linux: [AtomicU32; PROTECTION_COLUMNS],
    /// By CPU.
    taken: Box<[Taken]>,
    /// The sum of what CPUs took in their busiest windows since the reserve was last looked at.
    told: AtomicU32,
    /// The reserve, in pages.
    reserve: AtomicU32,
    shortage: AtomicU32,
    /// Where the search for guests goes on: pages from the zone's start.
    pub(in crate::pages) cursor: AtomicU32,
    /// Pages moved out so far.
    pub(in crate::pages) moved: AtomicU64,
}

impl LowZone {
    /// Where the search for guests goes on: pages from the zone's start.
    pub(crate) fn cursor(&self) -> u32 {
        self.cursor.load(Relaxed)
    }

    /// The search for guests goes on there.
    pub(crate) fn set_cursor(&self, page: u32) {
        self.cursor.store(page, Relaxed);
    }

    /// So many pages were moved out.
    pub(crate) fn count_moved(&self, pages: u64) {
        self.moved.fetch_add(pages, Relaxed);
    }

    /// What a zone of `kind` starts with: `None` if it is not low, or the policy makes no difference.
    pub(crate) fn new(topology: &Topology, rule: ZonePriceRule, kind: ZoneKind) -> Option<Self> {
        let kinds = topology.nodes.iter().flat_map(|node| &node.zones).map(|zone| zone.kind);
        let next = kinds.filter(|&other| other > kind && other != ZoneKind::Movable).min()?;
        (rule == ZonePriceRule::Learned).then(|| Self {
            next,
            linux: Default::default(),
            taken: (0..topology.cpus.len()).map(|_| Taken::default()).collect(),
            told: AtomicU32::new(0),
            reserve: AtomicU32::new(0),
            shortage: AtomicU32::new(Shortage::None as u32),
            cursor: AtomicU32::new(0),
            moved: AtomicU64::new(0),
        })
    }

    /// Whether requests that may use `highest` have no zone but low ones of this kind and below.
    pub(crate) fn binds(&self, highest: ZoneKind) -> bool {
        highest < self.next
    }

    fn fold(&self, cpu: Cpu) {
        let taken = self.taken[usize::from(cpu.0)].end();
        if taken > 0 {
            self.told.fetch_add(taken, Relaxed);
        }
    }

    /// An interval is over in a zone of `managed` pages; gives the reserve that follows.
    fn learn(&self, managed: u32) -> u32 {
        let (taken, before) = (self.told.swap(0, Relaxed), self.reserve.load(Relaxed));
        let reserve = taken.saturating_mul(2).max(before - before.div_ceil(DECAY)).min(managed / MOST);
        self.reserve.store(reserve, Relaxed);
        reserve
    }

    /// What the zone keeps, by column: Linux's, or more of late.
    fn protection(&self, managed: u32) -> [u32; PROTECTION_COLUMNS] {
        let reserve = self.reserve.load(Relaxed);
        core::array::from_fn(|column| {
            let linux = self.linux[column].load(Relaxed);
            if reserve == 0 || column < self.next.index() {
                linux
            } else if column < ZoneKind::Movable.index() {
                linux.max(managed / MOST)
            } else {
                linux.max(reserve)
            }
        })
    }

    fn set_shortage(&self, now: Shortage) {
        self.shortage.store(now as u32, Relaxed);
    }

    /// kswapd begins to move guests out, if it was told to.
    pub(crate) fn take_shortage(&self) -> bool {
        self.shortage.compare_exchange(Shortage::Told as u32, Shortage::None as u32, Relaxed, Relaxed).is_ok()
    }

    /// Nobody could be moved out.
    pub(crate) fn give_up(&self) {
        self.set_shortage(Shortage::Hopeless);
    }

    /// Whether bound requests were seen of late.
    pub(crate) fn has_demand(&self) -> bool {
        self.reserve.load(Relaxed) > 0
    }

    /// Whether that was so since the last tick.
    pub(crate) fn gave_up(&self) -> bool {
        self.shortage.load(Relaxed) == Shortage::Hopeless as u32
    }
}

impl<M: Machine> Zone<M> {
    /// Linux's protection is `pages` from now on.
    pub(crate) fn set_linux_protection(&self, pages: [u32; PROTECTION_COLUMNS]) {
        let Some(low) = &self.low else { return self.set_protection(pages) };
        low.linux.iter().zip(pages).for_each(|(slot, pages)| slot.store(pages, Relaxed));
        self.set_protection(low.protection(self.managed));
    }

    /// What the zone keeps from requests up to `highest` that have nowhere else to go for now, in pages: Linux's
    /// protection.
    pub(crate) fn least_protection(&self, highest: ZoneKind) -> u32 {
        match &self.low {
            Some(low) if !self.is_offline() => low.linux[highest.index()].load(Relaxed),
            _ => self.protection()[highest.index()],
        }
    }

    /// Adds what the zone keeps and what was moved out of it; nothing under a policy without prices.
    pub(crate) fn count_low(&self, counters: &mut Counters) {
        if let Some(low) = &self.low {
            counters.add("freehold_low_reserve", u64::from(low.reserve.load(Relaxed)));
            counters.add("freehold_low_moved", low.moved.load(Relaxed));
        }
    }

    /// What is to be free for bound requests: the low mark without boost and the protection against user memory, in pages.
    fn reserve_mark(&self, marks: Watermarks, kept: u32) -> u32 {
        marks.low + self.bounded_reserve(kept)
    }

    /// Of what is `kept` from user memory, what counts as a reserve.
    pub(crate) fn bounded_reserve(&self, kept: u32) -> u32 {
        kept.min(self.managed / MOST)
    }

    /// The vmstat tick of `cpu`, and of the machine if it is the first's; says whether there is a demand, and less free
    /// than it was seen to take.
    fn tick_low(&self, machine: &M, cpu: Cpu) -> bool {
        let Some(low) = &self.low else { return false };
        low.fold(cpu);
        if cpu != Cpu(0) {
            return false;
        }
        let (before, reserve) = (low.reserve.load(Relaxed), low.learn(self.managed));
        if before != reserve {
            self.set_protection(low.protection(self.managed));
        }
        low.set_shortage(Shortage::None);
        let free = self.free_pages();
        let is_short = |marks: Watermarks, kept: u32| free < self.reserve_mark(marks, kept);
        reserve > 0 && self.decide_by_kept(machine, ZoneKind::Movable, is_short)
    }
}

impl<M: Machine> Pages<M> {
    /// `request`, which prefers a low zone, was served, or not at the low mark.
    pub(super) fn note_low(
        &self,
        above: &impl Above<M>,
        request: &Request,
        preferred: &Zone<M>,
        flags: AllocFlags,
        found: Option<ZoneId>,
    ) {
        let Some(low) = &preferred.low else { return };
        if !low.binds(request.highest) {
            return;
        }
        if found.is_some() {
            let taken = &low.taken[usize::from(self.machine.cpu().0)];
            taken.count(self.machine.now(), request.order.pages());
        }
        // Half of the reserve is for the time until kswapd has restored it.
        let free = preferred.free_pages();
        let is_short = |marks: Watermarks, kept: u32| free < marks.low + preferred.bounded_reserve(kept) / 2;
        if flags.has(AllocFlags::KSWAPD)
            && preferred.decide_by_kept(&self.machine, ZoneKind::Movable, is_short)
        {
            self.tell_of_shortage(above, preferred);
        }
    }

    /// kswapd is to move guests out of `zone`, unless that was tried since the last tick and nothing came of it.
    fn tell_of_shortage(&self, above: &impl Above<M>, zone: &Zone<M>) {
        let Some(low) = &zone.low else { return };
        let (none, told) = (Shortage::None as u32, Shortage::Told as u32);
        let is_news = low.shortage.compare_exchange(none, told, Relaxed, Relaxed).is_ok();
        if is_news && above.has_users() {
            self.machine.wake(Daemon::Kswapd(zone.node));
        }
    }

    /// The vmstat tick of `cpu`.
    pub(super) fn tick_low_zones(&self, above: &impl Above<M>, cpu: Cpu) {
        for zone in &self.zones {
            if zone.tick_low(&self.machine, cpu) {
                self.tell_of_shortage(above, zone);
            }
        }
    }

    /// Low zones of `node`, the highest first.
    pub(crate) fn low_zones(&self, node: Node) -> impl Iterator<Item = (&Zone<M>, &LowZone)> {
        let of_node = self.zones.iter().rev().filter(move |zone| zone.node == node);
        of_node.filter_map(|zone| Some((zone, zone.low.as_ref()?)))
    }
}
