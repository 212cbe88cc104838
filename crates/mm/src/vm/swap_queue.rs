//! Requests to a disk that swap is on. Whoever makes several gathers them and sends them when it has no more (a task's `blk_plug`): pages of
//! neighbouring slots become one request, and all pages of a request are there at the same time.
//!
//! ```text
//!   start ─▶ a page: the last request, if its slot follows; else a new one ─▶ finish: all are sent
//!                      │                                  │
//!                      │                                  └─▶ so many are gathered, or one is large: these are sent
//!                      └─▶ so many writes are on their way: what is gathered is sent, and waited for, all of it (wbt)
//! ```
//!
//! Who gathers within somebody who does is part of him: **what reclaim writes for a page that is read ahead is sent when all of these reads
//! are.** Until then none of it can be freed, so reclaim goes on to write, thousands of pages for one (measured on 6.18; traced on 6.12).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{SpacesGround, SwapDoor};
use crate::ground::ids::{Cpu, Nanos, Order, Pfn};
use crate::ground::machine::{Machine, SwapIo};
use crate::ground::sync::Relaxed;
use crate::lru::VecEvent;
use crate::rules::policy::PlugRule;

/// A request has no more pages: virtio's disks take 254 pieces of memory in one (`seg_max`), others 128 to 320 pages.
const REQUEST_PAGES: u32 = 254;

/// A request of so many pages is large: 128 KiB (`BLK_PLUG_FLUSH_SIZE`).
const LARGE_PAGES: u32 = 32;

/// A page on its way to its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub(crate) slot: u32,
    pub(crate) pfn: Pfn,
}

/// What a request is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Read,
    Write,
}

/// Pages of neighbouring slots, from `first` on.
#[derive(Debug)]
struct Request {
    kind: Kind,
    first: u32,
    len: u32,
    /// Those that are written.
    pages: Vec<Leaving>,
}

impl Request {
    fn read(slot: u32) -> Self {
        Self { kind: Kind::Read, first: slot, len: 1, pages: Vec::new() }
    }

    fn write(page: Leaving) -> Self {
        Self { kind: Kind::Write, first: page.slot, len: 1, pages: alloc::vec![page] }
    }

    /// Whether a request of `kind` that is about `slot` can be part of this.
    fn may_take(&self, kind: Kind, slot: u32) -> bool {
        let is_beside = slot + 1 == self.first || slot == self.first + self.len;
        kind == self.kind && is_beside && self.len < REQUEST_PAGES
    }

    fn take(&mut self, other: Self) {
        self.first = self.first.min(other.first);
        self.len += other.len;
        self.pages.extend(other.pages);
    }
}

/// What is gathered on a CPU.
#[derive(Debug, Default)]
struct Plug {
    /// So many gather, each within the one before.
    depth: u32,
    requests: Vec<Request>,
}

/// Requests of swap to its disk.
#[derive(Debug, Default)]
pub(super) struct Queue {
    plugs: BTreeMap<Cpu, Plug>,
    /// When each request to write that was sent is done.
    sent: VecDeque<Nanos>,
    /// Pages that the disk does not have yet, in the order in which it gets them.
    on_its_way: VecDeque<(Nanos, Leaving)>,
}

impl Queue {
    /// `request` of one page is gathered on `cpu`; gives those that are to be sent before it.
    fn gather(&mut self, cpu: Cpu, request: Request, rule: PlugRule) -> Vec<Request> {
        let plug = self.plugs.entry(cpu).or_default();
        if let Some(last) = plug.requests.last_mut().filter(|last| last.may_take(request.kind, request.first))
        {
            last.take(request);
            return Vec::new();
        }
        let large = match rule {
            PlugRule::SixteenByLast | PlugRule::ByLast => plug.requests.last(),
            PlugRule::ByFirst => plug.requests.first(),
        };
        let is_due =
            plug.requests.len() >= rule.most() || large.is_some_and(|large| large.len >= LARGE_PAGES);
        let due = if is_due { core::mem::take(&mut plug.requests) } else { Vec::new() };
        plug.requests.push(request);
        due
    }

    /// Whether writing to `slot` would be a new request on `cpu`.
    fn is_new_write(&self, cpu: Cpu, slot: u32) -> bool {
        let last = self.plugs.get(&cpu).and_then(|plug| plug.requests.last());
        last.is_none_or(|last| !last.may_take(Kind::Write, slot))
    }

    /// Requests to write that are gathered anywhere, or were sent and are not done at `now`.
    fn writes(&mut self, now: Nanos) -> u32 {
        while self.sent.front().is_some_and(|done| *done <= now) {
            self.sent.pop_front();
        }
        let all = self.plugs.values().flat_map(|plug| &plug.requests);
        let gathered = all.filter(|request| request.kind == Kind::Write).count();
        (gathered + self.sent.len()) as u32
    }

