//! What a cache is asked to be, and the stride of its objects: size and alignment rounded as the kernel does.
//!
//! ```text
//!   | left red zone | object | free pointer | tracks | red zone word | filling |
//!    ^ RED_ZONE               ^ where a free    ^ STORE_USER  ^ RED_ZONE, where nothing else follows the object
//!    <------------------------ object outlives its free ---------------------- stride ->
//! ```
//! Without debugging there is the object alone, the free pointer lying in it. It has a word of its own after the object
//! where a free object's bytes must stay as they are: with a constructor, by RCU, with poison.
//! Conformance holds this against the `slab_size` of every cache that it has seen; for the debug flags, which no capture
//! has on, the layout is from memory.

use alloc::string::{String, ToString};
use core::fmt;

use super::debug::marked_bytes;
use crate::ground::{Order, PAGE_SIZE};

/// Bytes of a word; everything begins at a multiple of it.
const WORD: u32 = 8;
/// Bytes of a cache line.
const CACHE_LINE: u32 = 64;
/// The largest alignment, that of `kmalloc-8k`.
const ALIGN_MAX: u32 = 8192;
/// Bytes of the record of who allocated an object, or freed it; there are two of them.
const TRACK: u32 = 32;

/// What is particular about a cache.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheFlags(u32);

impl CacheFlags {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Objects are constructed when their slab is allocated and stay so while free.
    pub const CONSTRUCTOR: Self = Self(1);
    /// A slab goes back to the page allocator only after an RCU grace period (`SLAB_TYPESAFE_BY_RCU`): readers may still
    /// look at a freed object.
    pub const TYPESAFE_BY_RCU: Self = Self(1 << 1);
    /// The free pointer lies in the object in spite of the two above: the cache named a place for it.
    pub const POINTER_INSIDE: Self = Self(1 << 2);
    /// Objects begin at cache lines, or at equal parts of one (`SLAB_HWCACHE_ALIGN`).
    pub const CACHE_ALIGNED: Self = Self(1 << 3);
    /// Memory that reclaim can get back: its pages are of the reclaimable type.
    pub const RECLAIMABLE: Self = Self(1 << 4);
    /// Charged to the memory cgroup of the task (`SLAB_ACCOUNT`).
    pub const ACCOUNTED: Self = Self(1 << 5);
    /// Pages from the DMA zone.
    pub const DMA: Self = Self(1 << 6);
    /// Never shares its slabs with another cache.
    pub const NO_MERGE: Self = Self(1 << 7);
    /// One of the two that caches are made of, `kmem_cache` and `kmem_cache_node`: no sheaves.
    pub const BOOTSTRAP: Self = Self(1 << 8);
    /// Debugging: known bytes around each object.
    pub const RED_ZONE: Self = Self(1 << 9);
    /// Debugging: known bytes in each free object.
    pub const POISON: Self = Self(1 << 10);
    /// Debugging: who allocated and who freed it.
    pub const STORE_USER: Self = Self(1 << 11);
    /// Debugging: double frees and objects of other caches are looked for at every free.
    pub const CHECKS: Self = Self(1 << 12);
    /// A part of each object may be copied to and from user space, and no other.
    pub const USERCOPY: Self = Self(1 << 13);

    /// All of debugging.
    pub const DEBUG: Self = Self(Self::RED_ZONE.0 | Self::POISON.0 | Self::STORE_USER.0 | Self::CHECKS.0);

    /// These and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of these that are in `other`.
    #[must_use]
    pub const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` are among them.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` are.
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl fmt::Debug for CacheFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheFlags({:#x})", self.0)
    }
}

/// What a cache is asked to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheSpec {
    /// Its name, as /proc/slabinfo prints it.
    pub name: String,
    /// Bytes of an object that its user may write.
    pub object_size: u32,
    /// Alignment that was asked for, bytes: a power of two, or 0 where none was.
    pub align: u32,
    /// Bytes from one object to the next where they are known (`slab_size` of a capture); `None`: computed.
    pub slab_size: Option<u32>,
    /// What is particular about it.
    pub flags: CacheFlags,
    /// Objects of a sheaf where the cache asks for them.
    pub sheaf_capacity: Option<u32>,
}

impl CacheSpec {
    /// A cache of objects of `object_size` bytes with nothing particular about it.
    pub fn new(name: &str, object_size: u32) -> Self {
        Self {
            name: name.to_string(),
            object_size,
            align: 0,
            slab_size: None,
            flags: CacheFlags::NONE,
            sheaf_capacity: None,
        }
    }

    /// The same with these flags besides.
    #[must_use]
    pub fn with(mut self, flags: CacheFlags) -> Self {
        self.flags = self.flags.with(flags);
        self
    }

    /// The same, aligned to `align` bytes.
    #[must_use]
    pub fn aligned(mut self, align: u32) -> Self {
        self.align = align;
        self
    }

    /// The same with sheaves of `capacity` objects asked for.
    #[must_use]
    pub fn with_sheaves(mut self, capacity: u32) -> Self {
        self.sheaf_capacity = Some(capacity);
        self
    }

    /// Bytes to whose multiple each object is aligned: a word at least; with [`CacheFlags::CACHE_ALIGNED`] a cache line,
    /// or its half, quarter … into which the object still fits.
    pub fn alignment(&self) -> u32 {
        let mut align = self.align.max(WORD);
        if self.flags.has(CacheFlags::CACHE_ALIGNED) {
            let mut part = CACHE_LINE;
            while part > WORD && self.object_size <= part / 2 {
                part /= 2;
            }
            align = align.max(part);
        }
        align
    }

