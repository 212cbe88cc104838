//! What decides by refaults: which kind of pages goes, and which of them are spared for their uses (`positive_ctrl_err`). Of two
//! classes, the one of which more came back, for as many that were evicted, is let be.

use super::{GenVec, Kind, MIN_BATCH, Swappiness, TIERS, Tiers};
use crate::ground::{Machine, Relaxed};
use crate::lru::generations::GenDoor;
use crate::lru::{LruGround, VecId};
use crate::rules::policy::GenKindRule;

/// What became of a class of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Fared {
    refaulted: u64,
    total: u64,
    gain: u64,
}

/// Whether few of `this` came back, or no more than of `other` by their gains.
fn may_go(other: Fared, this: Fared) -> bool {
    this.refaulted < u64::from(MIN_BATCH)
        || u128::from(this.refaulted)
            * u128::from(other.total + u64::from(MIN_BATCH))
            * u128::from(other.gain)
            <= u128::from(other.refaulted + 1) * u128::from(this.total) * u128::from(this.gain)
}

/// What is to be evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    pub(crate) kind: Kind,
    /// The highest tier that may go.
    pub(crate) tier: usize,
}

impl<M: Machine> GenVec<M> {
    fn fared(&self, kind: Kind, tiers: core::ops::Range<usize>, gain: u64) -> Fared {
        let at = |of: &[Tiers; 2], tier: usize| of[kind.index()][tier].load(Relaxed);
        let add = |sum: Fared, tier: usize| Fared {
            refaulted: sum.refaulted + at(&self.past_refaulted, tier) + at(&self.refaulted, tier),
            total: sum.total + at(&self.past_total, tier) + at(&self.evicted, tier) + at(&self.spared, tier),
            gain,
        };
        tiers.fold(Fared { gain, ..Fared::default() }, add)
    }

    /// The oldest generation of `kind` is another from now on: what was counted becomes past (`reset_ctrl_pos`).
    pub(super) fn end_of_count(&self, kind: Kind) {
        let kind = kind.index();
        for tier in 0..TIERS {
            let refaulted = self.refaulted[kind][tier].swap(0, Relaxed);
            let total = self.evicted[kind][tier].swap(0, Relaxed) + self.spared[kind][tier].swap(0, Relaxed);
            let halve = |past: &Tiers, now: u64| {
                past[tier].store(u64::midpoint(past[tier].load(Relaxed), now), Relaxed);
            };
            halve(&self.past_refaulted[kind], refaulted);
            halve(&self.past_total[kind], total);
        }
    }

    /// The highest tier of `kind` that may go, held against `other`.
    fn highest_tier(&self, kind: Kind, other: Fared, gain: u64) -> usize {
        let may_go = |tier: &usize| may_go(other, self.fared(kind, *tier..tier + 1, gain));
        (1..TIERS).take_while(may_go).last().unwrap_or(0)
    }

    /// The same, held against its own pages that were used least.
    fn tier_by_itself(&self, rule: GenKindRule, kind: Kind) -> usize {
        let (own, others) = match rule {
            GenKindRule::LeastUsed => (1, 2),
            GenKindRule::AllUses => (2, 3),
        };
        self.highest_tier(kind, self.fared(kind, 0..1, own), others)
    }

    /// Which kind goes first by what came back, and which of its tiers.
    fn choose(&self, rule: GenKindRule, swappiness: u32) -> Choice {
        let gain = |kind: Kind| u64::from(if kind == Kind::Anon { swappiness } else { 200 - swappiness });
        let tiers = match rule {
            GenKindRule::LeastUsed => 0..1,
            GenKindRule::AllUses => 0..TIERS,
        };
        let fared = |kind: Kind| self.fared(kind, tiers.clone(), gain(kind));
        let kind = if may_go(fared(Kind::Anon), fared(Kind::File)) { Kind::File } else { Kind::Anon };
        let tier = match rule {
            GenKindRule::LeastUsed => self.highest_tier(kind, fared(kind.other()), gain(kind)),
            GenKindRule::AllUses => self.tier_by_itself(rule, kind),
        };
        Choice { kind, tier }
    }
}

impl<M: Machine, G: LruGround<M>> GenDoor<'_, M, G> {
    /// What goes first of `vec` (`isolate_folios`).
    pub(crate) fn choose(self, vec: VecId, swappiness: Swappiness) -> Choice {
        let (gens, rule) = (self.gens(vec), self.gen_rules().kind);
        let of = |kind| self.choice_of(vec, kind);
        let falls_behind = || rule == GenKindRule::LeastUsed && gens.min(Kind::Anon) < gens.min(Kind::File);
        match swappiness.0 {
            0 => of(Kind::File),
            _ if falls_behind() => of(Kind::Anon),
            1 => of(Kind::File),
            200.. => of(Kind::Anon),
            swappiness => gens.choose(rule, swappiness),
        }
    }

    /// What goes of `kind`.
    pub(crate) fn choice_of(self, vec: VecId, kind: Kind) -> Choice {
        Choice { kind, tier: self.gens(vec).tier_by_itself(self.gen_rules().kind, kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn fared(refaulted: u64, total: u64, gain: u64) -> Fared {
        Fared { refaulted, total, gain }
    }

    #[test]
    fn a_class_of_which_few_came_back_goes() {
        assert!(may_go(fared(0, 0, 1), fared(63, 64, 1)));
        assert!(!may_go(fared(0, 0, 1), fared(64, 64, 1)), "all came back, and of the other none did");
    }

    #[test]
    fn the_class_of_which_less_came_back_goes() {
        assert!(may_go(fared(500, 1000, 1), fared(400, 1000, 1)));
        assert!(!may_go(fared(400, 1000, 1), fared(500, 1000, 1)));
        // A gain of two bears twice as many.
        assert!(may_go(fared(400, 1000, 1), fared(700, 1000, 2)));
        assert!(!may_go(fared(400, 1000, 1), fared(900, 1000, 2)));
    }
}
