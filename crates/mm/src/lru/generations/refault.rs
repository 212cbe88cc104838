//! Pages of generations that come back: an evicted one leaves the number of its generation and how often it was used
//! (`lru_gen_eviction`); if it comes back while that generation counts, its tier is known to have been evicted too early
//! (`lru_gen_refault`).

use super::uses::tier;
use super::{Kind, MAX_GENERATIONS};
use crate::ground::{Machine, Pfn, Relaxed};
use crate::lru::generations::GenDoor;
use crate::lru::page::{Page, PageFlag};
use crate::lru::workingset::{By, Shadow};
use crate::lru::{LruGround, VecEvent};
use crate::rules::policy::{GenRefaultRule, GenUseRule};

/// Bits of a shadow that say how often its page was used.
const USE_BITS: u32 = 2;

impl<M: Machine, G: LruGround<M>> GenDoor<'_, M, G> {
    /// The page at `pfn`, of no list, is about to be evicted.
    pub(in crate::lru) fn evict_from_generation(self, pfn: Pfn) -> Shadow {
        let (vec, page) = (self.lru().vec_of(pfn), self.lru().page(pfn));
        let (kind, uses) = (Kind::of(page), self.uses_of(page));
        let gens = self.gens(vec);
        gens.evicted[kind.index()][uses.tier].fetch_add(self.pages().order_of(pfn).pages().into(), Relaxed);
        let workingset = match self.gen_rules().uses {
            GenUseRule::PromotesAtOnce => uses.count > 0,
            GenUseRule::PromotesTheSecond => page.has(PageFlag::Workingset),
        };
        let age = gens.min(kind) << USE_BITS | u64::from(uses.count.saturating_sub(1));
        Shadow { by: vec, age, workingset }
    }

    /// The new page at `pfn`, which is on no list yet, is what left `shadow`; `by` brought it back.
    pub(in crate::lru) fn refault_in_generation(self, pfn: Pfn, shadow: Shadow, by: By) {
        let (vec, page) = (self.lru().vec_of(pfn), self.lru().page(pfn));
        if shadow.by != vec {
            return;
        }
        let (kind, rules) = (Kind::of(page), self.gen_rules());
        let (list, pages) = (kind.list(false), self.pages().order_of(pfn).pages());
        let count = |event: VecEvent| self.lru().count_in(vec, event.of_kind(list), pages);
        let (gens, generation) = (self.gens(vec), shadow.age >> USE_BITS);
        let is_recent = match rules.refault {
            GenRefaultRule::Oldest | GenRefaultRule::OldestOfAll => generation == gens.min(kind),
            GenRefaultRule::OfFour => gens.max().abs_diff(generation) < MAX_GENERATIONS,
        };
        if is_recent || rules.refault != GenRefaultRule::Oldest {
            count(VecEvent::RefaultFile);
        }
        if !is_recent {
            return;
        }
        let kept = (shadow.age & ((1 << USE_BITS) - 1)) as u32;
        let uses = match rules.uses {
            GenUseRule::PromotesAtOnce => kept + u32::from(shadow.workingset),
            GenUseRule::PromotesTheSecond => kept + 1,
        };
        let tier = tier(rules.uses, uses, shadow.workingset);
        gens.refaulted[kind.index()][tier].fetch_add(pages.into(), Relaxed);
        match rules.refault {
            GenRefaultRule::OldestOfAll => count(VecEvent::ActivateFile),
            GenRefaultRule::OfFour if by == By::Fault => count(VecEvent::ActivateFile),
            // 6.1 counts as activated what reclaim spares.
            GenRefaultRule::Oldest | GenRefaultRule::OfFour => {}
        }
        let was_in_use = match rules.uses {
            GenUseRule::PromotesAtOnce => by == By::Fault || uses >= Page::MOST_USES,
            GenUseRule::PromotesTheSecond => shadow.workingset,
        };
        if was_in_use {
            page.set(PageFlag::Workingset);
            if rules.uses == GenUseRule::PromotesAtOnce {
                page.set_uses(Page::MOST_USES);
            }
            count(VecEvent::RestoreFile);
        } else if rules.uses == GenUseRule::PromotesTheSecond {
            page.set_uses(uses - 1);
        }
    }
}