    /// Pages that are gathered to be written, or were sent and are not there at `now`.
    fn leaving(&self, now: Nanos) -> u64 {
        let gathered: usize =
            self.plugs.values().flat_map(|plug| &plug.requests).map(|request| request.pages.len()).sum();
        let sent = self.on_its_way.iter().filter(|(done, _)| *done > now).count();
        (gathered + sent) as u64
    }

    fn gathers(&self, cpu: Cpu) -> bool {
        self.plugs.get(&cpu).is_some_and(|plug| plug.depth > 0)
    }

    /// Nothing waits that nobody is going to send, and requests are of the pages that they say.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        for (cpu, plug) in &self.plugs {
            if plug.depth == 0 && !plug.requests.is_empty() {
                return Err(format!(
                    "CPU {} gathers nothing, and has {} requests",
                    cpu.0,
                    plug.requests.len()
                ));
            }
            for Request { kind, first, len, pages } in &plug.requests {
                let within = pages.iter().all(|page| (*first..first + len).contains(&page.slot));
                let expected = if *kind == Kind::Write { *len as usize } else { 0 };
                if pages.len() != expected || !within {
                    return Err(format!(
                        "a request of {len} slots from {first} on has {} pages",
                        pages.len()
                    ));
                }
            }
        }
        Ok(())
    }
}

