//! The state of every line of frame descriptors, four bytes each: who touched it last, how, and when.
//!
//! ```text
//! 31            22 21   20 19                                   0
//! | CPU, 10 bits | state | when: the CPU's lines / 256, 20 bits |
//! ```
//!
//! The count of lines wraps after 16 GiB of a CPU's own traffic. A line that comes back after just that long is taken
//! for a young one; with a last level of 32 MiB that is one return in 500.

use mm::Access;

/// Bits of the time stamp.
pub(super) const STAMP_MASK: u32 = (1 << 20) - 1;
const STATE_SHIFT: u32 = 20;
const STATE_MASK: u32 = 3 << STATE_SHIFT;
const CPU_SHIFT: u32 = 22;

/// What a cache holds of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum CopyState {
    /// Only memory has it.
    Invalid = 0,
    /// The CPU has it alone, as memory has it.
    Exclusive = 1,
    /// The CPU has it, and others may.
    Shared = 2,
    /// The CPU has it alone, and memory's copy is old.
    Modified = 3,
}

impl CopyState {
    /// Whether `access` leaves the state as it is.
    #[inline]
    pub(super) fn allows(self, access: Access) -> bool {
        self == Self::Modified || !access.is_exclusive() && self != Self::Invalid
    }
}

/// A line's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LineEntry(u32);

impl LineEntry {
    /// As it is kept; 0 is of a line that nobody touched yet.
    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    #[inline]
    pub(super) const fn new(cpu: u16, state: CopyState, unit: u32) -> Self {
        Self((cpu as u32) << CPU_SHIFT | (state as u32) << STATE_SHIFT | unit & STAMP_MASK)
    }

    #[inline]
    pub(super) const fn cpu(self) -> u16 {
        (self.0 >> CPU_SHIFT) as u16
    }

    #[inline]
    pub(super) const fn state(self) -> CopyState {
        match self.0 >> STATE_SHIFT & 3 {
            0 => CopyState::Invalid,
            1 => CopyState::Exclusive,
            2 => CopyState::Shared,
            _ => CopyState::Modified,
        }
    }

    /// Whether `cpu`, whose count now is `unit`, touched this line among its latest, and left it in a state that `access`
    /// does not change.
    #[inline]
    pub(super) fn is_hit(self, cpu: u16, unit: u32, access: Access) -> bool {
        // Most hits are on lines that the CPU wrote: for them, one comparison says all.
        let differs = self.0 ^ Self::new(cpu, CopyState::Modified, unit).0;
        differs == 0 || differs & !STATE_MASK == 0 && self.state().allows(access)
    }

    /// Units since the stamp, where the CPU's count now is `unit`.
    #[inline]
    pub(super) const fn age(self, unit: u32) -> u32 {
        unit.wrapping_sub(self.0) & STAMP_MASK
    }
}

/// All of them. Memory is taken as it is touched.
#[derive(Debug)]
pub(super) struct Frames {
    entries: Vec<u32>,
    shift: u32,
}

impl Frames {
    /// For `frames` descriptors, `1 << shift` to a line.
    pub(super) fn new(frames: u64, shift: u32) -> Self {
        Self { entries: vec![0; (frames >> shift) as usize + 1], shift }
    }

    /// The line that holds descriptor `pfn`.
    #[inline]
    pub(super) fn line_of(&self, pfn: u32) -> u32 {
        pfn >> self.shift
    }

    /// The first descriptor of a line.
    pub(super) fn first_of(&self, line: u32) -> u32 {
        line << self.shift
    }

    /// A line's entry; that of a frame beyond the machine's memory is invalid.
    #[inline]
    pub(super) fn get(&self, line: u32) -> LineEntry {
        LineEntry(self.entries.get(line as usize).copied().unwrap_or(0))
    }

    #[inline]
    pub(super) fn set(&mut self, line: u32, entry: LineEntry) {
        if let Some(slot) = self.entries.get_mut(line as usize) {
            *slot = entry.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_what_they_are_given() {
        for (cpu, state, unit) in [
            (0, CopyState::Modified, 0),
            (1023, CopyState::Shared, STAMP_MASK),
            (5, CopyState::Exclusive, 77),
        ] {
            let entry = LineEntry::new(cpu, state, unit);
            assert_eq!((entry.cpu(), entry.state(), entry.age(unit)), (cpu, state, 0));
            assert_eq!(entry.age(unit.wrapping_add(9) & STAMP_MASK), 9);
        }
        assert_eq!(Frames::new(16, 2).get(99).state(), CopyState::Invalid);
    }

    #[test]
    fn a_hit_needs_the_cpu_its_present_unit_and_a_state_that_stays() {
        let states = [CopyState::Invalid, CopyState::Exclusive, CopyState::Shared, CopyState::Modified];
        for state in states {
            // The stamp is what is left of a count that has long wrapped.
            let (unit, entry) = (7 | 1 << 20, LineEntry::new(1023, state, 7));
            for access in [Access::Read, Access::Write, Access::Store, Access::Atomic] {
                assert_eq!(entry.is_hit(1023, unit, access), state.allows(access), "{state:?} {access:?}");
                assert!(!entry.is_hit(1022, unit, access) && !entry.is_hit(1023, unit + 1, access));
            }
        }
    }
}
