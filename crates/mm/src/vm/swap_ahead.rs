//! Private memory that is read from swap with what is wanted (`swapin_readahead`). Where swap is a disk, or several have what is wanted,
//! one fault reads what the next ones are likely to want: the pages around it in its region, or the slots around, as the disk is.
//!
//! ```text
//!   fault ─▶ slot: is it in memory? ──yes──────────▶ claim: mapped, the slot one reference fewer (or copied, to be written to)
//!                     │ no                             ▲
//!                     └─▶ window ─▶ read, each beside its slot ─▶ on reclaim's lists ─▶ reclaim: gone again, nothing is written
//! ```
//!
//! What is beside its slot is charged to the slot's group and belongs to it ([`Mapping::Slot`]) until somebody comes to it. Others who have
//! the slot, after a fork, find it there too.

use core::ops::Range;

use super::fault::{Attempt, Contents, FaultKind, Faulted, Site, done};
use super::swap::{OnDevice, SlotRead, Swapped};
use super::swap_beside::{Claimed, Users};
use super::{AddressSpace, AheadDoor, Entry, FaultDoor, SpacesGround, Touch, Vpn, bit};
use crate::cache::{Asker, SlotsAround};
use crate::ground::ids::{Order, PAGEBLOCK_PAGES, Pfn};
use crate::ground::machine::{Machine, SwapIo};
use crate::lru::page::{Mapping, PageFlag};
use crate::lru::{By, Came};
use crate::memcg::{Effort, GroupId};
use crate::pages::request::{AllocError, Request};
use crate::rules::knobs::Knob;
use crate::rules::policy::{AnonRule, PrivateSwapInRule, WorkingsetRule};

/// For whom a slot is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum For {
    /// Somebody waits for it.
    Wanted,
    /// Nobody does yet.
    Next,
}

/// How what is read comes to memory: a frame for it, and who brings it.
pub(super) struct Bringer<F> {
    alloc: F,
    by: By,
}

