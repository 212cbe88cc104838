//! What a setting leaves behind on a running kernel that putting it back does not undo.

/// What stays after the old value is back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaves {
    /// Nothing to speak of.
    Nothing,
    /// Huge pages.
    HugePages,
    /// Free memory where there were pages.
    Evicted,
    /// Pages in swap.
    Swapped,
    /// Programs that are gone.
    Killed,
    /// Pages in other places.
    Moved,
    /// That somebody has set it (`user_min_free_kbytes`), and memory that was made free.
    SetByHand,
}

impl Leaves {
    /// It in words; `None` for nothing.
    pub const fn words(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::HugePages => Some(
                "huge pages that are made meanwhile stay until their programs give them back; where khugepaged starts or stops \
                 by it, the kernel calculates vm.min_free_kbytes anew, unless it was set by hand",
            ),
            Self::Evicted => Some("pages that are evicted meanwhile have to be read again"),
            Self::Swapped => Some("pages that are swapped out meanwhile stay there until they are used"),
            Self::Killed => Some("programs that are killed meanwhile are gone"),
            Self::Moved => Some("pages that are moved meanwhile stay where they are"),
            Self::SetByHand => Some(
                "the kernel counts it as set by hand until the next boot, and adjusts it no more by itself; pages that are \
                 evicted meanwhile have to be read again",
            ),
        }
    }
}
