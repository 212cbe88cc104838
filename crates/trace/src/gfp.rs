//! The flags of a page allocation, as a bit set of our own.
//!
//! The kernel renumbers its gfp bits between versions and configurations, so recordings carry these bits instead; they
//! are decoded once, by name, from the table that the running kernel publishes. The file needs `core` alone.

use core::fmt;
use core::ops::{BitAnd, BitOr, BitOrAssign};

/// What an allocation asks for and what it may do to get it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Gfp(pub u32);

/// Defines the single flags and the table of their names in one place.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $text:literal;)*) => {
        impl Gfp {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
        }
        /// Each single flag with the name that the kernel prints.
        const SINGLE: &[(&str, Gfp)] = &[$(($text, Gfp::$name)),*];
    };
}

flags! {
    /// From the zone below 16 MiB.
    DMA = 0, "__GFP_DMA";
    /// Need not be mapped by the kernel; of no effect on x86-64.
    HIGHMEM = 1, "__GFP_HIGHMEM";
    /// From below 4 GiB.
    DMA32 = 2, "__GFP_DMA32";
    /// The page can be migrated; with [`Gfp::HIGHMEM`] the Movable zone may serve it.
    MOVABLE = 3, "__GFP_MOVABLE";
    /// Slab pages that a shrinker can give back.
    RECLAIMABLE = 4, "__GFP_RECLAIMABLE";
    /// Important: may go below the min watermark.
    HIGH = 5, "__GFP_HIGH";
    /// May start block I/O.
    IO = 6, "__GFP_IO";
    /// May call into file systems.
    FS = 7, "__GFP_FS";
    /// The page is to be zeroed.
    ZERO = 8, "__GFP_ZERO";
    /// Kernels before 6.3: cannot sleep, may use the atomic reserve.
    ATOMIC = 9, "__GFP_ATOMIC";
    /// May reclaim by itself, hence sleep.
    DIRECT_RECLAIM = 10, "__GFP_DIRECT_RECLAIM";
    /// May wake kswapd.
    KSWAPD_RECLAIM = 11, "__GFP_KSWAPD_RECLAIM";
    /// The page is about to be dirtied: spread over nodes by their dirty limits.
    WRITE = 12, "__GFP_WRITE";
    /// A failure is not logged.
    NOWARN = 13, "__GFP_NOWARN";
    /// Tries hard, yet may fail without the OOM killer.
    RETRY_MAYFAIL = 14, "__GFP_RETRY_MAYFAIL";
    /// Never fails.
    NOFAIL = 15, "__GFP_NOFAIL";
    /// Gives up after one round of reclaim.
    NORETRY = 16, "__GFP_NORETRY";
    /// May use all reserves.
    MEMALLOC = 17, "__GFP_MEMALLOC";
    /// A compound page.
    COMP = 18, "__GFP_COMP";
    /// May not use the reserves, whatever the task is.
    NOMEMALLOC = 19, "__GFP_NOMEMALLOC";
    /// Obeys the task's cpuset.
    HARDWALL = 20, "__GFP_HARDWALL";
    /// From the requested node alone.
    THISNODE = 21, "__GFP_THISNODE";
    /// Charged to the memory control group.
    ACCOUNT = 22, "__GFP_ACCOUNT";
    /// Memory tags are zeroed along with the page (arm64).
    ZEROTAGS = 23, "__GFP_ZEROTAGS";
    /// Allocation profiling: no object extension.
    NO_OBJ_EXT = 24, "__GFP_NO_OBJ_EXT";
    /// KASAN with hardware tags: the page is not zeroed.
    SKIP_ZERO = 25, "__GFP_SKIP_ZERO";
    /// KASAN with hardware tags: the page is not unpoisoned.
    SKIP_KASAN = 26, "__GFP_SKIP_KASAN";
    /// Lock debugging leaves it out.
    NOLOCKDEP = 27, "__GFP_NOLOCKDEP";
    /// The kernel had set a bit that it prints no name for.
    UNNAMED = 31, "__GFP_UNNAMED";
}

impl Gfp {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Both kinds of reclaim.
    pub const RECLAIM: Self = Self::DIRECT_RECLAIM.with(Self::KSWAPD_RECLAIM);
    /// Kernel memory, may sleep.
    pub const KERNEL: Self = Self::RECLAIM.with(Self::IO).with(Self::FS);
    /// Memory for user space that the kernel also uses.
    pub const USER: Self = Self::KERNEL.with(Self::HARDWALL);
    /// Pages of a process or of the page cache.
    pub const HIGHUSER_MOVABLE: Self = Self::USER.with(Self::HIGHMEM).with(Self::MOVABLE);
    /// A huge page without reclaim or compaction.
    pub const TRANSHUGE_LIGHT: Self = Self(
        (Self::HIGHUSER_MOVABLE.0 | Self::COMP.0 | Self::NOMEMALLOC.0 | Self::NOWARN.0) & !Self::RECLAIM.0,
    );

