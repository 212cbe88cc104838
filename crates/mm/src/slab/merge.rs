//! Which caches share their slabs: a cache that differs from an older one in name only is that one under another name.
//!
//! The rules are from memory. No capture shows a merge: Debian's kernels are built without it (of the caches with a stride
//! of 128 bytes, `eventpoll_epi` prints an object_size of 120 and `uid_cache` one of 128; merged, they would print the
//! larger), and the slab trace was taken with `slab_nomerge`.

use super::spec::{CacheFlags, CacheSpec};

/// Bytes by which strides may differ: less than a word.
const WORD: u32 = 8;

/// Any of these keeps a cache's slabs to itself: a free object's bytes mean something, or which objects are beside it does.
const NEVER: CacheFlags = CacheFlags::CONSTRUCTOR
    .with(CacheFlags::TYPESAFE_BY_RCU)
    .with(CacheFlags::NO_MERGE)
    .with(CacheFlags::USERCOPY)
    .with(CacheFlags::BOOTSTRAP)
    .with(CacheFlags::DEBUG);

/// These must be the same in both: they say which pages a slab is made of and who pays for them.
const SAME: CacheFlags = CacheFlags::RECLAIMABLE.with(CacheFlags::ACCOUNTED).with(CacheFlags::DMA);

/// Whether `new` can live in the slabs of `old`: neither forbids it, the objects fit with less than a word to spare, and
/// their places are aligned as `new` needs it.
pub fn can_share(old: &CacheSpec, new: &CacheSpec) -> bool {
    let forbidden = |spec: &CacheSpec| spec.flags.has_any(NEVER);
    if forbidden(old) || forbidden(new) || new.sheaf_capacity.is_some() {
        return false;
    }
    let (room, size) = (old.stride(), new.stride());
    size <= room
        && room - size < WORD
        && room % new.alignment() == 0
        && old.flags.only(SAME) == new.flags.only(SAME)
}

/// Which of `caches`, oldest first, `new` shares the slabs of: its index.
pub fn find(caches: &[CacheSpec], new: &CacheSpec) -> Option<usize> {
    caches.iter().position(|old| can_share(old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_that_differ_in_name_only_share() {
        let caches = [
            CacheSpec::new("a", 184).with(CacheFlags::ACCOUNTED),
            CacheSpec::new("b", 192),
            CacheSpec::new("c", 192).aligned(64),
        ];
        let find = |spec: &CacheSpec| find(&caches, spec);
        assert_eq!(find(&CacheSpec::new("x", 188)), Some(1), "rounded up to a word");
        assert_eq!(find(&CacheSpec::new("x", 184)), None, "a word to spare");
        assert_eq!(find(&CacheSpec::new("x", 184).with(CacheFlags::ACCOUNTED)), Some(0));
        assert_eq!(find(&CacheSpec::new("x", 190).aligned(64)), Some(1), "192 is a multiple of 64");
        assert_eq!(find(&CacheSpec::new("x", 192).aligned(128)), None);
        assert_eq!(find(&CacheSpec::new("x", 192).with_sheaves(32)), None);
        for flag in [CacheFlags::CONSTRUCTOR, CacheFlags::NO_MERGE, CacheFlags::POISON, CacheFlags::USERCOPY]
        {
            assert_eq!(
                find(&CacheSpec { slab_size: Some(192), ..CacheSpec::new("x", 192).with(flag) }),
                None
            );
        }
    }
}