impl<M: Machine, G: SpacesGround<M>> SwapDoor<'_, M, G> {
    /// From now on, until [`SwapDoor::finish_plug`], the caller gathers what it asks of a disk. Gives the CPU, if swap is on one.
    pub(crate) fn start_plug(self) -> Option<Cpu> {
        if !self.may_gather() {
            return None;
        }
        let cpu = self.machine().cpu();
        self.slots().queue.plugs.entry(cpu).or_default().depth += 1;
        Some(cpu)
    }

    /// Whether swap is on a disk; who asks this has no lock to take where it is not.
    fn may_gather(self) -> bool {
        self.own().swap.on_disk.load(Relaxed) == 1
    }

    /// Who gathered has no more; the last of them sends it.
    pub(crate) fn finish_plug(self, plug: Option<Cpu>) {
        let Some(cpu) = plug else { return };
        let due = {
            let mut used = self.slots();
            let plug = used.queue.plugs.entry(cpu).or_default();
            plug.depth = plug.depth.saturating_sub(1);
            if plug.depth == 0 { core::mem::take(&mut plug.requests) } else { Vec::new() }
        };
        self.send(due);
    }

    /// [`Machine::wait`] of who may have gathered something: that is sent before.
    pub(crate) fn pause(self, at_most: Nanos) {
        if self.may_gather() {
            self.flush_plug(self.machine().cpu());
        }
        self.machine().wait(at_most);
    }

    /// What is gathered on `cpu` is sent.
    fn flush_plug(self, cpu: Cpu) {
        let due = self.slots().queue.plugs.get_mut(&cpu).map(|plug| core::mem::take(&mut plug.requests));
        self.send(due.unwrap_or_default());
    }

    /// What is in `slot` is read, which has its place among what is gathered. When it is there the machine is asked by itself.
    pub(super) fn gather_read(self, slot: u32) {
        if !self.may_gather() {
            return;
        }
        let (cpu, rule) = (self.machine().cpu(), self.rules().reclaim.swap.plug);
        let due = {
            let mut used = self.slots();
            if !used.queue.gathers(cpu) {
                return;
            }
            used.queue.gather(cpu, Request::read(slot), rule)
        };
        self.send(due);
    }

    /// `page`, which nothing maps any more and is beside its slot, is to be written there.
    pub(crate) fn gather_write(self, page: Leaving) {
        if self.slots().queue.is_new_write(self.machine().cpu(), page.slot) {
            self.wait_for_writes();
        }
        let (cpu, rule) = (self.machine().cpu(), self.rules().reclaim.swap.plug);
        let (due, gathers) = {
            let mut used = self.slots();
            (used.queue.gather(cpu, Request::write(page), rule), used.queue.gathers(cpu))
        };
        self.send(due);
        if !gathers {
            // The task may be on another by now.
            self.flush_plug(cpu);
        }
    }

    /// A page of `order` is written at once, by who does not gather; gives what it is counted as.
    pub(crate) fn write_now(self, order: Order) -> VecEvent {
        if self.may_gather() {
            self.wait_for_writes();
            let done = self.transfer(order.pages());
            self.slots().queue.sent.push_back(done);
        } else {
            self.transfer(order.pages());
        }
        self.count_written(order)
    }

    /// Pages that are gathered, or were sent, and that the disk does not have yet; with others that were claimed meanwhile.
    pub fn pages_on_their_way(self) -> u64 {
        self.slots().queue.leaving(self.machine().now())
    }

    fn transfer(self, pages: u32) -> Nanos {
        (0..pages).fold(self.machine().now(), |_, _| self.machine().swap_io(SwapIo::Write))
    }

    /// Where as many requests to write are on their way as may be, sends what is gathered, and waits until all are done: a disk that
    /// has a cache of its own is let work (`wbt_rqw_done`).
    fn wait_for_writes(self) {
        let now = self.machine().now();
        let is_full = {
            let mut used = self.slots();
            let most = used.device.writes();
            used.queue.writes(now) >= most
        };
        if !is_full {
            return;
        }
        self.flush_plug(self.machine().cpu());
        let last = self.slots().queue.sent.back().copied();
        if let Some(left) =
            last.and_then(|last| last.0.checked_sub(self.machine().now().0)).filter(|left| *left > 0)
        {
            self.machine().wait(Nanos(left));
        }
    }

    /// Requests go to the disk.
    fn send(self, requests: Vec<Request>) {
        for request in requests {
            if request.kind == Kind::Read {
                continue;
            }
            let done = self.transfer(request.len);
            let mut used = self.slots();
            used.queue.sent.push_back(done);
            used.queue.on_its_way.extend(request.pages.into_iter().map(|page| (done, page)));
            self.own().swap.waiting.store(1, Relaxed);
        }
    }

    /// The first page that is on its way, if the disk has it by now.
    pub(super) fn next_written(self) -> Option<Leaving> {
        let mut used = self.slots();
        let Some((done, page)) = used.queue.on_its_way.front().copied() else {
            self.own().swap.waiting.store(0, Relaxed);
            return None;
        };
        if done > self.machine().now() {
            return None;
        }
        used.queue.on_its_way.pop_front();
        Some(page)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    const CPU: Cpu = Cpu(0);

    fn write(queue: &mut Queue, slots: core::ops::Range<u32>, rule: PlugRule) -> Vec<u32> {
        let page = |slot: u32| Leaving { slot, pfn: Pfn(slot) };
        let sent = slots.flat_map(|slot| queue.gather(CPU, Request::write(page(slot)), rule));
        sent.map(|request| request.len).collect()
    }

    /// The requests that are gathered, by their first slots and their pages.
    fn gathered(queue: &Queue) -> Vec<(u32, u32)> {
        queue.plugs[&CPU].requests.iter().map(|request| (request.first, request.len)).collect()
    }

    fn queue() -> Queue {
        let mut queue = Queue::default();
        queue.plugs.entry(CPU).or_default().depth = 1;
        queue
    }

    #[test]
    fn neighbours_are_one_request() {
        let mut queue = queue();
        assert!(write(&mut queue, 10..14, PlugRule::ByFirst).is_empty());
        assert!(write(&mut queue, 9..10, PlugRule::ByFirst).is_empty());
        assert!(!queue.is_new_write(CPU, 14) && queue.is_new_write(CPU, 15));
        assert!(queue.gather(CPU, Request::read(14), PlugRule::ByFirst).is_empty());
        assert!(queue.is_new_write(CPU, 15), "a read is between");
        write(&mut queue, 15..16, PlugRule::ByFirst);
        assert_eq!(gathered(&queue), [(9, 5), (14, 1), (15, 1)]);
        assert_eq!(queue.writes(Nanos(0)), 2);
        queue.check().unwrap();
    }

    #[test]
    fn by_the_last_request_a_large_one_goes_before_the_next() {
        for rule in [PlugRule::SixteenByLast, PlugRule::ByLast] {
            let mut queue = queue();
            assert!(write(&mut queue, 100..100 + REQUEST_PAGES, rule).is_empty());
            assert_eq!(write(&mut queue, 354..355, rule), [REQUEST_PAGES], "it is full, and goes");
            assert_eq!(gathered(&queue), [(354, 1)]);
        }
    }

    #[test]
    fn by_the_first_request_what_follows_a_small_one_waits() {
        let mut queue = queue();
        queue.gather(CPU, Request::read(7), PlugRule::ByFirst);
        assert!(write(&mut queue, 100..100 + 31 * REQUEST_PAGES, PlugRule::ByFirst).is_empty());
        let sent = write(&mut queue, 9000..9001, PlugRule::ByFirst);
        assert_eq!((sent.len(), sent[0], sent[31]), (32, 1, REQUEST_PAGES), "there are 32");
        let mut queue = Queue::default();
        write(&mut queue, 100..100 + LARGE_PAGES, PlugRule::ByFirst);
        assert_eq!(write(&mut queue, 9000..9001, PlugRule::ByFirst), [LARGE_PAGES], "the first is large");
        assert!(queue.check().is_err(), "nobody gathers");
    }

    #[test]
    fn sixteen_small_ones_were_enough() {
        for (rule, most) in [(PlugRule::SixteenByLast, 16), (PlugRule::ByLast, 32), (PlugRule::ByFirst, 32)] {
            let mut queue = queue();
            let each = |queue: &mut Queue, slot: u32| write(queue, 2 * slot..2 * slot + 1, rule).len();
            assert_eq!((0..most).map(|slot| each(&mut queue, slot)).sum::<usize>(), 0);
            assert_eq!(each(&mut queue, most), most as usize, "{rule:?}");
        }
    }
}
