//! A machine with descriptors and no memory behind them: real locks, one CPU, nothing to clear or to copy. What is
//! measured on it is the memory manager's own work, at any size of machine.

use freehold_host::{HostLock, RawLock};
use mm::{
    Access, Addr, Cpu, CpuSpec, Daemon, Line, LockClass, Machine, Nanos, Node, NodeSpec, Order, Pfn, Span,
    TaskId, Topology, WordSize, Work, ZoneKind, ZoneSpec,
};

/// The machine.
#[derive(Debug)]
pub(crate) struct Descriptors;

/// Nodes with `frames` frames each, all in one Normal zone; one CPU.
pub(crate) fn topology(nodes: u32, frames: u32) -> Topology {
    let zone = |node: u32| ZoneSpec {
        kind: ZoneKind::Normal,
        start: Pfn(node * frames),
        spanned: frames,
        present: frames,
        managed: frames,
    };
    let far = |one: u32, other: u32| if one == other { 10 } else { 21 };
    Topology {
        word: WordSize::Bits64,
        nodes: (0..nodes).map(|node| NodeSpec { zones: vec![zone(node)] }).collect(),
        cpus: vec![CpuSpec { node: Node(0), cache_slice: 1 << 21 }],
        distance: (0..nodes).map(|one| (0..nodes).map(|other| far(one, other)).collect()).collect(),
    }
}

// SAFETY: a `HostLock` excludes, with acquire and release ordering. There is one CPU, number 0, in every topology.
unsafe impl Machine for Descriptors {
    type Lock = HostLock;
    type Irq = ();

    #[inline]
    fn cpu(&self) -> Cpu {
        Cpu(0)
    }

    fn task(&self) -> TaskId {
        TaskId(0)
    }

    fn now(&self) -> Nanos {
        Nanos(0)
    }

    fn random(&self) -> u64 {
        0
    }

    fn new_lock(&self, _class: LockClass, _index: u32) -> HostLock {
        HostLock::default()
    }

    #[inline]
    fn lock(&self, lock: &HostLock) {
        RawLock::lock(lock);
    }

    #[inline]
    fn try_lock(&self, lock: &HostLock) -> bool {
        RawLock::try_lock(lock)
    }

    #[inline]
    fn unlock(&self, lock: &HostLock) {
        RawLock::unlock(lock);
    }

    #[inline]
    fn is_contended(&self, lock: &HostLock) -> bool {
        RawLock::is_contended(lock)
    }

    #[inline]
    fn irq_save(&self) {}

    #[inline]
    fn irq_restore(&self, (): ()) {}

    #[inline]
    fn touch(&self, _line: Line, _access: Access) {}

    fn load(&self, _at: Addr) -> u64 {
        unreachable!("there is no memory, so nobody makes slabs")
    }

    fn store(&self, _at: Addr, _word: u64) {
        unreachable!("there is no memory, so nobody makes slabs")
    }

    fn clear(&self, _block: Pfn, _order: Order) {}

    fn copy(&self, _from: Pfn, _to: Pfn, _order: Order) {}

    fn block(&self, _at_most: Nanos) {}

    fn wake(&self, _daemon: Daemon) {}

    #[inline]
    fn enter(&self, _span: Span) -> Nanos {
        Nanos(0)
    }

    #[inline]
    fn leave(&self, _span: Span, _since: Nanos, _work: Work) {}
}