impl<M: Machine, G: SpacesGround<M>> FaultDoor<'_, M, G> {
    /// `entry` of `site` is of `slot`, which is in memory too, or is to be read for others too, or with others.
    pub(super) fn swap_in_ahead(
        self,
        site: &Site<'_, M>,
        entry: Entry,
        (slot, read): (u32, SlotRead),
    ) -> Attempt {
        let (kind, wanted) = match read {
            SlotRead::Beside | SlotRead::Kept => (FaultKind::Minor, None),
            SlotRead::Alone | SlotRead::ForAll | SlotRead::WithOthers => {
                (FaultKind::Swapped, self.read_for(site, (slot, read))?)
            }
        };
        let is_to_differ = site.touch == Touch::Write && self.swap().users(slot) == Some(Users::Several);
        let taken = if is_to_differ {
            self.copy_beside(site, entry, (slot, kind))
        } else {
            self.claim(site, entry, (slot, kind))
        };
        if let Some(pfn) = wanted {
            self.lru().put_page(pfn);
        }
        taken
    }

    /// Reads `slot` and what is to be read with it; gives the page of `slot` with a reference, so that it stays until it is claimed. `None`:
    /// somebody else has read it.
    fn read_for(self, site: &Site<'_, M>, (slot, read): (u32, SlotRead)) -> Result<Option<Pfn>, AllocError> {
        let bringer = Bringer { alloc: || self.alloc_page(site, Contents::Swapped), by: site.by() };
        let slots = match read {
            SlotRead::WithOthers if self.swap_ahead().goes_by_region() => self.region_slots(site),
            SlotRead::WithOthers => self.swap().slots_around(slot),
            _ => SlotsAround { slots: alloc::vec![(slot, None)], window: 1 },
        };
        self.swap_ahead().read_all(slot, &slots, (&bringer, site.asker()))
    }

    /// The slots of the pages that are read with the one that `site` is about, and its own, in their order: of its region and its table.
    fn region_slots(self, site: &Site<'_, M>) -> SlotsAround {
        let reads = site.region.reads;
        let pages = self
            .knobs()
            .decide(self.machine(), Knob::PageCluster, |order| reads.pages_of_region(site.vpn.0, order));
        let window = site.space.swap_window(self.machine(), site.vpn, pages);
        let table = site.vpn.table_start();
        let first = window.start.max(site.region.start.0).max(table.0);
        let end = window.end.min(site.region.end.0).min(table.add(PAGEBLOCK_PAGES).0);
        let held = site.table.lock(self.machine());
        let slots = (first..end).filter_map(|vpn| held.entry(Vpn(vpn)).slot().map(|slot| (slot, None)));
        SlotsAround { slots: slots.collect(), window: pages }
    }

    /// The page in memory of `slot` is mapped by `site`: as its own from now on, unless others have it.
    fn claim(self, site: &Site<'_, M>, entry: Entry, (slot, kind): (u32, FaultKind)) -> Attempt {
        let Some(mut held) = site.lock(self.machine(), entry) else { return Ok(None) };
        let index = site.region.anon_index(site.vpn);
        let claimed = self.swap().claim(slot, (Mapping::Anon(site.space.family), index));
        let Some(Claimed { pfn, users }) = claimed else { return Ok(None) };
        let own = match users {
            Users::One => self.own_bits(site, (slot, pfn)),
            Users::Several => 0,
        };
        held.set(site.vpn, Entry::of(pfn, bit::ACCESSED | own));
        self.count_installed(site, entry, pfn);
        let page = self.lru().page(pfn);
        page.note_placement(site.region.placement);
        if site.region.locked {
            self.unevictable().mlock(pfn);
        }
        // It may still be on its way to the disk.
        page.clear(PageFlag::Writeback);
        page.clear(PageFlag::Reclaim);
        if self.rules().reclaim.anon == AnonRule::Active {
            self.lru().activate(pfn);
        }
        drop(held);
        self.came_to(site, pfn, (slot, kind));
        done(pfn, kind)
    }

    /// What an entry says of the page at `pfn`, in memory from `slot`, that is `site`'s alone.
    fn own_bits(self, site: &Site<'_, M>, (slot, pfn): (u32, Pfn)) -> u64 {
        let write = if site.region.protection.allows(Touch::Write) { bit::WRITE } else { 0 };
        let keeps = site.touch == Touch::Read && !site.region.locked && self.swap().keep(slot, pfn);
        write | bit::EXCLUSIVE | if keeps { 0 } else { bit::DIRTY }
    }

    /// What is in `slot` is others' too, and `site` is about to write to it: it gets a copy of what is in memory.
    fn copy_beside(self, site: &Site<'_, M>, entry: Entry, (slot, kind): (u32, FaultKind)) -> Attempt {
        let Some(from) = self.swap().get_in_memory(slot) else { return Ok(None) };
        let copied = self.copy_page(site, entry, from);
        let taken = match copied {
            Ok(Some(Faulted { pfn, .. })) => {
                self.came_to(site, from, (slot, kind));
                done(pfn, kind)
            }
            other => other,
        };
        self.lru().put_page(from);
        taken
    }

    /// `site`, which had `slot`, has come to the page at `pfn` by it, or to what is in that.
    fn came_to(self, site: &Site<'_, M>, pfn: Pfn, (slot, kind): (u32, FaultKind)) {
        let was_ahead = self.lru().page(pfn).clear(PageFlag::ReadAhead);
        site.space.stat.count_swapped(-1);
        if kind == FaultKind::Minor {
            self.note_found(site, was_ahead);
        }
        self.swap().swap_free(slot);
        self.swap().settle(pfn);
    }

    /// What `site` wanted was in memory.
    fn note_found(self, site: &Site<'_, M>, was_ahead: bool) {
        let by_region = self.swap_ahead().goes_by_region();
        if by_region {
            site.space.note_swap_found(self.machine(), site.vpn, was_ahead);
        }
        match was_ahead {
            true if by_region => self.swap().count_hit(),
            true => self.swap().note_hit(),
            false => {}
        }
    }
}

