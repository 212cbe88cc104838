//! Objects that readers may still look at are freed after an RCU grace period. Each CPU queues what it frees; whoever
//! plays RCU says when a grace period has ended, and each CPU then frees, in bursts, what was queued before it began.
//!
//! Bursts are what makes `list_lock` busy under mmap1: while a grace period lasts nothing comes back, so that CPUs empty
//! their partial slabs, and at its end all of it comes back at once.

use super::{SlabCx, SlabDoor, SlabGround};
use alloc::boxed::Box;

use super::chain::NONE;
use super::sheaf::Sheaf;
use crate::ground::{
    AcqRel, Acquire, Addr, AtomicU32, AtomicU64, Daemon, Guard, LockClass, Locked, Machine, Pfn, Relaxed,
};
use crate::pages::NO_FRAME;
use crate::rules::policy::GraceRule;

/// Bytes of objects that may wait on a CPU before it asks for a grace period to be hurried: they should still be in its
/// second-level cache when they are used again.
const BACKLOG: u64 = 128 << 10;
/// Where a sheaf that waits says whose it is.
const SHEAF_CACHE: u64 = 16;

/// What was queued during one grace period, oldest first.
#[derive(Clone, Copy, Debug)]
struct Batch {
    first: Addr,
    last: Option<Last>,
    objects: u32,
    /// Bytes of them.
    bytes: u64,
    /// Sheaves, linked through their headers.
    sheaves: Addr,
    /// Slabs, linked through their descriptors.
    slabs: u32,
}

/// The last object of a batch: where its link is, so that its slab need not be found again for the next one to be linked.
#[derive(Clone, Copy, Debug)]
struct Last {
    link: Addr,
}

impl Last {
    fn set_next<M: Machine>(self, machine: &M, next: Addr) {
        machine.store(self.link, next.0);
    }
}

impl Batch {
    const EMPTY: Self =
        Self { first: NONE, last: None, objects: 0, bytes: 0, sheaves: NONE, slabs: NO_FRAME };

    fn is_empty(&self) -> bool {
        self.first == NONE && self.sheaves == NONE && self.slabs == NO_FRAME
    }
}

/// What a CPU has queued.
#[derive(Debug)]
pub(super) struct Queue {
    /// The grace period during which `batches[0]` was queued.
    period: u64,
    /// Queued in this period, in the one before, and before that: only the last may be freed.
    batches: [Batch; 3],
}

/// All CPUs' queues.
#[derive(Debug)]
pub(super) struct Deferred<M: Machine> {
    /// Grace periods that have ended.
    ended: AtomicU64,
    /// Somebody has asked for the present one to be hurried.
    wanted: AtomicU32,
    queues: Box<[Locked<M, Queue>]>,
}

impl<M: Machine> Deferred<M> {
    pub(super) fn new(machine: &M, cpus: usize) -> Self {
        let queue = |cpu: usize| {
            let queue = Queue { period: 0, batches: [Batch::EMPTY; 3] };
            Locked::new(machine, LockClass::CpuSlab, cpu as u32, queue)
        };
        Self { ended: AtomicU64::new(0), wanted: AtomicU32::new(0), queues: (0..cpus).map(queue).collect() }
    }

    fn lock<'a, G: SlabGround<M>>(&'a self, slabs: SlabDoor<'a, M, G>, cpu: usize) -> Guard<'a, M, Queue> {
        let mut queue = self.queues[cpu].lock_local(slabs.machine());
        let ended = self.ended.load(Acquire);
        while queue.period < ended {
            queue.period += 1;
            queue.age(slabs);
        }
        queue
    }
}

impl Queue {
    /// Another grace period has ended.
    fn age<M: Machine, G: SlabGround<M>>(&mut self, slabs: SlabDoor<'_, M, G>) {
        let [new, old, ready] = self.batches;
        self.batches = [Batch::EMPTY, new, joined(slabs, ready, old)];
    }
}

