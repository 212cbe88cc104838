//! The revisions of kmmscand (kscand from the third on): what each does differently, as data. Figures are
//! the post's own where they are in it, else from docs/rules/numa-balancing-and-tiers.md.

use crate::ground::Nanos;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const fn ms(value: u64) -> Nanos {
    Nanos(value * 1_000_000)
}

/// The smallest, the first and the largest value of what a controller changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span3<T> {
    /// The smallest.
    pub min: T,
    /// Where it begins.
    pub first: T,
    /// The largest.
    pub max: T,
}

/// When an accessed page is hot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HotRule {
    /// At the first look that finds it accessed.
    First,
    /// At the second one in a row.
    Second,
}

/// Where hot pages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetRule {
    /// Node 0.
    NodeZero,
    /// The fast node where most accessed pages of the address space were seen.
    MostAccessed,
    /// The same; where it has no room, another fast one.
    WithFallback,
}

/// Who moves pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threads {
    /// The thread that scans, after a cycle.
    One,
    /// A thread of its own.
    Two,
}

/// A revision of the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Revision {
    /// Bytes of addresses in a scan; `None`: all of the address space.
    pub size: Option<Span3<u64>>,
    /// From the end of a scan of an address space to the next.
    pub period: Span3<Nanos>,
    /// Fewer useful pages than this count as none.
    pub ignored_below: u64,
    /// A scan that has its size goes on, at the largest one, if it found more useful pages than this.
    pub goes_on_above: Option<u64>,
    /// Whether a 16th of the last scan's useful pages is added to this one's.
    pub is_smoothed: bool,
    /// Between cycles over all address spaces.
    pub pause: Nanos,
    /// From the birth of an address space to its first scan.
    pub delay: Nanos,
    /// Address spaces in a cycle, at most.
    pub spaces_max: usize,
    /// What is hot.
    pub hot: HotRule,
    /// Where it goes.
    pub target: TargetRule,
    /// Who moves it.
    pub threads: Threads,
    /// Whether failed migrations make periods longer.
    pub has_feedback: bool,
}

impl Revision {
    /// The same with other bounds, as far as they are not 0: periods in ns, sizes in bytes. Where it begins stays within them.
    #[must_use]
    pub fn bounded(self, period_min: u64, period_max: u64, size_max: u64) -> Self {
        let or = |value: u64, own: u64| if value == 0 { own } else { value };
        let max = or(period_max, self.period.max.0);
        let min = or(period_min, self.period.min.0).min(max);
        let first = self.period.first.0.clamp(min, max);
        let size = self.size.map(|size| {
            let max = or(size_max, size.max);
            Span3 { min: size.min.min(max), first: size.first.min(max), max }
        });
        Self { period: Span3 { min: Nanos(min), first: Nanos(first), max: Nanos(max) }, size, ..self }
    }
}

/// V0 (December 2024), with the post's patch, which is its sixth.
pub const V0: Revision = Revision {
    size: Some(Span3 { min: 512 * MIB, first: 4 * GIB, max: 16 * GIB }),
    period: Span3 { min: ms(400), first: ms(2000), max: ms(5000) },
    ignored_below: 100,
    goes_on_above: Some(100),
    is_smoothed: false,
    pause: ms(16),
    delay: Nanos(0),
    spaces_max: 4096,
    hot: HotRule::First,
    target: TargetRule::NodeZero,
    threads: Threads::One,
    has_feedback: false,
};

/// V0 before it: every scan is of the whole address space.
pub const V0_NOTHROTTLE: Revision = Revision { size: None, goes_on_above: None, ..V0 };

/// V1 (March 2025). What docs/rules/numa-balancing-and-tiers.md#kmmscand calls not found (pause, threshold, smoothing) is
/// as in its patches of the period and the size, which have 16 ms, 256 pages and a 16th.
pub const V1: Revision = Revision {
    size: Some(Span3 { min: 256 * MIB, first: GIB, max: 4 * GIB }),
    period: Span3 { min: ms(500), first: ms(2000), max: ms(5000) },
    ignored_below: 256,
    goes_on_above: None,
    is_smoothed: true,
    delay: ms(1000),
    target: TargetRule::MostAccessed,
    threads: Threads::Two,
    ..V0
};

/// V2 (June 2025), named kscand. Its page budget is left out: the tree overwrites it with one that nothing reaches.
pub const V2: Revision =
    Revision { period: Span3 { min: ms(600), first: ms(2000), max: ms(5000) }, pause: ms(20), ..V1 };

/// V3 (August 2025).
pub const V3: Revision =
    Revision { hot: HotRule::Second, target: TargetRule::WithFallback, has_feedback: true, ..V2 };
