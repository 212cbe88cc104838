//! A node's partial slabs, under `list_lock`: CPUs take slabs from here and bring back what they have too many of. This
//! is the lock that docs/published.md#tang-2023 is about.

use super::cache::NodeCache;
use super::chain::{Chain, NONE};
use super::stat::SlabEvent;
use super::word::SlabWord;
use super::{SlabCx, SlabGround};
use crate::ground::{Access, Addr, Guard, Line, LineKind, Machine, Node, Pfn, Relaxed};
use crate::pages::{List, NO_FRAME};
use crate::rules::policy::{FreezeRule, RemoteRefillRule};

/// What `list_lock` protects.
#[derive(Debug, Default)]
pub(super) struct Partials {
    /// Slabs with free objects that are no CPU's.
    pub(super) list: List,
}

/// Slabs linked through their descriptors, nobody's but the holder's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slabs {
    pub(super) first: u32,
    pub(super) len: u32,
}

impl Slabs {
    pub(super) const EMPTY: Self = Self { first: NO_FRAME, len: 0 };

    /// Puts `head` before the others.
    pub(super) fn push<M: Machine, G: SlabGround<M>>(&mut self, cx: SlabCx<'_, M, G>, head: Pfn) {
        cx.mem().touch(head, Access::Write);
        cx.map().frame(head).chain(self.first);
        self.first = head.0;
        self.len += 1;
    }

    /// Takes the first one.
    pub(super) fn pop<M: Machine, G: SlabGround<M>>(&mut self, cx: SlabCx<'_, M, G>) -> Option<Pfn> {
        let head = Pfn(self.first);
        if self.first == NO_FRAME {
            return None;
        }
        cx.mem().touch(head, Access::Read);
        self.first = cx.map().frame(head).chained();
        self.len -= 1;
        Some(head)
    }
}

/// What a CPU takes from a node's list at once: the slab that it will allocate from, its free objects, and more slabs for
/// its own list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) head: Pfn,
    pub(super) first: Addr,
    pub(super) more: Slabs,
}

impl<'a, M: Machine, G: SlabGround<M>> SlabCx<'a, M, G> {
    /// Takes `list_lock` of a node.
    pub(super) fn lock_list(self, node: &'a NodeCache<M>) -> Guard<'a, M, Partials> {
        let guard = node.partial.lock(self.machine());
        self.machine().touch(Line { kind: LineKind::SlabNode, index: node.line }, Access::Write);
        guard
    }

    /// The part of the cache on the node of the slab at `head`.
    #[inline]
    pub(super) fn home(self, head: Pfn) -> &'a NodeCache<M> {
        &self.cache.nodes[usize::from(self.node_of(head).0)]
    }

    /// Slabs for this CPU from the list of `node`, else, now and then, from those of other nodes.
    pub(super) fn take_partial(self, node: Option<Node>) -> Option<Taken> {
        let local = node.unwrap_or_else(|| self.slabs.pages().local_node());
        let home = &self.cache.nodes[usize::from(local.0)];
        let taken = if self.nr_partial(home) > 0 { self.take_from(home, Wait::AsLongAsNeeded) } else { None };
        if taken.is_some() || node.is_some() {
            return taken;
        }
        self.take_elsewhere(local)
    }

    /// How many partial slabs a node has, as of a moment ago.
    #[inline]
    pub(super) fn nr_partial(self, node: &NodeCache<M>) -> u32 {
        self.machine().touch(Line { kind: LineKind::SlabNode, index: node.line }, Access::Read);
        node.nr_partial.load(Relaxed)
    }

    /// Asks the nodes in the order of `local`'s zonelist; one that has few keeps them.
    fn take_elsewhere(self, local: Node) -> Option<Taken> {
        if !self.asks_elsewhere() {
            return None;
        }
        let nodes = self
            .slabs
            .pages()
            .fallback_order(local)
            .iter()
            .map(|node| &self.cache.nodes[usize::from(node.0)]);
        let wait = match self.rules().remote_refill {
            RemoteRefillRule::Waits => Wait::AsLongAsNeeded,
            RemoteRefillRule::Tries => Wait::Never,
        };
        nodes.filter(|node| self.has_spare(node)).find_map(|node| self.take_from(node, wait))
    }

    /// Whether `node` has more partial slabs than it keeps for its own.
    pub(super) fn has_spare(self, node: &NodeCache<M>) -> bool {
        let slabs = self.nr_partial(node);
        self.cache.decide_node(self.machine(), |least| slabs > least)
    }

    /// Whether so many slabs, and the one that is taken into use, fill more than half of this CPU's own list.
    fn is_half_full(self, slabs: u32) -> bool {
        self.cache.decide_cpu(self.machine(), |most| slabs > most / 2)
    }

