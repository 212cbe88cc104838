//! The slab allocator: caches of objects of one size, which take their pages from the page allocator
//! (docs/rules/slab.md).
//!
//! ```text
//!   kmem_cache_alloc ─▶ sheaf ──▶ CPU slab ─▶ CPU partial ─▶ node partial ─▶ page allocator
//!   kmem_cache_free      │ ▲      up to 6.19   slabs         slabs, under
//!                        ▼ │                                 list_lock
//!                        barn     from 6.18 for some caches, from 7.0 for all; its own lock
//! ```
//!
//! `spec` says what a cache is asked to be, `sizing` what follows from that, the policy and the machine; `kmalloc` the
//! caches by size, `merge` which caches are one, `known` what some caches ask for: pure rules, which conformance holds
//! against what kernels print. `cpu`, `node`, `free` and `pages` are
//! the paths of slabs; `sheaf`, `barn`, `refill` and `lend` those of sheaves; `stock` is
//! ours; `deferred` what waits for a grace period;
//! `debug` what finds misuse. `word` and `chain` are what a slab knows of itself: the count in its descriptor, the links
//! in its free objects. `registry` keeps the caches, `api` has the doors, and `info` prints what the kernel prints.

mod api;
mod barn;
mod cache;
mod chain;
mod check;
mod cpu;
mod debug;
mod deferred;
mod free;
mod info;
pub mod kmalloc;
pub mod known;
mod lend;
pub mod merge;
mod node;
mod pages;
mod refill;
mod registry;
mod sheaf;
mod shrink;
mod sizing;
mod slots;
mod spec;
mod stat;
mod stock;
mod watch;
mod word;

use core::fmt;

pub use cache::{Cache, CacheId};
pub use check::SlabUse;
pub use info::SlabAttribute;
pub use lend::LentSheaf;
pub use registry::SlabAllocator;
pub use sizing::{CacheSizing, SlabSystem};
pub use spec::{CacheFlags, CacheSpec, SpecError};
pub use stat::SlabEvent;

use crate::ground::{Access, Addr, Machine, Node, Order, Pfn};
use crate::pages::{AllocError, Mem, MemMap, PagesGround, door};
use crate::rules::policy::SlabRules;
use word::SlabWord;

/// Why an object was not handed out or taken back. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SlabError {
    /// There cannot be such a cache.
    Spec(SpecError),
    /// There are as many caches as there can be.
    TooManyCaches,
    /// No cache has this number.
    NoCache(CacheId),
    /// The cache has no sheaves to lend.
    NoSheaves(CacheId),
    /// No class of `kmalloc` serves so many bytes.
    Size(u32),
    /// The page allocator has none.
    Memory(AllocError),
    /// No object begins there.
    NotAnObject(Addr),
    /// The object is of this other cache.
    WrongCache(Addr, CacheId),
    /// The object is free already (found by debugging).
    DoubleFree(Addr),
    /// Somebody wrote beyond the object's end (found by debugging).
    RedZone(Addr),
}

impl From<AllocError> for SlabError {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for SlabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(error) => error.fmt(f),
            Self::TooManyCaches => f.write_str("there are as many slab caches as there can be"),
            Self::NoCache(CacheId(id)) => write!(f, "there is no slab cache number {id}"),
            Self::NoSheaves(CacheId(id)) => write!(f, "slab cache number {id} has no sheaves"),
            Self::Size(size) => write!(f, "no kmalloc class serves {size} bytes; 1 to 8192 can be had"),
            Self::Memory(error) => error.fmt(f),
            Self::NotAnObject(at) => write!(f, "no slab object begins at {at}"),
            Self::WrongCache(at, CacheId(id)) => write!(f, "the object at {at} is of slab cache number {id}"),
            Self::DoubleFree(at) => write!(f, "the object at {at} is free already"),
            Self::RedZone(at) => write!(f, "somebody wrote beyond the end of the object at {at}"),
        }
    }
}

impl core::error::Error for SlabError {}

/// What the slab allocator stands on: pages, whoever makes room for them, and the place where its own state is kept.
pub trait SlabGround<M: Machine>: PagesGround<M> {
    /// The slab allocator's own.
    fn slab_allocator(&self) -> &SlabAllocator<M>;
}

