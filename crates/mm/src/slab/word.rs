//! A slab's own state, in one word of its first frame's descriptor that changes by compare and exchange: which of its
//! objects is free first (each free object holds the address of the next), how many are in use, who it belongs to.
//!
//! ```text
//!   31      30       29          15 14           0
//!   | listed | frozen | in use      | first free   |
//! ```

/// "None free", in a word.
const NO_OBJECT: u32 = 0x7fff;
const COUNT_SHIFT: u32 = 15;
const COUNT_MASK: u32 = 0x7fff << COUNT_SHIFT;
const FROZEN: u32 = 1 << 30;
const LISTED: u32 = 1 << 31;

/// The word, unpacked when it is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlabWord(pub(super) u32);

impl SlabWord {
    /// All of `in_use` objects handed out or with a CPU, none free.
    pub(super) const fn full(in_use: u32) -> Self {
        Self(NO_OBJECT | in_use << COUNT_SHIFT)
    }

    /// The number of the first free object.
    #[inline]
    pub(super) const fn first_free(self) -> Option<u32> {
        let first = self.0 & NO_OBJECT;
        if first == NO_OBJECT { None } else { Some(first) }
    }

    /// Objects handed out, or with a CPU.
    #[inline]
    pub(super) const fn in_use(self) -> u32 {
        (self.0 & COUNT_MASK) >> COUNT_SHIFT
    }

    /// Whether the slab is a CPU's: frees by others leave it where it is.
    #[inline]
    pub(super) const fn is_frozen(self) -> bool {
        self.0 & FROZEN != 0
    }

    /// Whether the slab is on its node's list; changes only under that list's lock.
    #[inline]
    pub(super) const fn is_listed(self) -> bool {
        self.0 & LISTED != 0
    }

    #[inline]
    #[must_use]
    pub(super) const fn frozen(self, frozen: bool) -> Self {
        Self(if frozen { self.0 | FROZEN } else { self.0 & !FROZEN })
    }

    #[inline]
    #[must_use]
    pub(super) const fn listed(self, listed: bool) -> Self {
        Self(if listed { self.0 | LISTED } else { self.0 & !LISTED })
    }

    /// After `count` objects were freed, of which `first` is now the first free one.
    #[inline]
    #[must_use]
    pub(super) const fn freed(self, first: u32, count: u32) -> Self {
        Self(self.0 & !(NO_OBJECT | COUNT_MASK) | first | (self.in_use() - count) << COUNT_SHIFT)
    }

    /// After the first free object was taken, with `next` the first one now.
    #[inline]
    #[must_use]
    pub(super) const fn popped(self, next: Option<u32>) -> Self {
        let first = match next {
            Some(number) => number,
            None => NO_OBJECT,
        };
        Self(self.0 & !(NO_OBJECT | COUNT_MASK) | first | (self.in_use() + 1) << COUNT_SHIFT)
    }

    /// After all free objects were taken, of `objects` in all.
    #[inline]
    #[must_use]
    pub(super) const fn taken(self, objects: u32) -> Self {
        Self(self.0 & !COUNT_MASK | NO_OBJECT | objects << COUNT_SHIFT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frees_and_takes_count() {
        let full = SlabWord::full(24);
        assert_eq!((full.first_free(), full.in_use()), (None, 24));
        let one = full.frozen(true).freed(5, 1);
        assert_eq!((one.first_free(), one.in_use(), one.is_frozen()), (Some(5), 23, true));
        let some = one.frozen(false).listed(true).freed(0, 3);
        assert_eq!((some.first_free(), some.in_use()), (Some(0), 20));
        assert!(some.is_listed() && !some.is_frozen());
        assert_eq!(some.taken(24), full.listed(true));
    }

    #[test]
    fn the_most_objects_fit() {
        let full = SlabWord::full(32_767);
        let last = full.freed(32_766, 1);
        assert_eq!((last.first_free(), last.in_use(), last.is_frozen()), (Some(32_766), 32_766, false));
    }
}
