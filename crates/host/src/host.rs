//! The allocator on this machine, for programs that need pages: [`Host`] hands out [`Pages`], which go back when dropped.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io, slice};

use mm::ids::{PAGE_SHIFT, PAGE_SIZE};
use mm::knobs::KnobError;
use mm::{
    AllocError, Counters, Knob, Knobs, MemoryUse, Mm, Order, Pfn, Policy, Request, Topology, ZonePages,
};

use crate::arena::Arena;
use crate::daemons::{Daemons, tick_all};
use crate::machine::HostMachine;
use crate::system::System;

/// Why there is no [`Host`].
#[derive(Debug)]
pub enum HostError {
    /// The size is under a page, or above 16 TiB; in bytes.
    Size(u64),
    /// The topology is impossible; says why.
    Topology(String),
    /// The system does not lend the address space.
    Map(io::Error),
    /// A daemon's thread cannot be started.
    Daemon(io::Error),
    /// A cache that is measured cannot be made; says why.
    Cache(String),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => write!(f, "{bytes} bytes of memory cannot be managed; 4096 to 2^44 can"),
            Self::Topology(what) => write!(f, "impossible topology: {what}"),
            Self::Map(error) => write!(f, "cannot reserve address space: {error}"),
            Self::Daemon(error) => write!(f, "cannot start a daemon's thread: {error}"),
            Self::Cache(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for HostError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Map(error) | Self::Daemon(error) => Some(error),
            Self::Size(_) | Self::Topology(_) | Self::Cache(_) => None,
        }
    }
}

/// A page allocator over memory of this process, with its daemons. Shared by reference among any number of threads.
///
/// Part of the memory is a reserve below the min watermark, which ordinary requests do not get; `vm.min_free_kbytes`
/// says how large it is, 5 % at most where it was not set.
#[derive(Debug)]
pub struct Host {
    // Before `mm`: the daemons end first.
    daemons: Mutex<Option<Daemons>>,
    mm: Arc<Mm<HostMachine>>,
    nodes_bound: bool,
}

