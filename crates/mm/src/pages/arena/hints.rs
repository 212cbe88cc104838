//! What is said of free lists without their lock: which lists have blocks, and how much of an arena is whole ranges and
//! how much is pieces. It may be old by the time that it is read; whoever acts on it looks again under the lock.

use crate::ground::{AtomicU32, AtomicU64, MigrateType, Order, Relaxed};

/// Types that can have free blocks: isolated ones are on no list that anybody takes from.
const TYPES: u8 = MigrateType::Isolate as u8;

/// One bit for each order, [`TYPES`] bits apart.
const EACH_ORDER: u64 = {
    let (mut bits, mut order) = (0, 0);
    while order <= Order::MAX.get() {
        bits |= 1 << (order * TYPES);
        order += 1;
    }
    bits
};

/// A set of migrate types that can have free blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Types(u8);

impl Types {
    /// The types that any request may end up with.
    pub(crate) const ORDINARY: Self = Self((1 << MigrateType::PCP_COUNT) - 1);

    /// Just `migratetype`; none, if that can have no free blocks.
    pub(crate) const fn only(migratetype: MigrateType) -> Self {
        Self(1 << migratetype as u8 & ((1 << TYPES) - 1))
    }

    /// The same and `migratetype`.
    #[must_use]
    pub(crate) const fn with(self, migratetype: MigrateType) -> Self {
        Self(self.0 | Self::only(migratetype).0)
    }
}

/// Which lists of an arena have blocks.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// A bit for each list that is not empty: order × [`TYPES`] + type.
    nonempty: AtomicU64,
}

impl Hints {
    /// Whether a list of `order` or above has a block of one of `types`.
    #[inline]
    pub(crate) fn has(&self, order: Order, types: Types) -> bool {
        let from = EACH_ORDER >> (order.get() * TYPES) << (order.get() * TYPES);
        self.nonempty.load(Relaxed) & (from * u64::from(types.0)) != 0
    }

    /// Whether a list of `order` has a block of one of `types`.
    #[inline]
    pub(crate) fn has_list(&self, order: Order, types: Types) -> bool {
        self.nonempty.load(Relaxed) >> (order.get() * TYPES) & u64::from(types.0) != 0
    }

    /// Notes that a list became empty or ceased to be. The arena's lock is held.
    #[inline]
    pub(crate) fn set_list(&self, order: Order, migratetype: MigrateType, holds: bool) {
        let old = self.nonempty.load(Relaxed);
        let bit = bit(order, migratetype);
        self.nonempty.store(if holds { old | bit } else { old & !bit }, Relaxed);
    }
}

/// How much of an arena's free memory is whole, how much in pieces. Those of a zone lie side by side, for they are
/// compared more often than they change.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Blocks of the largest order, of any type.
    pub(crate) whole: AtomicU32,
    /// Movable pages in smaller blocks; told only when it has changed by [`PIECES_STEP`].
    pub(crate) pieces: AtomicU32,
}

/// By how many pages the count of pieces may be wrong.
pub(crate) const PIECES_STEP: u32 = 512;

/// The bit of a list; none for isolated blocks.
#[inline]
fn bit(order: Order, migratetype: MigrateType) -> u64 {
    if migratetype == MigrateType::Isolate { 0 } else { 1 << (order.get() * TYPES + migratetype as u8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_a_bit_of_its_own() {
        for order in Order::ZERO.to(Order::MAX) {
            for migratetype in MigrateType::ALL.into_iter().filter(|&kind| kind != MigrateType::Isolate) {
                let hints = Hints::default();
                hints.set_list(order, migratetype, true);
                for other in MigrateType::ALL {
                    for asked in Order::ZERO.to(Order::MAX) {
                        let there = asked <= order && other == migratetype;
                        assert_eq!(hints.has(asked, Types::only(other)), there, "{asked} {other:?}");
                        let listed = asked == order && other == migratetype;
                        assert_eq!(hints.has_list(asked, Types::only(other)), listed, "{asked} {other:?}");
                    }
                }
                hints.set_list(order, migratetype, false);
                assert!(!hints.has(Order::ZERO, Types(u8::MAX >> 3)));
            }
        }
    }
}
