//! Sheaves: a CPU's arrays of free objects. Allocation takes from the main one, frees go there; a spare one, full or
//! empty, stands behind it, and the node's barn behind that (docs/rules/slab.md#sheaves). A sheaf is an object of a
//! `kmalloc` cache, so it costs memory as it does in the kernel.
//!
//! ```text
//!   0          8         16         32
//!   | objects  | link    |          | object | object | …
//! ```

use super::barn::NoExchange;
use super::cpu::CpuSlab;
use super::stat::SlabEvent;
use super::{SheafCx, SlabGround};
use crate::ground::{Addr, Guard, Machine};

/// Bytes before a sheaf's objects, and of each.
pub(super) const HEADER: u64 = 32;
pub(super) const POINTER: u64 = 8;
/// Where its header links it.
const LINK: u64 = 8;

/// A sheaf in somebody's hands: where it is, and how many objects it holds. In a barn it is either full or empty, and
/// the address says all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sheaf {
    pub(super) at: Addr,
    pub(super) len: u32,
}

impl Sheaf {
    pub(super) const fn empty(at: Addr) -> Self {
        Self { at, len: 0 }
    }

    pub(super) fn push<M: Machine>(&mut self, machine: &M, object: Addr) {
        machine.store(self.slot(self.len), object.0);
        self.len += 1;
    }

    pub(super) fn pop<M: Machine>(&mut self, machine: &M) -> Option<Addr> {
        self.len = self.len.checked_sub(1)?;
        Some(Addr(machine.load(self.slot(self.len))))
    }

    /// Object number `number`, from the bottom.
    pub(super) fn get<M: Machine>(&self, machine: &M, number: u32) -> Addr {
        Addr(machine.load(self.slot(number)))
    }

    const fn slot(&self, number: u32) -> Addr {
        self.at.add(HEADER + POINTER * number as u64)
    }

    /// Writes the number of objects down where whoever has only the address finds it.
    pub(super) fn note_len<M: Machine>(&self, machine: &M) {
        machine.store(self.at, u64::from(self.len));
    }

    /// A sheaf whose number of objects was written down.
    pub(super) fn noted<M: Machine>(machine: &M, at: Addr) -> Self {
        Self { at, len: machine.load(at) as u32 }
    }

    pub(super) fn link<M: Machine>(machine: &M, at: Addr, next: Addr) {
        machine.store(at.add(LINK), next.0);
    }

    pub(super) fn linked<M: Machine>(machine: &M, at: Addr) -> Addr {
        Addr(machine.load(at.add(LINK)))
    }
}

/// A CPU's sheaves of a cache.
#[derive(Debug, Default)]
pub(super) struct CpuSheaves {
    /// What is allocated from and freed to; none only where there was no memory for one.
    pub(super) main: Option<Sheaf>,
    /// Full or empty.
    pub(super) spare: Option<Sheaf>,
    /// Objects that have to wait for a grace period.
    pub(super) rcu: Option<Sheaf>,
    pub(super) allocs: u64,
    pub(super) frees: u64,
}

