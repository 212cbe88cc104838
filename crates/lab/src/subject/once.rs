//! Simulations that are each made once.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::error::AskError;

/// What came of the things that were asked for so far.
#[derive(Debug)]
pub(crate) struct Once<K, V> {
    known: BTreeMap<K, V>,
}

impl<K: Ord + Clone + Send + Sync, V: Send> Once<K, V> {
    /// Nothing yet.
    pub(crate) const fn new() -> Self {
        Self { known: BTreeMap::new() }
    }

    /// Makes what is not known yet of `wanted` by `one`, as many at a time as the present rayon pool has threads.
    pub(crate) fn make(
        &mut self,
        wanted: impl IntoIterator<Item = K>,
        one: impl Fn(&K) -> Result<V, AskError> + Sync,
    ) -> Result<(), AskError> {
        let new: BTreeSet<K> = wanted.into_iter().filter(|key| !self.known.contains_key(key)).collect();
        let new: Vec<K> = new.into_iter().collect();
        // Of several errors the first in order, whichever thread was quicker.
        let ended: Vec<Result<V, AskError>> = new.par_iter().map(&one).collect();
        for (key, value) in new.into_iter().zip(ended.into_iter().collect::<Result<Vec<_>, _>>()?) {
            self.known.insert(key, value);
        }
        Ok(())
    }

    /// What came of something that was made.
    pub(crate) fn get(&self, key: &K) -> &V {
        &self.known[key]
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.known.len()
    }
}