door! {
    /// The slab allocator at work.
    SlabDoor on SlabGround, SlabAllocator<M>: slab_allocator, to {}
}

/// A cache and the slab allocator around it: what all paths here work with.
#[derive(Debug)]
pub(crate) struct SlabCx<'a, M: Machine, G> {
    slabs: SlabDoor<'a, M, G>,
    cache: &'a Cache<M>,
}

impl<M: Machine, G> Clone for SlabCx<'_, M, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine, G> Copy for SlabCx<'_, M, G> {}

/// Makes a part of what can be done with a cache: a type of its own around the cache's.
macro_rules! part {
    ($(#[$doc:meta])* $part:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $part<'a, M: Machine, G> {
            slab: SlabCx<'a, M, G>,
        }

        impl<M: Machine, G> Clone for $part<'_, M, G> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<M: Machine, G> Copy for $part<'_, M, G> {}
    };
}

part! {
    /// Sheaves and the barns behind them.
    SheafCx
}
part! {
    /// Sheaves that a CPU keeps ahead (`+slab-stock`).
    StockCx
}
part! {
    /// Finding misuse.
    DebugCx
}
part! {
    /// Reading what a cache is: for its files, and for the walk over its invariants.
    ReadCx
}

impl<'a, M: Machine, G: SlabGround<M>> SlabCx<'a, M, G> {
    #[inline]
    fn sheaves(self) -> SheafCx<'a, M, G> {
        SheafCx { slab: self }
    }

    #[inline]
    fn stock(self) -> StockCx<'a, M, G> {
        StockCx { slab: self }
    }

    #[inline]
    fn debugging(self) -> DebugCx<'a, M, G> {
        DebugCx { slab: self }
    }

    #[inline]
    fn reading(self) -> ReadCx<'a, M, G> {
        ReadCx { slab: self }
    }

    #[inline]
    fn machine(self) -> &'a M {
        self.slabs.machine()
    }

    #[inline]
    fn map(self) -> &'a MemMap {
        self.slabs.map()
    }

    #[inline]
    fn mem(self) -> Mem<'a, M> {
        Mem { map: self.slabs.map(), machine: self.slabs.machine() }
    }

    #[inline]
    fn rules(self) -> &'a SlabRules {
        &self.slabs.rules().slab
    }

    /// The node that a frame is on.
    #[inline]
    fn node_of(self, head: Pfn) -> Node {
        self.slabs.zones()[usize::from(self.map().frame(head).state().zone.0)].node()
    }

    /// The order of the slab at `head`.
    #[inline]
    fn order_of(self, head: Pfn) -> Order {
        self.map().frame(head).state().order
    }

    #[inline]
    fn count(self, event: SlabEvent, times: u32) {
        if times > 0 {
            self.cache.count(self.machine().cpu(), event, times);
        }
    }

    #[inline]
    fn look(self, head: Pfn) -> SlabWord {
        self.mem().touch(head, Access::Read);
        SlabWord(self.map().frame(head).owner_acquire())
    }

    /// Puts `new` in the place of `old`; false if the word is another by now.
    #[inline]
    fn exchange(self, head: Pfn, old: SlabWord, new: SlabWord) -> bool {
        self.mem().touch(head, Access::Atomic);
        self.map().frame(head).exchange_owner(old.0, new.0).is_ok()
    }

    /// Changes the word; what it was.
    #[inline]
    fn change(self, head: Pfn, to: impl Fn(SlabWord) -> SlabWord) -> SlabWord {
        self.mem().touch(head, Access::Atomic);
        self.change_quietly(head, to)
    }

    /// The same where its line was touched just now, and the kernel needs no atomic instruction.
    #[inline]
    fn change_quietly(self, head: Pfn, to: impl Fn(SlabWord) -> SlabWord) -> SlabWord {
        let frame = self.map().frame(head);
        let mut word = frame.owner_acquire();
        loop {
            match frame.exchange_owner(word, to(SlabWord(word)).0) {
                Ok(_) => return SlabWord(word),
                Err(now) => word = now,
            }
        }
    }
}