    const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all flags of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flag that the kernel calls `name` (`__GFP_ZERO`), or the set that a compound name stands for
    /// (`GFP_KERNEL`, as of Linux 6.18).
    pub fn from_name(name: &str) -> Option<Self> {
        let compound = match name {
            "none" => Self::NONE,
            "GFP_KERNEL" => Self::KERNEL,
            "GFP_KERNEL_ACCOUNT" => Self::KERNEL.with(Self::ACCOUNT),
            "GFP_NOFS" => Self::RECLAIM.with(Self::IO),
            "GFP_NOIO" | "__GFP_RECLAIM" => Self::RECLAIM,
            "GFP_ATOMIC" => Self::HIGH.with(Self::KSWAPD_RECLAIM),
            "GFP_NOWAIT" => Self::KSWAPD_RECLAIM.with(Self::NOWARN),
            "GFP_USER" => Self::USER,
            "GFP_HIGHUSER" => Self::USER.with(Self::HIGHMEM),
            "GFP_HIGHUSER_MOVABLE" => Self::HIGHUSER_MOVABLE,
            "GFP_DMA" => Self::DMA,
            "GFP_DMA32" => Self::DMA32,
            "GFP_TRANSHUGE_LIGHT" => Self::TRANSHUGE_LIGHT,
            "GFP_TRANSHUGE" => Self::TRANSHUGE_LIGHT.with(Self::DIRECT_RECLAIM),
            _ => return SINGLE.iter().find(|(text, _)| *text == name).map(|&(_, flag)| flag),
        };
        Some(compound)
    }

    /// Reads the kernel's print of a gfp mask: names joined by `|`, such as `GFP_KERNEL_ACCOUNT|__GFP_ZERO`. Bits that
    /// the kernel printed as a hexadecimal rest become [`Gfp::UNNAMED`].
    ///
    /// # Errors
    /// The first name that is not known.
    pub fn from_names(names: &str) -> Result<Self, UnknownGfpName<'_>> {
        let mut flags = Self::NONE;
        for name in names.split('|').map(str::trim) {
            flags |= match name.strip_prefix("0x") {
                Some(hex) if u64::from_str_radix(hex, 16).is_ok() => Self::UNNAMED,
                _ => Self::from_name(name).ok_or(UnknownGfpName(name))?,
            };
        }
        Ok(flags)
    }
}

impl BitOr for Gfp {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl BitOrAssign for Gfp {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Gfp {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The single flags' names joined by `|`, which [`Gfp::from_names`] reads back; `none` for no flag.
impl fmt::Display for Gfp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, _) in SINGLE.iter().filter(|(_, flag)| self.contains(*flag)) {
            write!(f, "{separator}{name}")?;
            separator = "|";
        }
        if separator.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

impl fmt::Debug for Gfp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gfp({self})")
    }
}

/// A name that is no gfp flag of any kernel that we know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownGfpName<'a>(pub &'a str);

impl fmt::Display for UnknownGfpName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not the name of a gfp flag", self.0)
    }
}

impl core::error::Error for UnknownGfpName<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compound_names_expand() {
        let flags = Gfp::from_names("GFP_KERNEL_ACCOUNT|__GFP_ZERO").unwrap();
        assert_eq!(flags, Gfp::RECLAIM | Gfp::IO | Gfp::FS | Gfp::ACCOUNT | Gfp::ZERO);
        assert!(flags.contains(Gfp::DIRECT_RECLAIM));
        let movable = Gfp::from_names("GFP_HIGHUSER_MOVABLE|__GFP_COMP").unwrap();
        assert!(movable.contains(Gfp::HIGHMEM | Gfp::MOVABLE) && !movable.contains(Gfp::DMA));
        assert!(!Gfp::from_names("GFP_ATOMIC").unwrap().contains(Gfp::DIRECT_RECLAIM));
        assert!(Gfp::from_names("GFP_NOWAIT").unwrap().contains(Gfp::KSWAPD_RECLAIM));
        assert!(!Gfp::from_names("GFP_TRANSHUGE_LIGHT").unwrap().contains(Gfp::DIRECT_RECLAIM));
    }

    #[test]
    fn display_reads_back_bit_by_bit() {
        for bit in (0..28).chain([31]) {
            let flag = Gfp(1 << bit);
            assert_eq!(Gfp::from_names(&flag.to_string()), Ok(flag));
        }
        assert_eq!(Gfp::from_names("none"), Ok(Gfp::NONE));
        assert_eq!(Gfp::NONE.to_string(), "none");
    }

    #[test]
    fn unknown_names_are_told() {
        let error = Gfp::from_names("GFP_KERNEL|__GFP_COLD").unwrap_err();
        assert_eq!(error.to_string(), "\"__GFP_COLD\" is not the name of a gfp flag");
        assert_eq!(Gfp::from_names("GFP_KERNEL|0x1000000"), Ok(Gfp::KERNEL | Gfp::UNNAMED));
        assert!(Gfp::from_names("").is_err());
    }
}