    /// Other nodes are asked most times, by a throw of dice; where there is but one node, never.
    pub(super) fn asks_elsewhere(self) -> bool {
        let ratio = u64::from(self.cache.sizing.remote_node_defrag_ratio);
        self.cache.nodes.len() > 1 && ratio > 0 && self.machine().random() % 1024 <= ratio
    }

    /// Takes the first slab of a list and, in the same hold, enough more to half fill this CPU's own list.
    fn take_from(self, node: &'a NodeCache<M>, wait: Wait) -> Option<Taken> {
        let mut guard = self.lock_list_as(node, wait)?;
        let mut taken: Option<Taken> = None;
        while let Some(head) = guard.list.first() {
            let first = self.freeze_if_under_lock(head, taken.is_none());
            self.unlist(node, &mut guard, head);
            match &mut taken {
                None => {
                    self.count(SlabEvent::AllocFromPartial, 1);
                    taken = Some(Taken { head, first, more: Slabs::EMPTY });
                    if !self.cache.has_cpu_partial(self.machine()) {
                        break;
                    }
                }
                Some(taken) => {
                    self.count(SlabEvent::CpuPartialNode, 1);
                    taken.more.push(self, head);
                    if self.is_half_full(taken.more.len) {
                        break;
                    }
                }
            }
        }
        drop(guard);
        if let (Some(taken), FreezeRule::Outside) = (&mut taken, self.rules().freeze) {
            taken.first = self.freeze(taken.head);
        }
        taken
    }

    pub(super) fn lock_list_as(self, node: &'a NodeCache<M>, wait: Wait) -> Option<Guard<'a, M, Partials>> {
        match wait {
            Wait::AsLongAsNeeded => Some(self.lock_list(node)),
            Wait::Never => node.partial.try_lock(self.machine()),
        }
    }

    /// Before 6.8 slabs become a CPU's while the lock is held: the one to allocate from gives up its free objects, the
    /// others only change hands.
    fn freeze_if_under_lock(self, head: Pfn, to_allocate_from: bool) -> Addr {
        match (self.rules().freeze, to_allocate_from) {
            (FreezeRule::UnderLock, true) => self.freeze(head),
            (FreezeRule::UnderLock, false) => {
                self.change(head, |word| word.frozen(true));
                NONE
            }
            (FreezeRule::Outside, _) => NONE,
        }
    }

    /// The slab at `head` becomes a CPU's; its free objects are taken.
    pub(super) fn freeze(self, head: Pfn) -> Addr {
        let objects = self.cache.objects(self.order_of(head));
        let before = self.change(head, |word| word.taken(objects).frozen(true));
        before.first_free().map_or(NONE, |number| self.cache.object(head, number))
    }

    /// Puts a slab on its node's list.
    pub(super) fn list(self, node: &NodeCache<M>, partials: &mut Partials, head: Pfn, end: End) {
        match end {
            End::Head => partials.list.push_front(self.mem(), head),
            End::Tail => partials.list.push_back(self.mem(), head),
        }
        node.nr_partial.store(partials.list.len(), Relaxed);
        self.change_quietly(head, |word| word.listed(true));
    }

    /// Takes a slab off its node's list.
    pub(super) fn unlist(self, node: &NodeCache<M>, partials: &mut Partials, head: Pfn) {
        partials.list.remove(self.mem(), head);
        node.nr_partial.store(partials.list.len(), Relaxed);
        self.change_quietly(head, |word| word.listed(false));
    }

    /// A CPU's partial slabs go to the lists of their nodes, in one hold for each run of one node; empty slabs beyond
    /// what a node keeps go back to the page allocator.
    pub(super) fn put_partials(self, mut slabs: Slabs) {
        let mut empty = Slabs::EMPTY;
        let mut held: Option<(&NodeCache<M>, Guard<'_, M, Partials>)> = None;
        while let Some(head) = slabs.pop(self) {
            let node = self.home(head);
            let (node, mut partials) = match held.take() {
                Some((held, guard)) if core::ptr::eq(held, node) => (held, guard),
                other => {
                    drop(other);
                    (node, self.lock_list(node))
                }
            };
            let word = match self.rules().freeze {
                FreezeRule::UnderLock => self.change(head, |word| word.frozen(false)).frozen(false),
                FreezeRule::Outside => self.look(head),
            };
            if word.in_use() == 0 && self.cache.is_enough_partial(self.machine(), partials.list.len()) {
                empty.push(self, head);
            } else {
                self.list(node, &mut partials, head, End::Tail);
                self.count(SlabEvent::FreeAddPartial, 1);
            }
            held = Some((node, partials));
        }
        drop(held);
        while let Some(head) = empty.pop(self) {
            self.count(SlabEvent::DeactivateEmpty, 1);
            self.discard(head);
        }
    }

    /// The slab at `head`, which was this CPU's, is left; `free` are the objects that the CPU still had of it.
    pub(super) fn deactivate(self, head: Pfn, free: Option<Chain>) {
        let remote = self.look(head).first_free().is_some();
        let mut end = End::Head;
        if remote {
            self.count(SlabEvent::DeactivateRemoteFrees, 1);
            end = End::Tail;
        }
        let node = self.home(head);
        let (after, guard) = self.give_back(head, free, node);
        if guard.is_none() && self.is_superfluous(after, node) {
            self.count(SlabEvent::DeactivateEmpty, 1);
            self.discard(head);
        } else if after.first_free().is_some() {
            let mut guard = guard.unwrap_or_else(|| self.lock_list(node));
            self.list(node, &mut guard, head, end);
            drop(guard);
            let event = if remote { SlabEvent::DeactivateToTail } else { SlabEvent::DeactivateToHead };
            self.count(event, 1);
        } else {
            self.count(SlabEvent::DeactivateFull, 1);
        }
    }

    /// Whether a slab is empty and its node has partial slabs enough.
    fn is_superfluous(self, word: SlabWord, node: &NodeCache<M>) -> bool {
        word.in_use() == 0 && self.cache.is_enough_partial(self.machine(), self.nr_partial(node))
    }

    /// A slab is nobody's any more, and `free` are among its free objects again. Before 6.8 one that gets onto its node's
    /// list changes hands under the lock, which is still held then.
    fn give_back(
        self,
        head: Pfn,
        free: Option<Chain>,
        node: &'a NodeCache<M>,
    ) -> (SlabWord, Option<Guard<'a, M, Partials>>) {
        loop {
            let word = self.look(head);
            let new = self.with_free(head, word, free).frozen(false);
            let under_lock = self.rules().freeze == FreezeRule::UnderLock
                && new.first_free().is_some()
                && !self.is_superfluous(new, node);
            let guard = under_lock.then(|| self.lock_list(node));
            if self.exchange(head, word, new) {
                return (new, guard);
            }
        }
    }

    /// What the word of the slab at `head` is once `free` are before the free objects that it has.
    fn with_free(self, head: Pfn, word: SlabWord, free: Option<Chain>) -> SlabWord {
        let Some(chain) = free else { return word };
        let first = self.cache.number(head, self.order_of(head), chain.first).unwrap_or(0);
        let next = word.first_free().map_or(NONE, |number| self.cache.object(head, number));
        self.cache.set_next(self.machine(), chain.last, next);
        word.freed(first, chain.len)
    }
}

/// Whether a lock is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    AsLongAsNeeded,
    Never,
}

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Head,
    Tail,
}