impl<M: Machine, G: SpacesGround<M>> AheadDoor<'_, M, G> {
    /// Whether what is read with a page is around it in its region (`swap_use_vma_readahead`): on disks that do not turn.
    fn goes_by_region(self) -> bool {
        let has_rule = self.rules().reclaim.swap.private_in == PrivateSwapInRule::Region;
        let is_disk = self.swap().is_on_disk();
        let turns = is_disk && self.knobs().get(Knob::SwapRotational) == 1;
        let is_on = self.knobs().get(Knob::VmaRaEnabled) == 1;
        self.knobs().decide(self.machine(), Knob::SwapRotational, |turns| {
            has_rule && is_on && !(is_disk && turns == 1)
        });
        self.knobs().decide(self.machine(), Knob::VmaRaEnabled, |is_on| has_rule && is_on == 1 && !turns)
    }

    /// Reads the slots that are `around`, in their order, `wanted` among them; gives its page with a reference.
    fn read_all<F: Fn() -> Result<Pfn, AllocError>>(
        self,
        wanted: u32,
        around: &SlotsAround,
        (bringer, from): (&Bringer<F>, Asker),
    ) -> Result<Option<Pfn>, AllocError> {
        let is_on_device = |slot: Swapped| slot.device == OnDevice::Written;
        let waits = self.swap().swapped(wanted).is_some_and(is_on_device);
        let plug = if around.window > 1 { self.swap().start_plug() } else { None };
        let mut found = Ok(None);
        for &(slot, place) in &around.slots {
            match place {
                None if slot == wanted => {
                    found = self.read(slot, For::Wanted, bringer);
                    if found.is_err() {
                        break;
                    }
                }
                None => self.read_next(slot, bringer),
                Some(place) => self.swapped().read_ahead(place, from),
            }
        }
        self.swap().finish_plug(plug);
        let found = found?;
        if around.slots.len() > 1 {
            self.lru().lru_drain_cpu(self.machine().cpu());
        }
        // All of them are on their way before anybody waits.
        if found.is_some() && waits {
            self.machine().swap_io(SwapIo::Read);
        }
        Ok(found)
    }

    /// Reads `slot` for whoever comes to it; where there is no memory for it, not.
    fn read_next<F: Fn() -> Result<Pfn, AllocError>>(self, slot: u32, bringer: &Bringer<F>) {
        if let Ok(Some(pfn)) = self.read(slot, For::Next, bringer) {
            self.lru().put_page(pfn);
        }
    }

    /// Reads private memory in `slot`, which is near one that a page of a file is in.
    pub(crate) fn read_private(self, slot: u32, from: Asker) {
        let request = Request { node: from.placement.node, allowed: from.placement.allowed, ..Request::USER };
        let bringer = Bringer { alloc: || self.alloc(request), by: from.by };
        self.read_next(slot, &bringer);
    }

    /// Reads what is in `slot` to memory beside it; gives the page with a reference. `None`: there is nothing, or somebody has.
    fn read<F: Fn() -> Result<Pfn, AllocError>>(
        self,
        slot: u32,
        whom: For,
        bringer: &Bringer<F>,
    ) -> Result<Option<Pfn>, AllocError> {
        let is_away = |slot: &Swapped| !matches!(slot.read, SlotRead::Beside | SlotRead::Kept);
        let unread = self.swap().swapped(slot).filter(is_away);
        let Some(Swapped { group, came, device, .. }) = unread else { return Ok(None) };
        let pfn = (bringer.alloc)()?;
        if group != GroupId::ROOT {
            self.lru().charge_to(pfn, group, Effort::Full)?;
        }
        match (device, whom) {
            // It is waited for when the others are on their way.
            (OnDevice::Written, For::Wanted) => self.swap().gather_read(slot),
            (OnDevice::Zeros, _) => self.machine().clear(pfn, Order::ZERO),
            (OnDevice::Written | OnDevice::Zswap, _) => self.swap().bring(slot, SwapIo::ReadAhead),
        }
        let page = self.lru().page(pfn);
        page.init(Mapping::Slot, slot, &[PageFlag::SwapBacked]);
        if whom == For::Next {
            page.set(PageFlag::ReadAhead);
        }
        page.get();
        if !self.swap().put_beside(slot, pfn) {
            page.put();
            self.lru().put_page(pfn);
            return Ok(None);
        }
        if let Came::Back(shadow) = came {
            self.lru().refault(pfn, shadow, bringer.by, |group| self.swap().has_swap(group));
        }
        self.swap().count_read(slot, pfn);
        self.lru().lru_add_by(pfn, bringer.by);
        Ok(Some(pfn))
    }

    /// The page at `pfn`, which is beside its slot, is to go; reclaim in `target` wants that. Says whether it is the caller's alone now.
    pub(crate) fn forget(self, pfn: Pfn, target: GroupId) -> bool {
        if self.swap().is_nowhere(self.lru().page(pfn).index()) && !self.send_again(pfn) {
            return false;
        }
        let Some(slot) = self.swap().change_beside(pfn, None) else { return false };
        if self.rules().reclaim.workingset == WorkingsetRule::All {
            self.swap().leave_shadow(slot, Order::ZERO, self.lru().evict(pfn, target));
        }
        true
    }

    /// Puts `to` in the place of the page at `from`, which is beside its slot, unless somebody refers to that.
    pub(super) fn replace(self, from: Pfn, to: Pfn) -> bool {
        self.swap().change_beside(from, Some(to)).is_some()
    }
}

impl<M: Machine> AddressSpace<M> {
    /// The pages to read with the one at `vpn`, `pages` of them.
    fn swap_window(&self, machine: &M, vpn: Vpn, pages: u32) -> Range<u32> {
        let mut regions = self.regions.lock_local(machine);
        regions.find_mut(vpn).map_or(vpn.0..vpn.0 + 1, |region| region.reads.window(vpn.0, pages))
    }

    /// What was in swap and is wanted at `vpn` was in memory already.
    fn note_swap_found(&self, machine: &M, vpn: Vpn, was_ahead: bool) {
        if let Some(region) = self.regions.lock_local(machine).find_mut(vpn) {
            region.reads.note_found(vpn.0, was_ahead);
        }
    }
}