impl<M: Machine, G: SlabGround<M>> SheafCx<'_, M, G> {
    /// Objects of a full sheaf.
    #[inline]
    pub(super) fn capacity(self) -> u32 {
        self.slab.cache.sizing.sheaf_capacity
    }

    /// An object from this CPU's sheaves, from the barn's, or from slabs with a sheaf filled on the way; `None` if there
    /// is no memory for sheaves, and slabs must do.
    #[inline]
    pub(super) fn alloc_from_sheaves(self) -> Option<Addr> {
        let mut cpu = self.slab.lock_cpu();
        if let Some(object) = self.pop_main(&mut cpu) {
            return Some(object);
        }
        self.alloc_behind_main(cpu)
    }

    #[inline]
    fn pop_main(self, cpu: &mut CpuSlab) -> Option<Addr> {
        let object = cpu.sheaves.main.as_mut()?.pop(self.slab.machine())?;
        cpu.sheaves.allocs += 1;
        Some(object)
    }

    #[inline(never)]
    fn alloc_behind_main(self, mut cpu: Guard<'_, M, CpuSlab>) -> Option<Addr> {
        let full = self.capacity();
        let sheaves = &mut cpu.sheaves;
        let main = sheaves.main?;
        if let Some(spare) = sheaves.spare.filter(|spare| spare.len > 0) {
            (sheaves.main, sheaves.spare) = (Some(spare), Some(main));
            return self.pop_main(&mut cpu);
        }
        if let Some(at) = self.barn_full_for_empty(Some(main.at)) {
            cpu.sheaves.main = Some(Sheaf { at, len: full });
            return self.pop_main(&mut cpu);
        }
        let empty = cpu.sheaves.spare.take();
        drop(cpu);
        let empty =
            empty.map(|sheaf| sheaf.at).or_else(|| self.barn_take_empty()).or_else(|| self.new_sheaf())?;
        let mut filled = Sheaf::empty(empty);
        self.refill_sheaf(&mut filled, full);
        if filled.len == 0 {
            self.put_away_empty(filled.at);
            return None;
        }
        self.install_sheaf(filled)
    }

    /// Fills `sheaf` up to `want` objects as far as memory goes.
    pub(super) fn refill_sheaf(self, sheaf: &mut Sheaf, want: u32) {
        let missing = want.saturating_sub(sheaf.len);
        let before = sheaf.len;
        // What came before memory ran out is in the sheaf; whoever needs more finds out.
        let _ = self.refill_objects(missing, |object| sheaf.push(self.slab.machine(), object));
        self.slab.count(SlabEvent::SheafRefill, sheaf.len - before);
    }

    /// Makes a filled sheaf this CPU's, which may be another CPU by now, and takes an object.
    fn install_sheaf(self, mut filled: Sheaf) -> Option<Addr> {
        let mut cpu = self.slab.lock_cpu();
        if cpu.sheaves.main.is_none_or(|main| main.len == 0) {
            let object = filled.pop(self.slab.machine());
            cpu.sheaves.allocs += 1;
            let empty = cpu.sheaves.main.replace(filled);
            if cpu.sheaves.spare.is_none() {
                cpu.sheaves.spare = empty;
                return object;
            }
            drop(cpu);
            if let Some(empty) = empty {
                self.put_away_empty(empty.at);
            }
            return object;
        }
        // Others have filled the main one in the meantime.
        let object = self.pop_main(&mut cpu);
        if cpu.sheaves.spare.is_none() && filled.len == self.capacity() {
            cpu.sheaves.spare = Some(filled);
            return object;
        }
        drop(cpu);
        self.put_away(filled);
        object
    }

    /// Frees an object to this CPU's sheaves; false if there is no memory for one more.
    #[inline]
    pub(super) fn free_to_sheaves(self, object: Addr) -> bool {
        let mut cpu = self.slab.lock_cpu();
        if self.push_main(&mut cpu, object) {
            return true;
        }
        self.free_behind_main(cpu, object)
    }

    #[inline]
    fn push_main(self, cpu: &mut CpuSlab, object: Addr) -> bool {
        let capacity = self.capacity();
        match &mut cpu.sheaves.main {
            Some(main) if main.len < capacity => {
                main.push(self.slab.machine(), object);
                cpu.sheaves.frees += 1;
                true
            }
            _ => false,
        }
    }

    #[inline(never)]
    fn free_behind_main(self, mut cpu: Guard<'_, M, CpuSlab>, object: Addr) -> bool {
        let Some(main) = cpu.sheaves.main else { return false };
        match cpu.sheaves.spare {
            Some(spare) if spare.len == 0 => {
                (cpu.sheaves.main, cpu.sheaves.spare) = (Some(spare), Some(main));
                return self.push_main(&mut cpu, object);
            }
            Some(_) => match self.barn_empty_for_full(main.at) {
                Ok(empty) => {
                    cpu.sheaves.main = Some(Sheaf::empty(empty));
                    return self.push_main(&mut cpu, object);
                }
                Err(NoExchange::NoRoom) => return self.flush_spare(cpu, object),
                Err(NoExchange::NoEmpty) => {}
            },
            None => {
                if let Some(empty) = self.barn_take_empty() {
                    (cpu.sheaves.main, cpu.sheaves.spare) = (Some(Sheaf::empty(empty)), Some(main));
                    return self.push_main(&mut cpu, object);
                }
            }
        }
        drop(cpu);
        let Some(empty) = self.new_sheaf() else { return false };
        self.free_with(empty, object)
    }

    /// The barn wants no more full ones: the spare's objects go to their slabs, and it serves as the empty one.
    fn flush_spare(self, mut cpu: Guard<'_, M, CpuSlab>, object: Addr) -> bool {
        let Some(mut spare) = cpu.sheaves.spare.take() else { return false };
        drop(cpu);
        self.flush(&mut spare);
        self.free_with(spare.at, object)
    }

    /// Goes on with an empty sheaf at hand, on a CPU that may be another by now.
    fn free_with(self, empty: Addr, object: Addr) -> bool {
        let mut cpu = self.slab.lock_cpu();
        if self.push_main(&mut cpu, object) {
            drop(cpu);
            self.put_away_empty(empty);
            return true;
        }
        let Some(main) = cpu.sheaves.main else {
            drop(cpu);
            self.put_away_empty(empty);
            return false;
        };
        let displaced = cpu.sheaves.spare.replace(main);
        cpu.sheaves.main = Some(Sheaf::empty(empty));
        let freed = self.push_main(&mut cpu, object);
        drop(cpu);
        if let Some(sheaf) = displaced {
            self.put_away(sheaf);
        }
        freed
    }

    /// Gives all objects of a sheaf back to their slabs.
    pub(super) fn flush(self, sheaf: &mut Sheaf) {
        self.slab.count(SlabEvent::SheafFlush, sheaf.len);
        self.slab.free_all_to_slabs(|| sheaf.pop(self.slab.machine()));
    }

    /// A sheaf that is nobody's goes where there is room for it.
    pub(super) fn put_away(self, mut sheaf: Sheaf) {
        if sheaf.len == self.capacity() && self.barn_put_full(sheaf.at) {
            return;
        }
        self.flush(&mut sheaf);
        self.put_away_empty(sheaf.at);
    }

    pub(super) fn put_away_empty(self, sheaf: Addr) {
        if !self.barn_put_empty(sheaf) {
            self.free_sheaf(sheaf);
        }
    }

    /// An empty sheaf from its `kmalloc` cache; straight from slabs, so that making sheaves never needs one.
    pub(super) fn new_sheaf(self) -> Option<Addr> {
        self.new_sheaf_of(self.capacity())
    }

    /// The same for `capacity` objects.
    pub(super) fn new_sheaf_of(self, capacity: u32) -> Option<Addr> {
        let store = self.slab.slabs.sheaf_store(capacity)?;
        let at = store.alloc_bare().ok()?;
        self.slab.count(SlabEvent::SheafAlloc, 1);
        Some(at)
    }

    pub(super) fn free_sheaf(self, sheaf: Addr) {
        if let Some((store, head)) = self.slab.slabs.slab_of(sheaf) {
            store.free_bare(head, sheaf);
            self.slab.count(SlabEvent::SheafFree, 1);
        }
    }

    /// Gives back all that CPU number `cpu` has in sheaves; its main sheaf stays, empty.
    pub(super) fn flush_cpu_sheaves(self, cpu: usize) {
        let mut local = self.slab.cache.cpus[cpu].local.lock_local(self.slab.machine());
        let (main, spare, rcu) = {
            let sheaves = &mut local.sheaves;
            (sheaves.main.take(), sheaves.spare.take(), sheaves.rcu.take())
        };
        drop(local);
        if let Some(mut main) = main {
            self.flush(&mut main);
            self.give_main(cpu, main);
        }
        if let Some(mut spare) = spare {
            self.flush(&mut spare);
            self.put_away_empty(spare.at);
        }
        if let Some(sheaf) = rcu {
            self.slab.slabs.own().deferred.defer_sheaf(self.slab, sheaf);
        }
    }

    /// CPU number `cpu` gets its empty main sheaf back, unless it has come by another.
    fn give_main(self, cpu: usize, main: Sheaf) {
        let mut local = self.slab.cache.cpus[cpu].local.lock_local(self.slab.machine());
        if local.sheaves.main.is_none() {
            local.sheaves.main = Some(main);
            return;
        }
        drop(local);
        self.put_away_empty(main.at);
    }

    /// Empties the barns: objects go to their slabs, sheaves to their `kmalloc` cache.
    pub(super) fn flush_barns(self) {
        for node in &self.slab.cache.nodes {
            node.barn.take_all(self.slab.machine(), |at, is_full| {
                let mut sheaf = Sheaf { at, len: if is_full { self.capacity() } else { 0 } };
                self.flush(&mut sheaf);
                self.free_sheaf(at);
            });
        }
    }
}