/// All of `first`, then all of `then`.
fn joined<M: Machine, G: SlabGround<M>>(slabs: SlabDoor<'_, M, G>, first: Batch, then: Batch) -> Batch {
    if first.is_empty() {
        return then;
    }
    let mut all = first;
    if then.first != NONE {
        match first.last {
            Some(last) => last.set_next(slabs.machine(), then.first),
            None => all.first = then.first,
        }
        all.last = then.last;
        all.objects += then.objects;
        all.bytes += then.bytes;
    }
    let mut sheaf = then.sheaves;
    while sheaf != NONE {
        let next = Sheaf::linked(slabs.machine(), sheaf);
        Sheaf::link(slabs.machine(), sheaf, all.sheaves);
        all.sheaves = sheaf;
        sheaf = next;
    }
    let mut slab = then.slabs;
    while slab != NO_FRAME {
        let frame = slabs.map().frame(Pfn(slab));
        let next = frame.chained();
        frame.chain(all.slabs);
        all.slabs = slab;
        slab = next;
    }
    all
}

impl<M: Machine> Deferred<M> {
    /// Queues an object of the cache on this CPU.
    pub(super) fn defer_object<G: SlabGround<M>>(&self, cx: SlabCx<'_, M, G>, object: Addr) {
        let mut queue = self.lock(cx.slabs, usize::from(cx.machine().cpu().0));
        cx.cache.set_next(cx.machine(), object, NONE);
        let batch = &mut queue.batches[0];
        match batch.last {
            Some(last) => last.set_next(cx.machine(), object),
            None => batch.first = object,
        }
        batch.last = Some(Last { link: object.add(cx.cache.link) });
        batch.objects += 1;
        batch.bytes += u64::from(cx.cache.stride);
        let waiting = queue.batches[0].bytes + queue.batches[1].bytes;
        drop(queue);
        if waiting > BACKLOG && cx.rules().grace == GraceRule::Hurries {
            self.hurry(cx.slabs);
        }
    }

    /// Asks for a grace period, unless somebody has already.
    #[inline(never)]
    fn hurry<G: SlabGround<M>>(&self, slabs: SlabDoor<'_, M, G>) {
        if self.wanted.load(Relaxed) == 0 && self.wanted.swap(1, Relaxed) == 0 {
            slabs.machine().wake(Daemon::Rcu);
        }
    }

    /// Queues a sheaf of the cache's objects on this CPU.
    pub(super) fn defer_sheaf<G: SlabGround<M>>(&self, cx: SlabCx<'_, M, G>, sheaf: Sheaf) {
        let mut queue = self.lock(cx.slabs, usize::from(cx.machine().cpu().0));
        sheaf.note_len(cx.machine());
        cx.machine().store(sheaf.at.add(SHEAF_CACHE), u64::from(cx.cache.id.0));
        Sheaf::link(cx.machine(), sheaf.at, queue.batches[0].sheaves);
        queue.batches[0].sheaves = sheaf.at;
    }

    /// Queues a slab, of which no object is in use, on this CPU.
    pub(super) fn defer_slab<G: SlabGround<M>>(&self, slabs: SlabDoor<'_, M, G>, head: Pfn) {
        let mut queue = self.lock(slabs, usize::from(slabs.machine().cpu().0));
        slabs.map().frame(head).chain(queue.batches[0].slabs);
        queue.batches[0].slabs = head.0;
    }

    /// Looks at every slab that waits.
    pub(super) fn each_deferred_slab<G: SlabGround<M>>(
        &self,
        slabs: SlabDoor<'_, M, G>,
        mut look: impl FnMut(Pfn),
    ) {
        for cpu in 0..self.queues.len() {
            for batch in &self.lock(slabs, cpu).batches {
                let mut slab = batch.slabs;
                while slab != NO_FRAME {
                    look(Pfn(slab));
                    slab = slabs.map().frame(Pfn(slab)).chained();
                }
            }
        }
    }