impl Host {
    /// An allocator over `bytes` of memory, rounded down to whole pages, spread over this machine's nodes.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn new(bytes: u64, policy: Policy, knobs: Knobs) -> Result<Self, HostError> {
        let frames = bytes >> PAGE_SHIFT;
        let frames = u32::try_from(frames).ok().filter(|&frames| (1..u32::MAX).contains(&frames));
        let frames = frames.ok_or(HostError::Size(bytes))?;
        let system = System::this();
        let arena = Arena::reserve(frames).map_err(HostError::Map)?;
        let mut nodes_bound = true;
        if system.memory_nodes() > 1 {
            for placement in system.placements(frames) {
                nodes_bound &= arena.prefer_node(placement.frames, placement.node).is_ok();
            }
        }
        let host = Self::start(arena, system.topology(frames), policy, knobs)?;
        Ok(Self { nodes_bound, ..host })
    }

    /// An allocator on a machine that is made out to be `topology`: memory from wherever the system gives it, CPU
    /// numbers folded into the topology's.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn with_topology(topology: Topology, policy: Policy, knobs: Knobs) -> Result<Self, HostError> {
        topology.validate().map_err(HostError::Topology)?;
        let zones = topology.nodes.iter().flat_map(|node| &node.zones);
        let frames = zones.map(|zone| zone.start.0 + zone.spanned).max().unwrap_or(0);
        let arena = Arena::reserve(frames).map_err(HostError::Map)?;
        Self::start(arena, topology, policy, knobs)
    }

    fn start(arena: Arena, topology: Topology, policy: Policy, knobs: Knobs) -> Result<Self, HostError> {
        let machine = HostMachine::new(&topology, arena);
        let mm = Arc::new(Mm::new(machine, topology, policy, knobs).map_err(HostError::Topology)?);
        let daemons = Daemons::start(Arc::clone(&mm)).map_err(HostError::Daemon)?;
        Ok(Self { daemons: Mutex::new(Some(daemons)), mm, nodes_bound: true })
    }

    /// Allocates a block. Its bytes are whatever was there before, unless the request says `zero`.
    ///
    /// # Errors
    /// If there is no block; see [`AllocError`].
    #[inline]
    pub fn alloc(&self, request: Request) -> Result<Pages<'_>, AllocError> {
        let pfn = self.mm.alloc(request)?;
        Ok(Pages { host: self, pfn, order: request.order })
    }

    /// Gives `value` to `knob`, in mid-run, as writing to a sysctl does.
    ///
    /// # Errors
    /// If the value is out of the knob's range.
    pub fn set_knob(&self, knob: Knob, value: u64) -> Result<(), KnobError> {
        self.mm.set_knob(knob, value)
    }

    /// Empties every CPU's page lists into the free lists.
    pub fn drain_all(&self) {
        self.mm.drain_all();
    }

    /// A vmstat tick of every CPU, ahead of its time.
    pub fn tick(&self) {
        tick_all(&self.mm);
    }

    /// Ends the daemons: from here on only [`Host::tick`] ticks.
    pub fn stop_daemons(&self) {
        let daemons = self.daemons.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(daemons);
    }

    /// Where memory is.
    pub fn memory_use(&self) -> MemoryUse {
        self.mm.views().memory_use()
    }

    /// Counters under vmstat's names.
    pub fn counters(&self) -> Counters {
        self.mm.views().counters()
    }

    /// What the allocator was told of the machine.
    pub fn topology(&self) -> &Topology {
        self.mm.topology()
    }

    /// Whether each node's memory comes from that node: always with one node, else if the system let us ask for it.
    pub fn nodes_bound(&self) -> bool {
        self.nodes_bound
    }

    /// The allocator, for the rooms of this crate that keep what [`Host::mm`] asks for.
    #[inline]
    pub(crate) fn raw(&self) -> &Mm<HostMachine> {
        &self.mm
    }

    /// Walks every invariant of the allocator and its caches. No other thread may allocate or free meanwhile, or it may find fault
    /// where there is none; the daemons are stopped for it.
    ///
    /// # Errors
    /// The first invariant that does not hold, in one line.
    pub fn check(&self) -> Result<ZonePages, String> {
        let mut daemons = self.daemons.lock().unwrap_or_else(PoisonError::into_inner);
        let running = daemons.take().is_some();
        let result = self.mm.slabs().check_caches().and_then(|()| self.mm.views().check());
        if running {
            let started = Daemons::start(Arc::clone(&self.mm));
            *daemons = Some(started.map_err(|error| HostError::Daemon(error).to_string())?);
        }
        result
    }

    /// The allocator itself, for measurements without [`Pages`] around blocks, or [`Object`](crate::Object)s.
    ///
    /// # Safety
    /// Only blocks and objects that were allocated through this reference are freed or split through it.
    pub unsafe fn mm(&self) -> &Arc<Mm<HostMachine>> {
        &self.mm
    }
}

/// A block of pages: bytes that are the holder's alone until it is dropped, from any thread.
pub struct Pages<'h> {
    host: &'h Host,
    pfn: Pfn,
    order: Order,
}

impl<'h> Pages<'h> {
    /// The first frame.
    pub fn pfn(&self) -> Pfn {
        self.pfn
    }

    /// log2 of the pages.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Where the block begins; aligned to its own size.
    #[inline]
    pub fn address(&self) -> NonNull<u8> {
        self.host.mm.machine().arena().address(self.pfn, self.order)
    }

    /// Makes single pages of it.
    pub fn split(self) -> Vec<Pages<'h>> {
        let (host, first, order) = (self.host, self.pfn, self.order);
        let split = host.mm.pages().split(first, order);
        debug_assert_eq!(split, Ok(()), "a block that is owned can be split");
        if split.is_err() {
            return vec![self];
        }
        std::mem::forget(self);
        let page = |page| Pages { host, pfn: first.add(page), order: Order::ZERO };
        (0..order.pages()).map(page).collect()
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.order.pages() as usize * PAGE_SIZE as usize
    }
}

impl Deref for Pages<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block is mapped as long as the host lives, its bytes are always initialised (zero at first), and
        // it is this owner's alone: the host frees and splits a block only through its owner.
        unsafe { slice::from_raw_parts(self.address().as_ptr(), self.bytes()) }
    }
}

impl DerefMut for Pages<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and the owner is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.address().as_ptr(), self.bytes()) }
    }
}

impl Drop for Pages<'_> {
    #[inline]
    fn drop(&mut self) {
        let freed = self.host.mm.free(self.pfn, self.order);
        debug_assert_eq!(freed, Ok(()), "a block that is owned can be freed");
    }
}

impl fmt::Debug for Pages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pages({}, {})", self.pfn, self.order)
    }
}
