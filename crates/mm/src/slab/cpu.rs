//! Allocation with CPU slabs (up to 6.19): each CPU has a slab of its own, whose free objects it hands out without a
//! lock, and a few partial ones in reserve; then comes its node's list, other nodes', the page allocator
//! (docs/rules/slab.md#paths-with-slabs-of-cpus).

use super::chain::{Chain, NONE};
use super::node::{Slabs, Taken};
use super::sheaf::CpuSheaves;
use super::stat::SlabEvent;
use super::stock::Stock;
use super::{SlabCx, SlabGround};
use crate::ground::{Access, Addr, Guard, Line, LineKind, Machine, Node, Pfn};
use crate::pages::AllocError;

/// What a CPU has of a cache.
#[derive(Debug)]
pub(super) struct CpuSlab {
    /// The slab that it allocates from.
    pub(super) slab: Option<Pfn>,
    /// The free objects of that slab that are the CPU's; others' frees go to the slab's own list.
    pub(super) free: Addr,
    pub(super) partial: Slabs,
    pub(super) sheaves: CpuSheaves,
    pub(super) stock: Stock,
    /// Objects handed out and freed without more ado; counted here, under the lock that is held anyway.
    pub(super) fast_allocs: u64,
    pub(super) fast_frees: u64,
    line: u32,
}

impl CpuSlab {
    pub(super) fn new(line: u32, stock: Stock) -> Self {
        Self {
            slab: None,
            free: NONE,
            partial: Slabs::EMPTY,
            sheaves: CpuSheaves::default(),
            stock,
            fast_allocs: 0,
            fast_frees: 0,
            line,
        }
    }
}

