//! What a workload brings with it for knobs to act on.

use mm::Knob;

/// What a workload asks of memory management, beside single pages.
#[expect(clippy::struct_excessive_bools, reason = "each is there or not, whatever the others are")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Brings {
    /// Slab objects.
    pub slabs: bool,
    /// Address spaces, whose pages come by faults and can be reclaimed, moved and put together.
    pub spaces: bool,
    /// Address spaces that have pages in common with those that they forked.
    pub forks: bool,
    /// Files that are written to.
    pub files: bool,
    /// Address spaces that are looked through for pages in use, so that these can be promoted.
    pub programs: bool,
    /// Programs that can be killed.
    pub killable: bool,
    /// Tasks whose pages NUMA balancing can make fault.
    pub hints: bool,
    /// Swap, as on the machine that was recorded: the knob of its size.
    pub swap: Option<Knob>,
    /// The vmstat tick and the other daemons. Threads on real cores have none (`bench contention`).
    pub daemons: bool,
    /// Whether it is a recording, in which there is nothing but what was asked of the allocators.
    pub is_recording: bool,
}

impl Brings {
    /// Pages alone.
    pub const PAGES: Self = Self {
        slabs: false,
        spaces: false,
        forks: false,
        files: false,
        programs: false,
        killable: false,
        hints: false,
        swap: None,
        daemons: true,
        is_recording: false,
    };
    /// And slab objects.
    pub const SLABS: Self = Self { slabs: true, ..Self::PAGES };
    /// Pages of address spaces.
    pub const SPACES: Self = Self { spaces: true, ..Self::PAGES };
    /// And of files that are written to.
    pub const FILES: Self = Self { files: true, ..Self::SPACES };
    /// Pages of address spaces that are looked through for promotion.
    pub const PROGRAMS: Self = Self { programs: true, hints: true, ..Self::SPACES };

    /// What two workloads bring that run side by side.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            slabs: self.slabs || other.slabs,
            spaces: self.spaces || other.spaces,
            forks: self.forks || other.forks,
            files: self.files || other.files,
            programs: self.programs || other.programs,
            killable: self.killable || other.killable,
            hints: self.hints || other.hints,
            swap: self.swap.or(other.swap),
            daemons: self.daemons || other.daemons,
            is_recording: self.is_recording && other.is_recording,
        }
    }
}
