//! What particular caches of the kernel ask for, where no size tells it. What stands here was seen: each line says where.

use crate::ground::Version;
use crate::slab::spec::CacheFlags;

/// A cache that asks for sheaves of a capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AskedSheaves {
    /// The cache.
    pub cache: &'static str,
    /// Objects of a sheaf.
    pub capacity: u32,
    /// The first version in which it asks.
    pub since: Version,
}

/// All that ask. docs/rules/slab.md#sheaves names both; the captures of 6.18.15 print 32 for these two of 241 caches and 0
/// for the others, those of 7.2.13 print 32 for `maple_node`, where its size alone would give 28.
pub const ASKED_SHEAVES: [AskedSheaves; 2] = [
    AskedSheaves { cache: "maple_node", capacity: 32, since: Version::new(6, 18) },
    AskedSheaves { cache: "vm_area_struct", capacity: 32, since: Version::new(6, 18) },
];

/// The caches that caches are made of; the captures of 7.2.13 print a sheaf capacity of 0 for these two alone.
pub const BOOTSTRAP_CACHES: [&str; 2] = ["kmem_cache", "kmem_cache_node"];

/// Objects of the sheaves that `cache` asks for in kernel `version`.
pub fn asked_sheaves(cache: &str, version: Version) -> Option<u32> {
    let mut asked = ASKED_SHEAVES.iter().filter(|asked| asked.cache == cache && version >= asked.since);
    asked.next().map(|asked| asked.capacity)
}

/// [`CacheFlags::BOOTSTRAP`] for the caches that have it.
pub fn bootstrap_flags(cache: &str) -> CacheFlags {
    if BOOTSTRAP_CACHES.contains(&cache) { CacheFlags::BOOTSTRAP } else { CacheFlags::NONE }
}