impl<'a, M: Machine, G: SlabGround<M>> SlabCx<'a, M, G> {
    /// This CPU's part of the cache.
    #[inline]
    pub(super) fn lock_cpu(self) -> Guard<'a, M, CpuSlab> {
        let cpu = self.machine().cpu();
        let guard = self.cache.cpus[usize::from(cpu.0)].local.lock_local(self.machine());
        self.machine().touch(Line { kind: LineKind::CpuSlab, index: guard.line }, Access::Write);
        guard
    }

    /// An object, from `node` where one is given.
    #[inline]
    pub(super) fn alloc_from_slabs(self, node: Option<Node>) -> Result<Addr, AllocError> {
        let mut cpu = self.lock_cpu();
        if cpu.free != NONE && self.is_of(cpu.slab, node) {
            cpu.fast_allocs += 1;
            return Ok(self.pop(&mut cpu));
        }
        drop(cpu);
        self.alloc_slowly(node)
    }

    /// Up to `count` objects, fewer only where memory ran out; each goes to `put`.
    pub(super) fn alloc_many_from_slabs(
        self,
        count: u32,
        mut put: impl FnMut(Addr),
    ) -> Result<(), AllocError> {
        let mut left = count;
        while left > 0 {
            let mut cpu = self.lock_cpu();
            while left > 0 && cpu.free != NONE {
                cpu.fast_allocs += 1;
                put(self.pop(&mut cpu));
                left -= 1;
            }
            drop(cpu);
            if left > 0 {
                put(self.alloc_slowly(None)?);
                left -= 1;
            }
        }
        Ok(())
    }

    #[inline]
    fn pop(self, cpu: &mut CpuSlab) -> Addr {
        let object = cpu.free;
        cpu.free = self.cache.next(self.machine(), object);
        object
    }

    fn is_of(self, slab: Option<Pfn>, node: Option<Node>) -> bool {
        node.is_none_or(|node| slab.is_some_and(|head| self.node_of(head) == node))
    }

    #[inline(never)]
    fn alloc_slowly(self, node: Option<Node>) -> Result<Addr, AllocError> {
        self.count(SlabEvent::AllocSlowpath, 1);
        loop {
            if let Some(object) = self.alloc_from_cpu(node) {
                return Ok(object);
            }
            let taken = match self.take_partial(node) {
                Some(taken) => taken,
                None => self.take_new(node)?,
            };
            if let Some(object) = self.install(taken) {
                return Ok(object);
            }
        }
    }

    fn take_new(self, node: Option<Node>) -> Result<Taken, AllocError> {
        let slab = self.new_slab(node)?;
        self.change(slab.head, |word| word.frozen(true));
        Ok(Taken { head: slab.head, first: slab.chain.first, more: Slabs::EMPTY })
    }

    /// From what this CPU has: its slab, as others have freed to it, or its partial slabs.
    fn alloc_from_cpu(self, node: Option<Node>) -> Option<Addr> {
        let mut cpu = self.lock_cpu();
        if let Some(head) = cpu.slab {
            if !self.is_of(cpu.slab, node) {
                self.count(SlabEvent::AllocNodeMismatch, 1);
                self.leave(cpu);
                return self.alloc_from_cpu(node);
            }
            if cpu.free == NONE {
                cpu.free = self.take_free(head);
                if cpu.free == NONE {
                    cpu.slab = None;
                    self.count(SlabEvent::DeactivateBypass, 1);
                } else {
                    self.count(SlabEvent::AllocRefill, 1);
                }
            }
            if cpu.free != NONE {
                return Some(self.pop(&mut cpu));
            }
        }
        self.alloc_from_cpu_partial(cpu, node)
    }

    fn alloc_from_cpu_partial(self, mut cpu: Guard<'a, M, CpuSlab>, node: Option<Node>) -> Option<Addr> {
        while let Some(head) = cpu.partial.pop(self) {
            if self.is_of(Some(head), node) {
                cpu.free = self.freeze(head);
                cpu.slab = Some(head);
                self.count(SlabEvent::CpuPartialAlloc, 1);
                debug_assert!(cpu.free != NONE, "a partial slab has free objects");
                return Some(self.pop(&mut cpu));
            }
            drop(cpu);
            let mut one = Slabs::EMPTY;
            one.push(self, head);
            self.put_partials(one);
            cpu = self.lock_cpu();
        }
        None
    }

    /// The objects that others have freed to this CPU's slab; if there are none, the slab is nobody's from here on.
    fn take_free(self, head: Pfn) -> Addr {
        let objects = self.cache.objects(self.order_of(head));
        let before = self.change(head, |word| word.taken(objects).frozen(word.first_free().is_some()));
        before.first_free().map_or(NONE, |number| self.cache.object(head, number))
    }

    /// A slab becomes this CPU's; an object of it. Another that came up in the meantime is put away.
    fn install(self, taken: Taken) -> Option<Addr> {
        let mut cpu = self.lock_cpu();
        let old = cpu.slab.map(|head| (head, self.cache.chain_from(self.machine(), cpu.free)));
        (cpu.slab, cpu.free) = (Some(taken.head), taken.first);
        let mut more = taken.more;
        if cpu.partial.len == 0 {
            // The slab that was taken last is used first.
            core::mem::swap(&mut cpu.partial, &mut more);
        }
        while let Some(head) = more.pop(self) {
            cpu.partial.push(self, head);
        }
        let object = (cpu.free != NONE).then(|| self.pop(&mut cpu));
        drop(cpu);
        if let Some((head, free)) = old {
            self.count(SlabEvent::CpuslabFlush, 1);
            self.deactivate(head, free);
        }
        object
    }

    /// Puts away this CPU's slab.
    fn leave(self, mut cpu: Guard<'_, M, CpuSlab>) {
        let free: Option<Chain> = self.cache.chain_from(self.machine(), cpu.free);
        let slab = cpu.slab.take();
        cpu.free = NONE;
        drop(cpu);
        if let Some(head) = slab {
            self.deactivate(head, free);
        }
    }

    /// A slab to which the first object was freed joins this CPU's partial ones; if those are too many, they first go to
    /// their nodes.
    pub(super) fn put_cpu_partial(self, head: Pfn) {
        let mut cpu = self.lock_cpu();
        let mut drained = Slabs::EMPTY;
        let len = cpu.partial.len;
        if self.cache.decide_cpu(self.machine(), |most| len >= most) {
            core::mem::swap(&mut drained, &mut cpu.partial);
        }
        cpu.partial.push(self, head);
        drop(cpu);
        if drained.len > 0 {
            self.put_partials(drained);
            self.count(SlabEvent::CpuPartialDrain, 1);
        }
    }

    /// Puts away the slab and the partial slabs of CPU number `cpu`; its sheaves stay.
    pub(super) fn flush_cpu_slabs(self, cpu: usize) {
        let mut local = self.cache.cpus[cpu].local.lock_local(self.machine());
        let partial = core::mem::replace(&mut local.partial, Slabs::EMPTY);
        self.leave(local);
        self.put_partials(partial);
    }
}
