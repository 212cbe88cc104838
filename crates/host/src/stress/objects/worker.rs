//! One thread of a stress run on objects.

use std::sync::mpsc::{Receiver, Sender};

use mm::Knob;
use mm::slab::{CacheFlags, CacheSpec};

use super::{GracePeriods, ObjectTally};
use crate::host::Host;
use crate::objects::{Object, ObjectCache};
use crate::rng::Rng;
use crate::stress::StressEnd;

/// Objects that a thread holds at most; from there on it frees.
const HELD_MAX: usize = 2000;
/// Operations between two looks at whether to end.
const STRIDE: u64 = 64;
/// Caches that a thread makes at most.
const LATE_MAX: usize = 3;
/// The upper 16 bits of a deferred object's words; the lower 48 are the grace period.
const DEFERRED: u64 = 0xdefe;

/// An object with the stamp that all its words carry.
#[derive(Debug)]
pub(super) struct StampedObject<'h> {
    object: Object<'h>,
    stamp: u64,
}

pub(super) struct ObjectWorker<'h> {
    host: &'h Host,
    grace: &'h GracePeriods,
    /// Those that all threads use, then those that this one made.
    caches: Vec<ObjectCache<'h>>,
    late: usize,
    number: u64,
    rng: Rng,
    held: Vec<StampedObject<'h>>,
    others: Vec<Sender<StampedObject<'h>>>,
    inbox: Receiver<StampedObject<'h>>,
    stamps: u64,
    tally: ObjectTally,
}

impl<'h> ObjectWorker<'h> {
    pub(super) fn new(
        host: &'h Host,
        grace: &'h GracePeriods,
        caches: Vec<ObjectCache<'h>>,
        number: u64,
        rng: Rng,
        others: Vec<Sender<StampedObject<'h>>>,
        inbox: Receiver<StampedObject<'h>>,
    ) -> Self {
        let tally = ObjectTally::default();
        Self { host, grace, caches, late: 0, number, rng, held: vec![], others, inbox, stamps: 0, tally }
    }

    /// The caches that it knows.
    pub(super) fn caches(&self) -> &[ObjectCache<'h>] {
        &self.caches
    }

