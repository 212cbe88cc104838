//! Slab objects: how many of each cache went out and came back.

use std::collections::HashMap;

use mm::slab::kmalloc::KmallocClass;

use super::{CacheActivity, ObjectBalance};
use crate::event::{EventKind, NameId};
use crate::slabs::{is_large, kmalloc_class};

/// What tells caches apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Class(KmallocClass),
    /// `kmalloc` beyond the largest class.
    Pages,
    Named(NameId, u32),
}

/// The objects that are out, and what went in and out of each cache.
#[derive(Default)]
pub(super) struct Objects {
    numbers: HashMap<Key, usize>,
    keys: Vec<Key>,
    caches: Vec<CacheActivity>,
    /// The cache of each object that is out.
    held: HashMap<u64, usize>,
    balance: ObjectBalance,
}

impl Objects {
    pub(super) fn add(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::SlabAlloc { object, cache, allocated, gfp, .. } if object != 0 => {
                let key = if is_large(cache, allocated) {
                    Key::Pages
                } else {
                    let class = kmalloc_class(cache, allocated, gfp);
                    class.map_or(Key::Named(cache, allocated), Key::Class)
                };
                self.allocate(object, key, allocated);
            }
            EventKind::SlabFree { object, .. } => self.free(object),
            _ => {}
        }
    }

    fn allocate(&mut self, object: u64, key: Key, bytes: u32) {
        let caches = &mut self.caches;
        let keys = &mut self.keys;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            keys.push(key);
            let object_bytes = if key == Key::Pages { 0 } else { bytes };
            caches.push(CacheActivity { object_bytes, ..CacheActivity::default() });
            caches.len() - 1
        });
        if let Some(before) = self.held.insert(object, number) {
            self.balance.allocated_twice += 1;
            self.caches[before].allocated_twice += 1;
            self.caches[before].held -= 1;
            self.balance.held -= 1;
        }
        let cache = &mut self.caches[number];
        cache.allocs += 1;
        cache.held += 1;
        cache.peak = cache.peak.max(cache.held);
        self.balance.allocated += 1;
        self.balance.held += 1;
        self.balance.peak = self.balance.peak.max(self.balance.held);
    }

    fn free(&mut self, object: u64) {
        let Some(number) = self.held.remove(&object) else {
            self.balance.unmatched_frees += u64::from(object != 0);
            return;
        };
        self.caches[number].frees += 1;
        self.caches[number].held -= 1;
        self.balance.freed += 1;
        self.balance.held -= 1;
    }

    /// The caches, those with most events first, and the account of all.
    pub(super) fn finish(mut self, names: &[String]) -> (Vec<CacheActivity>, ObjectBalance) {
        for (cache, key) in self.caches.iter_mut().zip(&self.keys) {
            cache.cache = match key {
                Key::Class(class) => class.to_string(),
                Key::Pages => "kmalloc of pages".to_owned(),
                Key::Named(name, bytes) => match names.get(name.0 as usize).map(String::as_str) {
                    None | Some("") => format!("unnamed-{bytes}"),
                    Some(name) => name.to_owned(),
                },
            };
        }
        self.caches.sort_by(|a, b| {
            (b.allocs + b.frees).cmp(&(a.allocs + a.frees)).then_with(|| a.cache.cmp(&b.cache))
        });
        (self.caches, self.balance)
    }
}