    /// Whether a free object's pointer to the next has a place after the object.
    pub fn pointer_outside(&self) -> bool {
        let kept = CacheFlags::CONSTRUCTOR.with(CacheFlags::TYPESAFE_BY_RCU);
        let kept = self.flags.has_any(kept) && !self.flags.has(CacheFlags::POINTER_INSIDE);
        kept || self.flags.has(CacheFlags::POISON)
    }

    /// Bytes from one object to the next.
    pub fn stride(&self) -> u32 {
        if let Some(given) = self.slab_size {
            return given;
        }
        let align = self.alignment();
        let mut size = self.object_size.next_multiple_of(WORD);
        if self.flags.has(CacheFlags::RED_ZONE) && size == self.object_size {
            size += WORD;
        }
        if self.pointer_outside() {
            size += WORD;
        }
        if self.flags.has(CacheFlags::STORE_USER) {
            size += 2 * TRACK;
        }
        if self.flags.has(CacheFlags::RED_ZONE) {
            size += WORD.next_multiple_of(align);
        }
        size.next_multiple_of(align)
    }

    /// Where in a free object the address of the next one lies: in its middle, away from what runs over its ends; or
    /// behind it, where its bytes must stay.
    pub(super) fn link(&self) -> u32 {
        if self.pointer_outside() { marked_bytes(self) } else { self.object_size / 2 / WORD * WORD }
    }

    /// Whether any kind of debugging is on: then there are neither sheaves nor CPU slabs.
    pub fn is_debug(&self) -> bool {
        self.flags.has_any(CacheFlags::DEBUG)
    }

    /// Checks that there can be such a cache.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), SpecError> {
        let error = |what| Err(SpecError { cache: self.name.clone(), what });
        let largest = (Order::MAX.pages() * PAGE_SIZE as u32) / 2;
        if self.object_size == 0 || self.object_size > largest {
            return error("its objects must have 1 byte to 2 MiB");
        }
        if self.align != 0 && (!self.align.is_power_of_two() || self.align > ALIGN_MAX) {
            return error("its alignment must be a power of two, 8 KiB at most");
        }
        if self.slab_size.is_some_and(|stride| stride < self.object_size || stride > 2 * largest) {
            return error("its slab_size must hold an object and be 4 MiB at most");
        }
        if self.stride() % WORD != 0 || self.stride() < self.link() + WORD {
            return error(
                "its slab_size must be a multiple of 8 and hold the pointer to the next free object",
            );
        }
        Ok(())
    }
}

/// A cache that there cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpecError {
    /// Its name.
    pub cache: String,
    /// What is wrong.
    pub what: &'static str,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cache {}: {}", self.cache, self.what)
    }
}

impl core::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn stride(size: u32, align: u32, flags: CacheFlags) -> u32 {
        CacheSpec::new("x", size).aligned(align).with(flags).stride()
    }

    /// Sizes as linux-6.12 prints them.
    #[test]
    fn strides_are_the_kernels() {
        assert_eq!(stride(96, 0, CacheFlags::CONSTRUCTOR.with(CacheFlags::TYPESAFE_BY_RCU)), 104, "anon_vma");
        assert_eq!(stride(200, 0, CacheFlags::CACHE_ALIGNED), 256, "bfilp");
        assert_eq!(stride(16, 0, CacheFlags::CACHE_ALIGNED), 16, "dma-kmalloc-16");
        assert_eq!(stride(96, 32, CacheFlags::NONE), 96, "kmalloc-96");
        assert_eq!(
            stride(184, 64, CacheFlags::TYPESAFE_BY_RCU.with(CacheFlags::POINTER_INSIDE)),
            192,
            "filp"
        );
        assert_eq!(stride(1, 0, CacheFlags::NONE), 8);
    }

    #[test]
    fn debugging_takes_room() {
        assert_eq!(stride(64, 0, CacheFlags::RED_ZONE), 80);
        assert_eq!(stride(60, 0, CacheFlags::RED_ZONE), 72, "the filling is the red zone");
        assert_eq!(stride(64, 0, CacheFlags::POISON), 72);
        assert_eq!(stride(64, 64, CacheFlags::DEBUG), 256);
    }

    #[test]
    fn impossible_caches_are_refused() {
        assert!(CacheSpec::new("x", 168).check().is_ok());
        assert!(CacheSpec::new("x", 0).check().is_err());
        assert!(CacheSpec::new("x", 3 << 20).check().is_err());
        assert!(CacheSpec::new("x", 8).aligned(24).check().is_err());
        assert!(CacheSpec { slab_size: Some(20), ..CacheSpec::new("x", 16) }.check().is_err());
        let constructed = CacheSpec::new("x", 16).with(CacheFlags::CONSTRUCTOR);
        assert!(CacheSpec { slab_size: Some(24), ..constructed.clone() }.check().is_ok());
        assert!(CacheSpec { slab_size: Some(16), ..constructed }.check().is_err(), "no room for the link");
        let narrow = CacheSpec { slab_size: Some(8), ..CacheSpec::new("x", 16) };
        assert_eq!(
            narrow.check().unwrap_err().to_string(),
            "cache x: its slab_size must hold an object and be 4 MiB at most"
        );
    }
}