    /// The objects that it holds.
    pub(super) fn held(&self) -> impl Iterator<Item = &Object<'h>> {
        self.held.iter().map(|held| &held.object)
    }

    /// Does `operations`, or as many as there are before `end`. What others send meanwhile is held in the end.
    pub(super) fn run(&mut self, operations: u64, end: &StressEnd) -> Result<(), String> {
        for operation in 0..operations {
            if operation % STRIDE == 0 && end.reached() {
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    /// Takes in what was sent to it. Only while nobody sends.
    pub(super) fn empty_inbox(&mut self) {
        self.held.extend(self.inbox.try_iter());
    }

    /// Frees all that it holds.
    pub(super) fn finish(mut self) -> Result<ObjectTally, String> {
        self.empty_inbox();
        while let Some(held) = self.held.pop() {
            self.free(held)?;
        }
        Ok(self.tally)
    }

    fn step(&mut self) -> Result<(), String> {
        if let Ok(held) = self.inbox.try_recv() {
            if self.rng.one_in(2) { self.free(held)? } else { self.held.push(held) }
        }
        let full = self.held.len() >= HELD_MAX;
        match self.rng.below(1000) {
            0..=4 => self.disturb(),
            5..=350 if !full => return self.allocate(),
            351..=380 if !full => return self.allocate_many(),
            381..=430 if !full => return self.kmalloc(),
            431..=450 if !full => return self.set_aside(),
            451..=500 => return self.free_many(),
            501..=580 => return self.defer(),
            581..=670 => self.send(),
            671..=690 => drop(self.host.run_deferred(20)),
            _ => {
                if let Some(held) = self.pick() {
                    return self.free(held);
                }
            }
        }
        Ok(())
    }

    fn pick(&mut self) -> Option<StampedObject<'h>> {
        if self.held.is_empty() {
            return None;
        }
        let index = self.rng.below(self.held.len() as u64) as usize;
        Some(self.held.swap_remove(index))
    }

    fn cache(&mut self) -> ObjectCache<'h> {
        self.caches[self.rng.below(self.caches.len() as u64) as usize]
    }

    fn allocate(&mut self) -> Result<(), String> {
        match self.cache().alloc() {
            Ok(object) => self.hold(object),
            Err(_) => self.free_half(),
        }
    }

    fn kmalloc(&mut self) -> Result<(), String> {
        let size = 1 << self.rng.below(11);
        match self.host.kmalloc(size + self.rng.below(u64::from(size)) as u32) {
            Ok(object) => self.hold(object),
            Err(_) => self.free_half(),
        }
    }

    fn allocate_many(&mut self) -> Result<(), String> {
        let mut objects = vec![];
        let count = 1 + self.rng.below(100) as u32;
        let done = self.cache().alloc_many(count, &mut objects);
        for object in objects {
            self.hold(object)?;
        }
        if done.is_ok() { Ok(()) } else { self.free_half() }
    }

    fn set_aside(&mut self) -> Result<(), String> {
        let count = 1 + self.rng.below(60) as u32;
        // Without memory or sheaves there is nothing to be had.
        let Ok(mut aside) = self.cache().prefill(count) else { return Ok(()) };
        for _ in 0..self.rng.below(u64::from(count) + 1) {
            let object = aside.take().ok_or("fewer objects were set aside than were asked for")?;
            self.hold(object)?;
        }
        Ok(())
    }

    fn free_half(&mut self) -> Result<(), String> {
        self.tally.failed += 1;
        for held in self.held.split_off(self.held.len() / 2) {
            self.free(held)?;
        }
        self.host.shrink_caches();
        Ok(())
    }

    /// Writes a stamp that no other object has or had to the whole object, after a look at what it was before.
    fn hold(&mut self, mut object: Object<'h>) -> Result<(), String> {
        self.tally.allocated += 1;
        self.check_waited(&object)?;
        self.stamps += 1;
        let stamp = (self.number << 40) + (self.stamps << 10);
        fill(&mut object, |index| stamp + index);
        self.held.push(StampedObject { object, stamp });
        Ok(())
    }

    /// An object that was deferred comes back only after a whole grace period. Its first and its last word tell, where
    /// the allocator's link is neither.
    fn check_waited(&mut self, object: &Object<'h>) -> Result<(), String> {
        let mut words = object.chunks_exact(8).map(word);
        let (Some(first), Some(last)) = (words.next(), words.next_back()) else { return Ok(()) };
        if object.len() < 24 || first != last || first >> 48 != DEFERRED {
            return Ok(());
        }
        self.tally.reused += 1;
        let (queued, now) = (first & ((1 << 48) - 1), self.grace.most());
        if now < queued + 2 {
            return Err(format!("{object:?} was deferred in grace period {queued} and is back in {now}"));
        }
        Ok(())
    }

    /// Looks whether the object still has its stamp.
    fn check(&mut self, held: &StampedObject<'h>) -> Result<(), String> {
        self.tally.checked += 1;
        for (bytes, index) in held.object.chunks(8).zip(0..) {
            let wanted = held.stamp + index;
            if *bytes != wanted.to_ne_bytes()[..bytes.len()] {
                let object = &held.object;
                return Err(format!(
                    "word {index} of {object:?} reads {bytes:x?}, its owner wrote {wanted:#x}"
                ));
            }
        }
        Ok(())
    }

    fn free(&mut self, held: StampedObject<'h>) -> Result<(), String> {
        self.check(&held)?;
        drop(held.object);
        Ok(())
    }

    fn free_many(&mut self) -> Result<(), String> {
        let mut objects: Vec<Object<'h>> = vec![];
        for _ in 0..self.rng.below(100) {
            let Some(held) = self.pick() else { break };
            self.check(&held)?;
            objects.push(held.object);
        }
        while let Some(object) = objects.first() {
            let cache = object.cache();
            let (same, others) = objects.into_iter().partition(|object| object.cache().id() == cache.id());
            cache.free_many(same);
            objects = others;
        }
        Ok(())
    }

    fn defer(&mut self) -> Result<(), String> {
        let Some(mut held) = self.pick() else { return Ok(()) };
        self.check(&held)?;
        self.tally.deferred += 1;
        let period = DEFERRED << 48 | self.grace.least();
        fill(&mut held.object, |_| period);
        if self.rng.one_in(3) {
            held.object.defer_by_itself();
        } else {
            held.object.defer();
        }
        Ok(())
    }

    fn send(&mut self) {
        if let Some(held) = self.pick() {
            let to = self.rng.below(self.others.len() as u64) as usize;
            self.tally.sent += 1;
            // Nobody listens any more: then the object comes back in the error and is freed by its drop.
            let _ = self.others[to].send(held);
        }
    }

    fn disturb(&mut self) {
        self.tally.disturbances += 1;
        match self.rng.below(8) {
            0 => self.turn(Knob::CpuPartialScale),
            1 => self.turn(Knob::NodePartialScale),
            2 => drop(self.cache().shrink()),
            3 => drop(self.host.shrink_caches()),
            4 => self.host.drain_all(),
            5 => self.make_cache(),
            _ => {
                self.grace.end(self.host);
                self.host.run_all_deferred();
            }
        }
    }

    fn turn(&mut self, knob: Knob) {
        let value = [0, 1, 4][self.rng.below(3) as usize];
        let set = self.host.set_knob(knob, value);
        debug_assert_eq!(set, Ok(()), "all of these values are in range");
    }

    fn make_cache(&mut self) {
        if self.late == LATE_MAX {
            return;
        }
        let size = 16 + self.rng.below(500) as u32;
        let spec = CacheSpec::new("late", size).with(CacheFlags::NO_MERGE);
        // There is a limit to caches; then there is one less.
        if let Ok(cache) = self.host.cache(spec) {
            self.late += 1;
            self.tally.caches += 1;
            self.caches.push(cache);
        }
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().unwrap_or_default())
}

/// Gives each word its value by its index; of the last one, as many bytes as there are.
fn fill(bytes: &mut [u8], value: impl Fn(u64) -> u64) {
    for (bytes, index) in bytes.chunks_mut(8).zip(0..) {
        bytes.copy_from_slice(&value(index).to_ne_bytes()[..bytes.len()]);
    }
}
