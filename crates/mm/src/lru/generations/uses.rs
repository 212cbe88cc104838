//! How often a page was used, as flags and two bits of it say: calls that read or write it count up, accessed entries of page tables
//! make it young. By its uses a page is of a tier, 0 to 3.

use super::TIERS;
use crate::ground::{Machine, Pfn};
use crate::lru::LruGround;
use crate::lru::generations::GenDoor;
use crate::lru::page::{Page, PageFlag};
use crate::rules::policy::GenUseRule;

/// A page's uses by calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Uses {
    /// Beyond the first, or the first too, as the policy has it.
    pub(super) count: u32,
    pub(crate) tier: usize,
    /// As many as are counted at all.
    pub(super) full: bool,
}

/// The logarithm to base 2, rounded up.
const fn log2_up(number: u32) -> usize {
    if number <= 1 { 0 } else { (number - 1).ilog2() as usize + 1 }
}

/// The tier of a page that is used by calls so often beyond what its flags say.
pub(super) fn tier(rule: GenUseRule, uses: u32, workingset: bool) -> usize {
    let tier = match rule {
        GenUseRule::PromotesAtOnce => log2_up(uses + 1),
        GenUseRule::PromotesTheSecond if workingset => TIERS - 1,
        GenUseRule::PromotesTheSecond => log2_up(uses),
    };
    tier.min(TIERS - 1)
}

impl<M: Machine, G: LruGround<M>> GenDoor<'_, M, G> {
    pub(crate) fn uses_of(self, page: &Page) -> Uses {
        let (rule, workingset) = (self.gen_rules().uses, page.has(PageFlag::Workingset));
        let most = Page::MOST_USES + 1;
        let (count, full) = match rule {
            GenUseRule::PromotesAtOnce => {
                let count = page.uses() + u32::from(workingset);
                (count, count == most)
            }
            GenUseRule::PromotesTheSecond => {
                let count = if page.has(PageFlag::Referenced) { page.uses() + 1 } else { 0 };
                (count, count == most && workingset)
            }
        };
        Uses { count, tier: tier(rule, count, workingset), full }
    }

    /// A call used the page (`folio_inc_refs`).
    pub(in crate::lru) fn count_use(self, pfn: Pfn) {
        let page = self.lru().page(pfn);
        if page.has(PageFlag::Unevictable) {
            return;
        }
        let rule = self.gen_rules().uses;
        if !page.has(PageFlag::Referenced) {
            if rule == GenUseRule::PromotesTheSecond {
                page.set_uses(0);
            }
            page.set(PageFlag::Referenced);
            return;
        }
        if rule == GenUseRule::PromotesAtOnce && page.set(PageFlag::Workingset) {
            return;
        }
        let uses = page.uses();
        if uses < Page::MOST_USES {
            page.set_uses(uses + 1);
        } else {
            page.set(PageFlag::Workingset);
        }
    }

    /// It comes to another generation: uses by calls count anew. (Since 6.14 it stays in use if it was.)
    pub(super) fn forget_uses(self, page: &Page) {
        page.clear(PageFlag::Referenced);
        page.set_uses(0);
        if self.gen_rules().uses == GenUseRule::PromotesAtOnce {
            page.clear(PageFlag::Workingset);
        }
    }

    /// An entry that maps the page was used. Says whether that makes it young; else it is noted.
    pub(in crate::lru) fn note_young(self, page: &Page) -> bool {
        if self.gen_rules().uses == GenUseRule::PromotesAtOnce
            || page.has(PageFlag::Referenced)
            || page.has(PageFlag::Workingset)
        {
            return true;
        }
        page.set_uses(0);
        page.set(PageFlag::Referenced);
        false
    }

    /// Whether a look for pages in use passes over the page, whose entry stays used: since 6.14 it does if the page is of no generation
    /// now, as one that reclaim has taken off (`get_pfn_folio`). Traces of 6.18 and 7.2 say so: where a batch's first page was in use, so
    /// are all others beside it, and each makes those around it young.
    pub(crate) fn leaves_alone(self, page: &Page) -> bool {
        self.gen_rules().uses == GenUseRule::PromotesTheSecond && page.generation().is_none()
    }

    /// It is made young by somebody who looked at another (`lru_gen_set_refs`).
    pub(in crate::lru) fn note_promotion(self, page: &Page) {
        if self.gen_rules().uses == GenUseRule::PromotesTheSecond {
            self.forget_uses(page);
            page.set(PageFlag::Workingset);
        }
    }

    /// The same of a page that reclaim has taken off (`lru_gen_set_refs`): says whether it is to be active.
    pub(crate) fn note_young_isolated(self, pfn: Pfn) -> bool {
        let page = self.lru().page(pfn);
        let again = self.note_young(page);
        if again {
            self.forget_uses(page);
            page.set(PageFlag::Workingset);
        }
        again
    }

    /// A program will not need the page at `pfn` soon: what was counted is forgotten, where rules say so. Says whether it is to move, for it
    /// is not among the oldest already (`lru_gen_clear_refs`).
    pub(in crate::lru) fn note_cold(self, pfn: Pfn) -> bool {
        if self.gen_rules().uses == GenUseRule::PromotesAtOnce {
            return true;
        }
        let page = self.lru().page(pfn);
        page.set_uses(0);
        page.clear(PageFlag::Referenced);
        page.clear(PageFlag::Workingset);
        !self.is_oldest(pfn)
    }

    /// Whether a batch that moves a page to where it is to go soon forgets that it was used. (Since 6.14 what would is asked after the page was taken
    /// off its list, and does nothing then.)
    pub(in crate::lru) fn forgets_in_batches(self) -> bool {
        !self.lru().keeps_generations() || self.gen_rules().uses == GenUseRule::PromotesAtOnce
    }

    /// Reclaim takes the page off its list: what calls counted stays only if it was used since it came (`isolate_folio`).
    pub(super) fn note_isolation(self, page: &Page) {
        let early = self.gen_rules().uses == GenUseRule::PromotesAtOnce;
        if !page.has(PageFlag::Referenced) {
            page.set_uses(0);
            if early {
                page.clear(PageFlag::Workingset);
            }
        }
        page.clear(PageFlag::Reclaim);
        if early {
            page.clear(PageFlag::Referenced);
        }
    }

    /// Whether the page, while it was off its list, was found in use beside another: there it could not be promoted, and was
    /// marked.
    pub(crate) fn was_found_young(self, page: &Page) -> bool {
        self.lru().keeps_generations()
            && self.gen_rules().uses == GenUseRule::PromotesAtOnce
            && page.mapped() > 0
            && page.has(PageFlag::Referenced)
    }

    /// It could not be freed, and is not to come to the oldest generation.
    pub(crate) fn note_rejection(self, page: &Page) {
        self.forget_uses(page);
        page.set(PageFlag::Active);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_logarithms_of_uses() {
        let by = |rule, workingset| [0, 1, 2, 3, 4].map(|uses| tier(rule, uses, workingset));
        assert_eq!(by(GenUseRule::PromotesAtOnce, true), [0, 1, 2, 2, 3]);
        assert_eq!(by(GenUseRule::PromotesTheSecond, false), [0, 0, 1, 2, 2]);
        assert_eq!(by(GenUseRule::PromotesTheSecond, true), [3; 5]);
    }
}
