//! `kmalloc`: requests by size, each served by the smallest of a row of caches that holds it.

use alloc::string::ToString;
use core::fmt;

use crate::ground::{Order, PAGE_SIZE};
use crate::rules::policy::{KmallocAlignRule, Rules};
use crate::slab::spec::{CacheFlags, CacheSpec};

/// Bytes of the objects of each class, ascending. Two are no powers of two: many objects are a little larger than 64 or
/// 128 bytes.
pub const SIZES: [u32; 13] = [8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192];

/// Bytes to which objects of any class are aligned.
const ALIGN_MIN: u32 = 8;

/// A row of classes: who may use them decides what their pages are shared with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KmallocKind {
    /// `kmalloc-N`.
    Normal,
    /// `kmalloc-cg-N`: charged to the task's memory cgroup (`__GFP_ACCOUNT`).
    Accounted,
    /// `kmalloc-rcl-N`: what reclaim can get back (`__GFP_RECLAIMABLE`).
    Reclaimable,
    /// `dma-kmalloc-N`: from the DMA zone (`__GFP_DMA`).
    Dma,
}

impl KmallocKind {
    /// All rows.
    pub const ALL: [Self; 4] = [Self::Normal, Self::Accounted, Self::Reclaimable, Self::Dma];

    /// What comes before a class's size in its name.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Normal => "kmalloc-",
            Self::Accounted => "kmalloc-cg-",
            Self::Reclaimable => "kmalloc-rcl-",
            Self::Dma => "dma-kmalloc-",
        }
    }

    const fn flags(self) -> CacheFlags {
        match self {
            Self::Normal => CacheFlags::USERCOPY,
            Self::Accounted => CacheFlags::USERCOPY.with(CacheFlags::ACCOUNTED),
            Self::Reclaimable => CacheFlags::USERCOPY.with(CacheFlags::RECLAIMABLE),
            Self::Dma => CacheFlags::USERCOPY.with(CacheFlags::DMA),
        }
    }
}

/// A class: a row and a size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KmallocClass {
    kind: KmallocKind,
    index: u8,
}

impl KmallocClass {
    /// The class that serves `size` bytes; `None` where size is 0 (no memory is needed) or larger than the largest (whole
    /// pages are taken).
    pub fn of(kind: KmallocKind, size: u32) -> Option<Self> {
        let index = SIZES.iter().position(|&class| size <= class)?;
        (size > 0).then_some(Self { kind, index: index as u8 })
    }

    /// All classes of a row, ascending.
    pub fn row(kind: KmallocKind) -> impl Iterator<Item = Self> {
        (0..SIZES.len() as u8).map(move |index| Self { kind, index })
    }

    /// Its number among all classes of all rows.
    pub(super) fn number(self) -> usize {
        self.kind as usize * SIZES.len() + usize::from(self.index)
    }

    /// Its row.
    pub fn kind(self) -> KmallocKind {
        self.kind
    }

    /// Bytes of its objects.
    pub fn size(self) -> u32 {
        SIZES[usize::from(self.index)]
    }

    /// Bytes to whose multiple its objects are aligned.
    pub fn alignment(self, rule: KmallocAlignRule) -> u32 {
        let divisor = 1 << self.size().trailing_zeros();
        match rule {
            KmallocAlignRule::PowersOnly if divisor == self.size() => divisor,
            KmallocAlignRule::PowersOnly => ALIGN_MIN,
            KmallocAlignRule::LargestDivisor => divisor,
        }
    }

    /// The cache that it is. All bytes of its objects may be copied to user space, so it shares its slabs with no other.
    pub fn spec(self, rules: &Rules) -> CacheSpec {
        let spec = CacheSpec::new(&self.to_string(), self.size()).with(self.kind.flags());
        spec.aligned(self.alignment(rules.slab.kmalloc_align))
    }
}

impl fmt::Display for KmallocClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.prefix())?;
        match self.size() {
            size if size >= 1024 => write!(f, "{}k", size / 1024),
            size => write!(f, "{size}"),
        }
    }
}

/// Bytes that a request of `size` gets: its class's, or whole pages of a power of two; 0 for 0 and where no block is
/// large enough.
pub fn bucket(size: u32) -> u32 {
    if let Some(class) = KmallocClass::of(KmallocKind::Normal, size) {
        return class.size();
    }
    let pages = size.div_ceil(PAGE_SIZE as u32).checked_next_power_of_two().unwrap_or(u32::MAX);
    if size == 0 || pages > Order::MAX.pages() { 0 } else { pages * PAGE_SIZE as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_class_that_holds_it_serves() {
        let name = |size| KmallocClass::of(KmallocKind::Normal, size).map(|class| alloc::format!("{class}"));
        assert_eq!(name(0), None);
        assert_eq!(name(1).unwrap(), "kmalloc-8");
        assert_eq!(name(65).unwrap(), "kmalloc-96");
        assert_eq!(name(97).unwrap(), "kmalloc-128");
        assert_eq!(name(129).unwrap(), "kmalloc-192");
        assert_eq!(name(1025).unwrap(), "kmalloc-2k");
        assert_eq!(name(8192).unwrap(), "kmalloc-8k");
        assert_eq!(name(8193), None);
    }

    #[test]
    fn larger_requests_take_pages() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(240), 256);
        assert_eq!(bucket(8193), 16384);
        assert_eq!(bucket(4 << 20), 4 << 20);
        assert_eq!(bucket((4 << 20) + 1), 0);
        assert_eq!(bucket(u32::MAX), 0);
    }
}