#[cfg(test)]
mod tests {
    use crate::ground::topology::NodeSize;
    use crate::slab::{CacheFlags, CacheSpec};
    use crate::{Bare, Knobs, Mm, Node, Policy, Topology};

    /// Leaves a slab of node 0 of which `left` of 24 objects are still the CPU's, while somebody holds that node's
    /// `list_lock`: a second taking of it panics on this machine.
    fn leave_while_locked(policy: &str, left: usize) -> bool {
        let nodes = [NodeSize { bytes: 1 << 28, cpus: 1 }; 2];
        let distance = alloc::vec![alloc::vec![10, 20], alloc::vec![20, 10]];
        let topology = Topology::x86(&nodes, 1 << 20, distance).unwrap();
        let policy = Policy::parse(policy).unwrap();
        let mm = Mm::new(Bare::default(), topology, policy, Knobs::default()).unwrap();
        let id = mm.slabs().create_cache(CacheSpec::new("vma", 168).with(CacheFlags::NO_MERGE)).unwrap();
        let objects = mm.slabs().cache(id).unwrap().sizing().objects as usize;
        for _ in left..objects {
            mm.slabs().kmem_cache_alloc(id).unwrap();
        }
        let cx = mm.slabs().slab_cx(id).unwrap();
        let leaves = || mm.slabs().kmem_cache_alloc_node(id, Some(Node(1))).unwrap();
        let guard = cx.lock_list(&cx.cache.nodes[0]);
        let takes_lock = std::panic::catch_unwind(std::panic::AssertUnwindSafe(leaves)).is_err();
        drop(guard);
        takes_lock
    }

    #[test]
    fn a_slab_without_free_objects_is_left_without_the_lock() {
        for policy in ["linux-5.10", "linux-6.1", "linux-6.6", "linux-6.8", "linux-6.18"] {
            assert!(!leave_while_locked(policy, 0), "{policy}");
            assert!(leave_while_locked(policy, 1), "{policy}");
        }
    }
}