    /// Looks at every object that waits, in sheaves and by itself.
    pub(super) fn each_deferred<G: SlabGround<M>>(
        &self,
        slabs: SlabDoor<'_, M, G>,
        mut look: impl FnMut(Addr),
    ) {
        for cpu in 0..self.queues.len() {
            let queue = self.lock(slabs, cpu);
            for batch in &queue.batches {
                let mut object = batch.first;
                while object != NONE {
                    look(object);
                    object =
                        slabs.slab_of(object).map_or(NONE, |(cx, _)| cx.cache.next(slabs.machine(), object));
                }
                let mut sheaf = batch.sheaves;
                while sheaf != NONE {
                    let objects = Sheaf::noted(slabs.machine(), sheaf);
                    (0..objects.len).for_each(|number| look(objects.get(slabs.machine(), number)));
                    sheaf = Sheaf::linked(slabs.machine(), sheaf);
                }
            }
        }
    }
}

impl<M: Machine, G: SlabGround<M>> SlabDoor<'_, M, G> {
    /// An RCU grace period has ended, and the next one has begun: what was queued before the one that ended began may be
    /// freed. Whoever plays RCU says this; [`SlabDoor::run_deferred`] frees.
    pub fn end_grace_period(self) {
        self.own().deferred.wanted.store(0, Relaxed);
        self.own().deferred.ended.fetch_add(1, AcqRel);
    }

    /// Whether a CPU has asked for the present grace period to be hurried; [`Daemon::Rcu`] was woken then.
    pub fn grace_period_wanted(self) -> bool {
        self.own().deferred.wanted.load(Relaxed) != 0
    }

    /// Frees up to `most` of this CPU's objects whose grace period has ended, sheaves and slabs whole; how many it freed.
    pub fn run_deferred(self, most: u32) -> u32 {
        self.run_deferred_of(usize::from(self.machine().cpu().0), most)
    }

    fn run_deferred_of(self, cpu: usize, most: u32) -> u32 {
        self.run_whole(cpu);
        let mut freed = 0;
        while freed < most {
            let mut queue = self.own().deferred.lock(self, cpu);
            let ready = &mut queue.batches[2];
            let object = ready.first;
            let Some((cx, head)) = self.slab_of(object).filter(|_| object != NONE) else { break };
            ready.first = cx.cache.next(self.machine(), object);
            ready.objects -= 1;
            ready.bytes -= u64::from(cx.cache.stride);
            if ready.first == NONE {
                ready.last = None;
            }
            drop(queue);
            // Where debugging finds fault there is nobody to tell any more; the object stays out of use.
            let _ = cx.free_object_checked(head, object);
            freed += 1;
        }
        freed
    }

    /// Sheaves go to the barn where it has room, else their objects to slabs; slabs go to the page allocator.
    fn run_whole(self, cpu: usize) {
        let mut queue = self.own().deferred.lock(self, cpu);
        let ready = &mut queue.batches[2];
        let mut sheaf = core::mem::replace(&mut ready.sheaves, NONE);
        let mut slab = core::mem::replace(&mut ready.slabs, NO_FRAME);
        drop(queue);
        while sheaf != NONE {
            let next = Sheaf::linked(self.machine(), sheaf);
            let cache = self.machine().load(sheaf.add(SHEAF_CACHE)) as usize;
            if let Some(cache) = self.own().caches.get(cache) {
                SlabCx { slabs: self, cache }.sheaves().put_away(Sheaf::noted(self.machine(), sheaf));
            }
            sheaf = next;
        }
        while slab != NO_FRAME {
            let head = Pfn(slab);
            slab = self.map().frame(head).chained();
            if let Some(cx) = self.slab_at(head) {
                cx.free_pages(head);
            }
        }
    }

    /// Frees all of every CPU's that has waited long enough, on this CPU.
    pub fn run_all_deferred(self) {
        for cpu in 0..self.own().deferred.queues.len() {
            self.run_deferred_of(cpu, u32::MAX);
        }
    }
}
