//! Families: address spaces that may map the same anonymous page, a process and those that it forked. A page's number
//! in its family is that of the virtual page that it was first mapped at; where a region has moved since (`mremap`), its
//! pages are found by what is noted here (Linux: `vm_pgoff`, and the tree of an `anon_vma`).

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::space::AddressSpace;
use super::{SpacesDoor, SpacesGround, Vpn};
use crate::ground::machine::{LockClass, Machine};
use crate::ground::sync::Locked;
use crate::ground::sync::Relaxed;

/// A family. The lock is the kernel's `anon_vma` lock.
#[derive(Debug)]
pub(crate) struct Family<M: Machine> {
    pub(in crate::vm) members: Locked<M, Vec<Member<M>>>,
}

/// An address space of a family.
#[derive(Debug)]
pub(crate) struct Member<M: Machine> {
    pub(in crate::vm) space: Arc<AddressSpace<M>>,
    moved: Vec<Moved>,
}

/// Pages of a region that moved, which keep their numbers. What of them was unmapped since may still be here: entries
/// are looked at in any case.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// The first page's number.
    anon: u32,
    pages: u32,
    /// Where it is.
    start: Vpn,
}

impl<M: Machine> Member<M> {
    /// Where the `pages` numbered from `index` on would begin: where they were first mapped, and where regions that may
    /// have some of them have moved to.
    pub(in crate::vm) fn places(&self, index: u32, pages: u32) -> impl Iterator<Item = Vpn> {
        let overlaps = move |moved: &&Moved| index < moved.anon + moved.pages && moved.anon < index + pages;
        let moved = self.moved.iter().filter(overlaps);
        let place = move |moved: &Moved| Vpn(moved.start.0.wrapping_add(index).wrapping_sub(moved.anon));
        core::iter::once(Vpn(index)).chain(moved.map(place))
    }
}

impl<M: Machine, G: SpacesGround<M>> SpacesDoor<'_, M, G> {
    /// `space`, which is new, is the first of a family.
    pub(super) fn found_family(self, space: &Arc<AddressSpace<M>>) {
        let member = Member { space: Arc::clone(space), moved: Vec::new() };
        let number = space.family;
        let members = Locked::new(self.machine(), LockClass::Rmap, number, alloc::vec![member]);
        self.own().families.lock_local(self.machine()).insert(number, Arc::new(Family { members }));
    }

    /// `space`, which is new, is a copy of `parent`, and in its family.
    pub(super) fn join_family(self, space: &Arc<AddressSpace<M>>, parent: &AddressSpace<M>) {
        let Some(family) = self.family(space.family) else { return };
        let mut members = family.members.lock_local(self.machine());
        let of_parent = members.iter().find(|member| member.space.id == parent.id);
        let moved = of_parent.map_or_else(Vec::new, |member| member.moved.clone());
        space.moved.store(parent.moved.load(Relaxed), Relaxed);
        members.push(Member { space: Arc::clone(space), moved });
    }

    /// The family numbered `number`, if any of it lives.
    pub(crate) fn family(self, number: u32) -> Option<Arc<Family<M>>> {
        self.own().families.lock_local(self.machine()).get(&number).map(Arc::clone)
    }

    /// `space` has no more pages: it leaves its family.
    pub(super) fn leave_family(self, space: &AddressSpace<M>) {
        let mut families = self.own().families.lock_local(self.machine());
        let Some(family) = families.get(&space.family).map(Arc::clone) else { return };
        let mut members = family.members.lock_local(self.machine());
        members.retain(|member| member.space.id != space.id);
        if members.is_empty() {
            families.remove(&space.family);
        }
    }

    /// The pages numbered from `anon` on are to be found from `start` on of `space`.
    pub(super) fn note_moved(self, space: &AddressSpace<M>, anon: u32, (start, pages): (Vpn, u32)) {
        if anon == start.0 {
            return;
        }
        space.moved.store(1, Relaxed);
        let Some(family) = self.family(space.family) else { return };
        let mut members = family.members.lock_local(self.machine());
        let member = members.iter_mut().find(|member| member.space.id == space.id);
        if let Some(member) = member {
            member.moved.push(Moved { anon, pages, start });
        }
    }

    /// Nothing is mapped from `start` to before `end` of `space` any more.
    pub(super) fn forget_moved(self, space: &AddressSpace<M>, start: Vpn, end: Vpn) {
        if space.moved.load(Relaxed) == 0 {
            return;
        }
        let Some(family) = self.family(space.family) else { return };
        let mut members = family.members.lock_local(self.machine());
        let is_covered = |moved: &Moved| start <= moved.start && moved.start.add(moved.pages) <= end;
        for member in members.iter_mut().filter(|member| member.space.id == space.id) {
            member.moved.retain(|moved| !is_covered(moved));
        }
    }
}
